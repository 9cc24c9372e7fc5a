//! Rows of both sides, put against each other.

use super::collect::Entry;
use super::sides::Side;

/// How one identity differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The source has the row, the lake does not.
    Missing,
    /// The lake has it more often than the source.
    Doubled,
    /// Both have it, with other values.
    Differs,
    /// The lake has a version of it that the source replaced since: no error.
    Changed,
    /// The lake has it, the source no longer does: no error.
    Deleted,
    /// The lake has it, and whether the source still does was not looked up.
    Unknown,
}

impl Difference {
    /// Whether the lake is wrong.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Missing | Self::Doubled | Self::Differs)
    }
}

/// How many rows differ in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// See [`Difference::Missing`].
    pub missing: u64,
    /// See [`Difference::Doubled`].
    pub doubled: u64,
    /// See [`Difference::Differs`].
    pub differs: u64,
    /// See [`Difference::Changed`].
    pub changed: u64,
    /// See [`Difference::Deleted`].
    pub deleted: u64,
    /// See [`Difference::Unknown`].
    pub unknown: u64,
    /// Rows without a cursor value that came after the first run, which alone
    /// carries such rows.
    pub without_cursor: u64,
}

impl Counts {
    /// Rows for which the lake is wrong.
    pub fn errors(&self) -> u64 {
        self.missing.saturating_add(self.doubled).saturating_add(self.differs)
    }

    /// Counts so many rows of a class.
    pub(super) fn add(&mut self, class: Difference, rows: u64) {
        let count = match class {
            Difference::Missing => &mut self.missing,
            Difference::Doubled => &mut self.doubled,
            Difference::Differs => &mut self.differs,
            Difference::Changed => &mut self.changed,
            Difference::Deleted => &mut self.deleted,
            Difference::Unknown => &mut self.unknown,
        };
        *count = count.saturating_add(rows);
    }
}

/// One identity that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) class: Difference,
    pub(super) key: u64,
    pub(super) identity: u64,
    /// Rows of that identity on either side.
    pub(super) in_source: u64,
    pub(super) in_lake: u64,
    /// Rows that stand against each other with other values, or that are too many
    /// or too few: of the source, and of the lake.
    pub(super) source: Option<Entry>,
    pub(super) lake: Option<Entry>,
    pub(super) null: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Matched {
    pub(super) counts: Counts,
    /// Errors first to be found, at most so many as were asked for.
    pub(super) errors: Vec<Case>,
    /// Rows of the lake alone that are no errors.
    pub(super) others: Vec<Case>,
    /// Rows of the lake alone whose keys the source may have elsewhere.
    pub(super) unknown: Vec<Case>,
    /// Identities of all errors, as long as they are not too many.
    pub(super) wrong: Vec<u64>,
    /// Whether there were more.
    pub(super) wrong_is_cut: bool,
}

/// How many cases are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keep {
    pub(super) errors: usize,
    pub(super) others: usize,
    pub(super) unknown: usize,
    pub(super) wrong: usize,
}

/// What is true of the whole table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Whether rows are told apart by a key.
    pub(super) has_key: bool,
    /// Whether every row of the source was read, whatever its cursor.
    pub(super) reads_all: bool,
}

impl Matched {
    /// Goes through entries that are sorted and hold every row of their keys.
    pub(super) fn add(&mut self, entries: &[Entry], rules: Rules, keep: Keep) {
        for versions in entries.chunk_by(|left, right| left.key == right.key) {
            let in_source = versions.iter().any(|entry| entry.side == Side::Source);
            for same in versions.chunk_by(|left, right| left.identity == right.identity) {
                for case in cases(same, in_source, rules) {
                    self.take(case, keep);
                }
            }
        }
    }

    fn take(&mut self, case: Case, keep: Keep) {
        if case.class == Difference::Missing && case.null {
            // The first run carried such rows; later ones are left to the user.
            self.counts.without_cursor = self.counts.without_cursor.saturating_add(1);
            return;
        }
        self.counts.add(case.class, 1);
        if case.class == Difference::Unknown {
            if self.unknown.len() < keep.unknown {
                self.unknown.push(case);
            }
            return;
        }
        if !case.class.is_error() {
            if self.others.len() < keep.others {
                self.others.push(case);
            }
            return;
        }
        if self.wrong.len() < keep.wrong {
            if self.wrong.last() != Some(&case.identity) {
                self.wrong.push(case.identity);
            }
        } else {
            self.wrong_is_cut = true;
        }
        if self.errors.len() < keep.errors {
            self.errors.push(case);
        }
    }
}

