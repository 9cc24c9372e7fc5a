//! Names and literals as SQLite spells them.

use std::collections::BTreeMap;

use tidelake_connector::sql::{Dialect, quote_ansi, quote_text};
use tidelake_model::CursorRead;
use tidelake_watermark::{Cursor, Decimal, Kind, Value};

use crate::times::{Form, NANOS_PER_DAY, print};

/// The function that turns a stored time into text that sorts as time does.
pub(crate) const TIME_FUNCTION: &str = "tidelake_time";

/// A name in double quotes.
pub(crate) fn quote(name: &str) -> String {
    quote_ansi(name)
}

/// Columns as they are.
pub(crate) struct Plain;

impl Dialect for Plain {
    fn quote(&self, name: &str) -> String {
        quote(name)
    }

    fn literal(&self, value: &Value) -> String {
        literal(value)
    }

    fn row_values(&self) -> bool {
        true
    }
}

/// Cursor columns as expressions that sort as their values do: times whatever
/// their stored form, text by its bytes whatever the column's collation.
pub(crate) struct Sorted<'a> {
    cursor: &'a CursorRead,
    forms: &'a BTreeMap<String, Form>,
}

impl<'a> Sorted<'a> {
    pub(crate) fn new(cursor: &'a CursorRead, forms: &'a BTreeMap<String, Form>) -> Self {
        Self { cursor, forms }
    }
}

/// The kind of a cursor's column.
pub(crate) fn kind_of(cursor: &CursorRead, name: &str) -> Option<Kind> {
    let place = cursor.cursor.columns().iter().position(|column| column == name)?;
    let place = if matches!(cursor.cursor, Cursor::Composite(_)) { place } else { 0 };
    cursor.kinds.get(place).copied()
}

impl Dialect for Sorted<'_> {
    fn quote(&self, name: &str) -> String {
        let quoted = quote(name);
        match kind_of(self.cursor, name) {
            Some(kind) if kind.is_time() => {
                let form = self.forms.get(name).copied().unwrap_or(Form::Text);
                format!("{TIME_FUNCTION}({quoted}, '{}')", form.name())
            }
            Some(Kind::Text) => format!("{quoted} COLLATE BINARY"),
            _ => quoted,
        }
    }

    fn literal(&self, value: &Value) -> String {
        literal(value)
    }

    fn row_values(&self) -> bool {
        true
    }
}

/// A value as a literal; a time in the form that [`TIME_FUNCTION`] gives.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Date(days) => quote_text(&print(i128::from(*days).saturating_mul(NANOS_PER_DAY))),
        Value::Datetime(nanos) | Value::Timestamp(nanos) => quote_text(&print(*nanos)),
        Value::Integer(number) => number_literal(&number.to_string()),
        Value::Number(number) => decimal_literal(number),
        // A statement ends at a NUL character.
        Value::Text(text) if text.contains('\0') => {
            format!("CAST(x'{}' AS TEXT)", hexadecimal(text.as_bytes()))
        }
        Value::Text(text) => quote_text(text),
        Value::Binary(bytes) => format!("x'{}'", hexadecimal(bytes)),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// A whole number is compared as such as long as it has 64 bits; beyond, every
/// column's value is on one side of it and the nearest float says which.
fn number_literal(digits: &str) -> String {
    match digits.parse::<i64>() {
        // SQLite reads the lowest integer as the negation of one that is too large.
        Ok(i64::MIN) => "(-9223372036854775807 - 1)".to_owned(),
        Ok(number) => number.to_string(),
        Err(_) => format!("{digits}.0"),
    }
}

fn decimal_literal(number: &Decimal) -> String {
    let text = number.to_string();
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|byte| byte == b'0') => {
            number_literal(if whole == "-0" { "0" } else { whole })
        }
        Some(_) => text,
        None => number_literal(&text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;

    use super::*;

    fn parse(kind: Kind, text: &str) -> Value {
        Value::parse(kind, text).unwrap()
    }

    #[test]
    fn values_are_spelled_by_their_type() {
        for (value, wanted) in [
            (parse(Kind::Date, "2026-11-30"), "'2026-11-30T00:00:00.000000000'"),
            (parse(Kind::Datetime, "2026-11-30 09:15:00.5"), "'2026-11-30T09:15:00.500000000'"),
            (parse(Kind::Timestamp, "2026-11-30 09:15:00+01"), "'2026-11-30T08:15:00.000000000'"),
            (parse(Kind::Timestamp, "-0043-03-15"), "'-'"),
            (parse(Kind::Timestamp, "+12000-03-15"), "'~'"),
            (parse(Kind::Integer, "-42"), "-42"),
            (parse(Kind::Integer, "-9223372036854775808"), "(-9223372036854775807 - 1)"),
            (parse(Kind::Integer, "18446744073709551616"), "18446744073709551616.0"),
            (parse(Kind::Number, "19.90"), "19.90"),
            (parse(Kind::Number, "-19.00"), "-19"),
            (parse(Kind::Number, "-0.00"), "0"),
            (parse(Kind::Text, "it's; --"), "'it''s; --'"),
            (parse(Kind::Text, "a\0b"), "CAST(x'610062' AS TEXT)"),
            (parse(Kind::Binary, "0x00FF"), "x'00FF'"),
        ] {
            assert_eq!(literal(&value), wanted);
        }
    }

    fn is_same(connection: &Connection, literal: &str, value: impl rusqlite::ToSql) -> bool {
        let statement = format!("SELECT ?1 = {literal} AND typeof({literal}) = typeof(?1)");
        connection.query_row(&statement, [value], |row| row.get(0)).unwrap()
    }

    proptest! {
        #[test]
        fn text_and_bytes_come_back(text in "\\PC*|[\\x00-\\x7f]*") {
            let connection = Connection::open_in_memory().unwrap();
            prop_assert!(is_same(&connection, &literal(&Value::Text(text.clone())), &text));
            let bytes = text.into_bytes();
            prop_assert!(is_same(&connection, &literal(&Value::Binary(bytes.clone())), &bytes));
        }

        #[test]
        fn integers_come_back(number: i64) {
            let connection = Connection::open_in_memory().unwrap();
            prop_assert!(is_same(&connection, &literal(&Value::Integer(number.into())), number));
        }

        #[test]
        fn decimals_are_the_floats_that_are_stored(whole in -1_000_000_000_000i64..1_000_000_000_000, fraction in 1u32..1000) {
            let connection = Connection::open_in_memory().unwrap();
            let text = format!("{whole}.{fraction:03}");
            let float: f64 = text.parse().unwrap();
            let number = parse(Kind::Number, &text);
            let statement = format!("SELECT ?1 = {}", literal(&number));
            let same: bool = connection.query_row(&statement, [float], |row| row.get(0)).unwrap();
            prop_assert!(same, "{}", text);
        }

        #[test]
        fn floats_are_read_as_they_are_printed(float in -1e15f64..1e15) {
            let connection = Connection::open_in_memory().unwrap();
            let number = parse(Kind::Number, &float.to_string());
            let statement = format!("SELECT ?1 = {}", literal(&number));
            let same: bool = connection.query_row(&statement, [float], |row| row.get(0)).unwrap();
            prop_assert!(same, "{}", float);
        }
    }
}
