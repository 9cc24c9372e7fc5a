//! The values of a column, by the type that was chosen once for it.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, FixedSizeBinaryArray,
    PrimitiveArray, StringArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, i256,
};
use arrow::error::ArrowError;

use super::Wire;
use super::bytes::cell;
use super::calendar::{self, Moment};
use super::cells::{Cells, first_that_is_no_text};
use super::decimal::{Number, Shape, Unscaled};

/// Why a cell was not taken at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble<'a> {
    /// A date that no calendar has; its bytes, and what follows.
    NoDay(&'a [u8], &'a [u8]),
    /// A number with more digits than the type has, or a Boolean that is neither.
    DoesNotFit(String),
    /// A cell beyond what a batch can hold.
    TooLarge,
    /// Not the bytes of the type.
    Malformed,
}

/// Why a batch's cells make no array.
#[derive(Debug)]
pub(super) enum Unfit {
    /// The cell of that row is no UTF-8.
    NoText(usize),
    Array(ArrowError),
}

impl From<ArrowError> for Unfit {
    fn from(error: ArrowError) -> Self {
        Self::Array(error)
    }
}

/// The values so far.
pub(super) enum Values {
    Int8(Vec<i8>),
    UInt8(Vec<u8>),
    Int16(Vec<i16>),
    UInt16(Vec<u16>),
    Int32(Vec<i32>),
    UInt32(Vec<u32>),
    Int64(Vec<i64>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    /// Numbers that are 0 or 1.
    TinyBool(BooleanBufferBuilder),
    /// One bit.
    BitBool(BooleanBufferBuilder),
    /// Up to 64 bits.
    Bits(Vec<u64>),
    Decimal128 {
        values: Vec<i128>,
        shape: Shape,
        limit: i128,
    },
    Decimal256 {
        values: Vec<i256>,
        shape: Shape,
        limit: i256,
    },
    Date(Vec<i32>),
    Datetime(Vec<i64>),
    Time(Vec<i64>),
    Uuid(Vec<u8>),
    Text(Cells),
    Bytes(Cells),
    Geometry(Cells),
}

impl Values {
    /// Values that are sent in a form and kept as a type; `None` where there is no
    /// way from one to the other.
    pub(super) fn new(wire: Wire, data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match (wire, data_type) {
            (Wire::Tiny, T::Int8) => Self::Int8(vec![]),
            (Wire::UnsignedTiny, T::UInt8) => Self::UInt8(vec![]),
            (Wire::Tiny | Wire::UnsignedTiny, T::Boolean) => {
                Self::TinyBool(BooleanBufferBuilder::new(0))
            }
            (Wire::Short | Wire::Year, T::Int16) => Self::Int16(vec![]),
            (Wire::UnsignedShort, T::UInt16) => Self::UInt16(vec![]),
            (Wire::Long, T::Int32) => Self::Int32(vec![]),
            (Wire::UnsignedLong, T::UInt32) => Self::UInt32(vec![]),
            (Wire::LongLong, T::Int64) => Self::Int64(vec![]),
            (Wire::UnsignedLongLong, T::UInt64) => Self::UInt64(vec![]),
            (Wire::Float, T::Float32) => Self::Float32(vec![]),
            (Wire::Double, T::Float64) => Self::Float64(vec![]),
            (Wire::Decimal, T::Decimal128(precision, scale)) => Self::Decimal128 {
                values: vec![],
                shape: Shape::new(*scale)?,
                limit: i128::ten_to(usize::from(*precision)).unwrap_or(i128::MAX),
            },
            (Wire::Decimal, T::Decimal256(precision, scale)) => Self::Decimal256 {
                values: vec![],
                shape: Shape::new(*scale)?,
                limit: i256::ten_to(usize::from(*precision)).unwrap_or(i256::MAX),
            },
            (Wire::Date, T::Date32) => Self::Date(vec![]),
            (Wire::Datetime, T::Timestamp(TimeUnit::Microsecond, _)) => Self::Datetime(vec![]),
            (Wire::Time, T::Duration(TimeUnit::Microsecond)) => Self::Time(vec![]),
            (Wire::Bit, T::Boolean) => Self::BitBool(BooleanBufferBuilder::new(0)),
            (Wire::Bit, T::UInt64) => Self::Bits(vec![]),
            (Wire::Text, T::Utf8) => Self::Text(Cells::default()),
            (Wire::Uuid, T::FixedSizeBinary(16)) => Self::Uuid(vec![]),
            (Wire::Bytes, T::Binary) => Self::Bytes(Cells::default()),
            (Wire::Geometry, T::Binary) => Self::Geometry(Cells::default()),
            _ => return None,
        })
    }

    /// Bytes of a row that do not depend on its value.
    pub(super) fn fixed_width(&self) -> usize {
        match self {
            Self::Int8(_) | Self::UInt8(_) | Self::TinyBool(_) | Self::BitBool(_) => 1,
            Self::Int16(_) | Self::UInt16(_) => 2,
            Self::Int32(_) | Self::UInt32(_) | Self::Float32(_) | Self::Date(_) => 4,
            Self::Int64(_)
            | Self::UInt64(_)
            | Self::Float64(_)
            | Self::Bits(_)
            | Self::Datetime(_)
            | Self::Time(_) => 8,
            Self::Decimal128 { .. } | Self::Uuid(_) => 16,
            Self::Decimal256 { .. } => 32,
            Self::Text(_) | Self::Bytes(_) | Self::Geometry(_) => 4,
        }
    }

