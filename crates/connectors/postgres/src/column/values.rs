//! The values of a column, by the type that was chosen once for it.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, FixedSizeBinaryArray,
    PrimitiveArray, StringArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type,
    Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, UInt32Type, UInt64Type, i256,
};
use arrow::error::ArrowError;

use super::cells::Cells;
use crate::numeric::{self, Number};
use crate::types::Wire;

/// Days and microseconds from 1970 to 2000, where the server counts from.
const DAYS_TO_2000: i32 = 10_957;
const MICROS_TO_2000: i64 = 946_684_800_000_000;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Value,
    /// NaN or an infinite number.
    SpecialNumber,
    /// A time that is infinite, or beyond what Arrow can count.
    InfiniteTime {
        high: bool,
    },
    /// A number with more digits than the type has.
    DoesNotFit,
    /// Not the bytes of the type.
    Malformed,
}

/// The values so far.
pub(super) enum Values {
    Bool(BooleanBufferBuilder),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal128 {
        values: Vec<i128>,
        limit: i128,
        scale: i8,
    },
    Decimal256 {
        values: Vec<i256>,
        limit: i256,
        scale: i8,
    },
    Date(Vec<i32>),
    Time(Vec<i64>),
    Timestamp(Vec<i64>),
    Uuid(Vec<u8>),
    Text(Cells),
    /// Numbers as text, among them NaN and infinite ones.
    NumberText(Cells),
    Jsonb(Cells),
    Bytea(Cells),
}

