//! Dates and times as the protocol sends them.

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: u32 = 719_468;

/// A date or a time that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment<T> {
    Value(T),
    /// A date that no calendar has: month, day or year are zero, or the month is
    /// shorter.
    NoDay,
}

/// Days since 1970; `None` for a date that no calendar has.
#[inline]
fn days(year: u16, month: u8, day: u8) -> Option<i32> {
    let long_enough = match day {
        1..=28 => (1..=12).contains(&month),
        29..=31 => day <= month_length(year, month),
        _ => false,
    };
    if !long_enough || year == 0 {
        return None;
    }
    // A year that begins in March has its leap day at its end.
    let (year, month) = match month {
        0..=2 => (u32::from(year) - 1, u32::from(month) + 9),
        _ => (u32::from(year), u32::from(month) - 3),
    };
    let in_year = (153 * month + 2) / 5 + u32::from(day) - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + in_year;
    Some(days.wrapping_sub(DAYS_TO_1970).cast_signed())
}

fn month_length(year: u16, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 0,
    }
}

/// The date at the front of some bytes, in days since 1970, and what follows;
/// `None` where there is none.
#[inline]
pub(super) fn date(bytes: &[u8]) -> Option<(Moment<i32>, &[u8])> {
    match bytes.split_first()? {
        (4, rest) => {
            let ([low, high, month, day], rest) = rest.split_first_chunk()?;
            let days = days(u16::from_le_bytes([*low, *high]), *month, *day);
            Some((days.map_or(Moment::NoDay, Moment::Value), rest))
        }
        (0, rest) => Some((Moment::NoDay, rest)),
        _ => None,
    }
}

/// The time stamp at the front of some bytes, in microseconds since 1970, and what
/// follows; `None` where there is none.
#[inline]
pub(super) fn datetime(bytes: &[u8]) -> Option<(Moment<i64>, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (date, of_day, rest) = match length {
        0 => return Some((Moment::NoDay, rest)),
        4 => {
            let (date, rest) = rest.split_first_chunk::<4>()?;
            (date, 0, rest)
        }
        7 => {
            let (date, rest) = rest.split_first_chunk::<4>()?;
            let (time, rest) = rest.split_first_chunk()?;
            (date, micros_of_day(*time, [0; 4])?, rest)
        }
        11 => {
            let (date, rest) = rest.split_first_chunk::<4>()?;
            let (time, rest) = rest.split_first_chunk()?;
            let (micros, rest) = rest.split_first_chunk()?;
            (date, micros_of_day(*time, *micros)?, rest)
        }
        _ => return None,
    };
    let [low, high, month, day] = *date;
    let days = days(u16::from_le_bytes([low, high]), month, day);
    let moment = days.map(|days| i64::from(days) * MICROS_PER_DAY + of_day);
    Some((moment.map_or(Moment::NoDay, Moment::Value), rest))
}

/// The time at the front of some bytes, in microseconds, and what follows; `None`
/// where there is none.
#[inline]
pub(super) fn time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    if *length == 0 {
        return Some((0, rest));
    }
    let ([negative, days @ ..], rest) = rest.split_first_chunk::<5>()?;
    let (time, rest) = rest.split_first_chunk()?;
    let (of_day, rest) = match length {
        8 => (micros_of_day(*time, [0; 4])?, rest),
        12 => {
            let (micros, rest) = rest.split_first_chunk()?;
            (micros_of_day(*time, *micros)?, rest)
        }
        _ => return None,
    };
    let days = i64::from(u32::from_le_bytes(*days)).checked_mul(MICROS_PER_DAY)?;
    let micros = days.checked_add(of_day)?;
    match negative {
        0 => Some((micros, rest)),
        1 => Some((-micros, rest)),
        _ => None,
    }
}

#[inline]
fn micros_of_day([hour, minute, second]: [u8; 3], micros: [u8; 4]) -> Option<i64> {
    let micros = u32::from_le_bytes(micros);
    if hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
        return None;
    }
    let seconds = (u32::from(hour) * 60 + u32::from(minute)) * 60 + u32::from(second);
    Some(i64::from(seconds) * 1_000_000 + i64::from(micros))
}

