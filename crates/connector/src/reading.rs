//! Batches on their way from a source.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use tidelake_model::Result;

/// Record batches in the order in which they are read.
pub type BatchStream = BoxStream<'static, Result<RecordBatch>>;

/// What a source gives for one slice.
pub struct Reading {
    /// The schema of every batch; exactly that of the slice's
    /// [`TableRead`](tidelake_model::TableRead).
    pub schema: SchemaRef,
    /// The rows. Dropping the stream ends the read and frees its connection.
    pub batches: BatchStream,
    /// What was counted on the way; complete once the stream has ended.
    pub counters: Counters,
}

/// Named counts of values that followed a policy, shared between the reader and
/// whoever reports them.
#[derive(Debug, Clone, Default)]
pub struct Counters(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counters {
    /// Adds to a count.
    pub fn add(&self, name: &str, count: u64) {
        if count == 0 {
            return;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total = counts.entry(name.to_owned()).or_default();
        *total = total.saturating_add(count);
    }

    /// All counts so far.
    pub fn snapshot(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
