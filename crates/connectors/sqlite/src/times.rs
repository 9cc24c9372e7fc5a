//! Times in the forms in which they are stored.
//!
//! Every time is nanoseconds since 1970-01-01T00:00:00 here. Text without a
//! zone, and numbers, are taken as UTC, as SQLite's own functions do. Years are
//! 0000 to 9999: outside, text does not sort as time does.

use std::fmt;

use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};
use tidelake_watermark::{Kind, Value};

use crate::numbers::{float_units, integer_units, whole_part};

pub(crate) const NANOS_PER_SECOND: i128 = 1_000_000_000;
pub(crate) const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND;
/// 1970-01-01T00:00:00 in milliseconds of the julian day.
pub(crate) const JULIAN_EPOCH_MILLIS: i64 = 210_866_760_000_000;
/// 0000-01-01 and 10000-01-01.
const FIRST_DAY: i64 = -719_528;
const END_DAY: i64 = 2_932_897;
/// The last day of the year 9999.
pub(crate) const LAST_DAY: i64 = END_DAY - 1;
/// The same as julian days.
const FIRST_JULIAN: f64 = 1_721_059.5;
const END_JULIAN: f64 = 5_373_484.5;
/// Numbers below are seconds, then milliseconds, then microseconds; the first
/// limit is the year 5138 in seconds, and 1973 in milliseconds.
const SECONDS_END: u64 = 100_000_000_000;
const MILLISECONDS_END: u64 = 100_000_000_000_000;
const MICROSECONDS_END: u64 = 100_000_000_000_000_000;

/// How a time is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// `2026-11-30 09:15:00` with a space or a `T`, with or without seconds, a
    /// fraction and a zone; or a date alone.
    Text,
    /// A number of seconds since 1970.
    Seconds,
    /// A number of milliseconds since 1970.
    Milliseconds,
    /// A number of microseconds since 1970.
    Microseconds,
    /// A julian day, as SQLite's `julianday()` gives it.
    JulianDay,
}

impl Form {
    /// The name that [`from_name`](Self::from_name) understands.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
            Self::JulianDay => "julian_day",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Text, Self::Seconds, Self::Milliseconds, Self::Microseconds, Self::JulianDay]
            .into_iter()
            .find(|form| form.name() == name)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text => "text such as 2026-11-30 09:15:00",
            Self::Seconds => "epoch seconds",
            Self::Milliseconds => "epoch milliseconds",
            Self::Microseconds => "epoch microseconds",
            Self::JulianDay => "julian days",
        })
    }
}

/// Which forms a cell can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guess {
    /// This one.
    One(Form),
    /// Zero is the same moment in every unit.
    AnyUnit,
    /// A whole number that is a julian day or seconds early in 1970.
    SecondsOrJulianDay,
    /// None: it is no time.
    None,
}

impl Guess {
    /// Looks at one cell alone.
    pub(crate) fn of(cell: ValueRef<'_>) -> Self {
        match cell {
            ValueRef::Text(_) => Self::One(Form::Text),
            ValueRef::Integer(0) => Self::AnyUnit,
            // Whole julian days lose their decimal point in a numeric column.
            ValueRef::Integer(1_721_060..=5_373_484) => Self::SecondsOrJulianDay,
            ValueRef::Integer(number) => Self::of_magnitude(number.unsigned_abs()),
            ValueRef::Real(0.0) => Self::AnyUnit,
            ValueRef::Real(number) if (FIRST_JULIAN..END_JULIAN).contains(&number) => {
                Self::One(Form::JulianDay)
            }
            ValueRef::Real(number) => whole_part(number)
                .map_or(Self::None, |whole| Self::of_magnitude(whole.unsigned_abs())),
            ValueRef::Null | ValueRef::Blob(_) => Self::None,
        }
    }

    fn of_magnitude(number: u64) -> Self {
        if number < SECONDS_END {
            Self::One(Form::Seconds)
        } else if number < MILLISECONDS_END {
            Self::One(Form::Milliseconds)
        } else if number < MICROSECONDS_END {
            Self::One(Form::Microseconds)
        } else {
            Self::None
        }
    }

