//! Watermark values and cursors, as they are stored and as users write them.

use std::cmp::Ordering;

use tidelake_model::position_text;
use tidelake_watermark::{CompareError, Cursor, Kind, Position, Value};

use crate::{pick, take};

pub(crate) fn target(bytes: &[u8]) {
    let Some((byte, bytes)) = take(bytes) else { return };
    let Some(kind) = pick(byte, &Kind::ALL) else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // One value, or two that are compared.
    let (left, right) = text.split_once('\n').unwrap_or((text, text));
    let values = (printed_and_parsed(kind, left), printed_and_parsed(kind, right));
    if let (Some(left), Some(right)) = values {
        ordered(&left, &right);
        composite(&left, &right);
    }
    cursor(text);
}

/// Printing and parsing is the identity, for a kind and whatever text it takes.
fn printed_and_parsed(kind: Kind, text: &str) -> Option<Value> {
    let value = Value::parse(kind, text).ok()?;
    assert_eq!(value.kind(), kind);
    let printed = value.to_string();
    let again = Value::parse(kind, &printed).expect("what is printed is parsed");
    assert_eq!(again, value, "{printed} is another value");
    assert_eq!(again.to_string(), printed, "printed in two ways");
    Some(value)
}

fn ordered(left: &Value, right: &Value) {
    let (there, back) = (left.compare(right), right.compare(left));
    assert_eq!(left.compare(left), Ok(Ordering::Equal));
    match there {
        Ok(order) => {
            assert_eq!(back, Ok(order.reverse()));
            // Equal values may be spelled in two ways only where digits differ.
            let equal = left == right;
            assert_eq!(equal, order == Ordering::Equal, "{left} and {right}");
        }
        Err(CompareError::Text) => assert!(left.kind() == Kind::Text && left != right),
        Err(error) => panic!("{error}"),
    }
}

fn composite(left: &Value, right: &Value) {
    let position = Position::tuple([left.clone(), right.clone()]).expect("there are two");
    let (kinds, text) = position_text::to_parts(&position);
    assert_eq!(position_text::from_parts(&kinds, &text).as_ref(), Ok(&position), "{text}");
}

fn cursor(text: &str) {
    let Some(cursor) = Cursor::parse(text) else { return };
    let printed = cursor.to_string();
    assert_eq!(Cursor::parse(&printed), Some(cursor), "{printed}");
}