    /// Bytes of all cells beyond the fixed width.
    pub(super) fn variable_size(&self) -> usize {
        match self {
            Self::Text(cells) | Self::Bytes(cells) | Self::Geometry(cells) => cells.size(),
            _ => 0,
        }
    }

    /// Adds a value that nobody will see.
    pub(super) fn push_null(&mut self) {
        match self {
            Self::Int8(values) => values.push(0),
            Self::UInt8(values) => values.push(0),
            Self::Int16(values) => values.push(0),
            Self::UInt16(values) => values.push(0),
            Self::Int32(values) | Self::Date(values) => values.push(0),
            Self::UInt32(values) => values.push(0),
            Self::Int64(values) | Self::Datetime(values) | Self::Time(values) => values.push(0),
            Self::UInt64(values) | Self::Bits(values) => values.push(0),
            Self::Float32(values) => values.push(0.0),
            Self::Float64(values) => values.push(0.0),
            Self::TinyBool(values) | Self::BitBool(values) => values.append(false),
            Self::Decimal128 { values, .. } => values.push(0),
            Self::Decimal256 { values, .. } => values.push(i256::ZERO),
            Self::Uuid(values) => values.extend([0; 16]),
            Self::Text(cells) | Self::Bytes(cells) | Self::Geometry(cells) => cells.push_null(),
        }
    }

