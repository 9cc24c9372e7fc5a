//! Whether a dictionary pays, decided from the first values of a column chunk.

/// Values of the sample.
const SAMPLE: usize = 16_384;

/// Values between two looks at the dictionary.
const STRIDE: usize = SAMPLE / 4;

/// Looks that a row group of the largest size would have.
const STRIDES: f64 = 244.0;

/// Values that a dictionary may be expected to get. It may get twice as many before
/// it is given up: a wrong guess then costs little.
const EXPECTED: f64 = 32_768.0;

/// What to do with the dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is known yet.
    Open,
    /// It stays.
    Pays,
    /// It goes.
    DoesNotPay,
}

/// The count of different values as they come.
#[derive(Debug, Default)]
pub(super) struct Trial {
    seen: usize,
    /// Different values after each stride of the sample.
    distinct: Vec<u32>,
    /// Different values after the last stride.
    last: usize,
    decided: bool,
}

impl Trial {
    /// Values until the next look.
    pub(super) fn stride(&self) -> usize {
        STRIDE - self.seen % STRIDE
    }

    /// Takes note of some more values.
    pub(super) fn add(&mut self, count: usize, distinct: usize) -> Verdict {
        self.seen += count;
        if !self.seen.is_multiple_of(STRIDE) {
            return if self.decided { Verdict::Pays } else { Verdict::Open };
        }
        let new = distinct.saturating_sub(std::mem::replace(&mut self.last, distinct));
        if self.decided {
            // The column is not any more what its sample was.
            let turned = new > STRIDE / 4 * 3;
            return if turned { Verdict::DoesNotPay } else { Verdict::Pays };
        }
        self.distinct.push(u32::try_from(distinct).unwrap_or(u32::MAX));
        let [first, _, third, last] = self.distinct.as_slice() else { return Verdict::Open };
        self.decided = true;
        let (first, new) = (f64::from(*first), f64::from(last - third));
        let last = f64::from(*last);
        // Either new values go on coming as they do, as in a sorted column, or they become
        // fewer with every stride, as in a random one.
        let steady = last + new * STRIDES;
        let decay = (new / first).cbrt();
        let dwindling = if decay < 1.0 { last + new * decay / (1.0 - decay) } else { steady };
        if steady.min(dwindling) <= EXPECTED { Verdict::Pays } else { Verdict::DoesNotPay }
    }

    /// Decides with what is known: a page is to be written.
    pub(super) fn end(&self, distinct: usize) -> Verdict {
        let pays = self.decided || distinct * 2 <= self.seen;
        if pays { Verdict::Pays } else { Verdict::DoesNotPay }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn verdict(values: impl Iterator<Item = u64>) -> Verdict {
        let mut trial = Trial::default();
        let mut distinct = HashSet::new();
        for value in values.take(SAMPLE) {
            distinct.insert(value);
            let verdict = trial.add(1, distinct.len());
            if verdict != Verdict::Open {
                return verdict;
            }
        }
        trial.end(distinct.len())
    }

    fn random() -> impl Iterator<Item = u64> {
        std::iter::successors(Some(1_u64), |state| {
            Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963))
        })
        .map(|state| state >> 33)
    }

    #[test]
    fn few_values_pay_and_many_do_not() {
        for (count, wanted) in [
            (1, Verdict::Pays),
            (50, Verdict::Pays),
            (2_526, Verdict::Pays),
            (10_000, Verdict::Pays),
            (20_000, Verdict::Pays),
            (100_000, Verdict::DoesNotPay),
            (200_000, Verdict::DoesNotPay),
            (1 << 30, Verdict::DoesNotPay),
        ] {
            assert_eq!(verdict(random().map(|value| value % count)), wanted, "{count}");
        }
    }

    #[test]
    fn a_sorted_column_is_looked_at_as_one() {
        assert_eq!(verdict(0..), Verdict::DoesNotPay, "a key");
        assert_eq!(verdict((0..).map(|row| row / 4)), Verdict::DoesNotPay, "a key of four rows");
        assert_eq!(verdict((0..).map(|row| row / 3_000)), Verdict::Pays, "days in their order");
    }

    #[test]
    fn a_short_column_is_judged_by_all_of_it() {
        assert_eq!(verdict(0..10), Verdict::DoesNotPay);
        assert_eq!(verdict([7; 10].into_iter()), Verdict::Pays);
        assert_eq!(verdict([].into_iter()), Verdict::Pays, "nothing but NULL");
    }
}