/// How the rows of one identity differ. `key_in_source`: the source has the key,
/// perhaps at another place of the cursor.
fn cases(same: &[Entry], key_in_source: bool, rules: Rules) -> Vec<Case> {
    let (mut source, mut lake): (Vec<Entry>, Vec<Entry>) =
        same.iter().copied().partition(|entry| entry.side == Side::Source);
    let count = |rows: &[Entry]| u64::try_from(rows.len()).unwrap_or(u64::MAX);
    let (in_source, in_lake) = (count(&source), count(&lake));
    // Rows that are alike need no further look.
    source.retain(|entry| match lake.iter().position(|other| other.row == entry.row) {
        Some(place) => {
            lake.remove(place);
            false
        }
        None => true,
    });
    let mut cases = vec![];
    let (mut source, mut lake) = (source.into_iter(), lake.into_iter());
    loop {
        let (from_source, in_the_lake) = (source.next(), lake.next());
        let class = match (&from_source, &in_the_lake) {
            (None, None) => return cases,
            (Some(_), Some(_)) => Difference::Differs,
            (Some(_), None) => Difference::Missing,
            (None, Some(_)) if in_source > 0 => Difference::Doubled,
            (None, Some(_)) if key_in_source && rules.has_key => Difference::Changed,
            (None, Some(_)) if rules.reads_all && rules.has_key => Difference::Deleted,
            (None, Some(_)) => Difference::Unknown,
        };
        let Some(entry) = from_source.or(in_the_lake) else { return cases };
        cases.push(Case {
            class,
            key: entry.key,
            identity: entry.identity,
            in_source,
            in_lake,
            source: from_source,
            lake: in_the_lake,
            null: entry.null,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { has_key: true, reads_all: false };
    const KEEP: Keep = Keep { errors: 10, others: 10, unknown: 10, wrong: 10 };

    fn entry(key: u64, identity: u64, row: u64, side: Side) -> Entry {
        Entry { key, identity, row, side, null: false }
    }

    fn classes(mut entries: Vec<Entry>, rules: Rules) -> Vec<Difference> {
        entries.sort_unstable();
        let mut matched = Matched::default();
        matched.add(&entries, rules, KEEP);
        let cases = matched.errors.iter().chain(&matched.others).chain(&matched.unknown);
        cases.map(|case| case.class).collect()
    }

    #[test]
    fn each_way_to_differ_has_its_name() {
        use Difference::{Changed, Deleted, Differs, Doubled, Missing, Unknown};
        use Side::{Lake, Source};
        let source = |key, identity, row| entry(key, identity, row, Source);
        let lake = |key, identity, row| entry(key, identity, row, Lake(0));
        for (entries, wanted) in [
            (vec![source(1, 1, 1), lake(1, 1, 1)], vec![]),
            (vec![source(1, 1, 1)], vec![Missing]),
            (vec![source(1, 1, 1), lake(1, 1, 2)], vec![Differs]),
            (vec![source(1, 1, 1), lake(1, 1, 1), lake(1, 1, 1)], vec![Doubled]),
            (vec![source(1, 1, 1), lake(1, 1, 2), lake(1, 1, 1)], vec![Doubled]),
            (vec![source(1, 1, 1), lake(1, 1, 2), lake(1, 1, 3)], vec![Differs, Doubled]),
            (vec![source(1, 2, 2), lake(1, 2, 2), lake(1, 1, 1)], vec![Changed]),
            (vec![lake(1, 1, 1)], vec![Unknown]),
            // Rows without a key that look alike are counted.
            (vec![source(1, 1, 1), source(1, 1, 1), lake(1, 1, 1)], vec![Missing]),
        ] {
            assert_eq!(classes(entries.clone(), RULES), wanted, "{entries:?}");
        }
        let all = Rules { reads_all: true, ..RULES };
        assert_eq!(classes(vec![lake(1, 1, 1)], all), [Deleted]);
        assert_eq!(classes(vec![lake(1, 1, 1)], Rules { has_key: false, ..all }), [Unknown]);
    }
}
