//! An exact decimal of any length.

use std::cmp::Ordering;
use std::fmt;

/// An exact decimal number; the scale it was written with is kept, so that
/// `3.1400` prints as it was read, and is equal to `3.14`.
#[derive(Debug, Clone)]
pub struct Decimal {
    negative: bool,
    /// ASCII digits without a decimal point, at least `scale + 1` of them.
    digits: String,
    /// Digits after the decimal point.
    scale: usize,
}

impl Decimal {
    /// Parses `[-]digits[.digits]`; no exponent, no blanks, no special values.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (unsigned, ""),
        };
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        Some(Self::new(negative, format!("{whole}{fraction}"), fraction.len()))
    }

    fn new(negative: bool, digits: String, scale: usize) -> Self {
        // By hand, since the formatter cannot pad beyond 65,535 characters.
        let significant = digits.trim_start_matches('0');
        let zeros = (scale + 1).saturating_sub(significant.len());
        let digits = "0".repeat(zeros) + significant;
        let negative = negative && digits.bytes().any(|byte| byte != b'0');
        Self { negative, digits, scale }
    }

    /// The digits of both numbers, aligned at the decimal point, least first.
    fn aligned(&self, other: &Self) -> (Vec<u8>, Vec<u8>, usize) {
        let scale = self.scale.max(other.scale);
        let digits = |number: &Self| -> Vec<u8> {
            let zeros = std::iter::repeat_n(0, scale - number.scale);
            zeros.chain(number.digits.bytes().rev().map(|byte| byte - b'0')).collect()
        };
        let (mut left, mut right) = (digits(self), digits(other));
        let width = left.len().max(right.len());
        left.resize(width, 0);
        right.resize(width, 0);
        (left, right, scale)
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let (left, right, _) = self.aligned(other);
        left.iter().rev().cmp(right.iter().rev())
    }

    /// `self - other`, exactly.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let (left, right, scale) = self.aligned(other);
        let add = self.negative != other.negative;
        let swap = !add && self.compare_magnitude(other) == Ordering::Less;
        let (larger, smaller) = if swap { (right, left) } else { (left, right) };
        let mut carry = 0i16;
        let mut digits = Vec::with_capacity(larger.len() + 1);
        for (a, b) in larger.iter().zip(&smaller) {
            let (a, b) = (i16::from(*a), i16::from(*b));
            let sum = if add { a + b + carry } else { a - b - carry };
            carry = i16::from(!(0..10).contains(&sum));
            digits.push(sum.rem_euclid(10));
        }
        digits.push(if add { carry } else { 0 });
        let text = digits.iter().rev().map(ToString::to_string).collect();
        Self::new(self.negative != swap, text, scale)
    }

    /// The largest whole number that is not above this one; `None` beyond `i128`.
    pub fn floor(&self) -> Option<i128> {
        let at = self.digits.len() - self.scale;
        let (whole, fraction) = self.digits.split_at_checked(at)?;
        let whole: i128 = whole.parse().ok()?;
        let rounds_down = self.negative && fraction.bytes().any(|byte| byte != b'0');
        Some(if self.negative { -whole - i128::from(rounds_down) } else { whole })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let (whole, fraction) =
            self.digits.split_at_checked(self.digits.len() - self.scale).unwrap_or(("0", ""));
        let point = if self.scale > 0 { "." } else { "" };
        write!(formatter, "{sign}{whole}{point}{fraction}")
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}
