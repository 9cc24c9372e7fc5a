//! Times by a store's own clock.

use tidelake_model::instant_text;

const NANOS_PER_MICRO: i128 = 1_000;

/// Rounded down to microseconds, the finest step that every store keeps.
pub(crate) fn whole_micros(nanos: i128) -> i128 {
    nanos.div_euclid(NANOS_PER_MICRO) * NANOS_PER_MICRO
}

/// RFC 3339 in UTC with six digits, so that text sorts as time does.
pub(crate) fn time_text(nanos: i128) -> String {
    let text = instant_text(whole_micros(nanos));
    let text = text.trim_end_matches('Z');
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{seconds}.{fraction:0<6}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_six_digits() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_500_000_999, "1970-01-01T00:00:01.500000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(time_text(nanos), text);
        }
    }
}