    /// Whether the cell can be read in the form.
    pub(crate) fn allows(self, form: Form) -> bool {
        match self {
            Self::One(one) => one == form,
            Self::AnyUnit => form != Form::Text && form != Form::JulianDay,
            Self::SecondsOrJulianDay => matches!(form, Form::Seconds | Form::JulianDay),
            Self::None => false,
        }
    }
}

/// The time in a cell of that form; `None` where it is none, or not exactly.
pub(crate) fn decode(cell: ValueRef<'_>, form: Form) -> Option<i128> {
    if !Guess::of(cell).allows(form) {
        return None;
    }
    // Digits of the unit down to the microsecond, which is what floats can hold.
    let digits = match form {
        Form::Text => {
            let ValueRef::Text(text) = cell else { return None };
            return parse(text);
        }
        Form::JulianDay => return julian(cell),
        Form::Seconds => 6,
        Form::Milliseconds => 3,
        Form::Microseconds => 0,
    };
    let micros = match cell {
        ValueRef::Integer(number) => integer_units(number, 38, digits)?,
        ValueRef::Real(number) => float_units(number, 38, digits)?,
        _ => return None,
    };
    let nanos = micros * 1_000;
    in_range(nanos)
}

/// A time as another system may have written it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nanoseconds since 1970.
    At(i128),
    /// `infinity` or `-infinity`.
    Infinite {
        /// Which of the two.
        high: bool,
    },
    /// A date with a month or a day of zero, which other databases allow.
    Zero,
}

/// The time in a text outside a cursor: also before the year 0 and after 9999,
/// and without an end.
pub(crate) fn moment(text: &[u8]) -> Option<Moment> {
    if let Some(nanos) = parse(text) {
        return Some(Moment::At(nanos));
    }
    let (high, unsigned) = match text.split_first()? {
        (b'-', rest) => (false, rest),
        (b'+', rest) => (true, rest),
        _ => (true, text),
    };
    if unsigned.eq_ignore_ascii_case(b"infinity") {
        return Some(Moment::Infinite { high });
    }
    if is_zero(text) {
        return Some(Moment::Zero);
    }
    let text = std::str::from_utf8(text).ok()?;
    match Value::parse(Kind::Timestamp, text) {
        Ok(Value::Timestamp(nanos)) if text.trim() == text => Some(Moment::At(nanos)),
        _ => None,
    }
}

/// Whether the text begins as a date does, with `00` for the month or the day.
fn is_zero(text: &[u8]) -> bool {
    let date = || -> Option<(i64, i64)> {
        let (_, rest) = digits(text, 4)?;
        let (month, rest) = digits(after(rest, b"-")?, 2)?;
        let (day, rest) = digits(after(rest, b"-")?, 2)?;
        let ends = rest.first().is_none_or(|next| b" Tt".contains(next));
        (ends && month <= 12 && day <= 31).then_some((month, day))
    };
    date().is_some_and(|(month, day)| month == 0 || day == 0)
}

/// By SQLite's own rule, which counts in whole milliseconds.
fn julian(cell: ValueRef<'_>) -> Option<i128> {
    let days = match cell {
        ValueRef::Real(days) => days,
        ValueRef::Integer(days) => f64::from(i32::try_from(days).ok()?),
        _ => return None,
    };
    let millis = whole_part(days * 86_400_000.0 + 0.5)?;
    in_range(i128::from(millis - JULIAN_EPOCH_MILLIS) * 1_000_000)
}

fn in_range(nanos: i128) -> Option<i128> {
    let days = nanos.div_euclid(NANOS_PER_DAY);
    (i128::from(FIRST_DAY)..i128::from(END_DAY)).contains(&days).then_some(nanos)
}

/// Days since 1970-01-01 of a civil date of the years 0 to 9999.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March, so that the leap day is their last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// The civil date of days since 1970-01-01, within the years 0 to 9999.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let in_era = shifted.rem_euclid(146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let day_of_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Takes exactly that many digits off the front.
fn digits(text: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (taken, rest) = text.split_at_checked(count)?;
    let mut number = 0;
    for byte in taken {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(byte - b'0');
    }
    Some((number, rest))
}

fn after<'a>(text: &'a [u8], expected: &[u8]) -> Option<&'a [u8]> {
    let (first, rest) = text.split_first()?;
    expected.contains(first).then_some(rest)
}

