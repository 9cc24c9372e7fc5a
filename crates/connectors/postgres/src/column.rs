//! One column of a batch that is being filled.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, FixedSizeBinaryArray,
    NullBufferBuilder, PrimitiveArray, StringArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, Field, Float32Type,
    Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, UInt32Type, UInt64Type, i256,
};
use arrow::error::ArrowError;
use tidelake_model::{Error, ErrorKind, InfiniteTime, Policies, Result, SpecialNumber};

use crate::internal;
use crate::numeric::{self, Number};
use crate::types::Wire;

/// Days and microseconds from 1970 to 2000, where the server counts from.
const DAYS_TO_2000: i32 = 10_957;
const MICROS_TO_2000: i64 = 946_684_800_000_000;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Values that followed a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) special_numbers: u64,
    pub(crate) infinite_times: u64,
}

/// The values so far, by the type that was chosen once for the column.
enum Values {
    Bool(BooleanBufferBuilder),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal128 { values: Vec<i128>, limit: i128, scale: i8 },
    Decimal256 { values: Vec<i256>, limit: i256, scale: i8 },
    Date(Vec<i32>),
    Time(Vec<i64>),
    Timestamp(Vec<i64>),
    Uuid(Vec<u8>),
    Text(Bytes),
    Jsonb(Bytes),
    Bytea(Bytes),
}

/// Cells of any length, one behind the other.
#[derive(Default)]
struct Bytes {
    data: Vec<u8>,
    ends: Vec<i32>,
}

impl Bytes {
    fn push(&mut self, cell: &[u8]) -> Stored {
        let end = self.data.len().saturating_add(cell.len());
        let Ok(end) = i32::try_from(end) else { return Stored::Malformed };
        self.ends.push(end);
        self.data.extend_from_slice(cell);
        Stored::Value
    }

    fn push_null(&mut self) {
        self.ends.push(self.ends.last().copied().unwrap_or(0));
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        let end = self.ends.last().copied().unwrap_or(0);
        self.data.truncate(usize::try_from(end).unwrap_or(0));
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let fresh = Self {
            data: Vec::with_capacity(self.data.len()),
            ends: Vec::with_capacity(self.ends.len()),
        };
        let full = std::mem::replace(self, fresh);
        let mut offsets = Vec::with_capacity(full.ends.len() + 1);
        offsets.push(0);
        offsets.extend(full.ends);
        (OffsetBuffer::new(offsets.into()), full.data.into())
    }
}

/// A column that is being filled.
pub(crate) struct Column {
    field: Arc<Field>,
    values: Values,
    nulls: NullBufferBuilder,
    policies: Policies,
    changed: Changed,
    /// The row and the counts before the last change, should the row turn out to
    /// be incomplete.
    before: Option<(usize, Changed)>,
}

/// What became of a cell.
enum Stored {
    Value,
    /// NaN or an infinite number, for which a decimal has no place.
    SpecialNumber,
    /// A time that is infinite, or beyond what Arrow can count.
    InfiniteTime {
        high: bool,
    },
    /// More digits than the decimal has.
    DoesNotFit,
    /// Not the bytes of the type.
    Malformed,
}

impl Column {
    /// A column whose values are sent in a form and kept as the field says.
    pub(crate) fn new(field: Arc<Field>, wire: Wire, policies: Policies) -> Result<Self> {
        use DataType as T;
        let values = match (wire, field.data_type()) {
            (Wire::Bool, T::Boolean) => Values::Bool(BooleanBufferBuilder::new(0)),
            (Wire::Int2, T::Int16) => Values::Int16(vec![]),
            (Wire::Int4, T::Int32) => Values::Int32(vec![]),
            (Wire::Int8, T::Int64) => Values::Int64(vec![]),
            (Wire::Oid, T::UInt32) => Values::UInt32(vec![]),
            (Wire::Xid8, T::UInt64) => Values::UInt64(vec![]),
            (Wire::Float4, T::Float32) => Values::Float32(vec![]),
            (Wire::Float8, T::Float64) => Values::Float64(vec![]),
            (Wire::Numeric, T::Decimal128(precision, scale)) => Values::Decimal128 {
                values: vec![],
                limit: 10i128.checked_pow((*precision).into()).unwrap_or(i128::MAX),
                scale: *scale,
            },
            (Wire::Numeric, T::Decimal256(precision, scale)) => Values::Decimal256 {
                values: vec![],
                limit: i256::from_i128(10).checked_pow((*precision).into()).unwrap_or(i256::MAX),
                scale: *scale,
            },
            (Wire::Date, T::Date32) => Values::Date(vec![]),
            (Wire::Time, T::Time64(TimeUnit::Microsecond)) => Values::Time(vec![]),
            (Wire::Timestamp | Wire::Timestamptz, T::Timestamp(TimeUnit::Microsecond, _)) => {
                Values::Timestamp(vec![])
            }
            (Wire::Uuid, T::FixedSizeBinary(16)) => Values::Uuid(vec![]),
            (Wire::Text | Wire::Cast, T::Utf8) => Values::Text(Bytes::default()),
            (Wire::Jsonb, T::Utf8) => Values::Jsonb(Bytes::default()),
            (Wire::Bytea, T::Binary) => Values::Bytea(Bytes::default()),
            (wire, data_type) => {
                let name = field.name();
                let message = format!("column {name:?}: {wire:?} cannot become {data_type}");
                return Err(internal(message));
            }
        };
        let nulls = NullBufferBuilder::new(0);
        Ok(Self { field, values, nulls, policies, changed: Changed::default(), before: None })
    }

