//! Whether a cell is what the server prints.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use tidelake_watermark::{Kind, Value};

/// Whether the cell is what the server prints.
pub(crate) fn same(column: &ArrayRef, row: usize, text: &str) -> bool {
    use DataType as T;
    match column.data_type() {
        T::Boolean => column.as_boolean().value(row).to_string() == text,
        T::Int16 => column.as_primitive::<Int16Type>().value(row).to_string() == text,
        T::Int32 => column.as_primitive::<Int32Type>().value(row).to_string() == text,
        T::Int64 => column.as_primitive::<Int64Type>().value(row).to_string() == text,
        T::UInt32 => column.as_primitive::<UInt32Type>().value(row).to_string() == text,
        T::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string() == text,
        T::Float32 => {
            let value: f32 = text.parse().unwrap();
            column.as_primitive::<Float32Type>().value(row).total_cmp(&value).is_eq()
        }
        T::Float64 => {
            let value: f64 = text.parse().unwrap();
            column.as_primitive::<Float64Type>().value(row).total_cmp(&value).is_eq()
        }
        T::Decimal128(_, _) => column.as_primitive::<Decimal128Type>().value_as_string(row) == text,
        T::Decimal256(_, _) => column.as_primitive::<Decimal256Type>().value_as_string(row) == text,
        T::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            Value::parse(Kind::Date, text).unwrap() == Value::Date(days.into())
        }
        T::Time64(_) => {
            let micros = column.as_primitive::<Time64MicrosecondType>().value(row);
            let parts: Vec<f64> = text.split(':').map(|part| part.parse().unwrap()).collect();
            let seconds = parts[0] * 3600.0 + parts[1] * 60.0 + parts[2];
            (seconds * 1e6).round() as i64 == micros
        }
        T::Timestamp(_, zone) => {
            let nanos =
                i128::from(column.as_primitive::<TimestampMicrosecondType>().value(row)) * 1000;
            let (kind, value) = match zone {
                None => (Kind::Datetime, Value::Datetime(nanos)),
                Some(_) => (Kind::Timestamp, Value::Timestamp(nanos)),
            };
            Value::parse(kind, text).unwrap() == value
        }
        T::FixedSizeBinary(16) => {
            let hex: String = column
                .as_fixed_size_binary()
                .value(row)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            hex == text.replace('-', "")
        }
        T::Binary => {
            let hex: String =
                column.as_binary::<i32>().value(row).iter().map(|b| format!("{b:02x}")).collect();
            format!("\\x{hex}") == text
        }
        T::Utf8 => column.as_string::<i32>().value(row) == text,
        other => panic!("{other} is compared by nobody"),
    }
}
