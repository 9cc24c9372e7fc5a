//! Cursor values as numbers, where there are distances between them: what a range
//! is cut by.

use tidelake_watermark::{Decimal, Value};

/// A value as a number that can be cut; `None` where no arithmetic is known.
pub(crate) fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Date(days) => Some((*days).into()),
        Value::Datetime(nanos) | Value::Timestamp(nanos) => Some(*nanos),
        Value::Integer(number) => Some(*number),
        Value::Number(number) => number.floor(),
        Value::Binary(bytes) if bytes.len() < 16 => {
            Some(bytes.iter().fold(0, |number: i128, byte| (number << 8) | i128::from(*byte)))
        }
        Value::Binary(_) | Value::Text(_) => None,
    }
}

/// The number as a value of the same kind and width as `like`.
pub(crate) fn value_like(like: &Value, number: i128) -> Option<Value> {
    Some(match like {
        Value::Date(_) => Value::Date(i64::try_from(number).ok()?),
        Value::Datetime(_) => Value::Datetime(number),
        Value::Timestamp(_) => Value::Timestamp(number),
        Value::Integer(_) => Value::Integer(number),
        Value::Number(_) => Value::Number(Decimal::parse(&number.to_string())?),
        Value::Binary(bytes) => {
            let all = number.to_be_bytes();
            Value::Binary(all.get(all.len().checked_sub(bytes.len())?..)?.to_vec())
        }
        Value::Text(_) => return None,
    })
}
