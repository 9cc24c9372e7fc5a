//! Record batches to the binary COPY format.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit, TimestampNanosecondType, i256};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::Value;

use crate::ddl::{Mapped, Target};
use crate::numeric;

const DAYS_TO_2000: i32 = 10_957;
const MICROS_TO_2000: i64 = 946_684_800_000_000;
/// The server's own ends: 4714-11-24 BC, 5874897-12-31, 294276-12-31.
const FIRST_DAY: i32 = -2_440_588;
const LAST_DAY: i32 = 2_145_042_905;
const FIRST_MICRO: i64 = -210_866_803_200_000_000;

/// The beginning of a copy.
pub(crate) fn header() -> Vec<u8> {
    let mut bytes = b"PGCOPY\n\xff\r\n\0".to_vec();
    bytes.extend([0; 8]);
    bytes
}

/// The end of a copy.
pub(crate) fn trailer() -> [u8; 2] {
    (-1i16).to_be_bytes()
}

/// A column in the one Arrow type that its target's binary form is made from.
enum Cells {
    Bool(BooleanArray),
    Int2(Int16Array),
    Int4(Int32Array),
    Int8(Int64Array),
    Float4(Float32Array),
    Float8(Float64Array),
    Decimal128(Decimal128Array, i8),
    Decimal256(Decimal256Array, i8),
    Text(StringArray),
    Jsonb(StringArray),
    Bytes(BinaryArray),
    Uuid(FixedSizeBinaryArray),
    Date(Date32Array),
    Time(Time64MicrosecondArray),
    Moment(TimestampMicrosecondArray),
}

/// The columns of a batch, ready to be written.
pub(crate) struct Rows<'a> {
    columns: Vec<(&'a Mapped, ArrayRef, Cells)>,
    count: usize,
}

impl<'a> Rows<'a> {
    /// Prepares a batch whose columns are in the order of the mapping.
    pub(crate) fn new(batch: &RecordBatch, mapping: &'a [Mapped]) -> Result<Self> {
        let columns = mapping.iter().map(|column| {
            let array = batch.column_by_name(&column.name).ok_or_else(|| {
                let message = format!("column {:?} is missing in the rows", column.name);
                Error::new(ErrorKind::Data, message)
            })?;
            // Of this type no value says that it is NULL.
            let array = match array.data_type() {
                DataType::Null => new_null_array(&DataType::Utf8, array.len()),
                _ => array.clone(),
            };
            let cells = cells(&array, column)?;
            Ok((column, array, cells))
        });
        Ok(Self { columns: columns.collect::<Result<_>>()?, count: batch.num_rows() })
    }

    /// Number of rows.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Writes one row.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend(i16::try_from(self.columns.len()).unwrap_or(i16::MAX).to_be_bytes());
        for (column, array, cells) in &self.columns {
            if array.is_null(row) {
                out.extend((-1i32).to_be_bytes());
                continue;
            }
            // The length stands before the cell and is known after it.
            let length_at = out.len();
            out.extend([0; 4]);
            cells.write(row, out).map_err(|why| refused(column, why))?;
            let length = out.len().saturating_sub(length_at).saturating_sub(4);
            let length =
                i32::try_from(length).map_err(|_| refused(column, "a value is too long"))?;
            if let Some(place) = out.get_mut(length_at..length_at.saturating_add(4)) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }
}

fn refused(column: &Mapped, why: &str) -> Error {
    let message = format!("column {:?}: {why}", column.name);
    let error = Error::new(ErrorKind::Data, message);
    if why.contains("NUL") {
        return error.with_hint("the server's text cannot hold it; leave the column out");
    }
    error
}

fn cells(array: &ArrayRef, column: &Mapped) -> Result<Cells> {
    use DataType as T;
    let to = |data_type: &DataType| {
        // A value that does not fit is an error, never NULL.
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, data_type, &options).map_err(|error| {
            let message = format!("column {:?}: a value does not fit the target", column.name);
            Error::new(ErrorKind::Data, message).with_source(error)
        })
    };
    let data_type = array.data_type();
    Ok(match column.target {
        Target::Bool => Cells::Bool(to(&T::Boolean)?.as_boolean().clone()),
        Target::Int2 => Cells::Int2(to(&T::Int16)?.as_primitive().clone()),
        Target::Int4 => Cells::Int4(to(&T::Int32)?.as_primitive().clone()),
        Target::Int8 => Cells::Int8(to(&T::Int64)?.as_primitive().clone()),
        Target::Float4 => Cells::Float4(to(&T::Float32)?.as_primitive().clone()),
        Target::Float8 => Cells::Float8(to(&T::Float64)?.as_primitive().clone()),
        Target::Numeric => match data_type {
            T::Decimal256(_, scale) => Cells::Decimal256(array.as_primitive().clone(), *scale),
            T::Decimal128(_, scale) => Cells::Decimal128(array.as_primitive().clone(), *scale),
            _ => Cells::Decimal128(to(&T::Decimal128(38, 0))?.as_primitive().clone(), 0),
        },
        Target::Text | Target::Json => Cells::Text(text(array, column)?),
        Target::Jsonb => Cells::Jsonb(text(array, column)?),
        Target::Bytea => Cells::Bytes(to(&T::Binary)?.as_binary().clone()),
        Target::Uuid => Cells::Uuid(
            array
                .as_fixed_size_binary_opt()
                .cloned()
                .ok_or_else(|| crate::internal(format!("column {:?} is no uuid", column.name)))?,
        ),
        Target::Date => Cells::Date(to(&T::Date32)?.as_primitive().clone()),
        Target::Time => Cells::Time(to(&T::Time64(TimeUnit::Microsecond))?.as_primitive().clone()),
        Target::Timestamp | Target::Timestamptz => {
            let zone = match data_type {
                T::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let moments = to(&T::Timestamp(TimeUnit::Microsecond, zone))?;
            Cells::Moment(moments.as_primitive().clone())
        }
    })
}

