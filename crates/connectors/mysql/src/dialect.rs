//! Names and literals in the spelling of this family.

use tidelake_connector::sql::{Dialect, quote_text};
use tidelake_watermark::Value;

/// The spelling of MySQL and MariaDB, whatever `sql_mode` says of backslashes and
/// double quotes.
pub(crate) struct MysqlDialect;

const NANOS_PER_DAY: i128 = 86_400_000_000_000;
const NANOS_PER_MICRO: i128 = 1_000;
/// 0000-01-01, the first day that is a day.
const FIRST_DAY: i64 = -719_528;
/// 9999-12-31.
const LAST_DAY: i64 = 2_932_896;
/// Digits of a decimal in all, and after the point.
const MOST_DIGITS: usize = 65;
const MOST_DECIMALS: usize = 30;

impl Dialect for MysqlDialect {
    fn quote(&self, name: &str) -> String {
        quoted(name)
    }

    fn literal(&self, value: &Value) -> String {
        match value {
            Value::Date(days) => {
                format!("DATE'{}'", Value::Date((*days).clamp(FIRST_DAY, LAST_DAY)))
            }
            Value::Datetime(nanos) | Value::Timestamp(nanos) => moment(*nanos),
            // A number without a point is an integer, and exact beyond 64 bits too.
            Value::Integer(number) => number.to_string(),
            Value::Number(number) => decimal(&number.to_string()),
            Value::Text(text) => text_literal(text),
            Value::Binary(bytes) => format!("_binary X'{}'", hex(bytes)),
        }
    }

    /// Understood, but no index is used for it: `(a > 1 OR (a = 1 AND b > 2))` is
    /// read as ranges of one.
    fn row_values(&self) -> bool {
        false
    }
}

