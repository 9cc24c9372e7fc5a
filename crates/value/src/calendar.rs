//! Proleptic Gregorian dates and nanosecond instants to and from ISO 8601 text.
//!
//! Years use the astronomical count (year 0 is 1 BC) and the expanded form
//! (`+10000-01-01`, `-0043-03-15`) outside 0000–9999.

/// Nanoseconds of a second.
pub const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// Nanoseconds of a day without leap seconds.
pub const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND;
/// Years beyond this are refused: wider than any database's own range.
const MAX_YEAR: i64 = 9_999_999;

/// Days since 1970-01-01 of a civil date; the month is 1–12.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March so that a leap day is the last of its year.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The civil date (year, month, day) of days since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

pub(crate) fn print_date(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    match year {
        0..=9_999 => format!("{year:04}-{month:02}-{day:02}"),
        10_000.. => format!("+{year}-{month:02}-{day:02}"),
        _ => format!("-{:04}-{month:02}-{day:02}", year.unsigned_abs()),
    }
}

/// Prints nanoseconds since the epoch without a zone; the fraction has as many
/// digits as it needs.
pub(crate) fn print_instant(nanos: i128) -> String {
    // An i128 of nanoseconds can name days that an i64 cannot; values come from
    // `parse` or from a database and are far inside.
    let days = i64::try_from(nanos.div_euclid(NANOS_PER_DAY)).unwrap_or(i64::MAX / 2);
    let in_day = nanos.rem_euclid(NANOS_PER_DAY);
    let seconds = in_day / NANOS_PER_SECOND;
    let fraction = in_day % NANOS_PER_SECOND;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{}T{hour:02}:{minute:02}:{second:02}", print_date(days));
    if fraction != 0 {
        let digits = format!("{fraction:09}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    text
}

/// Reads `digits` ASCII digits, at least `least` and at most `most` of them.
fn number(text: &str, least: usize, most: usize) -> Option<i64> {
    let good = (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if good { text.parse().ok() } else { None }
}

/// Parses a date: `2026-11-30`, `+10000-01-01`, `-0043-03-15`, `0044-03-15 BC`.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let (text, before_christ) = match text.strip_suffix(" BC") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    if before_christ && unsigned.len() != text.len() {
        return None;
    }
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let year = match (sign * number(year, 4, 7)?, before_christ) {
        (0, true) => return None,
        (year, true) => 1 - year,
        (year, false) => year,
    };
    let (month, day) = (number(month, 2, 2)?, number(day, 2, 2)?);
    if year.abs() > MAX_YEAR || !(1..=12).contains(&month) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    // A day that the month does not have comes back as another date.
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// What a parsed time stamp said about its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// No zone was written.
    None,
    /// `Z`, or an offset from UTC that is already taken off.
    Utc,
}

/// Parses a date with or without a time, a fraction and a zone, to nanoseconds.
pub(crate) fn parse_instant(text: &str) -> Option<(i128, Zone)> {
    let (text, before_christ) = match text.strip_suffix(" BC") {
        Some(rest) => (rest, " BC"),
        None => (text, ""),
    };
    let Some((date, time)) = text.split_once(['T', ' ', 't']) else {
        let days = parse_date(&format!("{text}{before_christ}"))?;
        return Some((i128::from(days) * NANOS_PER_DAY, Zone::None));
    };
    let days = parse_date(&format!("{date}{before_christ}"))?;
    let (time, offset_seconds, zone) = split_zone(time)?;
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) => (clock, parse_fraction(fraction)?),
        None => (time, 0),
    };
    let mut parts = clock.split(':');
    let hour = number(parts.next()?, 2, 2)?;
    let minute = number(parts.next()?, 2, 2)?;
    let second = parts.next().map_or(Some(0), |part| number(part, 2, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = i128::from(hour * 3_600 + minute * 60 + second - offset_seconds);
    Some((i128::from(days) * NANOS_PER_DAY + seconds * NANOS_PER_SECOND + fraction, zone))
}

/// Splits `Z`, `+02`, `+0200` or `+02:00` off a time of day.
fn split_zone(time: &str) -> Option<(&str, i64, Zone)> {
    if let Some(rest) = time.strip_suffix(['Z', 'z']) {
        return Some((rest, 0, Zone::Utc));
    }
    let Some(at) = time.rfind(['+', '-']) else {
        return Some((time, 0, Zone::None));
    };
    let (clock, offset) = time.split_at_checked(at)?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let offset = offset.get(1..)?;
    let (hours, minutes) = match offset.split_once(':') {
        Some(parts) => parts,
        None if offset.len() > 2 => offset.split_at_checked(2)?,
        None => (offset, "00"),
    };
    let (hours, minutes) = (number(hours, 2, 2)?, number(minutes, 2, 2)?);
    if hours > 18 || minutes > 59 {
        return None;
    }
    Some((clock, sign * (hours * 3_600 + minutes * 60), Zone::Utc))
}

/// Nanoseconds of up to nine digits; more are accepted only when they are zeros.
fn parse_fraction(text: &str) -> Option<i128> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (kept, dropped) = text.split_at_checked(9).unwrap_or((text, ""));
    if dropped.bytes().any(|b| b != b'0') {
        return None;
    }
    format!("{kept:0<9}").parse().ok()
}