impl Values {
    /// Values that are sent in a form and kept as a type; `None` where there is no
    /// way from one to the other.
    pub(super) fn new(wire: Wire, data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match (wire, data_type) {
            (Wire::Bool, T::Boolean) => Self::Bool(BooleanBufferBuilder::new(0)),
            (Wire::Int2, T::Int16) => Self::Int16(vec![]),
            (Wire::Int4, T::Int32) => Self::Int32(vec![]),
            (Wire::Int8, T::Int64) => Self::Int64(vec![]),
            (Wire::Oid, T::UInt32) => Self::UInt32(vec![]),
            (Wire::Xid8, T::UInt64) => Self::UInt64(vec![]),
            (Wire::Float4, T::Float32) => Self::Float32(vec![]),
            (Wire::Float8, T::Float64) => Self::Float64(vec![]),
            (Wire::Numeric, T::Decimal128(precision, scale)) => Self::Decimal128 {
                values: vec![],
                limit: 10i128.checked_pow((*precision).into()).unwrap_or(i128::MAX),
                scale: *scale,
            },
            (Wire::Numeric, T::Decimal256(precision, scale)) => Self::Decimal256 {
                values: vec![],
                limit: i256::from_i128(10).checked_pow((*precision).into()).unwrap_or(i256::MAX),
                scale: *scale,
            },
            (Wire::Date, T::Date32) => Self::Date(vec![]),
            (Wire::Time, T::Time64(TimeUnit::Microsecond)) => Self::Time(vec![]),
            (Wire::Timestamp | Wire::Timestamptz, T::Timestamp(TimeUnit::Microsecond, _)) => {
                Self::Timestamp(vec![])
            }
            (Wire::Uuid, T::FixedSizeBinary(16)) => Self::Uuid(vec![]),
            (Wire::Text | Wire::Cast | Wire::Json, T::Utf8) => Self::Text(Cells::default()),
            (Wire::NumberText, T::Utf8) => Self::NumberText(Cells::default()),
            (Wire::Jsonb, T::Utf8) => Self::Jsonb(Cells::default()),
            (Wire::Bytea, T::Binary) => Self::Bytea(Cells::default()),
            _ => return None,
        })
    }

    /// Bytes of a row that do not depend on its value.
    pub(super) fn fixed_width(&self) -> usize {
        match self {
            Self::Bool(_) => 1,
            Self::Int16(_) => 2,
            Self::Int32(_) | Self::UInt32(_) | Self::Float32(_) | Self::Date(_) => 4,
            Self::Int64(_)
            | Self::UInt64(_)
            | Self::Float64(_)
            | Self::Time(_)
            | Self::Timestamp(_) => 8,
            Self::Decimal128 { .. } | Self::Uuid(_) => 16,
            Self::Decimal256 { .. } => 32,
            Self::Text(_) | Self::NumberText(_) | Self::Jsonb(_) | Self::Bytea(_) => 4,
        }
    }

    /// Bytes of a cell beyond the fixed width.
    #[inline]
    pub(super) fn variable_width(&self, cell: usize) -> usize {
        match self {
            Self::Text(_) | Self::NumberText(_) | Self::Jsonb(_) | Self::Bytea(_) => cell,
            _ => 0,
        }
    }

    /// Adds a value that nobody will see.
    pub(super) fn push_null(&mut self) {
        match self {
            Self::Bool(values) => values.append(false),
            Self::Int16(values) => values.push(0),
            Self::Int32(values) | Self::Date(values) => values.push(0),
            Self::Int64(values) | Self::Time(values) | Self::Timestamp(values) => values.push(0),
            Self::UInt32(values) => values.push(0),
            Self::UInt64(values) => values.push(0),
            Self::Float32(values) => values.push(0.0),
            Self::Float64(values) => values.push(0.0),
            Self::Decimal128 { values, .. } => values.push(0),
            Self::Decimal256 { values, .. } => values.push(i256::ZERO),
            Self::Uuid(values) => values.extend([0; 16]),
            Self::Text(cells)
            | Self::NumberText(cells)
            | Self::Jsonb(cells)
            | Self::Bytea(cells) => cells.push_null(),
        }
    }

    /// Takes the last values back.
    pub(super) fn truncate(&mut self, rows: usize) {
        match self {
            Self::Bool(values) => values.truncate(rows),
            Self::Int16(values) => values.truncate(rows),
            Self::Int32(values) | Self::Date(values) => values.truncate(rows),
            Self::Int64(values) | Self::Time(values) | Self::Timestamp(values) => {
                values.truncate(rows)
            }
            Self::UInt32(values) => values.truncate(rows),
            Self::UInt64(values) => values.truncate(rows),
            Self::Float32(values) => values.truncate(rows),
            Self::Float64(values) => values.truncate(rows),
            Self::Decimal128 { values, .. } => values.truncate(rows),
            Self::Decimal256 { values, .. } => values.truncate(rows),
            Self::Uuid(values) => values.truncate(rows.saturating_mul(16)),
            Self::Text(cells)
            | Self::NumberText(cells)
            | Self::Jsonb(cells)
            | Self::Bytea(cells) => cells.truncate(rows),
        }
    }

    /// Adds a cell, unless it is one that needs a decision.
    #[inline]
    pub(super) fn store(&mut self, cell: &[u8]) -> Stored {
        match self {
            Self::Bool(values) => match cell {
                [byte @ (0 | 1)] => {
                    values.append(*byte == 1);
                    Stored::Value
                }
                _ => Stored::Malformed,
            },
            Self::Int16(values) => fixed(cell, |bytes| values.push(i16::from_be_bytes(bytes))),
            Self::Int32(values) => fixed(cell, |bytes| values.push(i32::from_be_bytes(bytes))),
            Self::Int64(values) => fixed(cell, |bytes| values.push(i64::from_be_bytes(bytes))),
            Self::UInt32(values) => fixed(cell, |bytes| values.push(u32::from_be_bytes(bytes))),
            Self::UInt64(values) => fixed(cell, |bytes| values.push(u64::from_be_bytes(bytes))),
            Self::Float32(values) => match <[u8; 4]>::try_from(cell).map(f32::from_be_bytes) {
                Ok(value) if value.is_finite() => {
                    values.push(value);
                    Stored::Value
                }
                Ok(_) => Stored::SpecialNumber,
                Err(_) => Stored::Malformed,
            },
            Self::Float64(values) => match <[u8; 8]>::try_from(cell).map(f64::from_be_bytes) {
                Ok(value) if value.is_finite() => {
                    values.push(value);
                    Stored::Value
                }
                Ok(_) => Stored::SpecialNumber,
                Err(_) => Stored::Malformed,
            },
            Self::Decimal128 { values, limit, scale } => {
                decimal(numeric::read(cell, *scale, *limit), values)
            }
            Self::Decimal256 { values, limit, scale } => {
                decimal(numeric::read(cell, *scale, *limit), values)
            }
            Self::Time(values) => time_of_day(cell, values),
            Self::Date(values) => match <[u8; 4]>::try_from(cell).map(i32::from_be_bytes) {
                Ok(days @ (i32::MIN | i32::MAX)) => Stored::InfiniteTime { high: days > 0 },
                Ok(days) => match days.checked_add(DAYS_TO_2000) {
                    Some(days) => {
                        values.push(days);
                        Stored::Value
                    }
                    None => Stored::InfiniteTime { high: true },
                },
                Err(_) => Stored::Malformed,
            },
            Self::Timestamp(values) => match <[u8; 8]>::try_from(cell).map(i64::from_be_bytes) {
                Ok(micros @ (i64::MIN | i64::MAX)) => Stored::InfiniteTime { high: micros > 0 },
                // The server counts from 2000 and so reaches 29 years further.
                Ok(micros) => match micros.checked_add(MICROS_TO_2000) {
                    Some(micros) => {
                        values.push(micros);
                        Stored::Value
                    }
                    None => Stored::InfiniteTime { high: true },
                },
                Err(_) => Stored::Malformed,
            },
            Self::Uuid(values) => fixed::<16>(cell, |bytes| values.extend(bytes)),
            Self::NumberText(_) if numeric::is_special(cell) => Stored::SpecialNumber,
            Self::Text(cells) | Self::NumberText(cells) | Self::Bytea(cells) => put(cells, cell),
            Self::Jsonb(cells) => match cell.split_first() {
                Some((1, text)) => put(cells, text),
                _ => Stored::Malformed,
            },
        }
    }

    /// Adds a number that is NaN or infinite as it is; false where the type has
    /// none.
    pub(super) fn store_special(&mut self, cell: &[u8]) -> bool {
        match self {
            Self::Float32(values) => {
                fixed(cell, |bytes| values.push(f32::from_be_bytes(bytes))) == Stored::Value
            }
            Self::Float64(values) => {
                fixed(cell, |bytes| values.push(f64::from_be_bytes(bytes))) == Stored::Value
            }
            Self::NumberText(cells) => put(cells, cell) == Stored::Value,
            _ => false,
        }
    }

    /// Adds the lowest or highest time that the type can hold.
    pub(super) fn store_end(&mut self, high: bool) {
        match self {
            Self::Date(values) => values.push(if high { i32::MAX } else { i32::MIN }),
            Self::Timestamp(values) => values.push(if high { i64::MAX } else { i64::MIN }),
            Self::Time(values) => values.push(MICROS_PER_DAY - 1),
            _ => {}
        }
    }

    /// The array of all values, with none left.
    pub(super) fn finish(
        &mut self,
        nulls: Option<NullBuffer>,
        data_type: &DataType,
    ) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Bool(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Self::Int16(values) => primitive::<Int16Type>(values, nulls, data_type)?,
            Self::Int32(values) => primitive::<Int32Type>(values, nulls, data_type)?,
            Self::Int64(values) => primitive::<Int64Type>(values, nulls, data_type)?,
            Self::UInt32(values) => primitive::<UInt32Type>(values, nulls, data_type)?,
            Self::UInt64(values) => primitive::<UInt64Type>(values, nulls, data_type)?,
            Self::Float32(values) => primitive::<Float32Type>(values, nulls, data_type)?,
            Self::Float64(values) => primitive::<Float64Type>(values, nulls, data_type)?,
            Self::Decimal128 { values, .. } => {
                primitive::<Decimal128Type>(values, nulls, data_type)?
            }
            Self::Decimal256 { values, .. } => {
                primitive::<Decimal256Type>(values, nulls, data_type)?
            }
            Self::Date(values) => primitive::<Date32Type>(values, nulls, data_type)?,
            Self::Time(values) => primitive::<Time64MicrosecondType>(values, nulls, data_type)?,
            Self::Timestamp(values) => {
                primitive::<TimestampMicrosecondType>(values, nulls, data_type)?
            }
            Self::Uuid(values) => {
                let bytes = refill(values);
                Arc::new(FixedSizeBinaryArray::try_new(16, bytes.into(), nulls)?)
            }
            Self::Text(cells) | Self::NumberText(cells) | Self::Jsonb(cells) => {
                let (offsets, data) = cells.take();
                Arc::new(StringArray::try_new(offsets, data, nulls)?)
            }
            Self::Bytea(cells) => {
                let (offsets, data) = cells.take();
                Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
            }
        })
    }
}

