//! What every store must do, as a list of cases.
//!
//! A store implements [`Place`] in its tests and runs the list. A failure reads
//! `<store>::two_runs_cannot_lease_one_table`.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tidelake_state::StateStore;
//! use tidelake_state::conformance::{Outcome, Place, run_store_case};
//! use tidelake_state::memory::MemoryStore;
//!
//! struct InMemory(MemoryStore);
//!
//! #[async_trait::async_trait]
//! impl Place for InMemory {
//!     async fn open(&self) -> Outcome<Arc<dyn StateStore>> {
//!         Ok(Arc::new(self.0.clone()))
//!     }
//!     async fn pass(&self, time: Duration) {
//!         tokio::time::sleep(time).await;
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let place = Arc::new(InMemory(MemoryStore::new()));
//! run_store_case("two_runs_cannot_lease_one_table", place).await.unwrap();
//! # });
//! ```

mod advance;
mod concurrency;
mod harness;
mod house;
mod leases;
mod nouns;
mod runs;
mod syncs;
mod watermarks;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use harness::{Case, Failure, Outcome, Report};

use crate::store::StateStore;

/// Where one store is kept.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens the store, as another process does; the first one makes it.
    async fn open(&self) -> Outcome<Arc<dyn StateStore>>;

    /// Lets time pass on the store's clock.
    async fn pass(&self, time: Duration);
}

/// Every case.
pub fn store_cases() -> Vec<Case> {
    let groups = [
        syncs::cases(),
        leases::cases(),
        runs::cases(),
        advance::cases(),
        watermarks::cases(),
        house::cases(),
        concurrency::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// Runs every case, each in an empty place of its own.
pub async fn run_store_suite<P: Place + 'static>(
    store: &str,
    new_place: impl AsyncFn() -> Outcome<Arc<P>>,
) -> Report {
    let mut report = Report::default();
    for case in store_cases() {
        let name = format!("{store}::{}", case.name);
        let outcome = match new_place().await {
            Ok(place) => case.outcome(place).await,
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok(()) => report.passed.push(name),
            Err(failure) => report.failed.push((name, failure)),
        }
    }
    report
}

/// Runs one case by its name, in an empty place.
pub async fn run_store_case(name: &str, place: Arc<dyn Place>) -> Outcome {
    let case = store_cases().into_iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Failure::new(format!("there is no case {name:?}")))?;
    case.outcome(place).await
}