/// Parses `2026-11-30`, `2026-11-30 09:15`, `2026-11-30T09:15:00.123456789Z`,
/// `2026-11-30 09:15:00 +02:00` and what lies between.
pub(crate) fn parse(text: &[u8]) -> Option<i128> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(after(rest, b"-")?, 2)?;
    let (day, rest) = digits(after(rest, b"-")?, 2)?;
    let midnight = i128::from(days_of(year, month, day)?) * NANOS_PER_DAY;
    if rest.is_empty() {
        return Some(midnight);
    }
    let (hour, rest) = digits(after(rest, b" Tt")?, 2)?;
    let (minute, rest) = digits(after(rest, b":")?, 2)?;
    let (second, rest) = match after(rest, b":") {
        Some(rest) => digits(rest, 2)?,
        None => (0, rest),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = match after(rest, b".") {
        Some(rest) => fraction(rest)?,
        None => (0, rest),
    };
    let seconds = i128::from(hour * 3_600 + minute * 60 + second - offset(rest)?);
    in_range(midnight + seconds * NANOS_PER_SECOND + i128::from(fraction))
}

/// The day of a text that is a date and nothing more; `None` leaves the text to
/// [`parse`], which finds the same.
pub(crate) fn plain_day(text: &[u8]) -> Option<i32> {
    let date: &[u8; 10] = text.try_into().ok()?;
    let [a, b, c, d, b'-', e, f, b'-', g, h] = date else { return None };
    let year = pair(*a, *b)? * 100 + pair(*c, *d)?;
    i32::try_from(days_of(year, pair(*e, *f)?, pair(*g, *h)?)?).ok()
}

