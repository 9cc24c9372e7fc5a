//! Publishing into memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use async_trait::async_trait;
use futures::TryStreamExt;
use tidelake_model::{Error, ErrorKind, PublishMethod, Result, RunId, Strategy};

use crate::publish::{LedgerEntry, Load, Publisher, TargetTable};

/// A publish target; a clone is another handle to the same one. It holds the
/// rows itself and takes those of a run as an addition.
#[derive(Clone, Default)]
pub struct MemoryPublisher(Arc<Mutex<Targets>>);

#[derive(Default)]
struct Targets {
    rows: BTreeMap<(String, String), Vec<RecordBatch>>,
    ledger: BTreeMap<(String, String, RunId), u64>,
    owners: BTreeMap<(String, String), String>,
}

fn key(target: &TargetTable) -> (String, String) {
    (target.schema.clone(), target.table.clone())
}

impl MemoryPublisher {
    /// A target without tables.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Targets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of a target table, in the order in which they were loaded.
    pub fn rows(&self, target: &TargetTable) -> Vec<RecordBatch> {
        self.lock().rows.get(&key(target)).cloned().unwrap_or_default()
    }

    fn entry(&self, target: &TargetTable, run_id: RunId) -> Option<LedgerEntry> {
        let (schema, table) = key(target);
        let rows = self.lock().ledger.get(&(schema, table, run_id)).copied()?;
        Some(LedgerEntry { run_id, rows })
    }
}

#[async_trait]
impl Publisher for MemoryPublisher {
    fn supports(&self, method: PublishMethod, strategy: Strategy) -> bool {
        method == PublishMethod::Internal && strategy == Strategy::Append
    }

    async fn load(&self, load: &Load<'_>) -> Result<u64> {
        let manifest = load.manifest;
        if !self.supports(load.method, load.strategy) {
            let message = format!("the memory target cannot take rows by {}", load.strategy);
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint("choose the strategy append and the method internal"));
        }
        if let Some(entry) = self.entry(load.target, manifest.run_id) {
            return Ok(entry.rows);
        }
        let batches: Vec<RecordBatch> = (load.rows)().try_collect().await?;
        let count = |rows: usize| u64::try_from(rows).unwrap_or(u64::MAX);
        let arrived: u64 = batches.iter().map(|batch| count(batch.num_rows())).sum();
        let exported: u64 = manifest.files.iter().map(|file| file.rows).sum();
        if arrived != exported {
            let message = format!("{exported} rows were exported and {arrived} arrived");
            return Err(Error::new(ErrorKind::Data, message)
                .in_table(&manifest.table)
                .in_run(manifest.run_id));
        }
        let (schema, table) = key(load.target);
        let mut targets = self.lock();
        // Another load of the same run may have come first while rows arrived.
        let entry = (schema, table, manifest.run_id);
        if let Some(rows) = targets.ledger.get(&entry) {
            return Ok(*rows);
        }
        let owner = targets.owners.get(&key(load.target));
        if let Some(other) = owner.filter(|other| *other != load.owner && !load.takes_over) {
            let message = format!("the target holds the rows of {other}");
            return Err(Error::new(ErrorKind::Mismatch, message).in_table(&manifest.table));
        }
        targets.owners.insert(key(load.target), load.owner.to_owned());
        let rows = targets.rows.entry(key(load.target)).or_default();
        if load.replaces {
            rows.clear();
        }
        rows.extend(batches);
        targets.ledger.insert(entry, arrived);
        Ok(arrived)
    }

    async fn ledger(&self, target: &TargetTable, run_id: RunId) -> Result<Option<LedgerEntry>> {
        Ok(self.entry(target, run_id))
    }
}
