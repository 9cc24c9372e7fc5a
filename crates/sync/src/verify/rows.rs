//! What identifies a row, and what it says, as numbers.

use arrow::array::RecordBatch;
use arrow::compute::filter_record_batch;
use tidelake_connector::rows_outside;
use tidelake_model::{CursorRead, Error, ErrorKind, Result};
use tidelake_watermark::Range;

use super::hash::{column_hashes, joined, mixed};

/// Hashes the rows of batches that have certain columns.
#[derive(Debug, Clone)]
pub(super) struct RowHasher {
    /// The columns that are compared.
    names: Vec<String>,
    /// Those of the key; all columns where there is none.
    key: Vec<String>,
    cursor: Option<CursorRead>,
}

/// The hashes of a batch, one each per row.
pub(super) struct RowHashes {
    /// Of the key: the versions of a row share it.
    pub(super) keys: Vec<u64>,
    /// Of key and cursor: what a row is found again by.
    pub(super) identities: Vec<u64>,
    /// Of all columns.
    pub(super) rows: Vec<u64>,
    /// Whether the cursor is NULL; empty where none is.
    pub(super) nulls: Vec<bool>,
    /// Per column a sum over all rows. A value counts together with its row's
    /// identity, so that two that changed places are noticed.
    pub(super) sums: Vec<u128>,
}

impl RowHasher {
    pub(super) fn new(names: Vec<String>, key: Vec<String>, cursor: Option<CursorRead>) -> Self {
        Self { names, key, cursor }
    }

    /// The columns that are compared.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns of the key; empty where the table has none.
    pub(super) fn key(&self) -> &[String] {
        &self.key
    }

    pub(super) fn cursor(&self) -> Option<&CursorRead> {
        self.cursor.as_ref()
    }

    fn is_cursor(&self, name: &String) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.cursor.columns().contains(name))
    }

    /// Whether the column belongs to the key or the cursor.
    pub(super) fn identifies(&self, name: &String) -> bool {
        self.key.contains(name) || self.is_cursor(name)
    }

    pub(super) fn hashes(&self, batch: &RecordBatch) -> Result<RowHashes> {
        let count = batch.num_rows();
        let mut keys = vec![0; count];
        let mut identities = vec![1; count];
        let mut rows = vec![2; count];
        let mut columns = Vec::with_capacity(self.names.len());
        for name in &self.names {
            let hashes = column_hashes(column(batch, name)?, seed(name))?;
            if self.key.contains(name) {
                join(&mut keys, &hashes);
            }
            if self.is_cursor(name) {
                join(&mut identities, &hashes);
            }
            join(&mut rows, &hashes);
            columns.push(hashes);
        }
        finish(&mut rows);
        if self.key.is_empty() {
            keys.clone_from(&rows);
            identities.clone_from(&rows);
        } else {
            finish(&mut keys);
            join(&mut identities, &keys);
            finish(&mut identities);
        }
        let sums = columns.iter().map(|hashes| sum(hashes, &identities)).collect();
        Ok(RowHashes { keys, identities, rows, nulls: self.nulls(batch)?, sums })
    }

    /// The hashes of the key alone, of a batch that may lack other columns.
    pub(super) fn keys(&self, batch: &RecordBatch) -> Result<Vec<u64>> {
        let mut keys = vec![0; batch.num_rows()];
        for name in self.names.iter().filter(|name| self.key.contains(name)) {
            join(&mut keys, &column_hashes(column(batch, name)?, seed(name))?);
        }
        finish(&mut keys);
        Ok(keys)
    }

    fn nulls(&self, batch: &RecordBatch) -> Result<Vec<bool>> {
        let Some(cursor) = &self.cursor else { return Ok(vec![]) };
        let mut may_be_null = false;
        for name in cursor.cursor.columns() {
            may_be_null |= column(batch, name)?.null_count() > 0;
        }
        if !may_be_null {
            return Ok(vec![]);
        }
        // Only a row without a value lies outside of a range that is open.
        let outside = rows_outside(batch, cursor, &Range::default())?;
        Ok(outside.values().iter().collect())
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a arrow::array::ArrayRef> {
    batch
        .column_by_name(name)
        .ok_or_else(|| Error::new(ErrorKind::Internal, format!("column {name:?} was not read")))
}

/// A column keeps its seed wherever it stands.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0, |seed, byte| joined(seed, u64::from(byte)))
}

fn join(hashes: &mut [u64], next: &[u64]) {
    for (hash, next) in hashes.iter_mut().zip(next) {
        *hash = joined(*hash, *next);
    }
}

fn finish(hashes: &mut [u64]) {
    for hash in hashes {
        *hash = mixed(*hash);
    }
}

fn sum(hashes: &[u64], identities: &[u64]) -> u128 {
    hashes.iter().zip(identities).fold(0, |sum: u128, (hash, identity)| {
        // An odd factor: no change of the hash is lost in the product.
        sum.wrapping_add(u128::from(*hash).wrapping_mul(u128::from(*identity | 1)))
    })
}

/// The rows that a mask keeps.
pub(super) fn kept(batch: &RecordBatch, mask: &arrow::array::BooleanArray) -> Result<RecordBatch> {
    filter_record_batch(batch, mask).map_err(|error| {
        Error::new(ErrorKind::Internal, "rows could not be filtered").with_source(error)
    })
}
