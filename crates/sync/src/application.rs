//! Everything that the application is given, as values.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tidelake_lake::Storage;
use tidelake_model::{CredentialInfo, Holder, Result, RunId, TargetLocation};
use tidelake_state::StateStore;

use crate::faults::Faults;
use crate::registry::Registry;
use crate::retry::Patience;

/// What a credential says.
#[derive(Clone)]
pub struct Credential {
    /// The connector's or storage's name (`ds_type`).
    pub kind: String,
    /// Its fields, with variables filled in.
    pub info: CredentialInfo,
}

/// Where credentials come from: a file, or an encrypted store.
pub trait Credentials: Send + Sync {
    /// The credential of that id; `NotFound` naming those that exist.
    fn credential(&self, id: &str) -> Result<Credential>;
}

/// Opens the storage that a sync names.
#[async_trait]
pub trait Storages: Send + Sync {
    /// Opens it without touching it.
    async fn open(&self, location: &TargetLocation) -> Result<Arc<dyn Storage>>;
}

/// What the process knows of itself and its machine.
pub trait Host: Send + Sync {
    /// A new run id, later than all before it.
    fn new_run_id(&self) -> RunId;

    /// This process.
    fn holder(&self) -> Holder;

    /// Whether a holder is known to be gone: it ran on this machine since this
    /// boot, and its process is no more. `false` where that cannot be known.
    fn is_gone(&self, holder: &Holder) -> bool;
}

/// How long leases last.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTimes {
    /// How long a lease lasts without being renewed.
    pub ttl: Duration,
    /// How often it is renewed.
    pub renew_every: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(15), renew_every: Duration::from_secs(5) }
    }
}

/// The application with all its parts.
#[derive(Clone)]
pub struct Application {
    /// What is remembered.
    pub state: Arc<dyn StateStore>,
    /// The systems that can be reached.
    pub connectors: Registry,
    /// Where credentials come from.
    pub credentials: Arc<dyn Credentials>,
    /// Opens the lake's storage.
    pub storages: Arc<dyn Storages>,
    /// The process and its machine.
    pub host: Arc<dyn Host>,
    /// Stops runs on purpose, in tests.
    pub faults: Arc<dyn Faults>,
    /// How long leases last.
    pub leases: LeaseTimes,
    /// What a run does when a connection is lost.
    pub patience: Patience,
    /// When the program began, from which a run's time line counts.
    pub began: Instant,
}
