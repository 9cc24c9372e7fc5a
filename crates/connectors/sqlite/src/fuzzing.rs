//! What the fuzzer looks at; no part of the crate's interface.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};
use tidelake_watermark::Value;

use crate::numbers::{Decimals, decimal_units, float_units, integer_units};
use crate::rows::Rows;
use crate::times::{Form, NANOS_PER_DAY, decode, parse, plain_day, plain_micros, print};

/// A stored value in which a time may be.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'a> {
    /// A whole number.
    Integer(i64),
    /// A float.
    Real(f64),
    /// A text, which need not be UTF-8.
    Text(&'a [u8]),
}

/// The times in a stored value, one for each form that it may have.
pub fn times(stored: Stored<'_>) -> Vec<i128> {
    let cell = match stored {
        Stored::Integer(number) => ValueRef::Integer(number),
        Stored::Real(number) => ValueRef::Real(number),
        Stored::Text(text) => ValueRef::Text(text),
    };
    let forms =
        [Form::Text, Form::Seconds, Form::Milliseconds, Form::Microseconds, Form::JulianDay];
    forms.into_iter().filter_map(|form| decode(cell, form)).collect()
}

/// What the short ways find in a stored value, each beside what the long one does:
/// the units of a decimal, and nanoseconds of times, where the short way knows one.
pub fn ways(stored: Stored<'_>, precision: u8, scale: i8) -> Vec<(Option<i128>, Option<i128>)> {
    let decimals = Decimals::new(precision, scale);
    let text = match stored {
        Stored::Integer(number) => {
            let long = integer_units(number, precision, scale);
            return vec![(decimals.of_integer(number), long)];
        }
        Stored::Real(number) => {
            let long = float_units(number, precision, scale);
            return vec![(decimals.of_float(number), long)];
        }
        Stored::Text(text) => text,
    };
    let utf8 = std::str::from_utf8(text).ok();
    let units = utf8.and_then(|text| decimal_units(text, precision, scale));
    let day = plain_day(text).map(|day| i128::from(day) * NANOS_PER_DAY);
    let micros = plain_micros(text).map(|micros| i128::from(micros) * 1_000);
    let times = [day, micros].into_iter().filter(Option::is_some).map(|nanos| (nanos, parse(text)));
    std::iter::once((decimals.of_text(text), units)).chain(times).collect()
}

/// Whether a row of such values is read as `rusqlite` reads it.
pub fn is_read(texts: &[&[u8]], real: f64, integer: i64) -> rusqlite::Result<bool> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch("CREATE TABLE t (a, b, c, d, e)")?;
    let text = |place: usize| texts.get(place).map(|text| ValueRef::Text(text));
    let blob = texts.last().map(|bytes| ValueRef::Blob(bytes));
    let cells = [text(0), Some(ValueRef::Real(real)), blob, Some(ValueRef::Integer(integer))];
    let cells = cells.into_iter().chain([text(1)]);
    let cells = cells.map(|cell| ToSqlOutput::Borrowed(cell.unwrap_or(ValueRef::Null)));
    connection.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", params_from_iter(cells))?;
    let mut statement = connection.prepare("SELECT * FROM t")?;
    let mut wanted = statement.query([])?;
    let mut found = Rows::of(&connection, "SELECT * FROM t")?;
    let (Some(wanted), Some(found)) = (wanted.next()?, found.next()?) else { return Ok(false) };
    for place in 0..5 {
        if found.cell(place)? != wanted.get_ref(place)? {
            return Ok(false);
        }
    }
    Ok(found.cell(5).is_err())
}

/// A time as the text that sorts as times do.
pub fn printed(nanos: i128) -> String {
    print(nanos)
}

/// A value as it stands in a statement.
pub fn literal(value: &Value) -> String {
    crate::dialect::literal(value)
}
