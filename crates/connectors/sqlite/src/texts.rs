//! What is stored, as text.

use std::borrow::Cow;
use std::fmt::Write;

use rusqlite::types::ValueRef;

/// Digits of a real number that SQLite prints.
const PRINTED_DIGITS: usize = 15;
/// Characters of a value that an error shows.
const SHOWN: usize = 40;

/// A real number as SQLite prints it, where its fifteen digits name this number
/// and no other; else in the same form with the sixteen or seventeen that do.
///
/// SQLite itself would print `0.1 + 0.2` as `0.3`.
pub(crate) fn real_text(number: f64) -> String {
    if !number.is_finite() {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return if number.is_nan() { "NaN".to_owned() } else { format!("{sign}Inf") };
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    // SQLite has one zero only.
    let sign = if number == 0.0 { "" } else { sign };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let most = i32::try_from(digits.len().max(PRINTED_DIGITS)).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= most {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
        let rest = if rest.is_empty() { "0" } else { rest };
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}.{rest}e{direction}{:02}", exponent.unsigned_abs());
    }
    let plain = format!("{}", number.abs());
    let point = if plain.contains('.') { "" } else { ".0" };
    format!("{sign}{plain}{point}")
}

/// Bytes as SQLite's `quote()` has them.
pub(crate) fn bytes_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().saturating_mul(2).saturating_add(3));
    text.push_str("X'");
    for byte in bytes {
        let _ = write!(text, "{byte:02X}");
    }
    text.push('\'');
    text
}

/// Sixteen bytes as a UUID.
pub(crate) fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// A cell for an error: its storage class, and its value where that is short.
pub(crate) fn shown(cell: ValueRef<'_>) -> String {
    match cell {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => format!("the integer {number}"),
        ValueRef::Real(number) => format!("the real number {}", real_text(number)),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => format!("the text '{}'", shortened(text)),
            Err(_) => {
                format!("a text that is no valid UTF-8, {}", shortened(&bytes_text(text)))
            }
        },
        ValueRef::Blob(bytes) => format!("the blob {}", shortened(&bytes_text(bytes))),
    }
}

fn shortened(text: &str) -> String {
    let mut characters = text.chars();
    let mut start = String::new();
    for character in characters.by_ref().take(SHOWN) {
        match character.is_control() {
            true => start.extend(character.escape_default()),
            false => start.push(character),
        }
    }
    if characters.next().is_some() { format!("{start}…") } else { start }
}

/// A name as an option has it: in quotes where it is no plain word.
pub(crate) fn spelled(name: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character.is_alphanumeric() || character == '_';
    if !name.is_empty() && name.chars().all(is_plain) {
        name.into()
    } else {
        format!("\"{}\"", name.replace('"', "\"\"")).into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;

    use super::*;

    fn as_sqlite(connection: &Connection, number: f64) -> String {
        connection.query_row("SELECT CAST(?1 AS TEXT)", [number], |row| row.get(0)).unwrap()
    }

    #[test]
    fn short_numbers_are_printed_as_sqlite_does() {
        let connection = Connection::open_in_memory().unwrap();
        for number in [
            0.0,
            -0.0,
            1.0,
            -1.5,
            0.1,
            100.0,
            123_456_789_012_345.0,
            1e14,
            1e15,
            1e16,
            -2.5e20,
            1e300,
            1.5e-4,
            0.0001,
            1e-5,
            -1.25e-7,
            5e-324,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1_796_030_100.25,
        ] {
            // Of so small a number SQLite prints digits that are not there.
            let wanted = if number == 5e-324 {
                "5.0e-324".to_owned()
            } else {
                as_sqlite(&connection, number)
            };
            assert_eq!(real_text(number), wanted, "{number:e}");
        }
        assert_eq!(real_text(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(real_text(9_007_199_254_740_994.0), "9007199254740994.0");
        assert_eq!(real_text(1.797_693_134_862_315_7e308), "1.7976931348623157e+308");
    }

    proptest! {
        #[test]
        fn fifteen_digits_are_as_sqlite_has_them(
            digits in -999_999_999_999_999i64..=999_999_999_999_999, exponent in -40i32..40,
        ) {
            let connection = Connection::open_in_memory().unwrap();
            let number: f64 = format!("{digits}e{exponent}").parse().unwrap();
            prop_assert_eq!(real_text(number), as_sqlite(&connection, number));
        }

        #[test]
        fn every_number_comes_back(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let back: f64 = real_text(number).parse().unwrap();
            prop_assert_eq!(back, number);
        }

        #[test]
        fn bytes_are_as_sqlite_quotes_them(bytes: Vec<u8>) {
            let connection = Connection::open_in_memory().unwrap();
            let quoted: String =
                connection.query_row("SELECT quote(?1)", [&bytes], |row| row.get(0)).unwrap();
            prop_assert_eq!(bytes_text(&bytes), quoted);
        }
    }

    #[test]
    fn values_are_shown_short_and_harmless() {
        assert_eq!(shown(ValueRef::Text(b"a\x1b\nb")), "the text 'a\\u{1b}\\nb'");
        let long = "x".repeat(50);
        assert_eq!(shown(ValueRef::Text(long.as_bytes())), format!("the text '{}…'", &long[..40]));
        assert_eq!(shown(ValueRef::Blob(&[0, 255])), "the blob X'00FF'");
        assert_eq!(shown(ValueRef::Text(&[255])), "a text that is no valid UTF-8, X'FF'");
        assert_eq!(spelled("größe_1"), "größe_1");
        assert_eq!(spelled("a:\"b"), "\"a:\"\"b\"");
    }
}