/// A name in backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as a literal of `utf8mb4`. One that holds a character which some setting
/// may give a meaning to is written in digits.
pub(crate) fn text_literal(text: &str) -> String {
    if text.chars().any(|character| character == '\\' || character.is_control()) {
        return format!("_utf8mb4 X'{}'", hex(text.as_bytes()));
    }
    format!("_utf8mb4{}", quote_text(text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// A time stamp literal in the session's zone, which is UTC. The server keeps
/// microseconds: finer digits are cut off downwards, because it would round them.
fn moment(nanos: i128) -> String {
    let first = i128::from(FIRST_DAY) * NANOS_PER_DAY;
    let last = (i128::from(LAST_DAY) + 1) * NANOS_PER_DAY - NANOS_PER_MICRO;
    let whole = nanos.clamp(first, last).div_euclid(NANOS_PER_MICRO) * NANOS_PER_MICRO;
    format!("TIMESTAMP'{}'", Value::Datetime(whole).to_string().replacen('T', " ", 1))
}

/// A decimal literal. What has more digits than any column can is cut down, or
/// becomes the end of the range.
fn decimal(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    if whole.len() > MOST_DIGITS {
        return format!("{sign}{}", "9".repeat(MOST_DIGITS));
    }
    let room = MOST_DECIMALS.min(MOST_DIGITS - whole.len());
    let whole = if whole.is_empty() { "0" } else { whole };
    match fraction.get(..room) {
        None => format!("{sign}{whole}{}{fraction}", if fraction.is_empty() { "" } else { "." }),
        Some(kept) => {
            // Downwards: below zero that is away from it.
            let rest = fraction.get(room..).unwrap_or("");
            let exact = rest.bytes().all(|digit| digit == b'0');
            let kept = if sign.is_empty() || exact {
                format!("{whole}.{kept}")
            } else {
                next_up(whole, kept)
            };
            format!("{sign}{}", kept.trim_end_matches('.'))
        }
    }
}

/// The decimal one unit of its last digit above.
fn next_up(whole: &str, fraction: &str) -> String {
    let mut digits: Vec<u8> = format!("0{whole}{fraction}").into_bytes();
    for digit in digits.iter_mut().rev() {
        if *digit == b'9' {
            *digit = b'0';
        } else {
            *digit += 1;
            break;
        }
    }
    let digits: String = digits.into_iter().map(char::from).collect();
    let (whole, fraction) = digits.split_at(digits.len() - fraction.len());
    let whole = whole.trim_start_matches('0');
    format!("{}.{fraction}", if whole.is_empty() { "0" } else { whole })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidelake_watermark::{Decimal, Kind};

    use super::*;

    fn literal(kind: Kind, text: &str) -> String {
        MysqlDialect.literal(&Value::parse(kind, text).unwrap())
    }

    #[test]
    fn literals_are_typed_and_spelled_as_the_server_reads_them() {
        for (kind, text, wanted) in [
            (Kind::Date, "2026-11-30", "DATE'2026-11-30'"),
            (Kind::Date, "-0043-03-15", "DATE'0000-01-01'"),
            (Kind::Date, "+12345-01-01", "DATE'9999-12-31'"),
            (
                Kind::Datetime,
                "2026-11-30T09:15:00.1234567",
                "TIMESTAMP'2026-11-30 09:15:00.123456'",
            ),
            (Kind::Timestamp, "2026-11-30T09:15:00Z", "TIMESTAMP'2026-11-30 09:15:00'"),
            (Kind::Timestamp, "+300000-01-01", "TIMESTAMP'9999-12-31 23:59:59.999999'"),
            (Kind::Timestamp, "-0001-01-01", "TIMESTAMP'0000-01-01 00:00:00'"),
            (Kind::Integer, "-42", "-42"),
            (Kind::Integer, "99999999999999999999", "99999999999999999999"),
            (Kind::Number, "3.1400", "3.1400"),
            (Kind::Number, "-0.07", "-0.07"),
            (Kind::Text, "o'x", "_utf8mb4'o''x'"),
            (Kind::Text, r"o'\", "_utf8mb4 X'6F275C'"),
            (Kind::Text, "a\0b", "_utf8mb4 X'610062'"),
            (Kind::Binary, "0x00FF", "_binary X'00FF'"),
            (Kind::Binary, "0x", "_binary X''"),
        ] {
            assert_eq!(literal(kind, text), wanted, "{kind} {text}");
        }
        assert_eq!(quoted("a`b\"c"), "`a``b\"c`");
    }

    #[test]
    fn numbers_beyond_the_server_s_are_cut_downwards() {
        let nines = "9".repeat(65);
        assert_eq!(literal(Kind::Number, &format!("1{}", "0".repeat(65))), nines);
        assert_eq!(literal(Kind::Number, &format!("-1{}", "0".repeat(65))), format!("-{nines}"));
        let fine = format!("0.{}1", "0".repeat(30));
        assert_eq!(literal(Kind::Number, &fine), format!("0.{}", "0".repeat(30)));
        assert_eq!(literal(Kind::Number, &format!("-{fine}")), format!("-0.{}1", "0".repeat(29)));
        let close = format!("-9.{}5", "9".repeat(30));
        assert_eq!(literal(Kind::Number, &close), format!("-10.{}", "0".repeat(30)));
    }

    proptest! {
        #[test]
        fn a_text_cannot_leave_its_quotes(text in ".*") {
            let literal = MysqlDialect.literal(&Value::Text(text.clone()));
            let inner = literal.strip_prefix("_utf8mb4").unwrap();
            if let Some(digits) = inner.strip_prefix(" X'") {
                let digits = digits.strip_suffix('\'').unwrap();
                prop_assert!(digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
                let bytes: Vec<u8> = digits.as_bytes().chunks(2)
                    .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                    .collect();
                prop_assert_eq!(String::from_utf8(bytes).unwrap(), text);
            } else {
                let inner = inner.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap();
                prop_assert!(!inner.contains('\\') && !inner.contains('\0'));
                prop_assert!(!inner.replace("''", "").contains('\''));
                prop_assert_eq!(inner.replace("''", "'"), text);
            }
        }

        #[test]
        fn a_name_cannot_leave_its_quotes(name in ".*") {
            let quoted = quoted(&name);
            let inner = quoted.strip_prefix('`').unwrap().strip_suffix('`').unwrap();
            prop_assert!(!inner.replace("``", "").contains('`'));
            prop_assert_eq!(inner.replace("``", "`"), name);
        }

        #[test]
        fn a_moment_is_never_rounded_up(nanos in -62_167_219_200_000_000_000i128..253_402_300_799_999_999_999) {
            let literal = MysqlDialect.literal(&Value::Timestamp(nanos));
            let text = literal.strip_prefix("TIMESTAMP'").unwrap().strip_suffix('\'').unwrap();
            let Ok(Value::Datetime(read)) = Value::parse(Kind::Datetime, text) else { panic!("{text}") };
            prop_assert_eq!(read, nanos.div_euclid(1000) * 1000);
        }

        #[test]
        fn numbers_print_as_they_are(number in any::<i128>(), scale in 0u32..25) {
            prop_assert_eq!(MysqlDialect.literal(&Value::Integer(number)), number.to_string());
            let text = format!("{number}.{}", "7".repeat(scale as usize + 1));
            let literal = MysqlDialect.literal(&Value::Number(Decimal::parse(&text).unwrap()));
            prop_assert_eq!(literal, text);
        }

        #[test]
        fn a_long_number_is_never_raised(digits in "[1-9][0-9]{0,20}", fraction in "[0-9]{25,60}", negative in any::<bool>()) {
            let text = format!("{}{digits}.{fraction}", if negative { "-" } else { "" });
            let value = Decimal::parse(&text).unwrap();
            let literal = MysqlDialect.literal(&Value::Number(value.clone()));
            let cut = Decimal::parse(&literal).unwrap();
            prop_assert!(cut <= value, "{} from {}", literal, text);
        }
    }
}
