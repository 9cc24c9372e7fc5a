//! What a run is given: the world's own parts, wrapped so that things happen.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use tidelake_connector::memory::MemorySource;
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, Connector, DiagnosedTable, FindRequest, Finding,
    Highest, HighestRequest, Publisher, Reading, Slices, Source, SplitRequest, TableFilter,
};
use tidelake_lake::Storage;
use tidelake_model::{
    CredentialInfo, Holder, Result, RunId, Slice, Step, Table, TableName, TargetLocation,
};
use tidelake_sync::{
    Application, Credential, Credentials, Faults, Host, LeaseTimes, Patience, Registry, Storages,
};

use crate::flaky::{Control, FlakyPublisher, FlakyStorage, FlakyStore};
use crate::world::World;

/// An application over the world's parts, for one runner.
pub(crate) fn application(world: &Arc<World>, control: &Arc<Control>) -> Application {
    let connector = WorldConnector { world: Arc::clone(world), control: Arc::clone(control) };
    let storage: Arc<dyn Storage> =
        Arc::new(FlakyStorage { inner: world.storage.clone(), control: Arc::clone(control) });
    Application {
        state: Arc::new(FlakyStore {
            inner: Arc::new(world.store.clone()),
            control: Arc::clone(control),
        }),
        connectors: Registry::new(vec![Arc::new(connector)], vec![]),
        credentials: Arc::new(NoSecrets),
        storages: Arc::new(OneStorage(storage)),
        host: Arc::new(WorldHost(Arc::clone(world))),
        faults: Arc::new(WorldFaults(Arc::clone(control))),
        leases: LeaseTimes::default(),
        began: std::time::Instant::now(),
        patience: Patience {
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(4),
            tries_in_a_row: 6,
            ..Patience::default()
        },
    }
}

struct NoSecrets;

impl Credentials for NoSecrets {
    fn credential(&self, _: &str) -> Result<Credential> {
        let info = CredentialInfo::new(serde_json::json!({}));
        Ok(Credential { kind: "memory".into(), info })
    }
}

struct OneStorage(Arc<dyn Storage>);

#[async_trait]
impl Storages for OneStorage {
    async fn open(&self, _: &TargetLocation) -> Result<Arc<dyn Storage>> {
        Ok(Arc::clone(&self.0))
    }
}

struct WorldHost(Arc<World>);

impl Host for WorldHost {
    fn new_run_id(&self) -> RunId {
        let number = self.0.next_run.fetch_add(1, Ordering::Relaxed);
        RunId::from_number(u128::try_from(number).unwrap())
    }

    fn holder(&self) -> Holder {
        Holder {
            host: "simulated".into(),
            boot_id: "boot".into(),
            process_id: 1,
            process_started: 1,
        }
    }

    fn is_gone(&self, _: &Holder) -> bool {
        false
    }
}

struct WorldFaults(Arc<Control>);

#[async_trait]
impl Faults for WorldFaults {
    async fn after(&self, _: Step, _: Option<&TableName>) -> Result<()> {
        self.0.point().await
    }
}

struct WorldConnector {
    world: Arc<World>,
    control: Arc<Control>,
}

#[async_trait]
impl Connector for WorldConnector {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn config_schema(&self) -> serde_json::Value {
        serde_json::json!({})
    }

    async fn source(&self, _: &CredentialInfo) -> Result<Arc<dyn Source>> {
        let inner = MemorySource::new(self.world.database.clone());
        Ok(Arc::new(LiveSource { inner, control: Arc::clone(&self.control) }))
    }

    async fn publisher(&self, _: &CredentialInfo) -> Result<Option<Arc<dyn Publisher>>> {
        Ok(Some(Arc::new(FlakyPublisher {
            inner: self.world.publisher.clone(),
            control: Arc::clone(&self.control),
        })))
    }
}

/// The world's database, in which things go on between any two calls.
struct LiveSource {
    inner: MemorySource,
    control: Arc<Control>,
}

#[async_trait]
impl Source for LiveSource {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>> {
        self.inner.tables(filter).await
    }

    async fn clock(&self, request: &ClockRequest) -> Result<ClockReading> {
        self.control.point().await?;
        self.control.connection()?;
        self.inner.clock(request).await
    }

    async fn highest(&self, request: &HighestRequest) -> Result<Highest> {
        self.control.point().await?;
        self.control.connection()?;
        self.inner.highest(request).await
    }

    /// More slices than readers, of which some wait for others to end.
    async fn split(&self, request: &SplitRequest) -> Result<Slices> {
        self.control.point().await?;
        self.control.connection()?;
        let degree = if request.degree > 1 { 2 * request.degree } else { 1 };
        self.inner.split(&SplitRequest { degree, ..request.clone() }).await
    }

    /// A row or two to a batch, so that a read can be cut in the middle.
    async fn read(&self, slice: &Slice) -> Result<Reading> {
        self.control.point().await?;
        self.control.connection()?;
        let mut slice = slice.clone();
        slice.read.batch_bytes = 32;
        let reading = self.inner.read(&slice).await?;
        let control = Arc::clone(&self.control);
        let batches = reading.batches.map(move |batch| {
            control.connection()?;
            batch
        });
        Ok(Reading { batches: batches.boxed(), ..reading })
    }

    async fn find(&self, request: &FindRequest) -> Result<Reading> {
        self.inner.find(request).await
    }

    async fn diagnose(&self, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
        self.inner.diagnose(tables).await
    }

    fn statement(&self, slice: &Slice) -> String {
        self.inner.statement(slice)
    }

    fn round_trips(&self) -> u64 {
        self.inner.round_trips()
    }
}