/// Any column as text.
fn text(array: &ArrayRef, column: &Mapped) -> Result<StringArray> {
    use DataType as T;
    let failed = |error: arrow::error::ArrowError| {
        let message = format!("column {:?} cannot be written as text", column.name);
        Error::new(ErrorKind::Unsupported, message).with_source(error)
    };
    match array.data_type() {
        T::Utf8 => Ok(array.as_string::<i32>().clone()),
        T::LargeUtf8 | T::Utf8View => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let array = cast_with_options(array, &T::Utf8, &options).map_err(failed)?;
            Ok(array.as_string::<i32>().clone())
        }
        // Printed without a list of time zones, which the formatter would want.
        T::Timestamp(TimeUnit::Nanosecond, zone) => {
            let wrap = if zone.is_some() { Value::Timestamp } else { Value::Datetime };
            let moments = array.as_primitive::<TimestampNanosecondType>();
            Ok(moments.iter().map(|nanos| Some(wrap(nanos?.into()).to_string())).collect())
        }
        _ => {
            let options = FormatOptions::default();
            let formatter = ArrayFormatter::try_new(array, &options).map_err(failed)?;
            let cell = |row| {
                if array.is_null(row) {
                    return Ok(None);
                }
                formatter.value(row).try_to_string().map(Some).map_err(failed)
            };
            (0..array.len()).map(cell).collect()
        }
    }
}

impl Cells {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
        match self {
            Self::Bool(array) => out.push(u8::from(array.value(row))),
            Self::Int2(array) => out.extend(array.value(row).to_be_bytes()),
            Self::Int4(array) => out.extend(array.value(row).to_be_bytes()),
            Self::Int8(array) => out.extend(array.value(row).to_be_bytes()),
            Self::Float4(array) => out.extend(array.value(row).to_be_bytes()),
            Self::Float8(array) => out.extend(array.value(row).to_be_bytes()),
            Self::Decimal128(array, scale) => {
                let value = array.value(row);
                numeric::write(value < 0, &value.unsigned_abs().to_string(), *scale, out);
            }
            Self::Decimal256(array, scale) => {
                let value = array.value(row);
                let text = value.to_string();
                let digits = text.trim_start_matches('-');
                numeric::write(value < i256::ZERO, digits, *scale, out);
            }
            Self::Text(array) => out.extend(without_nul(array.value(row))?),
            Self::Jsonb(array) => {
                // The version of the binary form.
                out.push(1);
                out.extend(without_nul(array.value(row))?);
            }
            Self::Bytes(array) => out.extend(array.value(row)),
            Self::Uuid(array) => out.extend(array.value(row)),
            Self::Time(array) => out.extend(array.value(row).to_be_bytes()),
            Self::Date(array) => {
                let days = match array.value(row) {
                    // The ends of the type are what infinity became when it was read.
                    end @ (i32::MIN | i32::MAX) => end,
                    days @ FIRST_DAY..=LAST_DAY => days - DAYS_TO_2000,
                    _ => return Err("a date is beyond the server's range"),
                };
                out.extend(days.to_be_bytes());
            }
            Self::Moment(array) => {
                let micros = match array.value(row) {
                    end @ (i64::MIN | i64::MAX) => end,
                    micros @ FIRST_MICRO.. => micros - MICROS_TO_2000,
                    _ => return Err("a time stamp is beyond the server's range"),
                };
                out.extend(micros.to_be_bytes());
            }
        }
        Ok(())
    }
}

fn without_nul(text: &str) -> Result<&[u8], &'static str> {
    if text.as_bytes().contains(&0) {
        return Err("a text holds a NUL character");
    }
    Ok(text.as_bytes())
}
