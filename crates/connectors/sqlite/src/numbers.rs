//! Conversions between numbers that either are exact or are refused.

use arrow::datatypes::i256;

/// Whole numbers up to here have a float of the same value.
const EXACT_LIMIT: i64 = 1 << 53;

/// The float of the same value, if there surely is one.
pub(crate) fn exact_float(number: i64) -> Option<f64> {
    if !(-EXACT_LIMIT..=EXACT_LIMIT).contains(&number) {
        return None;
    }
    let high = i32::try_from(number >> 32).ok()?;
    let low = u32::try_from(number & 0xFFFF_FFFF).ok()?;
    Some(f64::from(high) * 4_294_967_296.0 + f64::from(low))
}

/// The whole part of a float; `None` where it has more than 63 bits.
pub(crate) fn whole_part(float: f64) -> Option<i64> {
    const FRACTION_BITS: u64 = 52;
    let bits = float.to_bits();
    let exponent = i64::try_from((bits >> FRACTION_BITS) & 0x7FF).ok()? - 1_023;
    let fraction = i64::try_from(bits & ((1 << FRACTION_BITS) - 1)).ok()?;
    let mantissa = fraction | (1 << FRACTION_BITS);
    let magnitude = match exponent {
        ..0 => 0,
        0..=52 => mantissa >> (52 - exponent),
        53..=62 => mantissa.checked_mul(1 << (exponent - 52))?,
        _ => return None,
    };
    Some(if float.is_sign_negative() { -magnitude } else { magnitude })
}

/// The whole number that the float is; `None` where it has a fraction, or more
/// digits than a float can tell apart.
pub(crate) fn exact_integer(float: f64) -> Option<i64> {
    let whole = whole_part(float)?;
    (float.fract() == 0.0 && (-EXACT_LIMIT..=EXACT_LIMIT).contains(&whole)).then_some(whole)
}

/// The shortest decimal text that names this float and no other, without an
/// exponent.
pub(crate) fn shortest_decimal(float: f64) -> Option<String> {
    float.is_finite().then(|| float.to_string())
}

/// A decimal text as a count of units of the scale, exactly; `None` where it is
/// no decimal, or has more digits than the precision and scale hold.
pub(crate) fn decimal_units(text: &str, precision: u8, scale: i8) -> Option<i128> {
    decimal_digits(text, precision, scale)?.parse().ok()
}

/// The same for as many digits as 256 bits hold.
pub(crate) fn wide_units(text: &str, precision: u8, scale: i8) -> Option<i256> {
    i256::from_string(&decimal_digits(text, precision, scale)?)
}

/// The digits of a decimal text as a count of units of the scale.
fn decimal_digits(text: &str, precision: u8, scale: i8) -> Option<String> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut digits = format!("{}{fraction}", whole.trim_start_matches('0'));
    // Digits that the scale has behind those that are there; where it has fewer,
    // only zeros can be left out.
    let behind = isize::from(scale) - isize::try_from(fraction.len()).ok()?;
    if let Ok(zeros) = usize::try_from(behind) {
        digits.extend(std::iter::repeat_n('0', zeros));
    } else {
        let kept = digits.len().saturating_sub(behind.unsigned_abs());
        if digits.bytes().skip(kept).any(|digit| digit != b'0') {
            return None;
        }
        digits.truncate(kept);
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let sign = if negative { "-" } else { "" };
    (significant.len() <= usize::from(precision)).then(|| format!("{sign}{significant}"))
}

/// Whether a text is one of the numbers that no decimal is, as other databases
/// spell them.
pub(crate) fn is_special(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    [b"nan".as_slice(), b"inf", b"infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name))
}

/// A float as a count of units of the scale, where exactly one decimal of that
/// scale is stored as this float.
///
/// SQLite turns a decimal into the nearest float as it is inserted. Where floats
/// lie closer together than decimals of the scale, the decimal can be told from
/// the float, and it is the shortest one that names it; where they do not, the
/// digits are lost, and a guess would look like data.
pub(crate) fn float_units(float: f64, precision: u8, scale: i8) -> Option<i128> {
    decimal_units(&told_decimal(float, scale)?, precision, scale)
}

/// The one decimal of that scale that is stored as this float, as text.
pub(crate) fn told_decimal(float: f64, scale: i8) -> Option<String> {
    if float.abs() >= closest(scale) { None } else { shortest_decimal(float) }
}

/// Below, floats lie closer together than decimals of the scale.
fn closest(scale: i8) -> f64 {
    10f64.powi(-i32::from(scale)) / f64::EPSILON
}

/// A whole number as a count of units of the scale.
pub(crate) fn integer_units(number: i64, precision: u8, scale: i8) -> Option<i128> {
    if scale < 0 {
        return decimal_units(&number.to_string(), precision, scale);
    }
    let factor = 10i128.checked_pow(u32::try_from(scale).ok()?)?;
    let units = i128::from(number).checked_mul(factor)?;
    let limit = 10i128.checked_pow(u32::from(precision))?;
    (-limit < units && units < limit).then_some(units)
}

/// Added to a float below 2^50, this leaves its nearest whole number in the lowest
/// bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// Floats below are rounded by [`ROUNDER`].
const ROUNDED_END: f64 = 1_125_899_906_842_624.0;
/// Digits of the largest power of ten that is an `i64`.
const POWERS: u8 = 18;

/// The decimals of a column: their precision and scale, and what is worked out once
/// for the cells that are most frequent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimals {
    pub(crate) precision: u8,
    pub(crate) scale: i8,
    short: Option<Short>,
}

