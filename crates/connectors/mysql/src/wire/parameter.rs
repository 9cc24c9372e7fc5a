//! Values that are bound to a prepared statement.

/// A value of a bound parameter, with its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Parameter {
    Null,
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    /// Digits, as in `-12.50`.
    Decimal(String),
    Text(String),
    Binary(Vec<u8>),
    Date {
        year: u16,
        month: u8,
        day: u8,
    },
    Datetime {
        year: u16,
        month: u8,
        day: u8,
        hour: u8,
        minute: u8,
        second: u8,
        micros: u32,
    },
}