    /// Takes the cell at the front of a row's bytes and returns what follows;
    /// `None` where it is one that needs a look.
    #[inline]
    pub(super) fn store<'a>(&mut self, row: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Int8(values) => fixed(row, |bytes| values.push(i8::from_le_bytes(bytes))),
            Self::UInt8(values) => fixed(row, |bytes| values.push(u8::from_le_bytes(bytes))),
            Self::Int16(values) => fixed(row, |bytes| values.push(i16::from_le_bytes(bytes))),
            Self::UInt16(values) => fixed(row, |bytes| values.push(u16::from_le_bytes(bytes))),
            Self::Int32(values) => fixed(row, |bytes| values.push(i32::from_le_bytes(bytes))),
            Self::UInt32(values) => fixed(row, |bytes| values.push(u32::from_le_bytes(bytes))),
            Self::Int64(values) => fixed(row, |bytes| values.push(i64::from_le_bytes(bytes))),
            Self::UInt64(values) => fixed(row, |bytes| values.push(u64::from_le_bytes(bytes))),
            Self::Float32(values) => fixed(row, |bytes| values.push(f32::from_le_bytes(bytes))),
            Self::Float64(values) => fixed(row, |bytes| values.push(f64::from_le_bytes(bytes))),
            Self::TinyBool(values) => match row.split_first()? {
                (value @ (0 | 1), rest) => {
                    values.append(*value == 1);
                    Some(rest)
                }
                _ => None,
            },
            Self::BitBool(values) => match cell(row)? {
                ([value @ (0 | 1)], rest) => {
                    values.append(*value == 1);
                    Some(rest)
                }
                _ => None,
            },
            Self::Bits(values) => {
                let (cell, rest) = cell(row)?;
                if cell.is_empty() || cell.len() > 8 {
                    return None;
                }
                values.push(cell.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte)));
                Some(rest)
            }
            Self::Decimal128 { values, shape, limit } => {
                let (cell, rest) = cell(row)?;
                let value = match shape.short(cell).map(i128::from) {
                    Some(value) if value < *limit && -value < *limit => value,
                    _ => exact(*shape, cell, *limit)?,
                };
                values.push(value);
                Some(rest)
            }
            Self::Decimal256 { values, shape, limit } => {
                let (cell, rest) = cell(row)?;
                values.push(exact(*shape, cell, *limit)?);
                Some(rest)
            }
            Self::Date(values) => match calendar::date(row)? {
                (Moment::Value(days), rest) => {
                    values.push(days);
                    Some(rest)
                }
                _ => None,
            },
            Self::Datetime(values) => match calendar::datetime(row)? {
                (Moment::Value(micros), rest) => {
                    values.push(micros);
                    Some(rest)
                }
                _ => None,
            },
            Self::Time(values) => {
                let (micros, rest) = calendar::time(row)?;
                values.push(micros);
                Some(rest)
            }
            Self::Uuid(values) => {
                let (cell, rest) = cell(row)?;
                values.extend(uuid(cell)?);
                Some(rest)
            }
            Self::Text(cells) | Self::Bytes(cells) => {
                let (cell, rest) = cell(row)?;
                cells.push(cell)?;
                Some(rest)
            }
            Self::Geometry(cells) => {
                let (cell, rest) = cell(row)?;
                cells.push(cell.get(4..)?)?;
                Some(rest)
            }
        }
    }

    /// What is the matter with the cell at the front of a row's bytes, which
    /// [`store`](Self::store) did not take.
    #[cold]
    pub(super) fn trouble<'a>(&self, row: &'a [u8]) -> Trouble<'a> {
        let no_day = |rest| Trouble::NoDay(row, rest);
        match self {
            Self::Date(_) => match calendar::date(row) {
                Some((Moment::NoDay, rest)) => no_day(rest),
                _ => Trouble::Malformed,
            },
            Self::Datetime(_) => match calendar::datetime(row) {
                Some((Moment::NoDay, rest)) => no_day(rest),
                _ => Trouble::Malformed,
            },
            Self::TinyBool(_) => match row.first() {
                Some(value) => Trouble::DoesNotFit(value.cast_signed().to_string()),
                None => Trouble::Malformed,
            },
            Self::Decimal128 { shape, limit, .. } => unfit(row, |text| shape.read(text, *limit)),
            Self::Decimal256 { shape, limit, .. } => unfit(row, |text| shape.read(text, *limit)),
            Self::Text(_) | Self::Bytes(_) if cell(row).is_some() => Trouble::TooLarge,
            Self::Geometry(_) if cell(row).is_some_and(|(cell, _)| cell.len() >= 4) => {
                Trouble::TooLarge
            }
            _ => Trouble::Malformed,
        }
    }

    /// The array of all values, with none left.
    pub(super) fn finish(
        &mut self,
        nulls: Option<NullBuffer>,
        data_type: &DataType,
    ) -> Result<ArrayRef, Unfit> {
        Ok(match self {
            Self::Int8(values) => primitive::<Int8Type>(values, nulls, data_type)?,
            Self::UInt8(values) => primitive::<UInt8Type>(values, nulls, data_type)?,
            Self::Int16(values) => primitive::<Int16Type>(values, nulls, data_type)?,
            Self::UInt16(values) => primitive::<UInt16Type>(values, nulls, data_type)?,
            Self::Int32(values) => primitive::<Int32Type>(values, nulls, data_type)?,
            Self::UInt32(values) => primitive::<UInt32Type>(values, nulls, data_type)?,
            Self::Int64(values) => primitive::<Int64Type>(values, nulls, data_type)?,
            Self::UInt64(values) | Self::Bits(values) => {
                primitive::<UInt64Type>(values, nulls, data_type)?
            }
            Self::Float32(values) => primitive::<Float32Type>(values, nulls, data_type)?,
            Self::Float64(values) => primitive::<Float64Type>(values, nulls, data_type)?,
            Self::TinyBool(values) | Self::BitBool(values) => {
                Arc::new(BooleanArray::new(values.finish(), nulls))
            }
            Self::Decimal128 { values, .. } => {
                primitive::<Decimal128Type>(values, nulls, data_type)?
            }
            Self::Decimal256 { values, .. } => {
                primitive::<Decimal256Type>(values, nulls, data_type)?
            }
            Self::Date(values) => primitive::<Date32Type>(values, nulls, data_type)?,
            Self::Datetime(values) => {
                primitive::<TimestampMicrosecondType>(values, nulls, data_type)?
            }
            Self::Time(values) => primitive::<DurationMicrosecondType>(values, nulls, data_type)?,
            Self::Uuid(values) => {
                let bytes = refill(values);
                Arc::new(FixedSizeBinaryArray::try_new(16, bytes.into(), nulls)?)
            }
            Self::Text(cells) => {
                let (offsets, data) = cells.take();
                let array = StringArray::try_new(offsets.clone(), data.clone(), nulls);
                Arc::new(array.map_err(|error| match first_that_is_no_text(&offsets, &data) {
                    Some(row) => Unfit::NoText(row),
                    None => Unfit::Array(error),
                })?)
            }
            Self::Bytes(cells) | Self::Geometry(cells) => {
                let (offsets, data) = cells.take();
                Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
            }
        })
    }
}

#[inline]
fn fixed<const N: usize>(row: &[u8], push: impl FnOnce([u8; N])) -> Option<&[u8]> {
    let (bytes, rest) = row.split_first_chunk::<N>()?;
    push(*bytes);
    Some(rest)
}

fn exact<T: Unscaled>(shape: Shape, cell: &[u8], limit: T) -> Option<T> {
    match shape.read(cell, limit) {
        Number::Exact(value) => Some(value),
        Number::DoesNotFit | Number::Malformed => None,
    }
}

fn unfit<'a, T>(row: &'a [u8], read: impl FnOnce(&[u8]) -> Number<T>) -> Trouble<'a> {
    match cell(row) {
        Some((text, _)) if matches!(read(text), Number::DoesNotFit) => {
            Trouble::DoesNotFit(String::from_utf8_lossy(text).into_owned())
        }
        _ => Trouble::Malformed,
    }
}

/// The sixteen bytes of a text such as `00112233-4455-6677-8899-aabbccddeeff`.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let hyphens = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.get(*at) == Some(&b'-'));
    if !hyphens {
        return None;
    }
    let mut digits = text.iter().filter(|byte| **byte != b'-').map(|byte| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    });
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    digits.next().is_none().then_some(bytes)
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
