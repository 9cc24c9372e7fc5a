//! The second pass: the rows that share a bucket with a difference, one by one.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::take_record_batch;
use tidelake_model::{Error, ErrorKind, Result};

use super::digest::bucket;
use super::rows::{RowHasher, RowHashes};
use super::sides::{Side, Visitor};

/// Bytes of rows that are kept as they are, for their values to be shown.
const MOST_KEPT: usize = 64 << 20;

/// Bytes of an [`Entry`], for the memory limit.
pub(super) const ENTRY_BYTES: u64 = 40;

/// A row as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) identity: u64,
    pub(super) row: u64,
    pub(super) side: Side,
    /// Whether its cursor is NULL.
    pub(super) null: bool,
}

/// A row with its values.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) entry: Entry,
    pub(super) row: RecordBatch,
}

/// Which rows are collected.
pub(super) enum Wanted {
    /// Those of the marked buckets.
    Buckets { bits: u32, marks: Vec<bool> },
    /// Those of the identities: all columns of some, only key and cursor of others.
    Identities { whole: HashSet<u64>, brief: HashSet<u64> },
}

impl Wanted {
    fn wants(&self, key: u64, identity: u64) -> bool {
        match self {
            Self::Buckets { bits, marks } => {
                marks.get(bucket(key, *bits)).copied().unwrap_or(false)
            }
            Self::Identities { whole, brief } => {
                whole.contains(&identity) || brief.contains(&identity)
            }
        }
    }

    fn is_brief(&self, identity: u64) -> bool {
        matches!(self, Self::Identities { whole, .. } if !whole.contains(&identity))
    }
}

#[derive(Default)]
struct Found {
    entries: Vec<Entry>,
    kept: Vec<Kept>,
    bytes: usize,
}

/// Collects rows.
pub(super) struct Collector {
    hasher: RowHasher,
    wanted: Wanted,
    /// Columns that are kept of a row; none where values are not wanted.
    columns: Option<Vec<String>>,
    found: Mutex<Found>,
}

impl Collector {
    pub(super) fn new(hasher: RowHasher, wanted: Wanted, columns: Option<Vec<String>>) -> Self {
        Self { hasher, wanted, columns, found: Mutex::default() }
    }

    /// All entries, sorted, and the rows unless they were too large to be kept.
    pub(super) fn finish(&self) -> (Vec<Entry>, Option<Vec<Kept>>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = std::mem::take(&mut found.entries);
        entries.sort_unstable();
        let kept = std::mem::take(&mut found.kept);
        let is_chosen = matches!(self.wanted, Wanted::Identities { .. });
        let complete = self.columns.is_some() && (is_chosen || found.bytes <= MOST_KEPT);
        (entries, complete.then_some(kept))
    }

    fn keep(&self, batch: &RecordBatch, place: usize, entry: Entry) -> Result<Option<Kept>> {
        let Some(columns) = &self.columns else { return Ok(None) };
        let schema = batch.schema();
        let is_brief = self.wanted.is_brief(entry.identity);
        let columns = columns.iter().filter(|name| !is_brief || self.hasher.identifies(name));
        let places: Vec<_> = columns.filter_map(|name| schema.index_of(name).ok()).collect();
        let at = UInt64Array::from(vec![u64::try_from(place).unwrap_or(u64::MAX)]);
        let row = batch.project(&places).and_then(|batch| take_record_batch(&batch, &at));
        let row = row.map_err(|error| {
            Error::new(ErrorKind::Internal, "a row could not be taken").with_source(error)
        })?;
        Ok(Some(Kept { entry, row }))
    }
}

impl Visitor for Collector {
    fn visit(&self, side: Side, batch: &RecordBatch) -> Result<()> {
        let RowHashes { keys, identities, rows, nulls, .. } = self.hasher.hashes(batch)?;
        let mut entries = vec![];
        for (place, ((key, identity), row)) in keys.iter().zip(&identities).zip(&rows).enumerate() {
            if self.wanted.wants(*key, *identity) {
                let null = nulls.get(place).copied().unwrap_or(false);
                let entry = Entry { key: *key, identity: *identity, row: *row, side, null };
                entries.push((place, entry));
            }
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, entry) in entries {
            found.entries.push(entry);
            if found.bytes > MOST_KEPT {
                continue;
            }
            if let Some(kept) = self.keep(batch, place, entry)? {
                found.bytes = found.bytes.saturating_add(kept.row.get_array_memory_size());
                found.kept.push(kept);
            }
        }
        Ok(())
    }
}