/// A date for people, as the server prints it.
pub(super) fn shown(bytes: &[u8]) -> String {
    match bytes {
        [0, ..] => "0000-00-00".to_owned(),
        [_, low, high, month, day, ..] => {
            format!("{:04}-{month:02}-{day:02}", u16::from_le_bytes([*low, *high]))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn day(year: u16, month: u8, day: u8) -> Vec<u8> {
        let [low, high] = year.to_le_bytes();
        vec![4, low, high, month, day]
    }

    #[test]
    fn golden_days() {
        for (year, month, of_month, wanted) in [
            (1970, 1, 1, Some(0)),
            (1969, 12, 31, Some(-1)),
            (2000, 2, 29, Some(11_016)),
            (2000, 3, 1, Some(11_017)),
            (1998, 12, 1, Some(10_561)),
            (9999, 12, 31, Some(2_932_896)),
            (1000, 1, 1, Some(-354_285)),
            (1, 1, 1, Some(-719_162)),
            (0, 1, 1, None),
            (0, 12, 19, None),
            (2000, 0, 10, None),
            (2000, 13, 1, None),
            (2000, 1, 0, None),
            (2001, 2, 29, None),
            (1900, 2, 29, None),
            (2001, 4, 31, None),
            (2001, 1, 32, None),
            (2001, 0, 31, None),
        ] {
            let bytes = day(year, month, of_month);
            let wanted = wanted.map_or(Moment::NoDay, Moment::Value);
            assert_eq!(date(&bytes), Some((wanted, &[][..])), "{year}-{month}-{of_month}");
        }
        assert_eq!(date(&[0, 9]), Some((Moment::NoDay, &[9][..])));
        assert_eq!(shown(&day(2000, 0, 10)), "2000-00-10");
        assert_eq!(shown(&[0]), "0000-00-00");
        for bad in [&[][..], &[4, 1, 1, 1], &[7, 0, 0, 0, 0, 0, 0, 0], &[1, 1]] {
            assert_eq!(date(bad), None);
        }
    }

    #[test]
    fn days_follow_one_another() {
        let mut expected = -719_162;
        for year in 1..=9999 {
            for month in 1..=12 {
                for of_month in 1..=month_length(year, month) {
                    assert_eq!(days(year, month, of_month), Some(expected));
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn time_stamps_have_four_widths() {
        let mut bytes = day(1970, 1, 2);
        assert_eq!(datetime(&bytes), Some((Moment::Value(MICROS_PER_DAY), &[][..])));
        bytes[0] = 7;
        bytes.extend([1, 2, 3]);
        let seconds = 86_400 + 3_723;
        assert_eq!(datetime(&bytes), Some((Moment::Value(seconds * 1_000_000), &[][..])));
        bytes[0] = 11;
        bytes.extend(999_999u32.to_le_bytes());
        let micros = seconds * 1_000_000 + 999_999;
        assert_eq!(datetime(&bytes), Some((Moment::Value(micros), &[][..])));
        assert_eq!(datetime(&[0]), Some((Moment::NoDay, &[][..])));
        bytes[3] = 0;
        assert_eq!(datetime(&bytes), Some((Moment::NoDay, &[][..])));
        for cut in 0..bytes.len() {
            assert_eq!(datetime(&bytes[..cut]), None);
        }
        for (at, byte) in [(5, 24), (6, 60), (7, 60), (10, 0xFF), (0, 8)] {
            let mut bad = bytes.clone();
            bad[at] = byte;
            assert_eq!(datetime(&bad), None, "{at}");
        }
    }

    #[test]
    fn times_have_a_sign_and_days() {
        assert_eq!(time(&[0, 5]), Some((0, &[5][..])));
        // 838:59:59.999999 is the largest there is.
        let mut bytes = vec![12, 1, 34, 0, 0, 0, 22, 59, 59];
        bytes.extend(999_999u32.to_le_bytes());
        assert_eq!(time(&bytes), Some((-3_020_399_999_999, &[][..])));
        bytes[1] = 0;
        assert_eq!(time(&bytes), Some((3_020_399_999_999, &[][..])));
        assert_eq!(time(&[8, 0, 0, 0, 0, 0, 0, 0, 1]), Some((1_000_000, &[][..])));
        for bad in [&[8, 2, 0, 0, 0, 0, 0, 0, 1][..], &[8, 0, 0], &[9; 20], &[]] {
            assert_eq!(time(bad), None);
        }
        let far = [8, 1, 0xFF, 0xFF, 0xFF, 0xFF, 23, 59, 59];
        assert!(time(&far).is_none_or(|(micros, _)| micros < 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            let _ = (date(&bytes), datetime(&bytes), time(&bytes), shown(&bytes));
        }
    }
}