    /// What followed a policy since this was asked last.
    pub(crate) fn take_changed(&mut self) -> Changed {
        self.before = None;
        std::mem::take(&mut self.changed)
    }

    /// Bytes of a row that do not depend on its value.
    pub(crate) fn fixed_width(&self) -> usize {
        match &self.values {
            Values::Bool(_) => 1,
            Values::Int16(_) => 2,
            Values::Int32(_) | Values::UInt32(_) | Values::Float32(_) | Values::Date(_) => 4,
            Values::Int64(_)
            | Values::UInt64(_)
            | Values::Float64(_)
            | Values::Time(_)
            | Values::Timestamp(_) => 8,
            Values::Decimal128 { .. } | Values::Uuid(_) => 16,
            Values::Decimal256 { .. } => 32,
            Values::Text(_) | Values::Jsonb(_) | Values::Bytea(_) => 4,
        }
    }

    /// Bytes of a cell beyond the fixed width.
    pub(crate) fn variable_width(&self, cell: usize) -> usize {
        match &self.values {
            Values::Text(_) | Values::Jsonb(_) | Values::Bytea(_) => cell,
            _ => 0,
        }
    }

    /// Adds NULL.
    pub(crate) fn push_null(&mut self) {
        self.nulls.append_null();
        match &mut self.values {
            Values::Bool(values) => values.append(false),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) | Values::Date(values) => values.push(0),
            Values::Int64(values) | Values::Time(values) | Values::Timestamp(values) => {
                values.push(0);
            }
            Values::UInt32(values) => values.push(0),
            Values::UInt64(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal128 { values, .. } => values.push(0),
            Values::Decimal256 { values, .. } => values.push(i256::ZERO),
            Values::Uuid(values) => values.extend([0; 16]),
            Values::Text(bytes) | Values::Jsonb(bytes) | Values::Bytea(bytes) => bytes.push_null(),
        }
    }

    /// Adds a cell.
    #[inline]
    pub(crate) fn push(&mut self, cell: &[u8]) -> Result<()> {
        match self.values.store(cell) {
            Stored::Value => {
                self.nulls.append_non_null();
                Ok(())
            }
            other => self.push_other(&other),
        }
    }

    #[cold]
    fn push_other(&mut self, stored: &Stored) -> Result<()> {
        self.before = Some((self.nulls.len(), self.changed));
        let name = self.field.name();
        let data = |message: String| Error::new(ErrorKind::Data, message);
        match stored {
            Stored::Value => Ok(()),
            Stored::Malformed => {
                let message = format!("column {name:?}: the server sent a value of another type");
                Err(data(message))
            }
            Stored::DoesNotFit => {
                let data_type = self.field.data_type();
                let message = format!("column {name:?}: a number does not fit {data_type}");
                Err(data(message).with_hint("read the column as text, or with more digits"))
            }
            Stored::SpecialNumber => {
                if self.policies.special_number == SpecialNumber::Fail {
                    let message = format!("column {name:?}: a number is NaN or infinite");
                    return Err(data(message).with_hint("choose --on-special-number null"));
                }
                if !self.field.is_nullable() {
                    return Err(cannot_be_null(name, "NaN or infinite"));
                }
                self.changed.special_numbers += 1;
                self.push_null();
                Ok(())
            }
            Stored::InfiniteTime { high } => {
                match self.policies.infinite_time {
                    InfiniteTime::Fail => {
                        let message =
                            format!("column {name:?}: a time is infinite or beyond the range");
                        let hint = "choose --on-infinite-time null or clamp";
                        return Err(data(message).with_hint(hint));
                    }
                    InfiniteTime::Null | InfiniteTime::Text if !self.field.is_nullable() => {
                        return Err(cannot_be_null(name, "infinite or beyond the range"));
                    }
                    InfiniteTime::Null | InfiniteTime::Text => self.push_null(),
                    InfiniteTime::Clamp => {
                        self.values.store_end(*high);
                        self.nulls.append_non_null();
                    }
                }
                self.changed.infinite_times += 1;
                Ok(())
            }
        }
    }