#[inline]
fn fixed<const N: usize>(cell: &[u8], push: impl FnOnce([u8; N])) -> Stored {
    match <[u8; N]>::try_from(cell) {
        Ok(bytes) => {
            push(bytes);
            Stored::Value
        }
        Err(_) => Stored::Malformed,
    }
}

#[inline]
fn put(cells: &mut Cells, cell: &[u8]) -> Stored {
    if cells.push(cell) { Stored::Value } else { Stored::Malformed }
}

/// PostgreSQL knows 24:00:00, Parquet's times end before it.
fn time_of_day(cell: &[u8], values: &mut Vec<i64>) -> Stored {
    match <[u8; 8]>::try_from(cell).map(i64::from_be_bytes) {
        Ok(micros) if (0..MICROS_PER_DAY).contains(&micros) => {
            values.push(micros);
            Stored::Value
        }
        Ok(_) => Stored::InfiniteTime { high: true },
        Err(_) => Stored::Malformed,
    }
}

#[inline]
fn decimal<T>(number: Option<Number<T>>, values: &mut Vec<T>) -> Stored {
    match number {
        Some(Number::Exact(value)) => {
            values.push(value);
            Stored::Value
        }
        Some(Number::Special) => Stored::SpecialNumber,
        Some(Number::DoesNotFit) => Stored::DoesNotFit,
        None => Stored::Malformed,
    }
}

/// The values, with an empty vector of the same size left in their place.
fn refill<T>(values: &mut Vec<T>) -> Vec<T> {
    let fresh = Vec::with_capacity(values.len());
    std::mem::replace(values, fresh)
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef, ArrowError> {
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(refill(values)), nulls)?;
    // Time zone, precision and scale are part of the type.
    Ok(Arc::new(array.with_data_type(data_type.clone())))
}
