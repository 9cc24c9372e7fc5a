//! The server's binary numeric to an unscaled decimal integer.

use arrow::datatypes::i256;

/// What a numeric cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number<T> {
    /// The value times ten to the power of the scale.
    Exact(T),
    /// NaN or an infinity.
    Special,
    /// The value has digits beyond the scale or the precision.
    DoesNotFit,
}

/// What both widths of decimals can do.
pub(crate) trait Unscaled: Copy + PartialOrd {
    const ZERO: Self;
    fn ten_to(exponent: u32) -> Option<Self>;
    fn times_plus(self, factor: i16, digit: i16) -> Option<Self>;
    fn times(self, factor: Self) -> Option<Self>;
    fn negated(self) -> Self;
}

impl Unscaled for i128 {
    const ZERO: Self = 0;

    fn ten_to(exponent: u32) -> Option<Self> {
        10i128.checked_pow(exponent)
    }

    fn times_plus(self, factor: i16, digit: i16) -> Option<Self> {
        self.checked_mul(factor.into())?.checked_add(digit.into())
    }

    fn times(self, factor: Self) -> Option<Self> {
        self.checked_mul(factor)
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

impl Unscaled for i256 {
    const ZERO: Self = i256::ZERO;

    fn ten_to(exponent: u32) -> Option<Self> {
        i256::from_i128(10).checked_pow(exponent)
    }

    fn times_plus(self, factor: i16, digit: i16) -> Option<Self> {
        let factor = i256::from_i128(factor.into());
        self.checked_mul(factor)?.checked_add(i256::from_i128(digit.into()))
    }

    fn times(self, factor: Self) -> Option<Self> {
        self.checked_mul(factor)
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

/// Reads a numeric at a scale. `limit` is ten to the power of the precision.
/// `None` where the bytes are no numeric.
#[inline]
pub(crate) fn read<T: Unscaled>(bytes: &[u8], scale: i8, limit: T) -> Option<Number<T>> {
    let (count, rest) = take_i16(bytes)?;
    let (weight, rest) = take_i16(rest)?;
    let (sign, rest) = rest.split_first_chunk::<2>()?;
    let (_display_scale, digits) = take_i16(rest)?;
    let negative = match u16::from_be_bytes(*sign) {
        0x0000 => false,
        0x4000 => true,
        0xC000 | 0xD000 | 0xF000 => return Some(Number::Special),
        _ => return None,
    };
    if usize::try_from(count).ok()?.checked_mul(2)? != digits.len() {
        return None;
    }
    if count == 0 {
        return Some(Number::Exact(T::ZERO));
    }
    // A magnitude that overflows cannot fit any precision.
    let mut magnitude = Some(T::ZERO);
    let mut lost = false;
    let mut rest = digits;
    // What the digit counts at the scale, as a power of ten.
    let mut exponent = 4 * i32::from(weight) + i32::from(scale);
    while let Some((digit, after)) = rest.split_first_chunk::<2>() {
        let digit = i16::from_be_bytes(*digit);
        if !(0..10_000).contains(&digit) {
            return None;
        }
        // Of a digit that lies across the scale only the part above it counts.
        let (factor, part) = match exponent {
            0.. => (10_000, 1),
            -1 => (1_000, 10),
            -2 => (100, 100),
            -3 => (10, 1_000),
            _ => (1, 10_000),
        };
        lost |= digit % part != 0;
        magnitude = magnitude.and_then(|value| value.times_plus(factor, digit / part));
        exponent -= 4;
        rest = after;
    }
    // Whole digits that are zero at the end are not sent.
    let behind = u32::try_from(exponent + 4).unwrap_or(0);
    let scaled = magnitude.and_then(|value| match behind {
        0 => Some(value),
        _ if value == T::ZERO => Some(value),
        _ => value.times(T::ten_to(behind)?),
    });
    Some(match scaled {
        Some(value) if value < limit && !lost => {
            Number::Exact(if negative { value.negated() } else { value })
        }
        _ => Number::DoesNotFit,
    })
}

/// Powers of ten by which a short number is multiplied.
const POWERS: [i64; 17] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
    10_000_000_000_000,
    100_000_000_000_000,
    1_000_000_000_000_000,
    10_000_000_000_000_000,
];

/// Reads a numeric of four groups of digits at most, as nearly all are, at a scale.
/// `None` where it takes more than that to read it; [`read`] then tells.
#[inline]
pub(crate) fn short(bytes: &[u8], scale: i8) -> Option<i64> {
    let ([a, b, c, d, e, f, _, _], digits) = bytes.split_first_chunk::<8>()?;
    let (count, weight) = (i16::from_be_bytes([*a, *b]), i16::from_be_bytes([*c, *d]));
    let negative = match u16::from_be_bytes([*e, *f]) {
        0x0000 => false,
        0x4000 => true,
        _ => return None,
    };
    if digits.len() > 8 || usize::try_from(count).ok()? * 2 != digits.len() {
        return None;
    }
    let mut magnitude = 0;
    let mut rest = digits;
    while let Some((digit, after)) = rest.split_first_chunk::<2>() {
        let digit = u16::from_be_bytes(*digit);
        if digit >= 10_000 {
            return None;
        }
        magnitude = magnitude * 10_000 + i64::from(digit);
        rest = after;
    }
    // What the last group counts at the scale, as a power of ten.
    let exponent = 4 * (i32::from(weight) + 1 - i32::from(count)) + i32::from(scale);
    let value = match exponent {
        0.. => magnitude.checked_mul(*POWERS.get(usize::try_from(exponent).ok()?)?)?,
        -1 => exactly(magnitude, 10)?,
        -2 => exactly(magnitude, 100)?,
        -3 => exactly(magnitude, 1_000)?,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

#[inline]
fn exactly(magnitude: i64, part: i64) -> Option<i64> {
    (magnitude % part == 0).then_some(magnitude / part)
}

/// Whether a text is a number that no decimal holds, as the server prints it.
pub(crate) fn is_special(text: &[u8]) -> bool {
    matches!(text, b"NaN" | b"Infinity" | b"-Infinity")
}

/// The text of a numeric, as the server prints it; `None` where the bytes are
/// none.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    let (_count, rest) = take_i16(bytes)?;
    let (weight, rest) = take_i16(rest)?;
    let (sign, rest) = rest.split_first_chunk::<2>()?;
    let (display_scale, digits) = take_i16(rest)?;
    let sign = match u16::from_be_bytes(*sign) {
        0x0000 => "",
        0x4000 => "-",
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let groups: Vec<i16> = digits
        .chunks_exact(2)
        .map(|group| group.first_chunk::<2>().map_or(0, |group| i16::from_be_bytes(*group)))
        .collect();
    let group = |place: i32| {
        let place = usize::try_from(i32::from(weight) - place).ok();
        place.and_then(|place| groups.get(place)).copied().unwrap_or(0)
    };
    let whole: String =
        (0..=i32::from(weight).max(0)).rev().map(|place| format!("{:04}", group(place))).collect();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let scale = usize::try_from(display_scale).ok()?;
    if scale == 0 {
        return Some(format!("{sign}{whole}"));
    }
    let last = i32::try_from(scale.div_ceil(4)).ok()?;
    let fraction: String = (1..=last).map(|place| format!("{:04}", group(-place))).collect();
    Some(format!("{sign}{whole}.{}", fraction.get(..scale)?))
}

fn take_i16(bytes: &[u8]) -> Option<(i16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    Some((i16::from_be_bytes(*head), rest))
}

/// The binary form of an unscaled integer, given as its sign and the ASCII
/// digits of its magnitude, at a scale.
pub(crate) fn write(negative: bool, digits: &str, scale: i8, out: &mut Vec<u8>) {
    let digits = digits.trim_start_matches('0');
    let zeros_behind = usize::from(scale.min(0).unsigned_abs());
    let fraction = usize::from(scale.max(0).unsigned_abs());
    let text = format!("{digits:0>width$}{}", "0".repeat(zeros_behind), width = fraction + 1);
    let (whole, fraction_digits) =
        text.split_at_checked(text.len() - fraction).unwrap_or(("0", ""));
    let whole = whole.trim_start_matches('0');
    let whole_groups = whole.len().div_ceil(4);
    let fraction_groups = fraction.div_ceil(4);
    let padded = format!(
        "{whole:0>before$}{fraction_digits:0<after$}",
        before = whole_groups * 4,
        after = fraction_groups * 4
    );
    let mut groups: Vec<i16> = vec![];
    let mut rest = padded.as_str();
    while let Some((group, after)) = rest.split_at_checked(4).filter(|(group, _)| !group.is_empty())
    {
        groups.push(group.parse().unwrap_or(0));
        rest = after;
    }
    let mut weight = i16::try_from(whole_groups).unwrap_or(i16::MAX) - 1;
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    weight -= i16::try_from(leading).unwrap_or(0);
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    let sign: u16 = if negative && !groups.is_empty() { 0x4000 } else { 0 };
    out.extend(i16::try_from(groups.len()).unwrap_or(i16::MAX).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend(i16::from(scale.max(0)).to_be_bytes());
    groups.iter().for_each(|group| out.extend(group.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numeric(weight: i16, sign: u16, digits: &[i16]) -> Vec<u8> {
        let mut bytes = i16::try_from(digits.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(weight.to_be_bytes());
        bytes.extend(sign.to_be_bytes());
        bytes.extend(0i16.to_be_bytes());
        digits.iter().for_each(|digit| bytes.extend(digit.to_be_bytes()));
        bytes
    }

    fn read_128(bytes: &[u8], precision: u32, scale: i8) -> Option<Number<i128>> {
        read(bytes, scale, 10i128.pow(precision))
    }

    #[test]
    fn golden_values() {
        for (weight, sign, digits, scale, wanted) in [
            (0, 0, &[][..], 2, 0),
            (0, 0, &[1, 5000], 2, 150),
            (0, 0x4000, &[1, 5000], 2, -150),
            (-1, 0, &[500], 2, 5),
            (1, 0, &[2, 0], 0, 20_000),
            (1, 0, &[2], 0, 20_000),
            (0, 0, &[2013], 0, 2013),
            (0, 0, &[1, 5000, 0], 1, 15),
            (-2, 0, &[1], 8, 1),
        ] {
            let bytes = numeric(weight, sign, digits);
            assert_eq!(read_128(&bytes, 38, scale), Some(Number::Exact(wanted)), "{digits:?}");
            let wide = read(&bytes, scale, i256::MAX).unwrap();
            assert_eq!(wide, Number::Exact(i256::from_i128(wanted)));
        }
        assert_eq!(read_128(&numeric(0, 0xC000, &[]), 38, 0), Some(Number::Special));
        assert_eq!(read_128(&numeric(0, 0, &[1, 5000]), 38, 0), Some(Number::DoesNotFit));
        assert_eq!(read_128(&numeric(0, 0, &[1000]), 3, 0), Some(Number::DoesNotFit));
        assert_eq!(read_128(&numeric(200, 0, &[1]), 38, 0), Some(Number::DoesNotFit));
        assert_eq!(read_128(&numeric(0, 0, &[10_000]), 38, 0), None);
        assert_eq!(read_128(&numeric(0, 1, &[1]), 38, 0), None);
    }

    #[test]
    fn texts_are_those_of_the_server() {
        for (digits, scale, wanted) in [
            ("0", 0, "0"),
            ("0", 2, "0.00"),
            ("150", 2, "1.50"),
            ("1", 5, "0.00001"),
            ("10000", 0, "10000"),
            ("120000000", 0, "120000000"),
            ("12", -6, "12000000"),
            ("123456789", 4, "12345.6789"),
        ] {
            let mut bytes = vec![];
            write(false, digits, scale, &mut bytes);
            assert_eq!(text(&bytes).as_deref(), Some(wanted));
        }
        assert_eq!(text(&numeric(0, 0xC000, &[])).as_deref(), Some("NaN"));
        assert_eq!(text(&numeric(0, 0xF000, &[])).as_deref(), Some("-Infinity"));
        assert_eq!(text(&[0, 1]), None);
    }

    /// What the short way says must be what the long way says.
    fn agrees(bytes: &[u8], scale: i8) -> bool {
        let long = read(bytes, scale, i128::MAX);
        short(bytes, scale).is_none_or(|value| long == Some(Number::Exact(value.into())))
    }

    #[test]
    fn usual_numbers_are_read_the_short_way() {
        for (weight, sign, digits, scale, wanted) in [
            (0, 0, &[][..], 2, 0),
            (0, 0, &[17], 2, 1_700),
            (0, 0x4000, &[1, 5000], 2, -150),
            (-1, 0, &[700], 2, 7),
            (1, 0, &[9, 4949, 5000], 2, 9_494_950),
            (2, 0, &[9999, 9999, 9999, 9900], 2, 99_999_999_999_999),
            (3, 0, &[9999, 9999, 9999, 9999], 0, 9_999_999_999_999_999),
        ] {
            let bytes = numeric(weight, sign, digits);
            assert_eq!(short(&bytes, scale), Some(wanted), "{digits:?}");
            assert!(agrees(&bytes, scale));
        }
        for (weight, sign, digits, scale) in [
            (0, 0xC000, &[][..], 2),
            (0, 0, &[1, 5050], 1),
            (0, 0, &[10_000], 2),
            (0, 1, &[1], 2),
            (i16::MAX, 0, &[1], 2),
            (i16::MIN, 0, &[1], 2),
            (4, 0, &[1, 2, 3, 4, 5], 2),
        ] {
            assert_eq!(short(&numeric(weight, sign, digits), scale), None, "{digits:?}");
        }
    }

    proptest! {
        #[test]
        fn the_short_way_is_the_long_way(
            weight in prop_oneof![-4i16..=4, any::<i16>()],
            sign in prop_oneof![Just(0u16), Just(0x4000), any::<u16>()],
            digits in proptest::collection::vec(prop_oneof![0i16..10_000, Just(0), any::<i16>()], 0..6),
            scale in prop_oneof![0i8..6, any::<i8>()],
        ) {
            prop_assert!(agrees(&numeric(weight, sign, &digits), scale));
        }

        #[test]
        fn what_is_written_is_read(
            value in -99_999_999_999_999_999_999_999_999_999_999_999_999i128
                ..=99_999_999_999_999_999_999_999_999_999_999_999_999,
            scale in -20i8..=38,
        ) {
            let mut bytes = vec![];
            write(value < 0, &value.unsigned_abs().to_string(), scale, &mut bytes);
            prop_assert_eq!(read_128(&bytes, 38, scale), Some(Number::Exact(value)));
        }

        #[test]
        fn text_is_what_was_written(value in any::<i64>(), scale in 0i8..=30) {
            let mut bytes = vec![];
            write(value < 0, &value.unsigned_abs().to_string(), scale, &mut bytes);
            let shown = text(&bytes).unwrap();
            let fraction = shown.split_once('.').map_or("", |(_, fraction)| fraction);
            prop_assert_eq!(fraction.len(), usize::from(scale.unsigned_abs()));
            prop_assert_eq!(shown.replace('.', "").parse::<i64>().unwrap(), value);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..64), scale in any::<i8>()) {
            let _ = read_128(&bytes, 38, scale);
            let _ = read(&bytes, scale, i256::MAX);
            let _ = text(&bytes);
            prop_assert!(agrees(&bytes, scale));
        }
    }
}
