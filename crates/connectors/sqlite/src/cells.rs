//! One column's cells, decoded straight into its Arrow builder.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder,
    Int64Builder, StringBuilder, TimestampMicrosecondBuilder, TimestampNanosecondBuilder,
};
use arrow::datatypes::{DataType, TimeUnit};
use rusqlite::types::ValueRef;
use tidelake_connector::Counters;
use tidelake_model::{Column, Error, ErrorKind, Policies, Result, SpecialNumber};

use crate::forms::class;
use crate::numbers::{decimal_units, exact_float, exact_integer, float_units, integer_units};
use crate::times::{Form, Guess, NANOS_PER_DAY, decode};
use crate::types::ColumnType;

/// The count of infinite numbers that became NULL.
const SPECIAL_NUMBERS: &str = "special_number";

/// Why a cell cannot be carried, in words that follow the column's name.
pub(crate) type Misfit = Cow<'static, str>;

enum Builder {
    Integer(Int64Builder),
    Boolean(BooleanBuilder),
    Date(Date32Builder),
    Microseconds(TimestampMicrosecondBuilder),
    Nanoseconds(TimestampNanosecondBuilder),
    Decimal(Decimal128Builder, u8, i8),
    Float(Float64Builder),
    Text(StringBuilder),
    Binary(BinaryBuilder),
}

/// Reads the cells of one column.
pub(crate) struct CellReader {
    builder: Builder,
    column_type: ColumnType,
    /// The form of numbers that are times, once it is known.
    unit: Option<Form>,
    /// The only form that is allowed, for a cursor.
    only: Option<Form>,
    null_special: bool,
    counters: Counters,
}

impl CellReader {
    pub(crate) fn new(
        column: &Column,
        unit: Option<Form>,
        only: Option<Form>,
        policies: Policies,
        counters: Counters,
    ) -> Result<Self> {
        use DataType as T;
        let data_type = column.field.data_type();
        let builder = match data_type {
            T::Int64 => Builder::Integer(Int64Builder::new()),
            T::Boolean => Builder::Boolean(BooleanBuilder::new()),
            T::Date32 => Builder::Date(Date32Builder::new()),
            T::Timestamp(TimeUnit::Microsecond, _) => Builder::Microseconds(
                TimestampMicrosecondBuilder::new().with_data_type(data_type.clone()),
            ),
            T::Timestamp(TimeUnit::Nanosecond, _) => Builder::Nanoseconds(
                TimestampNanosecondBuilder::new().with_data_type(data_type.clone()),
            ),
            T::Decimal128(precision, scale) => Builder::Decimal(
                Decimal128Builder::new().with_data_type(data_type.clone()),
                *precision,
                *scale,
            ),
            T::Float64 => Builder::Float(Float64Builder::new()),
            T::Utf8 => Builder::Text(StringBuilder::new()),
            T::Binary => Builder::Binary(BinaryBuilder::new()),
            other => {
                let message = format!("column {:?} cannot be read as {other}", column.name());
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        Ok(Self {
            builder,
            column_type: ColumnType::of(&column.source_type),
            unit,
            only,
            null_special: policies.special_number != SpecialNumber::Fail,
            counters,
        })
    }

    /// Bytes of a cell whose length is the same in every row.
    pub(crate) fn fixed_bytes(&self) -> u64 {
        match self.builder {
            Builder::Decimal(..) => 16,
            Builder::Boolean(_) => 1,
            Builder::Date(_) => 4,
            Builder::Text(_) | Builder::Binary(_) => 0,
            _ => 8,
        }
    }

    /// Appends a cell, or says why it cannot be carried.
    pub(crate) fn append(&mut self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        let time = match (&self.builder, cell) {
            (_, ValueRef::Null) => None,
            (Builder::Date(_) | Builder::Microseconds(_) | Builder::Nanoseconds(_), _) => {
                Some(self.time(cell)?)
            }
            _ => None,
        };
        let misfit = || Misfit::Owned(format!("holds {} that is no such value", class(cell)));
        let is_null = cell == ValueRef::Null;
        match &mut self.builder {
            Builder::Integer(builder) => {
                builder.append_option(required(is_null, || integer(cell)).ok_or_else(misfit)?);
            }
            Builder::Boolean(builder) => {
                builder.append_option(required(is_null, || boolean(cell)).ok_or_else(misfit)?);
            }
            Builder::Float(builder) => {
                builder.append_option(required(is_null, || float(cell)).ok_or_else(misfit)?);
            }
            Builder::Decimal(builder, precision, scale) => {
                let special = matches!(cell, ValueRef::Real(number) if !number.is_finite());
                if special && self.null_special {
                    self.counters.add(SPECIAL_NUMBERS, 1);
                    builder.append_null();
                } else {
                    let units = required(is_null, || decimal(cell, *precision, *scale));
                    builder.append_option(units.ok_or_else(|| {
                        Misfit::Owned(format!(
                            "holds {} that is not exactly a decimal of {precision} digits, \
                             {scale} of them after the point",
                            class(cell)
                        ))
                    })?);
                }
            }
            Builder::Date(builder) => {
                let days = required(is_null, || whole_days(time?));
                builder.append_option(days.ok_or("holds a time that is not midnight")?);
            }
            Builder::Microseconds(builder) => {
                let count = required(is_null, || whole_microseconds(time?));
                builder.append_option(count.ok_or(
                    "holds a time with more than six digits after the second; declared with nine, \
                     as DATETIME(9), they are carried",
                )?);
            }
            Builder::Nanoseconds(builder) => {
                let count = required(is_null, || i64::try_from(time?).ok());
                builder.append_option(
                    count.ok_or("holds a time that 64 bits of nanoseconds cannot hold")?,
                );
            }
            Builder::Text(builder) => {
                builder.append_option(match cell {
                    ValueRef::Null => None,
                    _ => Some(text(cell, self.column_type)?),
                });
            }
            Builder::Binary(builder) => builder.append_option(match cell {
                ValueRef::Null => None,
                ValueRef::Blob(bytes) => Some(bytes),
                _ => return Err(misfit()),
            }),
        }
        Ok(())
    }

    /// The time in a cell; the first number decides the unit of the others.
    fn time(&mut self, cell: ValueRef<'_>) -> Result<i128, Misfit> {
        let guess = Guess::of(cell);
        let form = match (self.only.or(self.unit), guess) {
            (_, Guess::One(Form::Text)) if self.only.is_none() => Form::Text,
            (Some(known), _) if guess.allows(known) => known,
            (_, Guess::None) => {
                return Err(Misfit::Owned(format!("holds {} that is no time", class(cell))));
            }
            (Some(known), Guess::One(other)) => {
                return Err(Misfit::Owned(format!("holds {other} among {known}")));
            }
            (None, Guess::One(form)) => form,
            (None, Guess::AnyUnit) => return Ok(0),
            (None, Guess::SecondsOrJulianDay) => {
                return Err("holds a number that may be a julian day or epoch seconds".into());
            }
            (Some(known), _) => {
                return Err(Misfit::Owned(format!("holds {} among {known}", class(cell))));
            }
        };
        if form != Form::Text {
            self.unit = Some(form);
        }
        decode(cell, form)
            .ok_or_else(|| Misfit::Owned(format!("holds {} that is no time", class(cell))))
    }

    /// The cells so far; the next begins a new array.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match &mut self.builder {
            Builder::Integer(builder) => Arc::new(builder.finish()),
            Builder::Boolean(builder) => Arc::new(builder.finish()),
            Builder::Date(builder) => Arc::new(builder.finish()),
            Builder::Microseconds(builder) => Arc::new(builder.finish()),
            Builder::Nanoseconds(builder) => Arc::new(builder.finish()),
            Builder::Decimal(builder, ..) => Arc::new(builder.finish()),
            Builder::Float(builder) => Arc::new(builder.finish()),
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Binary(builder) => Arc::new(builder.finish()),
        }
    }
}

