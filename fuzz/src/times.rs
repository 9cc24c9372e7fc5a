//! Times as a database without a type for them stores them.

use tidelake_sqlite::fuzzing::{Stored, printed, times};
use tidelake_watermark::{Kind, Value};

use crate::take;

pub(crate) fn target(bytes: &[u8]) {
    let Some((byte, bytes)) = take(bytes) else { return };
    let number = bytes.first_chunk::<8>();
    match (byte % 3, number) {
        (0, Some(number)) => {
            times(Stored::Integer(i64::from_le_bytes(*number))).into_iter().for_each(printed_again);
        }
        (1, Some(number)) => {
            times(Stored::Real(f64::from_le_bytes(*number))).into_iter().for_each(printed_again);
        }
        _ => text(bytes),
    }
    if let Some(number) = bytes.first_chunk::<16>() {
        // Any number at all is printed, and sorts before or after what has a place.
        let _ = printed(i128::from_le_bytes(*number));
    }
}

fn text(bytes: &[u8]) {
    let found = times(Stored::Text(bytes));
    assert!(found.len() <= 1, "one text is two times");
    let Some(nanos) = found.first() else { return };
    printed_again(*nanos);
    // What the lake's own reader takes as well is the same time for both.
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(Value::Timestamp(other)) = Value::parse(Kind::Timestamp, text)
    {
        assert_eq!(*nanos, other, "{text}");
    }
}

fn printed_again(nanos: i128) {
    let text = printed(nanos);
    assert_eq!(times(Stored::Text(text.as_bytes())), [nanos], "{text}");
}
