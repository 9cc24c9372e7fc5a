//! Keys as cells, to be found in the lake.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, RecordBatch,
    Scalar, StringArray, new_null_array,
};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, and, cast_with_options};
use arrow::datatypes::{
    ArrowTimestampType, DataType, SchemaRef, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::{Kind, Value};

/// One key: columns with one cell each.
#[derive(Debug, Clone)]
pub(super) struct KeyCells(Vec<(String, ArrayRef)>);

impl KeyCells {
    /// The key's cells in a row; `None` where there is no key, or it was not read.
    pub(super) fn of_row(row: &RecordBatch, key: &[String]) -> Option<Self> {
        let cell = |name: &String| Some((name.clone(), Arc::clone(row.column_by_name(name)?)));
        let cells: Option<Vec<_>> = key.iter().map(cell).collect();
        cells.filter(|cells| !cells.is_empty()).map(Self)
    }

    /// Cells of these texts.
    pub(super) fn of_texts(key: &[(String, Option<String>)], schema: &SchemaRef) -> Result<Self> {
        let mut cells = vec![];
        for (name, text) in key {
            let field = schema.field_with_name(name).map_err(|_| {
                Error::new(
                    ErrorKind::Configuration,
                    format!(
                        "the lake does not have column {name:?}, and no row can be found by it"
                    ),
                )
                .with_hint("name the row by columns that are synced")
            })?;
            let cell = match text {
                None => new_null_array(field.data_type(), 1),
                Some(text) => parsed(text, field.data_type()).ok_or_else(|| {
                    let message = format!("{text:?} is no value of column {name:?}");
                    Error::new(ErrorKind::Configuration, message)
                        .with_hint("give the value as the database itself prints it")
                })?,
            };
            cells.push((name.clone(), cell));
        }
        Ok(Self(cells))
    }

    /// Which rows of a batch have the key.
    pub(super) fn mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let failed = |error| {
            Error::new(ErrorKind::Unsupported, "rows cannot be found by a key of this type")
                .with_source(error)
        };
        let mut mask = BooleanArray::from(vec![true; batch.num_rows()]);
        for (name, cell) in &self.0 {
            let column = batch.column_by_name(name).ok_or_else(|| {
                Error::new(ErrorKind::Internal, format!("column {name:?} was not read"))
            })?;
            let same = not_distinct(column, &Scalar::new(Arc::clone(cell))).map_err(failed)?;
            mask = and(&mask, &same).map_err(failed)?;
        }
        Ok(mask)
    }
}

/// A text as a cell of that type.
fn parsed(text: &str, data_type: &DataType) -> Option<ArrayRef> {
    match data_type {
        DataType::Binary => {
            let Value::Binary(bytes) = Value::parse(Kind::Binary, &hexadecimal(text)).ok()? else {
                return None;
            };
            Some(Arc::new(BinaryArray::from(vec![bytes.as_slice()])))
        }
        DataType::FixedSizeBinary(length) => {
            let digits = format!("0x{}", text.replace('-', ""));
            let Value::Binary(bytes) = Value::parse(Kind::Binary, &digits).ok()? else {
                return None;
            };
            let array = FixedSizeBinaryArray::try_from_iter(std::iter::once(bytes)).ok()?;
            (array.value_length() == *length).then(|| Arc::new(array) as ArrayRef)
        }
        DataType::Timestamp(unit, zone) => time(text, *unit, zone.clone()),
        _ => {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(&texts, data_type, &options).ok().filter(|array| array.is_valid(0))
        }
    }
}

/// A moment as canonical text, or as people paste it.
fn time(text: &str, unit: TimeUnit, zone: Option<Arc<str>>) -> Option<ArrayRef> {
    let kind = if zone.is_some() { Kind::Timestamp } else { Kind::Datetime };
    let (Value::Datetime(nanos) | Value::Timestamp(nanos)) = Value::parse(kind, text).ok()? else {
        return None;
    };
    let count = |length: i128| {
        (nanos.rem_euclid(length) == 0).then(|| i64::try_from(nanos.div_euclid(length)).ok())?
    };
    Some(match unit {
        TimeUnit::Second => moments::<TimestampSecondType>(count(1_000_000_000)?, zone),
        TimeUnit::Millisecond => moments::<TimestampMillisecondType>(count(1_000_000)?, zone),
        TimeUnit::Microsecond => moments::<TimestampMicrosecondType>(count(1_000)?, zone),
        TimeUnit::Nanosecond => moments::<TimestampNanosecondType>(count(1)?, zone),
    })
}

fn moments<T: ArrowTimestampType>(count: i64, zone: Option<Arc<str>>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_value(count, 1).with_timezone_opt(zone))
}

/// Bytes as `\x…` or `0x…`.
fn hexadecimal(text: &str) -> String {
    match text.strip_prefix("\\x") {
        Some(digits) => format!("0x{digits}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::cell::cell_text;

    #[test]
    fn texts_become_cells_of_their_column() {
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for (text, data_type, wanted) in [
            ("42", DataType::Int32, Some("42")),
            ("x", DataType::Int32, None),
            ("it's", DataType::Utf8, Some("it's")),
            ("1.5", DataType::Decimal128(8, 2), Some("1.50")),
            ("2026-11-30", DataType::Date32, Some("2026-11-30")),
            ("2026-11-30 10:15:00.5+01", instant, Some("2026-11-30T09:15:00.5Z")),
            ("\\x00FF", DataType::Binary, Some("0x00FF")),
            ("0x00ff", DataType::Binary, Some("0x00FF")),
            (
                "00010203-0405-0607-0809-0a0b0c0d0e0f",
                DataType::FixedSizeBinary(16),
                Some("00010203-0405-0607-0809-0a0b0c0d0e0f"),
            ),
            ("0001", DataType::FixedSizeBinary(16), None),
        ] {
            let cell = parsed(text, &data_type);
            let found = cell.as_ref().and_then(|cell| cell_text(cell, 0));
            assert_eq!(found.as_deref(), wanted, "{text}");
        }
    }
}
