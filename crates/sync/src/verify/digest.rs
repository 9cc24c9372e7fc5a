//! The first pass: both sides, folded into sums. Where they agree, that is all.

use std::sync::{Mutex, PoisonError};

use arrow::array::RecordBatch;
use tidelake_model::Result;

use super::rows::{RowHasher, RowHashes};
use super::sides::{Side, Visitor};

/// Rows that share a bucket, about.
const ROWS_PER_BUCKET: u64 = 8;
const LEAST_BITS: u32 = 8;
const MOST_BITS: u32 = 20;

/// Rows whose keys begin with the same bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bucket {
    /// Hashes of the source's rows less those of the lake's.
    sum: u64,
    /// Rows of the source less those of the lake.
    balance: i64,
    /// Rows of both.
    rows: u64,
}

impl Bucket {
    fn differs(&self) -> bool {
        self.sum != 0 || self.balance != 0
    }
}

/// What one side says in sum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) rows: u64,
    /// Per column.
    pub(super) sums: Vec<u128>,
}

struct Sums {
    buckets: Vec<Bucket>,
    source: Total,
    lake: Total,
}

/// Sums of both sides.
pub(super) struct Digest {
    hasher: RowHasher,
    bits: u32,
    sums: Mutex<Sums>,
}

/// Which rows have to be looked at one by one.
#[derive(Debug, Clone, Default)]
pub(super) struct Suspects {
    pub(super) bits: u32,
    /// Buckets that differ and their rows, both sides together.
    pub(super) buckets: Vec<(usize, u64)>,
}

impl Digest {
    pub(super) fn new(hasher: RowHasher, rows: u64) -> Self {
        let wanted = (rows / ROWS_PER_BUCKET).max(1);
        let bits = (u64::BITS - wanted.leading_zeros()).clamp(LEAST_BITS, MOST_BITS);
        let empty = Total { rows: 0, sums: vec![0; hasher.names().len()] };
        let buckets = vec![Bucket::default(); 1 << bits];
        let sums = Mutex::new(Sums { buckets, source: empty.clone(), lake: empty });
        Self { hasher, bits, sums }
    }

    /// Source and lake.
    pub(super) fn totals(&self) -> (Total, Total) {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        (sums.source.clone(), sums.lake.clone())
    }

    pub(super) fn suspects(&self) -> Suspects {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let differ = sums.buckets.iter().enumerate().filter(|(_, bucket)| bucket.differs());
        let buckets = differ.map(|(place, bucket)| (place, bucket.rows)).collect();
        Suspects { bits: self.bits, buckets }
    }
}

impl Suspects {
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Rows that share a bucket with a difference.
    pub(super) fn rows(&self) -> u64 {
        self.buckets.iter().map(|(_, rows)| rows).fold(0, |sum, rows| sum.saturating_add(*rows))
    }

    /// Cut into groups of at most so many rows; a bucket that has more is one.
    pub(super) fn groups(&self, most: u64) -> Vec<Self> {
        let mut groups: Vec<Self> = vec![];
        let mut rows = 0_u64;
        for (place, count) in &self.buckets {
            match groups.last_mut() {
                Some(group) if rows.saturating_add(*count) <= most => {
                    group.buckets.push((*place, *count));
                    rows = rows.saturating_add(*count);
                }
                _ => {
                    groups.push(Self { bits: self.bits, buckets: vec![(*place, *count)] });
                    rows = *count;
                }
            }
        }
        groups
    }

    /// Which of all buckets these are.
    pub(super) fn marks(&self) -> Vec<bool> {
        let mut marks = vec![false; 1 << self.bits];
        for (place, _) in &self.buckets {
            if let Some(mark) = marks.get_mut(*place) {
                *mark = true;
            }
        }
        marks
    }
}

/// The bucket of a key.
pub(super) fn bucket(key: u64, bits: u32) -> usize {
    usize::try_from(key >> (u64::BITS - bits)).unwrap_or(0)
}

impl Visitor for Digest {
    fn visit(&self, side: Side, batch: &RecordBatch) -> Result<()> {
        let RowHashes { keys, rows, sums, .. } = self.hasher.hashes(batch)?;
        let mut all = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let is_source = side == Side::Source;
        for (key, row) in keys.iter().zip(&rows) {
            if let Some(bucket) = all.buckets.get_mut(bucket(*key, self.bits)) {
                bucket.rows = bucket.rows.saturating_add(1);
                if is_source {
                    bucket.sum = bucket.sum.wrapping_add(*row);
                    bucket.balance = bucket.balance.saturating_add(1);
                } else {
                    bucket.sum = bucket.sum.wrapping_sub(*row);
                    bucket.balance = bucket.balance.saturating_sub(1);
                }
            }
        }
        let total = if is_source { &mut all.source } else { &mut all.lake };
        total.rows = total.rows.saturating_add(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        for (total, sum) in total.sums.iter_mut().zip(sums) {
            *total = total.wrapping_add(sum);
        }
        Ok(())
    }
}