/// A scale and precision of few digits.
#[derive(Debug, Clone, Copy)]
struct Short {
    /// Units of a one.
    units: i64,
    float_units: f64,
    /// Counts of units are below.
    limit: u64,
    /// Floats whose decimals can be told are below.
    told: f64,
}

impl Decimals {
    pub(crate) fn new(precision: u8, scale: i8) -> Self {
        let short = || {
            let digits = u8::try_from(scale).ok().filter(|digits| *digits <= POWERS)?;
            let units = 10i64.checked_pow(digits.into())?;
            let limit = if precision <= POWERS { 10u64.pow(precision.into()) } else { 1 << 63 };
            let float_units = 10f64.powi(digits.into());
            Some(Short { units, float_units, limit, told: closest(scale) })
        };
        Self { precision, scale, short: short() }
    }

    /// A whole number as a count of units, as [`integer_units`] does.
    pub(crate) fn of_integer(&self, number: i64) -> Option<i128> {
        let short = || {
            let short = self.short?;
            let units = number.checked_mul(short.units)?;
            (units.unsigned_abs() < short.limit).then_some(units)
        };
        match short() {
            Some(units) => Some(units.into()),
            None => integer_units(number, self.precision, self.scale),
        }
    }

    /// A float as a count of units, as [`float_units`] does.
    ///
    /// The count that is nearest to the float is tried: it and the power of ten are
    /// floats themselves, so that their quotient is the float that its decimal is
    /// stored as, by the rule of division.
    pub(crate) fn of_float(&self, float: f64) -> Option<i128> {
        let short = || {
            let short = self.short?;
            let scaled = float * short.float_units;
            if scaled.abs() >= ROUNDED_END || float.abs() >= short.told {
                return None;
            }
            let rounded = scaled + ROUNDER;
            let units = rounded.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
            let is_it = (rounded - ROUNDER) / short.float_units == float;
            (is_it && units.unsigned_abs() < short.limit).then_some(units)
        };
        match short() {
            Some(units) => Some(units.into()),
            None => float_units(float, self.precision, self.scale),
        }
    }

    /// A text as a count of units, as [`decimal_units`] does.
    pub(crate) fn of_text(&self, text: &[u8]) -> Option<i128> {
        match self.of_short_text(text) {
            Some(units) => Some(units.into()),
            None => decimal_units(std::str::from_utf8(text).ok()?, self.precision, self.scale),
        }
    }

