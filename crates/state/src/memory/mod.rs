//! A store in memory: exact, cheap, and as strict as the others.

mod rows;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures::FutureExt;
use tidelake_model::Result;

use crate::backend::{Access, Backend, Counts, Operation, waited};
use crate::time::whole_micros;
use rows::{Data, MemoryRows};

/// A clock: nanoseconds since the epoch.
pub type Clock = Arc<dyn Fn() -> i128 + Send + Sync>;

/// A state store that lives as long as its process. Clones share what is stored,
/// so two runners can be given the same store.
///
/// ```
/// use tidelake_state::StateStore;
/// use tidelake_state::memory::MemoryStore;
///
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let copy = store.snapshot();
/// store.truncate().await?;
/// store.restore(&copy);
/// # Ok::<(), tidelake_model::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
    clock: Clock,
    counts: Arc<Counts>,
}

/// All that a [`MemoryStore`] held at one moment.
#[derive(Clone)]
pub struct Snapshot(Data);

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with the system's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(system_clock))
    }

    /// An empty store with a clock of the caller's: nanoseconds since the epoch.
    pub fn with_clock(clock: Clock) -> Self {
        Self { data: Arc::new(Mutex::new(Data::new(false))), clock, counts: Arc::default() }
    }

    /// Takes ids from a counter from now on, so that a simulation with the same
    /// schedule stores the same.
    #[must_use]
    pub fn with_counted_ids(self) -> Self {
        *self.lock() = Data::new(true);
        self
    }

    /// A copy of all that is stored.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.lock().clone())
    }

    /// Puts an earlier copy back, as somebody does who restores a backup.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.lock().clone_from(&snapshot.0);
    }

    fn lock(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system_clock() -> i128 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since_epoch.as_nanos()).unwrap_or(i128::MAX)
}

#[async_trait]
impl Backend for MemoryStore {
    fn location(&self) -> String {
        "memory".to_owned()
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    async fn transact<A, T>(
        &self,
        access: Access,
        arguments: A,
        operation: Operation<A, T>,
    ) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.counts.begun(access);
        let now = whole_micros((self.clock)());
        let mut data = self.lock();
        let mut rows = MemoryRows::new(&mut data, now);
        let result =
            operation(&mut rows, &arguments).now_or_never().unwrap_or_else(|| Err(waited()));
        if result.is_err() {
            rows.undo();
        }
        result
    }
}
