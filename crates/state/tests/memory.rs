//! The suite on the store in memory, and what only it can do.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidelake_model::{Actor, TableKey, TableName};
use tidelake_state::conformance::{Outcome, Place, run_store_suite};
use tidelake_state::memory::MemoryStore;
use tidelake_state::{StateStore, WatermarkSettings};
use tidelake_watermark::Progress;

struct InMemory {
    store: MemoryStore,
    now: Arc<AtomicI64>,
}

impl InMemory {
    fn new() -> Self {
        // 2026-11-30, moved by hand.
        let now = Arc::new(AtomicI64::new(1_796_000_000_000_000_000));
        let clock = now.clone();
        let store =
            MemoryStore::with_clock(Arc::new(move || i128::from(clock.load(Ordering::Relaxed))));
        Self { store: store.with_counted_ids(), now }
    }
}

#[async_trait]
impl Place for InMemory {
    async fn open(&self) -> Outcome<Arc<dyn StateStore>> {
        Ok(Arc::new(self.store.clone()))
    }

    async fn pass(&self, time: Duration) {
        self.now.fetch_add(time.as_nanos().try_into().unwrap(), Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let report = run_store_suite("memory", async || Ok(Arc::new(InMemory::new()))).await;
    report.verdict().unwrap();
}

fn key() -> TableKey {
    TableKey {
        env: String::new(),
        scope: String::new(),
        connector_type: "memory".to_owned(),
        source_key: "shop".to_owned(),
        table: Some(TableName::new("public", "orders")),
    }
}

async fn make(store: &MemoryStore) -> String {
    let settings = WatermarkSettings {
        column: "id".to_owned(),
        kind: "integer".to_owned(),
        initial: Progress::default(),
    };
    let actor = Actor { kind: "cli".to_owned(), name: "ann".to_owned() };
    store.create_watermark(&key(), &settings, &actor, None).await.unwrap().id
}

#[tokio::test]
async fn a_snapshot_is_put_back_with_its_identity() {
    let store = InMemory::new().store;
    let snapshot = store.snapshot();
    let identity = store.identity().await.unwrap();
    make(&store).await;
    store.truncate().await.unwrap();
    assert_ne!(store.identity().await.unwrap(), identity);
    store.restore(&snapshot);
    assert_eq!(store.identity().await.unwrap(), identity);
    assert!(store.watermarks(&Default::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn counted_ids_are_the_same_each_time() {
    assert_eq!(make(&InMemory::new().store).await, make(&InMemory::new().store).await);
}
