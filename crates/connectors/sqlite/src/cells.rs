//! One column's cells, decoded straight into its Arrow builder.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Decimal256Builder,
    Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
    TimestampNanosecondBuilder,
};
use arrow::datatypes::{DataType, TimeUnit, i256};
use rusqlite::types::ValueRef;
use tidelake_connector::Counters;
use tidelake_model::{
    Column, Error, ErrorKind, InfiniteTime, Policies, Result, SpecialNumber, TimestampUnit,
    ZeroDate,
};

use crate::forms::Units;
use crate::misfit::{Misfit, Remedy};
use crate::numbers::{Decimals, exact_float, exact_integer, is_special, told_decimal, wide_units};
use crate::texts::{bytes_text, real_text, shown, uuid_text};
use crate::times::{Form, Guess, Moment, NANOS_PER_DAY, decode, moment, plain_day, plain_micros};
use crate::types::ColumnType;

/// Counts of values that followed a policy; the column's name comes behind.
const SPECIAL_NUMBER: &str = "special_number";
const INFINITE_TIME: &str = "infinite_time";
const ZERO_DATE: &str = "zero_date";
/// Counts of bytes that are text in the lake.
const BLOB_AS_TEXT: &str = "blob_as_text";
const INVALID_TEXT: &str = "invalid_text";

enum Builder {
    Integer(Int64Builder),
    Boolean(BooleanBuilder),
    Date(Date32Builder),
    Microseconds(TimestampMicrosecondBuilder),
    Nanoseconds(TimestampNanosecondBuilder),
    Decimal(Decimal128Builder, Decimals),
    WideDecimal(Decimal256Builder, u8, i8),
    Float(Float64Builder),
    Text(StringBuilder),
    Binary(BinaryBuilder),
}