    /// The same for at most as many digits as an `i64` surely holds.
    fn of_short_text(&self, text: &[u8]) -> Option<i64> {
        let short = self.short?;
        let (negative, unsigned) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            _ => (false, text),
        };
        if unsigned.len() > usize::from(POWERS) {
            return None;
        }
        let (mut number, mut left, mut in_fraction, mut any) = (0i64, self.scale, false, false);
        for byte in unsigned {
            match byte {
                b'0'..=b'9' => {
                    number = number * 10 + i64::from(byte - b'0');
                    left -= i8::from(in_fraction);
                    any = true;
                }
                b'.' if !in_fraction => in_fraction = true,
                _ => return None,
            }
        }
        let missing = u32::try_from(left).ok()?;
        let units = number.checked_mul(10i64.checked_pow(missing)?)?;
        let units = if negative { -units } else { units };
        (any && units.unsigned_abs() < short.limit).then_some(units)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        for (text, precision, scale, wanted) in [
            ("0", 10, 2, Some(0)),
            ("-0.00", 10, 2, Some(0)),
            ("19.99", 10, 2, Some(1_999)),
            ("19.990", 10, 2, Some(1_999)),
            ("19.991", 10, 2, None),
            ("-19.9", 10, 2, Some(-1_990)),
            (".5", 10, 2, Some(50)),
            ("+7", 10, 2, Some(700)),
            ("99999999.99", 10, 2, Some(9_999_999_999)),
            ("100000000.00", 10, 2, None),
            ("00100", 3, 0, Some(100)),
            ("", 10, 2, None),
            (".", 10, 2, None),
            ("-", 10, 2, None),
            ("1e3", 10, 2, None),
            ("1 ", 10, 2, None),
            ("99999999999999999999999999999999999999", 38, 0, Some(10i128.pow(38) - 1)),
            ("999999999999999999999999999999999999999", 38, 0, None),
        ] {
            assert_eq!(decimal_units(text, precision, scale), wanted, "{text}");
        }
        assert_eq!(decimal_units("1200", 2, -2), Some(12));
        assert_eq!(decimal_units("-1250", 2, -2), None);
        assert_eq!(decimal_units("0.05", 1, 2), Some(5));
        assert_eq!(integer_units(1_200, 2, -2), Some(12));
        let wide = format!("-{}.5", "9".repeat(75));
        let units = wide_units(&wide, 76, 1).map(|units| units.to_string());
        assert_eq!(units, Some(wide.replace('.', "")));
        assert_eq!(wide_units(&wide, 75, 1), None);
        for (float, scale, wanted) in [
            (19.99, 2, Some(1_999)),
            (-0.07, 2, Some(-7)),
            (19.9, 2, Some(1_990)),
            (0.1 + 0.2, 2, None),
            (19.991, 2, None),
            (1_796_030_100.123_456, 6, Some(1_796_030_100_123_456)),
            // Two decimals of this scale are the same float.
            (12_345_678_901_234.567, 4, None),
            (1e19, 0, None),
            (f64::INFINITY, 0, None),
            (f64::NAN, 0, None),
        ] {
            assert_eq!(float_units(float, 38, scale), wanted, "{float}");
        }
        assert_eq!(integer_units(-5, 10, 2), Some(-500));
        assert_eq!(integer_units(i64::MAX, 38, 20), None);
        assert_eq!(integer_units(100_000_000, 10, 2), None);
    }

    proptest! {
        #[test]
        fn whole_parts_are_those_of_truncation(float in -9.2e18f64..9.2e18) {
            let wanted: i64 = format!("{:.0}", float.trunc()).parse().unwrap();
            prop_assert_eq!(whole_part(float), Some(wanted));
        }

        #[test]
        fn decimals_that_were_stored_as_floats_come_back(units: i64, scale in 0i8..12) {
            let text = format!("{units}e-{scale}");
            let float: f64 = text.parse().unwrap();
            if let Some(found) = float_units(float, 38, scale) {
                prop_assert_eq!(found, i128::from(units));
            }
        }

        #[test]
        fn short_ways_give_what_the_long_ones_do(
            number: i64, bits: u64, units in -100_000_000_000i64..100_000_000_000,
            precision in 1u8..39, scale in -3i8..25, text in "[-+]?[0-9]{0,12}[.]?[0-9]{0,9}",
        ) {
            let decimals = Decimals::new(precision, scale);
            let short = u32::try_from(units.unsigned_abs() % 20).unwrap();
            for number in [number, number >> (short * 3), units, 0] {
                let wanted = integer_units(number, precision, scale);
                prop_assert_eq!(decimals.of_integer(number), wanted);
            }
            let decimal: f64 = format!("{units}e{}", -scale).parse().unwrap();
            let cents: f64 = format!("{units}e-2").parse().unwrap();
            let beside = [decimal.next_up(), decimal.next_down(), cents, cents.next_up()];
            let others = [f64::from_bits(bits), f64::NAN, f64::INFINITY, -0.0, decimal];
            for float in beside.into_iter().chain(others) {
                let wanted = float_units(float, precision, scale);
                prop_assert_eq!(decimals.of_float(float), wanted, "{} {}", float, scale);
            }
            for text in [text.clone(), format!("{units}"), format!("{text}x"), cents.to_string()] {
                let wanted = decimal_units(&text, precision, scale);
                prop_assert_eq!(decimals.of_text(text.as_bytes()), wanted, "{}", text);
            }
        }

        #[test]
        fn floats_of_whole_numbers_come_back(number in -EXACT_LIMIT..=EXACT_LIMIT) {
            let float = exact_float(number).unwrap();
            prop_assert_eq!(exact_integer(float), Some(number));
        }
    }

    #[test]
    fn fractions_and_giants_are_no_integers() {
        for float in [0.5, -1.25, 1e300, f64::INFINITY, f64::NAN, 9_007_199_254_740_994.0] {
            assert_eq!(exact_integer(float), None, "{float}");
        }
        assert_eq!(whole_part(0.999), Some(0));
        assert_eq!(whole_part(-1.5), Some(-1));
        assert_eq!(exact_float(i64::MAX), None);
    }
}
