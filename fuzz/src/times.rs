//! Values as a database that stores anything anywhere stores them: times, for which
//! it has no type, and decimals.

use tidelake_sqlite::fuzzing::{Stored, is_read, printed, times, ways};
use tidelake_watermark::{Kind, Value};

use crate::take;

pub(crate) fn target(bytes: &[u8]) {
    let Some((byte, bytes)) = take(bytes) else { return };
    let number = bytes.first_chunk::<8>();
    short_ways(byte, bytes, number);
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

/// What is found in a short way is what the long one finds.
fn short_ways(byte: u8, bytes: &[u8], number: Option<&[u8; 8]>) {
    let (integer, real) = match number {
        Some(number) => (i64::from_le_bytes(*number), f64::from_le_bytes(*number)),
        None => (byte.into(), byte.into()),
    };
    // A decimal of two or six digits is what floats are made from most.
    let cents = f64::from(byte) * f64::from(u16::try_from(bytes.len()).unwrap_or(1)) / 100.0;
    let stored = [integer, integer % 1_000_000_007].map(Stored::Integer);
    let stored = stored.into_iter().chain([real, cents, cents.next_up()].map(Stored::Real));
    for stored in stored.chain([Stored::Text(bytes)]) {
        for (precision, scale) in
            [(15, 2), (38, 6), (1 + byte % 38, i8::from_le_bytes([byte]) % 24)]
        {
            for (short, long) in ways(stored, precision, scale) {
                assert_eq!(short, long, "{stored:?} as ({precision},{scale})");
            }
        }
    }
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    assert!(is_read(&[first, rest, bytes], real, integer).unwrap(), "{bytes:?}");
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
