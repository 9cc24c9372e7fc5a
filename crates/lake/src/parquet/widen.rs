//! Types that can follow one another in a table's files.

use arrow::datatypes::DataType;

/// Whether every value of `from` is a value of `to`, so that files of the first
/// can be read as the second.
pub fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let rank = |data_type: &DataType| match data_type {
        T::Int8 | T::UInt8 => Some(1),
        T::Int16 | T::UInt16 => Some(2),
        T::Int32 | T::UInt32 => Some(3),
        T::Int64 | T::UInt64 => Some(4),
        _ => None,
    };
    match (from, to) {
        (T::Float32, T::Float64) => true,
        (
            T::Decimal128(precision, scale) | T::Decimal256(precision, scale),
            T::Decimal128(wide, wide_scale) | T::Decimal256(wide, wide_scale),
        ) => {
            let digits = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
            let is_other = from != to;
            is_other
                && wide_scale >= scale
                && digits(*wide, *wide_scale) >= digits(*precision, *scale)
        }
        (from, to) => match (rank(from), rank(to)) {
            // A signed number may be below what an unsigned one can be.
            (Some(has), Some(wants)) => {
                has < wants && !(from.is_signed_integer() && to.is_unsigned_integer())
            }
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn only_what_holds_every_value_is_wider() {
        use DataType as T;
        for (from, to, wanted) in [
            (T::Int8, T::Int16, true),
            (T::Int16, T::Int64, true),
            (T::Int32, T::Int64, true),
            (T::Int64, T::Int32, false),
            (T::Int32, T::Int32, false),
            (T::UInt8, T::UInt16, true),
            (T::UInt32, T::UInt64, true),
            (T::UInt32, T::Int64, true),
            (T::UInt16, T::Int16, false),
            (T::UInt64, T::Int64, false),
            (T::Int8, T::UInt64, false),
            (T::Float32, T::Float64, true),
            (T::Float64, T::Float32, false),
            (T::Int32, T::Float64, false),
            (T::Decimal128(10, 2), T::Decimal128(12, 2), true),
            (T::Decimal128(10, 2), T::Decimal128(12, 4), true),
            (T::Decimal128(10, 2), T::Decimal128(12, 5), false),
            (T::Decimal128(10, 2), T::Decimal128(12, 1), false),
            (T::Decimal128(10, 2), T::Decimal128(10, 2), false),
            (T::Decimal128(38, 10), T::Decimal256(76, 38), true),
            (T::Decimal256(40, 0), T::Decimal128(38, 0), false),
            (T::Date32, T::Timestamp(TimeUnit::Microsecond, None), false),
            (
                T::Timestamp(TimeUnit::Microsecond, None),
                T::Timestamp(TimeUnit::Nanosecond, None),
                false,
            ),
            (T::Int32, T::Utf8, false),
        ] {
            assert_eq!(widens(&from, &to), wanted, "{from} to {to}");
        }
    }
}
