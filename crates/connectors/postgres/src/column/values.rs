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

/// Why a cell was not stored as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Odd {
    /// NaN or an infinite number.
    SpecialNumber,
    /// A time that is infinite, or beyond what Arrow can count.
    InfiniteTime { high: bool },
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
    Uuid(Vec<[u8; 16]>),
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

    /// Whether cells take bytes beyond the fixed width.
    pub(super) fn is_variable(&self) -> bool {
        matches!(self, Self::Text(_) | Self::NumberText(_) | Self::Jsonb(_) | Self::Bytea(_))
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
            Self::Uuid(values) => values.truncate(rows),
            Self::Text(cells)
            | Self::NumberText(cells)
            | Self::Jsonb(cells)
            | Self::Bytea(cells) => cells.truncate(rows),
        }
    }

    /// Adds the cells of some rows, up to the first that needs a decision; a NULL
    /// becomes a value that nobody will see. Tells whether there was one.
    pub(super) fn store<'a>(
        &mut self,
        cells: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Result<bool, Odd> {
        match self {
            Self::Bool(values) => bools(values, cells),
            Self::Int16(values) => fixed(values, cells, |bytes| Ok(i16::from_be_bytes(bytes))),
            Self::Int32(values) => fixed(values, cells, |bytes| Ok(i32::from_be_bytes(bytes))),
            Self::Int64(values) => fixed(values, cells, |bytes| Ok(i64::from_be_bytes(bytes))),
            Self::UInt32(values) => fixed(values, cells, |bytes| Ok(u32::from_be_bytes(bytes))),
            Self::UInt64(values) => fixed(values, cells, |bytes| Ok(u64::from_be_bytes(bytes))),
            Self::Float32(values) => fixed(values, cells, |bytes| {
                let value = f32::from_be_bytes(bytes);
                if value.is_finite() { Ok(value) } else { Err(Odd::SpecialNumber) }
            }),
            Self::Float64(values) => fixed(values, cells, |bytes| {
                let value = f64::from_be_bytes(bytes);
                if value.is_finite() { Ok(value) } else { Err(Odd::SpecialNumber) }
            }),
            Self::Decimal128 { values, limit, scale } => {
                let (limit, scale) = (*limit, *scale);
                each(values, cells, |cell| match numeric::short(cell, scale) {
                    Some(value) if i128::from(value.unsigned_abs()) < limit => Ok(value.into()),
                    _ => decimal(numeric::read(cell, scale, limit)),
                })
            }
            Self::Decimal256 { values, limit, scale } => {
                let (limit, scale) = (*limit, *scale);
                each(values, cells, |cell| decimal(numeric::read(cell, scale, limit)))
            }
            Self::Date(values) => fixed(values, cells, |bytes| date(i32::from_be_bytes(bytes))),
            Self::Time(values) => fixed(values, cells, |bytes| time(i64::from_be_bytes(bytes))),
            Self::Timestamp(values) => {
                fixed(values, cells, |bytes| timestamp(i64::from_be_bytes(bytes)))
            }
            Self::Uuid(values) => fixed(values, cells, Ok),
            Self::Text(text) | Self::Bytea(text) => text.store(cells, Ok),
            Self::NumberText(text) => text.store(cells, |cell| match numeric::is_special(cell) {
                true => Err(Odd::SpecialNumber),
                false => Ok(cell),
            }),
            Self::Jsonb(text) => text.store(cells, |cell| match cell.split_first() {
                Some((1, text)) => Ok(text),
                _ => Err(Odd::Malformed),
            }),
        }
    }

    /// Adds a number that is NaN or infinite as it is; false where the type has
    /// none.
    pub(super) fn store_special(&mut self, cell: &[u8]) -> bool {
        let cell = std::iter::once(Some(cell));
        let stored = match self {
            Self::Float32(values) => fixed(values, cell, |bytes| Ok(f32::from_be_bytes(bytes))),
            Self::Float64(values) => fixed(values, cell, |bytes| Ok(f64::from_be_bytes(bytes))),
            Self::NumberText(text) => text.store(cell, Ok),
            _ => return false,
        };
        stored.is_ok()
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
                let bytes = refill(values).into_flattened();
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

/// Adds the cells of some rows, until one needs a decision; tells whether there
/// was a NULL.
#[inline]
fn each<'a, T: Default>(
    values: &mut Vec<T>,
    cells: impl Iterator<Item = Option<&'a [u8]>>,
    read: impl Fn(&'a [u8]) -> Result<T, Odd>,
) -> Result<bool, Odd> {
    values.reserve(cells.size_hint().0);
    let mut nulls = false;
    for cell in cells {
        values.push(match cell {
            Some(cell) => read(cell)?,
            None => {
                nulls = true;
                T::default()
            }
        });
    }
    Ok(nulls)
}

/// The same for values of one length.
#[inline]
fn fixed<'a, const N: usize, T: Default>(
    values: &mut Vec<T>,
    cells: impl Iterator<Item = Option<&'a [u8]>>,
    read: impl Fn([u8; N]) -> Result<T, Odd>,
) -> Result<bool, Odd> {
    each(values, cells, |cell| read(cell.try_into().map_err(|_| Odd::Malformed)?))
}

fn bools<'a>(
    values: &mut BooleanBufferBuilder,
    cells: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<bool, Odd> {
    let mut nulls = false;
    for cell in cells {
        values.append(match cell {
            Some([byte @ (0 | 1)]) => *byte == 1,
            Some(_) => return Err(Odd::Malformed),
            None => {
                nulls = true;
                false
            }
        });
    }
    Ok(nulls)
}

/// PostgreSQL knows 24:00:00, Parquet's times end before it.
#[inline]
fn time(micros: i64) -> Result<i64, Odd> {
    let is_known = (0..MICROS_PER_DAY).contains(&micros);
    if is_known { Ok(micros) } else { Err(Odd::InfiniteTime { high: true }) }
}

#[inline]
fn date(days: i32) -> Result<i32, Odd> {
    match days {
        i32::MIN | i32::MAX => Err(Odd::InfiniteTime { high: days > 0 }),
        days => days.checked_add(DAYS_TO_2000).ok_or(Odd::InfiniteTime { high: true }),
    }
}

#[inline]
fn timestamp(micros: i64) -> Result<i64, Odd> {
    match micros {
        i64::MIN | i64::MAX => Err(Odd::InfiniteTime { high: micros > 0 }),
        // The server counts from 2000 and so reaches 29 years further.
        micros => micros.checked_add(MICROS_TO_2000).ok_or(Odd::InfiniteTime { high: true }),
    }
}

fn decimal<T>(number: Option<Number<T>>) -> Result<T, Odd> {
    match number {
        Some(Number::Exact(value)) => Ok(value),
        Some(Number::Special) => Err(Odd::SpecialNumber),
        Some(Number::DoesNotFit) => Err(Odd::DoesNotFit),
        None => Err(Odd::Malformed),
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