    /// Takes the last cells back, so that `rows` remain.
    pub(crate) fn truncate(&mut self, rows: usize) {
        if let Some((row, changed)) = self.before
            && row >= rows
        {
            self.changed = changed;
        }
        self.nulls.truncate(rows);
        match &mut self.values {
            Values::Bool(values) => values.truncate(rows),
            Values::Int16(values) => values.truncate(rows),
            Values::Int32(values) | Values::Date(values) => values.truncate(rows),
            Values::Int64(values) | Values::Time(values) | Values::Timestamp(values) => {
                values.truncate(rows);
            }
            Values::UInt32(values) => values.truncate(rows),
            Values::UInt64(values) => values.truncate(rows),
            Values::Float32(values) => values.truncate(rows),
            Values::Float64(values) => values.truncate(rows),
            Values::Decimal128 { values, .. } => values.truncate(rows),
            Values::Decimal256 { values, .. } => values.truncate(rows),
            Values::Uuid(values) => values.truncate(rows.saturating_mul(16)),
            Values::Text(bytes) | Values::Jsonb(bytes) | Values::Bytea(bytes) => {
                bytes.truncate(rows);
            }
        }
    }

    /// The array of all cells, and an empty column again.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        let nulls = self.nulls.finish();
        let name = self.field.name();
        self.values.finish(nulls, self.field.data_type()).map_err(|error| {
            let message = format!(
                "column {name:?}: the server sent a value that is no {}",
                match self.field.data_type() {
                    DataType::Utf8 => "UTF-8 text",
                    _ => "value of its type",
                }
            );
            Error::new(ErrorKind::Data, message)
                .with_hint("a database in SQL_ASCII may hold any bytes; leave the column out")
                .with_source(error)
        })
    }
}

fn cannot_be_null(name: &str, what: &str) -> Error {
    let message = format!("column {name:?}: a value is {what}, and the column cannot be NULL");
    Error::new(ErrorKind::Data, message)
        .with_hint("choose --on-infinite-time clamp for times, or read the column as text")
}

fn fixed<const N: usize>(cell: &[u8], push: impl FnOnce([u8; N])) -> Stored {
    match <[u8; N]>::try_from(cell) {
        Ok(bytes) => {
            push(bytes);
            Stored::Value
        }
        Err(_) => Stored::Malformed,
    }
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

impl Values {
    #[inline]
    fn store(&mut self, cell: &[u8]) -> Stored {
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
            Self::Time(values) => time_of_day(cell, values),
            Self::UInt32(values) => fixed(cell, |bytes| values.push(u32::from_be_bytes(bytes))),
            Self::UInt64(values) => fixed(cell, |bytes| values.push(u64::from_be_bytes(bytes))),
            Self::Float32(values) => fixed(cell, |bytes| values.push(f32::from_be_bytes(bytes))),
            Self::Float64(values) => fixed(cell, |bytes| values.push(f64::from_be_bytes(bytes))),
            Self::Decimal128 { values, limit, scale } => {
                decimal(numeric::read(cell, *scale, *limit), values)
            }
            Self::Decimal256 { values, limit, scale } => {
                decimal(numeric::read(cell, *scale, *limit), values)
            }
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
            Self::Text(bytes) | Self::Bytea(bytes) => bytes.push(cell),
            Self::Jsonb(bytes) => match cell.split_first() {
                Some((1, text)) => bytes.push(text),
                _ => Stored::Malformed,
            },
        }
    }

    /// Adds the lowest or highest time that the type can hold.
    fn store_end(&mut self, high: bool) {
        match self {
            Self::Date(values) => values.push(if high { i32::MAX } else { i32::MIN }),
            Self::Timestamp(values) => values.push(if high { i64::MAX } else { i64::MIN }),
            Self::Time(values) => values.push(MICROS_PER_DAY - 1),
            _ => {}
        }
    }

    fn finish(
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
            Self::Text(bytes) | Self::Jsonb(bytes) => {
                let (offsets, data) = bytes.take();
                Arc::new(StringArray::try_new(offsets, data, nulls)?)
            }
            Self::Bytea(bytes) => {
                let (offsets, data) = bytes.take();
                Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
            }
        })
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
