//! The digits of a DECIMAL to an unscaled integer.

use arrow::datatypes::i256;

/// Digits that fit 64 bits whatever they are.
const CHUNK: usize = 18;

/// What a text of digits holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number<T> {
    /// The value times ten to the power of the scale.
    Exact(T),
    /// The value has digits beyond the scale or the precision.
    DoesNotFit,
    /// The text is no number.
    Malformed,
}

/// What both widths of decimals can do.
pub(super) trait Unscaled: Copy + PartialOrd {
    const ZERO: Self;
    fn ten_to(exponent: usize) -> Option<Self>;
    fn times_plus(self, factor: Self, digits: u64) -> Option<Self>;
    fn negated(self) -> Self;
}

impl Unscaled for i128 {
    const ZERO: Self = 0;

    fn ten_to(exponent: usize) -> Option<Self> {
        10i128.checked_pow(u32::try_from(exponent).ok()?)
    }

    fn times_plus(self, factor: Self, digits: u64) -> Option<Self> {
        self.checked_mul(factor)?.checked_add(digits.into())
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

impl Unscaled for i256 {
    const ZERO: Self = i256::ZERO;

    fn ten_to(exponent: usize) -> Option<Self> {
        i256::from_i128(10).checked_pow(u32::try_from(exponent).ok()?)
    }

    fn times_plus(self, factor: Self, digits: u64) -> Option<Self> {
        self.checked_mul(factor)?.checked_add(i256::from_i128(digits.into()))
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

/// How numbers of a column are written, worked out once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    scale: usize,
    /// Ten to the power of the scale, where 64 bits hold it.
    factor: u64,
}

impl Shape {
    /// `None` for a scale that no column has.
    pub(super) fn new(scale: i8) -> Option<Self> {
        let scale = usize::try_from(scale).ok()?;
        let factor = 10u64.checked_pow(u32::try_from(scale).ok()?).unwrap_or(0);
        Some(Self { scale, factor })
    }

    /// Reads what a column of at most 18 digits sends: every digit of the scale,
    /// and no more. `None` for anything else.
    #[inline]
    pub(super) fn short(self, cell: &[u8]) -> Option<i64> {
        let (negative, cell) = match cell.split_first() {
            Some((b'-', rest)) => (true, rest),
            _ => (false, cell),
        };
        if cell.len() > CHUNK {
            return None;
        }
        let magnitude = match self.scale {
            0 if cell.is_empty() => return None,
            0 => digits(cell)?,
            scale => {
                let point = cell.len().checked_sub(scale + 1)?;
                let (whole, fraction) = cell.split_at_checked(point)?;
                let (b'.', fraction) = fraction.split_first()? else { return None };
                // Together they have no more than 17 digits.
                digits(whole)? * self.factor + digits(fraction)?
            }
        };
        let magnitude = i64::try_from(magnitude).ok()?;
        Some(if negative { -magnitude } else { magnitude })
    }

    /// Reads a number of any length. `limit` is ten to the power of the precision.
    pub(super) fn read<T: Unscaled>(self, cell: &[u8], limit: T) -> Number<T> {
        let (negative, cell) = match cell.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, cell),
        };
        let point = cell.iter().position(|byte| *byte == b'.').unwrap_or(cell.len());
        let (whole, fraction) = cell.split_at_checked(point).unwrap_or((cell, &[]));
        let fraction = fraction.split_first().map_or(fraction, |(_, digits)| digits);
        let is_number = whole.iter().chain(fraction).all(u8::is_ascii_digit);
        if !is_number || whole.is_empty() && fraction.is_empty() {
            return Number::Malformed;
        }
        let (kept, beyond) = match fraction.split_at_checked(self.scale) {
            Some(parts) => parts,
            None => (fraction, &[][..]),
        };
        if beyond.iter().any(|digit| *digit != b'0') {
            return Number::DoesNotFit;
        }
        let missing = self.scale.saturating_sub(kept.len());
        let magnitude = append(Some(T::ZERO), whole);
        let magnitude = append(magnitude, kept);
        let magnitude = magnitude.and_then(|value| match missing {
            0 => Some(value),
            _ if value == T::ZERO => Some(value),
            missing => value.times_plus(T::ten_to(missing)?, 0),
        });
        match magnitude {
            Some(value) if value < limit => {
                Number::Exact(if negative { value.negated() } else { value })
            }
            _ => Number::DoesNotFit,
        }
    }
}

/// The value with more digits behind it; `None` where that overflows.
fn append<T: Unscaled>(mut value: Option<T>, text: &[u8]) -> Option<T> {
    for chunk in text.chunks(CHUNK) {
        let number = digits(chunk)?;
        value = match value? {
            // Zeros in front may be any number.
            zero if zero == T::ZERO => T::ZERO.times_plus(T::ZERO, number),
            value => value.times_plus(T::ten_to(chunk.len())?, number),
        };
    }
    value
}

/// The value of at most 18 digits; `None` where one is none.
#[inline]
fn digits(text: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    let mut highest = 0u8;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        highest = highest.max(digit);
        value = value.wrapping_mul(10).wrapping_add(digit.into());
    }
    (highest <= 9).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, precision: usize, scale: i8) -> Number<i128> {
        Shape::new(scale).unwrap().read(text.as_bytes(), i128::ten_to(precision).unwrap())
    }

    #[test]
    fn golden_values() {
        for (text, precision, scale, wanted) in [
            ("0.00", 15, 2, Number::Exact(0)),
            ("-0.05", 15, 2, Number::Exact(-5)),
            ("12345.67", 15, 2, Number::Exact(1_234_567)),
            ("0012345.67", 15, 2, Number::Exact(1_234_567)),
            ("7", 15, 2, Number::Exact(700)),
            ("7.", 15, 2, Number::Exact(700)),
            (".5", 15, 2, Number::Exact(50)),
            ("1.500", 15, 2, Number::Exact(150)),
            ("1.501", 15, 2, Number::DoesNotFit),
            ("2013", 4, 0, Number::Exact(2013)),
            ("20130", 4, 0, Number::DoesNotFit),
            ("-9999", 4, 0, Number::Exact(-9999)),
            ("99999999999999999999999999999999999999", 38, 0, Number::Exact(10i128.pow(38) - 1)),
            ("100000000000000000000000000000000000000", 38, 0, Number::DoesNotFit),
            ("00000000000000000000000000000000000000000000000000000001", 4, 0, Number::Exact(1)),
            ("", 4, 0, Number::Malformed),
            ("-", 4, 0, Number::Malformed),
            (".", 4, 0, Number::Malformed),
            ("1.2.3", 4, 2, Number::Malformed),
            ("1e3", 9, 2, Number::Malformed),
            ("NaN", 9, 2, Number::Malformed),
        ] {
            assert_eq!(read(text, precision, scale), wanted, "{text}");
        }
        let widest = "-99999999999999999999999999999999999.999999999999999999999999999999";
        let shape = Shape::new(30).unwrap();
        let wanted = i256::from_string(&widest.replace('.', "")).unwrap();
        assert_eq!(shape.read(widest.as_bytes(), i256::ten_to(65).unwrap()), Number::Exact(wanted));
    }

    #[test]
    fn the_short_way_takes_only_what_it_can() {
        let shape = Shape::new(2).unwrap();
        assert_eq!(shape.short(b"-21168.23"), Some(-2_116_823));
        assert_eq!(shape.short(b"0.00"), Some(0));
        assert_eq!(shape.short(b"99999999999999.99"), Some(9_999_999_999_999_999));
        for other in ["1", "1.5", ".", "", "-", "1.5x", "1x5.55", "9999999999999999999.99", "1.234"]
        {
            assert_eq!(shape.short(other.as_bytes()), None, "{other}");
        }
        assert_eq!(Shape::new(0).unwrap().short(b"42"), Some(42));
        assert_eq!(Shape::new(40).unwrap().short(b"0.00"), None);
        assert!(Shape::new(-1).is_none());
    }

    proptest! {
        #[test]
        fn both_ways_agree_with_the_number(value in any::<i64>(), scale in 0usize..=30) {
            let sign = if value < 0 { "-" } else { "" };
            let all = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = all.split_at(all.len() - scale);
            let text = if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") };
            let shape = Shape::new(i8::try_from(scale).unwrap()).unwrap();
            prop_assert_eq!(shape.read(text.as_bytes(), 10i128.pow(38)), Number::Exact(value.into()));
            let wide = shape.read(text.as_bytes(), i256::MAX);
            prop_assert_eq!(wide, Number::Exact(i256::from_i128(value.into())));
            if let Some(short) = shape.short(text.as_bytes()) {
                prop_assert_eq!(short, value);
            } else {
                prop_assert!(text.trim_start_matches('-').len() > CHUNK);
            }
        }

        #[test]
        fn any_text_is_survived(text in proptest::collection::vec(any::<u8>(), 0..80), scale in 0i8..=76) {
            let shape = Shape::new(scale).unwrap();
            let short = shape.short(&text);
            let long = shape.read(&text, i256::MAX);
            if let Some(short) = short {
                prop_assert_eq!(long, Number::Exact(i256::from_i128(short.into())));
            }
        }
    }
}
