//! What the fuzzer looks at; no part of the crate's interface.

use rusqlite::types::ValueRef;
use tidelake_watermark::Value;

use crate::times::{Form, decode, print};

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

/// A time as the text that sorts as times do.
pub fn printed(nanos: i128) -> String {
    print(nanos)
}

/// A value as it stands in a statement.
pub fn literal(value: &Value) -> String {
    crate::dialect::literal(value)
}
