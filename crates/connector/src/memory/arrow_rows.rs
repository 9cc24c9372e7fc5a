//! Rows of typed values as Arrow columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, TimeUnit};
use tidelake_model::{Column, CursorType, Error, ErrorKind, Result, TableRead};
use tidelake_watermark::{Decimal, Kind, Value};

/// A column of one of the types that a memory table can have: `Int64`, `Date32`,
/// `Timestamp` in microseconds with or without a zone, `Utf8`, `Decimal128`,
/// `Binary`. It is indexed and in no key; both fields may be changed.
pub fn column(name: &str, data_type: DataType, nullable: bool) -> Result<Column> {
    let kind = kind_of(&data_type)?;
    Ok(Column {
        source_type: data_type.to_string().to_lowercase(),
        field: Field::new(name, data_type, nullable),
        cursor: Some(CursorType { kind, fraction_digits: 6 }),
        key_position: None,
        indexed: true,
        warning: None,
        chosen: false,
    })
}

/// The kind of the values in a column of that type.
pub(super) fn kind_of(data_type: &DataType) -> Result<Kind> {
    match data_type {
        DataType::Int64 => Ok(Kind::Integer),
        DataType::Date32 => Ok(Kind::Date),
        DataType::Timestamp(TimeUnit::Microsecond, None) => Ok(Kind::Datetime),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Ok(Kind::Timestamp),
        DataType::Utf8 => Ok(Kind::Text),
        DataType::Decimal128(_, _) => Ok(Kind::Number),
        DataType::Binary => Ok(Kind::Binary),
        other => {
            let message = format!("a memory table cannot have a column of type {other}");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

/// Whether the value can stand in the column without any loss.
pub(super) fn fits(column: &Column, value: Option<&Value>) -> Result<()> {
    let fits = match value {
        None => column.field.is_nullable(),
        Some(value) => {
            value.kind() == kind_of(column.field.data_type())?
                && array(column, &[Some(value)]).is_ok()
        }
    };
    if fits {
        return Ok(());
    }
    let value = value.map_or_else(|| "NULL".to_owned(), ToString::to_string);
    let message = format!("{value} does not fit into column {:?}", column.name());
    Err(Error::new(ErrorKind::Data, message))
}

/// About how many bytes a value takes in a batch.
pub(super) fn size(value: Option<&Value>) -> u64 {
    let length = match value {
        Some(Value::Text(text)) => text.len().saturating_add(4),
        Some(Value::Binary(bytes)) => bytes.len().saturating_add(4),
        Some(Value::Number(_)) => 16,
        _ => 8,
    };
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A batch of some rows; `cells` gives the values of a column by its place in
/// the read.
pub(super) fn batch<'a>(
    read: &TableRead,
    rows: usize,
    cells: impl Fn(usize) -> Vec<Option<&'a Value>>,
) -> Result<RecordBatch> {
    let columns: Result<Vec<_>> = read
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| array(column, &cells(place)))
        .collect();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(read.schema(), columns?, &options)
        .map_err(|error| Error::new(ErrorKind::Internal, "a batch of rows").with_source(error))
}

fn array(column: &Column, cells: &[Option<&Value>]) -> Result<ArrayRef> {
    let cells = || cells.iter().copied();
    Ok(match column.field.data_type() {
        DataType::Date32 => Arc::new(
            values(column, cells(), |value| match value {
                Value::Date(days) => i32::try_from(*days).ok(),
                _ => None,
            })?
            .into_iter()
            .collect::<Date32Array>(),
        ),
        DataType::Timestamp(_, zone) => {
            let micros = values(column, cells(), |value| match value {
                Value::Datetime(nanos) | Value::Timestamp(nanos) if nanos % 1_000 == 0 => {
                    i64::try_from(nanos / 1_000).ok()
                }
                _ => None,
            })?;
            let array: TimestampMicrosecondArray = micros.into_iter().collect();
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => Arc::new(
            values(column, cells(), |value| match value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            })?
            .into_iter()
            .collect::<StringArray>(),
        ),
        DataType::Binary => Arc::new(
            values(column, cells(), |value| match value {
                Value::Binary(bytes) => Some(bytes.as_slice()),
                _ => None,
            })?
            .into_iter()
            .collect::<BinaryArray>(),
        ),
        DataType::Decimal128(precision, scale) => {
            let numbers = values(column, cells(), |value| match value {
                Value::Number(number) => unscaled(number, *precision, *scale),
                _ => None,
            })?;
            let array: Decimal128Array = numbers.into_iter().collect();
            Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(|error| {
                Error::new(ErrorKind::Data, "decimals out of range").with_source(error)
            })?)
        }
        _ => Arc::new(
            values(column, cells(), |value| match value {
                Value::Integer(number) => i64::try_from(*number).ok(),
                _ => None,
            })?
            .into_iter()
            .collect::<Int64Array>(),
        ),
    })
}

/// Takes every value apart; one that the column cannot hold is an error.
fn values<'a, T>(
    column: &Column,
    cells: impl Iterator<Item = Option<&'a Value>>,
    take: impl Fn(&'a Value) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    cells
        .map(|cell| {
            let Some(value) = cell else { return Ok(None) };
            take(value).map(Some).ok_or_else(|| {
                let message = format!("column {:?} cannot hold {value}", column.name());
                Error::new(ErrorKind::Data, message)
            })
        })
        .collect()
}

/// The digits of a decimal at a scale; `None` where it has more of them.
fn unscaled(number: &Decimal, precision: u8, scale: i8) -> Option<i128> {
    let scale = usize::try_from(scale).ok()?;
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let kept = fraction.trim_end_matches('0');
    if kept.len() > scale {
        return None;
    }
    let digits = format!("{whole}{kept:0<scale$}");
    let number: i128 = digits.parse().ok()?;
    let limit = 10u128.checked_pow(precision.into())?;
    (number.unsigned_abs() < limit).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_is_taken_exactly_or_not_at_all() {
        let digits = |text: &str| unscaled(&Decimal::parse(text).unwrap(), 5, 2);
        assert_eq!(digits("1.5"), Some(150));
        assert_eq!(digits("-0.07"), Some(-7));
        assert_eq!(digits("1.500"), Some(150));
        assert_eq!(digits("1.501"), None);
        assert_eq!(digits("999.99"), Some(99_999));
        assert_eq!(digits("1000"), None);
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused() {
        let id = column("id", DataType::Int64, false).unwrap();
        assert!(fits(&id, Some(&Value::Integer(1))).is_ok());
        assert!(fits(&id, Some(&Value::Integer(i128::MAX))).is_err());
        assert!(fits(&id, Some(&Value::Text("1".to_owned()))).is_err());
        assert!(fits(&id, None).is_err());
    }
}