/// Reads the cells of one column.
pub(crate) struct CellReader {
    builder: Builder,
    column_type: ColumnType,
    /// Whether the user chose the type that is read.
    chosen: bool,
    nullable: bool,
    /// Whether any text is taken as it is.
    plain_text: bool,
    /// The form of numbers that are times, once it is known.
    unit: Option<Form>,
    /// Where the slices of the table agree on it.
    units: Units,
    /// The only form that is allowed, for a cursor.
    only: Option<Form>,
    policies: Policies,
    /// Whether windows are cut by this column: its values may not get lost, or a
    /// range that is read again would double them.
    is_cursor: bool,
    counters: Counters,
    name: String,
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
                Decimals::new(*precision, *scale),
            ),
            T::Decimal256(precision, scale) => Builder::WideDecimal(
                Decimal256Builder::new().with_data_type(data_type.clone()),
                *precision,
                *scale,
            ),
            T::Float64 => Builder::Float(Float64Builder::new()),
            T::Utf8 => Builder::Text(StringBuilder::new()),
            T::Binary => Builder::Binary(BinaryBuilder::new()),
            other => {
                let message = format!("column {:?} cannot be read as {other}", column.name());
                return Err(Error::new(ErrorKind::Unsupported, message).with_hint(
                    "choose text, binary, bool, int64, float64, date, timestamp or a decimal",
                ));
            }
        };
        let column_type = ColumnType::of(&column.source_type);
        let checked = matches!(column_type, ColumnType::Number | ColumnType::Json);
        Ok(Self {
            builder,
            column_type,
            chosen: column.chosen,
            plain_text: column.chosen || !checked,
            nullable: column.field.is_nullable(),
            unit,
            units: Units::default(),
            only,
            policies,
            is_cursor: false,
            counters,
            name: column.name().to_owned(),
        })
    }

    /// Makes this a column that windows are cut by.
    pub(crate) fn for_cursor(mut self, is_cursor: bool) -> Self {
        self.is_cursor = is_cursor;
        self
    }

    /// Shares the unit of numbers that are times with other readers of the column.
    pub(crate) fn with_units(mut self, units: &Units) -> Self {
        self.units = units.clone();
        self
    }

    /// Bytes of a cell whose length is the same in every row.
    pub(crate) fn fixed_bytes(&self) -> u64 {
        match self.builder {
            Builder::WideDecimal(..) => 32,
            Builder::Decimal(..) => 16,
            Builder::Boolean(_) => 1,
            Builder::Date(_) => 4,
            Builder::Text(_) | Builder::Binary(_) => 0,
            _ => 8,
        }
    }

    /// Appends a cell, or says why it cannot be carried.
    pub(crate) fn append(&mut self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        if matches!(cell, ValueRef::Null) {
            self.append_null();
            return Ok(());
        }
        let no = |wanted: &str| Misfit::no(cell, wanted, Remedy::Text);
        match &mut self.builder {
            Builder::Integer(builder) => {
                builder.append_value(integer(cell).ok_or_else(|| no("integer of 64 bits"))?);
            }
            Builder::Boolean(builder) => {
                builder.append_value(boolean(cell).ok_or_else(|| no("boolean"))?);
            }
            Builder::Float(_) => return self.append_float(cell),
            Builder::Decimal(..) | Builder::WideDecimal(..) => return self.append_decimal(cell),
            Builder::Date(_) | Builder::Microseconds(_) | Builder::Nanoseconds(_) => {
                return self.append_time(cell);
            }
            Builder::Text(_) => return self.append_text(cell),
            Builder::Binary(builder) => match cell {
                ValueRef::Blob(bytes) => builder.append_value(bytes),
                // The bytes of a text are what is stored.
                ValueRef::Text(text) if self.chosen => builder.append_value(text),
                _ => return Err(no("blob")),
            },
        }
        Ok(())
    }

    fn append_null(&mut self) {
        match &mut self.builder {
            Builder::Integer(builder) => builder.append_null(),
            Builder::Boolean(builder) => builder.append_null(),
            Builder::Date(builder) => builder.append_null(),
            Builder::Microseconds(builder) => builder.append_null(),
            Builder::Nanoseconds(builder) => builder.append_null(),
            Builder::Decimal(builder, ..) => builder.append_null(),
            Builder::WideDecimal(builder, ..) => builder.append_null(),
            Builder::Float(builder) => builder.append_null(),
            Builder::Text(builder) => builder.append_null(),
            Builder::Binary(builder) => builder.append_null(),
        }
    }

    /// NULL by a policy, which is counted.
    fn null_instead(
        &mut self,
        cell: ValueRef<'_>,
        count: &str,
        remedy: Remedy,
    ) -> Result<(), Misfit> {
        if !self.nullable {
            let what = format!("holds {}, and cannot be NULL instead", shown(cell));
            return Err(Misfit::new(what, remedy));
        }
        self.count(count);
        self.append_null();
        Ok(())
    }

    fn count(&self, name: &str) {
        self.counters.add(&format!("{name}:{}", self.name), 1);
    }

    fn append_float(&mut self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        let Builder::Float(builder) = &mut self.builder else { return Ok(()) };
        let value = match cell {
            ValueRef::Real(number) => Some(number),
            ValueRef::Integer(number) => exact_float(number),
            _ => None,
        };
        let number = value.ok_or_else(|| Misfit::no(cell, "float", Remedy::Text))?;
        if number.is_finite() {
            builder.append_value(number);
            return Ok(());
        }
        match self.policies.special_number {
            SpecialNumber::Nan | SpecialNumber::Text => {
                builder.append_value(number);
                Ok(())
            }
            SpecialNumber::Null => self.null_instead(cell, SPECIAL_NUMBER, Remedy::SpecialNumber),
            SpecialNumber::Fail => Err(special_number(cell)),
        }
    }

    fn append_decimal(&mut self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        if is_special_number(cell) {
            self.check_cursor(cell)?;
            return match self.policies.special_number {
                SpecialNumber::Fail => Err(special_number(cell)),
                _ => self.null_instead(cell, SPECIAL_NUMBER, Remedy::SpecialNumber),
            };
        }
        let no = |precision: u8, scale: i8| {
            let wanted =
                format!("decimal of exactly {precision} digits, {scale} of them after the point");
            Misfit::no(cell, &wanted, Remedy::Text)
        };
        match &mut self.builder {
            Builder::Decimal(builder, decimals) => {
                let units = match cell {
                    ValueRef::Integer(number) => decimals.of_integer(number),
                    ValueRef::Real(number) => decimals.of_float(number),
                    ValueRef::Text(text) => decimals.of_text(text),
                    ValueRef::Null | ValueRef::Blob(_) => None,
                };
                let units = units.ok_or_else(|| no(decimals.precision, decimals.scale));
                builder.append_value(units?);
            }
            Builder::WideDecimal(builder, precision, scale) => {
                let units = wide_decimal(cell, *precision, *scale);
                builder.append_value(units.ok_or_else(|| no(*precision, *scale))?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends a time in one of the usual spellings; tells whether it was one.
    fn append_plain_time(&mut self, text: &[u8]) -> bool {
        if self.only.is_some_and(|form| form != Form::Text) {
            return false;
        }
        match &mut self.builder {
            Builder::Date(builder) => plain_day(text).map(|day| builder.append_value(day)),
            Builder::Microseconds(builder) => {
                plain_micros(text).map(|micros| builder.append_value(micros))
            }
            Builder::Nanoseconds(builder) => plain_micros(text)
                .and_then(|micros| micros.checked_mul(1_000))
                .map(|nanos| builder.append_value(nanos)),
            _ => None,
        }
        .is_some()
    }

    fn append_time(&mut self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        if let ValueRef::Text(text) = cell
            && self.append_plain_time(text)
        {
            return Ok(());
        }
        let high = match self.time(cell)? {
            Moment::Infinite { high } => high,
            Moment::Zero => return self.append_zero(cell),
            Moment::At(nanos) => match &mut self.builder {
                Builder::Date(builder) => {
                    if nanos.rem_euclid(NANOS_PER_DAY) != 0 {
                        let wanted = "day: it is not midnight";
                        return Err(Misfit::no(cell, wanted, Remedy::Text));
                    }
                    match i32::try_from(nanos / NANOS_PER_DAY) {
                        Ok(days) => {
                            builder.append_value(days);
                            return Ok(());
                        }
                        Err(_) => nanos > 0,
                    }
                }
                Builder::Microseconds(builder) => {
                    if nanos.rem_euclid(1_000) != 0 {
                        let what = format!(
                            "holds {}, with more than six digits after the second",
                            shown(cell)
                        );
                        return Err(Misfit::new(what, Remedy::Nanoseconds));
                    }
                    match i64::try_from(nanos / 1_000) {
                        Ok(micros) => {
                            builder.append_value(micros);
                            return Ok(());
                        }
                        Err(_) => nanos > 0,
                    }
                }
                Builder::Nanoseconds(builder) => match i64::try_from(nanos) {
                    Ok(nanos) => {
                        builder.append_value(nanos);
                        return Ok(());
                    }
                    Err(_) => nanos > 0,
                },
                _ => return Ok(()),
            },
        };
        self.append_endless(cell, high)
    }

    /// A date that no calendar has.
    fn append_zero(&mut self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        match self.policies.zero_date {
            ZeroDate::Fail => Err(Misfit::no(cell, "day of any calendar", Remedy::ZeroDate)),
            ZeroDate::Null | ZeroDate::Text => self.null_instead(cell, ZERO_DATE, Remedy::ZeroDate),
        }
    }

    /// A time without an end, or beyond what the type can count.
    fn append_endless(&mut self, cell: ValueRef<'_>, high: bool) -> Result<(), Misfit> {
        let remedy = match self.policies.timestamp_unit {
            TimestampUnit::Ns => Remedy::Microseconds,
            TimestampUnit::Us => Remedy::InfiniteTime,
        };
        let beyond = || Misfit::no(cell, "time that the column's type can count", remedy);
        if self.only.is_some() {
            return Err(Misfit { remedy: Remedy::Value, ..beyond() });
        }
        match self.policies.infinite_time {
            InfiniteTime::Fail => return Err(Misfit { remedy: Remedy::InfiniteTime, ..beyond() }),
            InfiniteTime::Null | InfiniteTime::Text => {
                return self.null_instead(cell, INFINITE_TIME, Remedy::InfiniteTime);
            }
            InfiniteTime::Clamp => self.count(INFINITE_TIME),
        }
        match &mut self.builder {
            Builder::Date(builder) => builder.append_value(if high { i32::MAX } else { i32::MIN }),
            Builder::Microseconds(builder) => {
                builder.append_value(if high { i64::MAX } else { i64::MIN });
            }
            Builder::Nanoseconds(builder) => {
                builder.append_value(if high { i64::MAX } else { i64::MIN });
            }
            _ => {}
        }
        Ok(())
    }

    /// The time in a cell; the first number decides the unit of the others.
    fn time(&mut self, cell: ValueRef<'_>) -> Result<Moment, Misfit> {
        let guess = Guess::of(cell);
        let no_time = || Misfit::no(cell, "time", Remedy::Text);
        let among = |other: Form, known: Form| {
            let what = format!("holds {}, which is {other}, among {known}", shown(cell));
            Misfit::new(what, Remedy::Text)
        };
        if self.unit.is_none() && guess != Guess::One(Form::Text) {
            self.unit = self.units.known(&self.name);
        }
        let form = match (self.only.or(self.unit), guess) {
            (_, Guess::One(Form::Text)) if self.only.is_none() => Form::Text,
            (Some(known), _) if guess.allows(known) => known,
            (_, Guess::None) => return Err(no_time()),
            (None, Guess::One(form)) => form,
            (None, Guess::AnyUnit) => return Ok(Moment::At(0)),
            (None, Guess::SecondsOrJulianDay) => {
                let what =
                    format!("holds {}, which may be a julian day or epoch seconds", shown(cell));
                return Err(Misfit::new(what, Remedy::Text));
            }
            (Some(known), Guess::One(other)) => return Err(among(other, known)),
            (Some(known), _) => {
                let what = format!("holds {} among {known}", shown(cell));
                return Err(Misfit::new(what, Remedy::Text));
            }
        };
        if form != Form::Text && self.unit.is_none() {
            let agreed = self.units.agree(&self.name, form);
            self.unit = Some(agreed);
            if agreed != form {
                return Err(among(form, agreed));
            }
        }
        let at = match cell {
            ValueRef::Text(text) if self.only.is_none() => moment(text),
            _ => decode(cell, form).map(Moment::At),
        };
        at.ok_or_else(no_time)
    }

    fn check_cursor(&self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        match self.is_cursor {
            true => Err(Misfit { remedy: Remedy::Value, ..special_number(cell) }),
            false => Ok(()),
        }
    }

    fn append_text(&mut self, cell: ValueRef<'_>) -> Result<(), Misfit> {
        if let (true, ValueRef::Text(text), Builder::Text(builder)) =
            (self.plain_text, cell, &mut self.builder)
            && let Ok(text) = std::str::from_utf8(text)
        {
            builder.append_value(text);
            return Ok(());
        }
        if self.column_type == ColumnType::Number && !self.chosen && is_special_number(cell) {
            self.check_cursor(cell)?;
            match self.policies.special_number {
                SpecialNumber::Fail => return Err(special_number(cell)),
                SpecialNumber::Null => {
                    return self.null_instead(cell, SPECIAL_NUMBER, Remedy::SpecialNumber);
                }
                SpecialNumber::Nan | SpecialNumber::Text => {}
            }
        }
        let text: Cow<'_, str> = match cell {
            ValueRef::Null => return Ok(()),
            ValueRef::Integer(number) => number.to_string().into(),
            ValueRef::Real(number)
                if self.column_type == ColumnType::Number && number.is_finite() =>
            {
                number.to_string().into()
            }
            ValueRef::Real(number) => real_text(number).into(),
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => text.into(),
                Err(_) if self.chosen => {
                    self.count(INVALID_TEXT);
                    bytes_text(text).into()
                }
                Err(_) => {
                    let what = format!("holds {}", shown(cell));
                    return Err(Misfit::new(what, Remedy::Bytes));
                }
            },
            ValueRef::Blob(bytes) if self.column_type == ColumnType::Uuid && bytes.len() == 16 => {
                uuid_text(bytes).into()
            }
            ValueRef::Blob(bytes) if self.chosen => {
                self.count(BLOB_AS_TEXT);
                bytes_text(bytes).into()
            }
            ValueRef::Blob(_) => return Err(Misfit::no(cell, "text", Remedy::Bytes)),
        };
        // Some readers refuse a whole file whose JSON is none.
        if self.column_type == ColumnType::Json && !self.chosen && !is_json(&text) {
            return Err(Misfit::no(cell, "JSON", Remedy::Text));
        }
        if let Builder::Text(builder) = &mut self.builder {
            builder.append_value(text);
        }
        Ok(())
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
            Builder::WideDecimal(builder, ..) => Arc::new(builder.finish()),
            Builder::Float(builder) => Arc::new(builder.finish()),
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Binary(builder) => Arc::new(builder.finish()),
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn special_number(cell: ValueRef<'_>) -> Misfit {
    Misfit::new(format!("holds {}", shown(cell)), Remedy::SpecialNumber)
}

fn is_special_number(cell: ValueRef<'_>) -> bool {
    match cell {
        ValueRef::Real(number) => !number.is_finite(),
        ValueRef::Text(text) => is_special(text),
        _ => false,
    }
}

fn integer(cell: ValueRef<'_>) -> Option<i64> {
    match cell {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) => exact_integer(number),
        // A column of texts that is read as integers.
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
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

fn wide_decimal(cell: ValueRef<'_>, precision: u8, scale: i8) -> Option<i256> {
    match cell {
        ValueRef::Integer(number) => wide_units(&number.to_string(), precision, scale),
        ValueRef::Real(number) => wide_units(&told_decimal(number, scale)?, precision, scale),
        ValueRef::Text(text) => wide_units(std::str::from_utf8(text).ok()?, precision, scale),
        _ => None,
    }
}