/// `Some(None)` for NULL, `None` where the cell should have had a value.
fn required<T>(is_null: bool, value: impl FnOnce() -> Option<T>) -> Option<Option<T>> {
    if is_null { Some(None) } else { value().map(Some) }
}

fn integer(cell: ValueRef<'_>) -> Option<i64> {
    match cell {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) => exact_integer(number),
        _ => None,
    }
}

fn boolean(cell: ValueRef<'_>) -> Option<bool> {
    match cell {
        ValueRef::Integer(0) => Some(false),
        ValueRef::Integer(1) => Some(true),
        ValueRef::Text(text) if text.eq_ignore_ascii_case(b"false") => Some(false),
        ValueRef::Text(text) if text.eq_ignore_ascii_case(b"true") => Some(true),
        _ => None,
    }
}

fn float(cell: ValueRef<'_>) -> Option<f64> {
    match cell {
        ValueRef::Real(number) => Some(number),
        ValueRef::Integer(number) => exact_float(number),
        _ => None,
    }
}

fn decimal(cell: ValueRef<'_>, precision: u8, scale: i8) -> Option<i128> {
    match cell {
        ValueRef::Integer(number) => integer_units(number, precision, scale),
        ValueRef::Real(number) => float_units(number, precision, scale),
        ValueRef::Text(text) => decimal_units(std::str::from_utf8(text).ok()?, precision, scale),
        _ => None,
    }
}

fn whole_days(nanos: i128) -> Option<i32> {
    let is_midnight = nanos.rem_euclid(NANOS_PER_DAY) == 0;
    if is_midnight { i32::try_from(nanos / NANOS_PER_DAY).ok() } else { None }
}

fn whole_microseconds(nanos: i128) -> Option<i64> {
    if nanos.rem_euclid(1_000) == 0 { i64::try_from(nanos / 1_000).ok() } else { None }
}

fn text(cell: ValueRef<'_>, column_type: ColumnType) -> Result<Cow<'_, str>, Misfit> {
    match cell {
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err("holds a text that is not valid UTF-8".into()),
        },
        ValueRef::Integer(number) => Ok(number.to_string().into()),
        ValueRef::Real(number) if column_type == ColumnType::Number => {
            Ok(number.to_string().into())
        }
        // With a point or an exponent, so that it is told from an integer.
        ValueRef::Real(number) => Ok(format!("{number:?}").into()),
        ValueRef::Blob(bytes) if column_type == ColumnType::Uuid && bytes.len() == 16 => {
            Ok(uuid(bytes).into())
        }
        ValueRef::Blob(_) | ValueRef::Null => {
            Err(Misfit::Owned(format!("holds {} that is no text", class(cell))))
        }
    }
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
