//! Cells as text: as the sources print them, so that rows can be looked up by it.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidelake_watermark::Value;

/// The text of a cell; `None` is NULL.
pub(crate) fn cell_text(column: &ArrayRef, row: usize) -> Option<String> {
    if row >= column.len() || column.is_null(row) {
        return None;
    }
    let time = |count: i64, nanos: i128, zone: bool| {
        let nanos = i128::from(count).saturating_mul(nanos);
        let value = if zone { Value::Timestamp(nanos) } else { Value::Datetime(nanos) };
        value.to_string()
    };
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).to_owned(),
        DataType::Utf8View => column.as_string_view().value(row).to_owned(),
        DataType::Date32 => {
            Value::Date(column.as_primitive::<Date32Type>().value(row).into()).to_string()
        }
        DataType::Timestamp(unit, zone) => {
            let zone = zone.is_some();
            match unit {
                TimeUnit::Second => time(
                    column.as_primitive::<TimestampSecondType>().value(row),
                    1_000_000_000,
                    zone,
                ),
                TimeUnit::Millisecond => time(
                    column.as_primitive::<TimestampMillisecondType>().value(row),
                    1_000_000,
                    zone,
                ),
                TimeUnit::Microsecond => {
                    time(column.as_primitive::<TimestampMicrosecondType>().value(row), 1_000, zone)
                }
                TimeUnit::Nanosecond => {
                    time(column.as_primitive::<TimestampNanosecondType>().value(row), 1, zone)
                }
            }
        }
        // The only values of that width are those of the UUID type.
        DataType::FixedSizeBinary(16) => uuid(column.as_fixed_size_binary().value(row)),
        DataType::FixedSizeBinary(_) => bytes(column.as_fixed_size_binary().value(row)),
        DataType::Binary => bytes(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(column.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(column.as_binary_view().value(row)),
        _ => {
            let options = FormatOptions::new().with_null("NULL");
            let printed = ArrayFormatter::try_new(column.as_ref(), &options)
                .and_then(|formatter| formatter.value(row).try_to_string());
            printed.unwrap_or_else(|_| format!("a value of type {}", column.data_type()))
        }
    })
}

fn bytes(value: &[u8]) -> String {
    Value::Binary(value.to_vec()).to_string()
}

fn uuid(value: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in value.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Int64Array,
        StringArray, TimestampMicrosecondArray,
    };

    use super::*;

    #[test]
    fn cells_are_printed_as_databases_do() {
        let uuid = (0..16).collect::<Vec<u8>>();
        let uuids = FixedSizeBinaryArray::try_from_iter([uuid].into_iter()).unwrap();
        let decimals = Decimal128Array::from(vec![-150]).with_precision_and_scale(5, 2).unwrap();
        let times = TimestampMicrosecondArray::from(vec![1_796_030_100_123_456]);
        for (column, wanted) in [
            (Arc::new(Int64Array::from(vec![-42])) as ArrayRef, "-42"),
            (Arc::new(BooleanArray::from(vec![true])), "true"),
            (Arc::new(StringArray::from(vec!["it's"])), "it's"),
            (Arc::new(Date32Array::from(vec![-1])), "1969-12-31"),
            (Arc::new(decimals), "-1.50"),
            (Arc::new(times.clone()), "2026-11-30T09:15:00.123456"),
            (Arc::new(times.with_timezone("UTC")), "2026-11-30T09:15:00.123456Z"),
            (Arc::new(BinaryArray::from(vec![&[0_u8, 255][..]])), "0x00FF"),
            (Arc::new(uuids), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ] {
            assert_eq!(cell_text(&column, 0).as_deref(), Some(wanted));
        }
        let nothing: ArrayRef = Arc::new(Int64Array::from(vec![None]));
        assert_eq!(cell_text(&nothing, 0), None);
        assert_eq!(cell_text(&nothing, 7), None);
    }
}