/// The microseconds of a text such as `2026-11-30 09:15:00.123456`, with a fraction
/// of six digits at most and without a zone other than `Z`; `None` as above.
pub(crate) fn plain_micros(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let day = i64::from(plain_day(day)?);
    let (time, rest) = rest.split_at_checked(9)?;
    let time: &[u8; 9] = time.try_into().ok()?;
    let [b' ' | b'T', a, b, b':', c, d, b':', e, f] = time else { return None };
    let (hour, minute, second) = (pair(*a, *b)?, pair(*c, *d)?, pair(*e, *f)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = rest.strip_suffix(b"Z").unwrap_or(rest);
    let mut micros = 0;
    if let Some((first, digits)) = rest.split_first() {
        if *first != b'.' || digits.is_empty() || digits.len() > 6 {
            return None;
        }
        let mut unit = 100_000;
        for digit in digits {
            micros += i64::from(single(*digit)?) * unit;
            unit /= 10;
        }
    }
    Some((((day * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

fn single(digit: u8) -> Option<u8> {
    let number = digit.wrapping_sub(b'0');
    (number <= 9).then_some(number)
}

fn pair(tens: u8, ones: u8) -> Option<i64> {
    Some(i64::from(single(tens)?) * 10 + i64::from(single(ones)?))
}

/// Nanoseconds of a fraction; beyond nine digits only zeros are exact.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (kept, rest) = text.split_at_checked(length)?;
    let (kept, dropped) = kept.split_at_checked(9).unwrap_or((kept, b""));
    if length == 0 || dropped.iter().any(|digit| *digit != b'0') {
        return None;
    }
    let (number, _) = digits(kept, kept.len())?;
    let missing = u32::try_from(9 - kept.len()).ok()?;
    Some((number * 10i64.pow(missing), rest))
}

/// Seconds east of UTC: nothing, `Z`, `+02`, `+0200` or `+02:00`.
fn offset(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let Some((first, rest)) = text.split_first() else { return Some(0) };
    let sign = match first {
        b'Z' | b'z' if rest.is_empty() => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = digits(rest, 2)?;
    let (minutes, rest) = match after(rest, b":").unwrap_or(rest) {
        [] => (0, rest),
        minutes => digits(minutes, 2)?,
    };
    let good = hours <= 18 && minutes <= 59 && rest.is_empty();
    good.then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Prints all digits, so that the order of the text is the order of time; what
/// is outside the years 0 to 9999 becomes a text that sorts below or above.
pub(crate) fn print(nanos: i128) -> String {
    let Ok(days) = i64::try_from(nanos.div_euclid(NANOS_PER_DAY)) else {
        return if nanos < 0 { "-" } else { "~" }.to_owned();
    };
    if days < FIRST_DAY {
        return "-".to_owned();
    }
    if days >= END_DAY {
        return "~".to_owned();
    }
    let (in_day, fraction) = {
        let rest = nanos.rem_euclid(NANOS_PER_DAY);
        (rest / NANOS_PER_SECOND, rest % NANOS_PER_SECOND)
    };
    let (hour, minute, second) = (in_day / 3_600, in_day / 60 % 60, in_day % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}.{fraction:09}", print_date(days))
}

/// A date of the years 0 to 9999; days outside become the first or last of them.
pub(crate) fn print_date(days: i64) -> String {
    let (year, month, day) = civil(days.clamp(FIRST_DAY, END_DAY - 1));
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(text: &str) -> i128 {
        match Value::parse(Kind::Timestamp, text).unwrap() {
            Value::Timestamp(nanos) => nanos,
            _ => unreachable!(),
        }
    }

    proptest! {
        #[test]
        fn short_ways_give_what_the_long_one_does(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]([ Tt][0-2][0-9]:[0-6][0-9](:[0-6][0-9]([.][0-9]{0,8})?)?)?[Zz]?",
            micros in -62_167_219_200_000_000i64..253_402_300_800_000_000,
        ) {
            let nanos = i128::from(micros) * 1_000;
            let printed = print(nanos);
            for text in [&text, &printed[..26], &printed[..19], &printed[..10]] {
                let long = parse(text.as_bytes());
                if let Some(day) = plain_day(text.as_bytes()) {
                    prop_assert_eq!(Some(i128::from(day) * NANOS_PER_DAY), long, "{}", text);
                }
                if let Some(micros) = plain_micros(text.as_bytes()) {
                    prop_assert_eq!(Some(i128::from(micros) * 1_000), long, "{}", text);
                }
            }
            // They are taken where the text is what it usually is.
            prop_assert_eq!(plain_micros(&printed.as_bytes()[..26]), Some(micros));
            let day = i32::try_from(nanos.div_euclid(NANOS_PER_DAY)).unwrap();
            prop_assert_eq!(plain_day(&printed.as_bytes()[..10]), Some(day));
        }
    }

    #[test]
    fn text_is_read_in_every_spelling() {
        for (stored, same) in [
            ("2026-11-30", "2026-11-30T00:00:00Z"),
            ("2026-11-30 09:15", "2026-11-30T09:15:00Z"),
            ("2026-11-30T09:15Z", "2026-11-30T09:15:00Z"),
            ("2026-11-30 09:15:00", "2026-11-30T09:15:00Z"),
            ("2026-11-30T09:15:00.5", "2026-11-30T09:15:00.5Z"),
            ("2026-11-30T09:15:00.123456789Z", "2026-11-30T09:15:00.123456789Z"),
            ("2026-11-30 09:15:00.1234567890", "2026-11-30T09:15:00.123456789Z"),
            ("2026-11-30 09:15:00+02:00", "2026-11-30T07:15:00Z"),
            ("2026-11-30 09:15:00.25 -0330", "2026-11-30T12:45:00.25Z"),
            ("2026-11-30 09:15:00+02", "2026-11-30T07:15:00Z"),
            ("0000-01-01", "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999999", "9999-12-31T23:59:59.999999999Z"),
            ("2024-02-29", "2024-02-29T00:00:00Z"),
        ] {
            assert_eq!(parse(stored.as_bytes()), Some(wanted(same)), "{stored}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-11-31",
            "2023-02-29",
            "1900-02-29",
            "2026-1-5",
            "2026-11-30 ",
            "2026-11-30 9:15",
            "2026-11-30 24:00",
            "2026-11-30 09:60",
            "2026-11-30 09:15:60",
            "2026-11-30 09:15:00.",
            "2026-11-30 09:15:00.1234567891",
            "2026-11-30 09:15:00+",
            "2026-11-30 09:15:00+2",
            "2026-11-30 09:15:00+02:",
            "2026-11-30 09:15:00+19:00",
            "2026-11-30 09:15:00ZZ",
            "2026-11-30X09:15:00",
            "-0043-03-15",
            "+10000-01-01",
            "0000-01-01T00:00:00+01:00",
            "9999-12-31T23:30:00-01:00",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn moments_reach_further_than_cursors() {
        for (text, same) in [
            ("-0043-03-15", "-0043-03-15T00:00:00Z"),
            ("0044-03-15 BC", "-0043-03-15T00:00:00Z"),
            ("+12000-01-01 10:00:00", "+12000-01-01T10:00:00Z"),
            ("294277-01-01T00:00:00Z", "+294277-01-01T00:00:00Z"),
            ("9999-12-31T23:30:00-01:00", "+10000-01-01T00:30:00Z"),
            ("2026-11-30 09:15", "2026-11-30T09:15:00Z"),
        ] {
            assert_eq!(moment(text.as_bytes()), Some(Moment::At(wanted(same))), "{text}");
        }
        for text in ["0000-00-00", "0000-00-00 00:00:00", "2026-11-00", "2026-00-30T10:00"] {
            assert_eq!(moment(text.as_bytes()), Some(Moment::Zero), "{text}");
        }
        for (text, high) in [("infinity", true), ("-Infinity", false), ("+infinity", true)] {
            assert_eq!(moment(text.as_bytes()), Some(Moment::Infinite { high }), "{text}");
        }
        for text in [
            "",
            "-",
            "2026-11-30 ",
            " 2026-11-30",
            "2026-11-30 24:00",
            "2026-12-31 23:59:60",
            "inf",
            "0000-13-00",
            "\u{661}",
        ] {
            assert_eq!(moment(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_in_their_unit() {
        use ValueRef::{Integer, Real};
        let at = wanted("2026-11-30T09:15:00Z");
        let seconds = i64::try_from(at / NANOS_PER_SECOND).unwrap();
        for (cell, form, nanos) in [
            (Integer(seconds), Form::Seconds, at),
            (Integer(seconds * 1_000 + 1), Form::Milliseconds, at + 1_000_000),
            (Integer(seconds * 1_000_000 + 1), Form::Microseconds, at + 1_000),
            (Real(1_796_030_100.25), Form::Seconds, at + 250_000_000),
            (Real(1_796_030_100.123_456), Form::Seconds, at + 123_456_000),
            (Real(2_461_374.885_416_666_5), Form::JulianDay, at),
            (Integer(2_461_375), Form::JulianDay, wanted("2026-11-30T12:00:00Z")),
            (Integer(-1), Form::Seconds, -NANOS_PER_SECOND),
            (Integer(0), Form::Milliseconds, 0),
        ] {
            assert!(Guess::of(cell).allows(form), "{cell:?}");
            assert_eq!(decode(cell, form), Some(nanos), "{cell:?}");
        }
        for (cell, form) in [
            (Integer(seconds), Form::Milliseconds),
            (Integer(seconds), Form::JulianDay),
            (Integer(seconds), Form::Text),
            (Integer(i64::MAX), Form::Microseconds),
            (Real(1_796_030_100.123_456_7), Form::Seconds),
            (Real(f64::INFINITY), Form::Seconds),
            (ValueRef::Blob(b"2026-11-30"), Form::Text),
        ] {
            assert_eq!(decode(cell, form), None, "{cell:?}");
        }
    }

    fn nanos() -> impl Strategy<Value = i128> {
        let first = i128::from(FIRST_DAY) * NANOS_PER_DAY;
        first..i128::from(END_DAY) * NANOS_PER_DAY
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(nanos in nanos()) {
            prop_assert_eq!(parse(print(nanos).as_bytes()), Some(nanos));
            prop_assert_eq!(wanted(&format!("{}Z", print(nanos))), nanos);
        }

        #[test]
        fn printed_text_sorts_as_time_does(left in nanos(), right in nanos()) {
            prop_assert_eq!(print(left).cmp(&print(right)), left.cmp(&right));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            parse(text.as_bytes());
        }

        #[test]
        fn near_times_never_panic(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.+Z-]*") {
            if let Some(nanos) = parse(text.as_bytes()) {
                prop_assert_eq!(parse(print(nanos).as_bytes()), Some(nanos));
            }
        }
    }
}
