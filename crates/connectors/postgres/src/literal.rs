//! Names and literals in PostgreSQL's spelling.

use tidelake_connector::sql::{Dialect, quote_ansi, quote_text};
use tidelake_watermark::Value;

/// The spelling of PostgreSQL with `standard_conforming_strings` on.
pub(crate) struct PostgresDialect;

const NANOS_PER_MICRO: i128 = 1_000;
/// 4714-11-24 BC, the first day that a date or time stamp can hold.
const FIRST_DAY: i64 = -2_440_588;
/// 5874897-12-31, the last one of a date.
const LAST_DAY: i64 = 2_145_042_905;
/// 294276-12-31, the last one of a time stamp.
const LAST_MOMENT_DAY: i64 = 106_762_939;

impl Dialect for PostgresDialect {
    fn quote(&self, name: &str) -> String {
        quoted(name)
    }

    fn literal(&self, value: &Value) -> String {
        match value {
            Value::Date(days) if *days < FIRST_DAY => "'-infinity'::date".to_owned(),
            Value::Date(days) if *days > LAST_DAY => "'infinity'::date".to_owned(),
            Value::Date(_) => format!("'{}'::date", calendar_text(&value.to_string())),
            Value::Datetime(nanos) => moment(*nanos, Value::Datetime, "timestamp"),
            Value::Timestamp(nanos) => moment(*nanos, Value::Timestamp, "timestamptz"),
            Value::Integer(number) => match i64::try_from(*number) {
                Ok(number) => format!("'{number}'::bigint"),
                Err(_) => format!("'{number}'::numeric"),
            },
            Value::Number(number) => format!("'{number}'::numeric"),
            // No text of this server holds a NUL; what comes before it is the
            // highest text below such a bound.
            Value::Text(text) => {
                format!("{}::text", quote_text(text.split('\0').next().unwrap_or("")))
            }
            Value::Binary(bytes) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("'\\x{digits}'::bytea")
            }
        }
    }

    fn row_values(&self) -> bool {
        true
    }
}

/// A name in quotes.
pub(crate) fn quoted(name: &str) -> String {
    quote_ansi(name)
}

/// A time stamp literal. The server keeps microseconds: finer digits are cut off
/// downwards, because it would round them.
fn moment(nanos: i128, wrap: impl Fn(i128) -> Value, cast: &str) -> String {
    let day = i64::try_from(nanos.div_euclid(86_400_000_000_000)).unwrap_or(if nanos < 0 {
        i64::MIN
    } else {
        i64::MAX
    });
    if day < FIRST_DAY {
        return format!("'-infinity'::{cast}");
    }
    if day > LAST_MOMENT_DAY {
        return format!("'infinity'::{cast}");
    }
    let whole = nanos.div_euclid(NANOS_PER_MICRO) * NANOS_PER_MICRO;
    format!("'{}'::{cast}", calendar_text(&wrap(whole).to_string()))
}

/// Years outside 1–9999 in the server's own form: `BC` instead of a sign.
fn calendar_text(text: &str) -> String {
    if let Some(text) = text.strip_prefix('+') {
        return text.to_owned();
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let Some((year, rest)) = unsigned.split_once('-') else { return text.to_owned() };
    match year.parse::<i64>() {
        Ok(year) if negative || year == 0 => format!("{:04}-{rest} BC", year + 1),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidelake_watermark::{Decimal, Kind};

    use super::*;

    fn literal(kind: Kind, text: &str) -> String {
        PostgresDialect.literal(&Value::parse(kind, text).unwrap())
    }

    #[test]
    fn literals_are_cast_and_spelled_as_the_server_reads_them() {
        for (kind, text, wanted) in [
            (Kind::Date, "2026-11-30", "'2026-11-30'::date"),
            (Kind::Date, "-0043-03-15", "'0044-03-15 BC'::date"),
            (Kind::Date, "0000-01-01", "'0001-01-01 BC'::date"),
            (Kind::Date, "+12345-01-01", "'12345-01-01'::date"),
            (Kind::Date, "+9000000-01-01", "'infinity'::date"),
            (Kind::Date, "-5000-01-01", "'-infinity'::date"),
            (
                Kind::Datetime,
                "2026-11-30T09:15:00.1234567",
                "'2026-11-30T09:15:00.123456'::timestamp",
            ),
            (Kind::Timestamp, "2026-11-30T09:15:00Z", "'2026-11-30T09:15:00Z'::timestamptz"),
            (Kind::Timestamp, "-0043-03-15 01:00:00Z", "'0044-03-15T01:00:00Z BC'::timestamptz"),
            (Kind::Timestamp, "+300000-01-01", "'infinity'::timestamptz"),
            (Kind::Integer, "-42", "'-42'::bigint"),
            (Kind::Integer, "99999999999999999999", "'99999999999999999999'::numeric"),
            (Kind::Number, "3.1400", "'3.1400'::numeric"),
            (Kind::Text, r"o'\x", r"'o''\x'::text"),
            (Kind::Text, "a\0b", "'a'::text"),
            (Kind::Binary, "0x00FF", r"'\x00ff'::bytea"),
        ] {
            assert_eq!(literal(kind, text), wanted, "{kind} {text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_cannot_leave_its_quotes(text in ".*") {
            let literal = PostgresDialect.literal(&Value::Text(text.clone()));
            let inner = literal.strip_prefix('\'').unwrap().strip_suffix("'::text").unwrap();
            prop_assert!(!inner.replace("''", "").contains('\''));
            prop_assert!(!literal.contains('\0'));
            prop_assert_eq!(inner.replace("''", "'"), text.split('\0').next().unwrap());
        }

        #[test]
        fn a_moment_is_never_rounded_up(nanos in -210_000_000_000_000_000_000i128..9_000_000_000_000_000_000_000) {
            let literal = PostgresDialect.literal(&Value::Timestamp(nanos));
            if let Some(text) = literal.strip_prefix('\'').and_then(|l| l.strip_suffix("'::timestamptz"))
                && !text.contains("infinity")
            {
                // The canonical reader takes BC behind the zone as the server does.
                let read = Value::parse(Kind::Timestamp, text).unwrap();
                let Value::Timestamp(read) = read else { panic!() };
                prop_assert_eq!(read, nanos.div_euclid(1000) * 1000);
            }
        }

        #[test]
        fn numbers_print_as_they_are(number in any::<i128>(), scale in 0u32..30) {
            prop_assert!(PostgresDialect.literal(&Value::Integer(number)).contains(&number.to_string()));
            let text = format!("{number}.{}", "7".repeat(scale as usize + 1));
            let literal = PostgresDialect.literal(&Value::Number(Decimal::parse(&text).unwrap()));
            prop_assert_eq!(literal, format!("'{text}'::numeric"));
        }
    }
}
