//! Values and names in statements: each is one literal or one name, and says
//! what was meant.

use tidelake_connector::sql::quote_ansi;
use tidelake_postgres::fuzzing::literal as cast_literal;
use tidelake_sqlite::fuzzing::literal as plain_literal;
use tidelake_watermark::{Kind, Value};

use crate::sql_lexer::{Token, tokens};
use crate::{pick, take};

/// Types that a literal may be cast to.
const TYPES: [&str; 7] = ["date", "timestamp", "timestamptz", "bigint", "numeric", "text", "bytea"];

pub(crate) fn target(bytes: &[u8]) {
    let Some((byte, bytes)) = take(bytes) else { return };
    let Some(kind) = pick(byte, &Kind::ALL) else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    name(text);
    let Ok(value) = Value::parse(kind, text) else { return };
    with_a_cast(&value);
    plain(&value);
}

fn name(text: &str) {
    // No catalogue has a name with a NUL character.
    if text.contains('\0') {
        return;
    }
    assert_eq!(tokens(&quote_ansi(text)), Some(vec![Token::Name(text.to_owned())]));
}

fn with_a_cast(value: &Value) {
    let literal = cast_literal(value);
    let tokens = tokens(&literal).unwrap_or_else(|| panic!("not closed: {literal}"));
    let [Token::Text(inner), Token::Sign(':'), Token::Sign(':'), Token::Word(cast)] =
        tokens.as_slice()
    else {
        panic!("no literal with a cast: {literal}");
    };
    assert!(TYPES.contains(&cast.as_str()), "{literal}");
    match value {
        Value::Text(text) => assert_eq!(Some(inner.as_str()), text.split('\0').next()),
        Value::Integer(_) | Value::Number(_) => assert_eq!(inner, &value.to_string()),
        Value::Binary(bytes) => assert_eq!(inner.len(), 2 + 2 * bytes.len()),
        Value::Date(_) | Value::Datetime(_) | Value::Timestamp(_) => {
            assert!(inner.ends_with("infinity") || inner.len() >= "2026-11-30".len(), "{literal}");
        }
    }
}

fn plain(value: &Value) {
    let literal = plain_literal(value);
    let tokens = tokens(&literal).unwrap_or_else(|| panic!("not closed: {literal}"));
    let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match (value, tokens.as_slice()) {
        (Value::Text(text), [Token::Text(inner)]) => assert_eq!(inner, text),
        (Value::Text(text), [Token::Word(cast), .., Token::Sign(')')]) => {
            assert!(cast == "CAST" && text.contains('\0'), "{literal}");
            assert_eq!(literal.len(), "CAST(x'' AS TEXT)".len() + 2 * text.len());
        }
        (Value::Binary(bytes), [Token::Word(x), Token::Text(digits)]) => {
            assert!(x == "x" && hexadecimal(digits) && digits.len() == 2 * bytes.len());
        }
        (Value::Integer(_) | Value::Number(_), [Token::Word(digits)])
        | (Value::Integer(_) | Value::Number(_), [Token::Sign('-'), Token::Word(digits)]) => {
            assert!(digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{literal}");
        }
        (Value::Integer(_) | Value::Number(_), _) => {
            assert_eq!(literal, "(-9223372036854775807 - 1)");
        }
        (Value::Date(_) | Value::Datetime(_) | Value::Timestamp(_), [Token::Text(_)]) => {}
        _ => panic!("another literal: {literal}"),
    }
}
