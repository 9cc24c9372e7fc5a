//! Crashes, errors, lost answers and pauses.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tidelake_connector::memory::MemoryPublisher;
use tidelake_connector::{LedgerEntry, Load, Publisher, TargetTable};
use tidelake_lake::{FoundUpload, MemoryStorage, PartPlace, Storage, Version};
use tidelake_model::{
    Actor, Again, Change, Error, ErrorKind, Head, HeldLease, HistoryRow, PublishMethod, Result,
    RunId, RunRecord, RunStatus, StagedObject, Strategy, SyncConfig, TableKey, TableRun,
    UploadPart, UploadRef, WatermarkFilter, WatermarkRecord,
};
use tidelake_state::{
    Advance, Advanced, BeginRun, Begun, KnownTable, Lease, LockFilter, PruneFilter, RunFilter,
    StateStore, TableState, TableUpdate, Usage, WatermarkSettings,
};
use tidelake_watermark::Progress;

use crate::world::World;

/// What may happen to one runner, and what did.
pub(crate) struct Control {
    world: Arc<World>,
    /// One point in so many goes wrong; 0 is never.
    trouble: u32,
    /// Troubles that are left: a runner that always fails proves nothing.
    left: AtomicU32,
    /// One word with the source in so many loses the connection; 0 is never.
    pub(crate) losses: u32,
    pub(crate) crashed: AtomicBool,
    pub(crate) paused: AtomicBool,
}

impl Control {
    pub(crate) fn new(world: &Arc<World>, trouble: u32) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            trouble,
            left: AtomicU32::new(1 + world.below(2)),
            losses: if trouble == 0 { 0 } else { [0, 4, 12, 30][world.pick(4)] },
            crashed: AtomicBool::new(false),
            paused: AtomicBool::new(false),
        })
    }

    /// Tells what became of a run.
    pub(crate) fn tell(&self, result: &Result<tidelake_sync::RunReport>) {
        self.world.tell(|| match result {
            Err(error) => format!("run ended: {error:?}"),
            Ok(report) => {
                let tables = report.tables.iter().map(|table| {
                    let error = table.error.as_ref().map(|error| error.message.as_str());
                    format!("{} {:?} {} rows {error:?}", table.table, table.window, table.rows)
                });
                format!("run ended: {:?} {:?}", report.status, tables.collect::<Vec<_>>())
            }
        });
    }

    /// A moment at which anything may happen.
    pub(crate) async fn point(&self) -> Result<()> {
        self.world.live_between();
        if self.world.chance(4) {
            tokio::task::yield_now().await;
        }
        while self.paused.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let is_trouble = self.trouble > 0
            && self.left.load(Ordering::Relaxed) > 0
            && self.world.chance(self.trouble);
        if !is_trouble {
            return Ok(());
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        match self.world.below(5) {
            0 | 1 => {
                self.crashed.store(true, Ordering::Relaxed);
                std::future::pending().await
            }
            2 => {
                self.paused.store(true, Ordering::Relaxed);
                while self.paused.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::Unavailable, "simulated trouble")),
        }
    }

    /// Whether the connection to the source holds. A loss may take the snapshot
    /// along.
    pub(crate) fn connection(&self) -> Result<()> {
        if self.losses == 0 || !self.world.chance(self.losses) {
            return Ok(());
        }
        let again = if self.world.chance(2) { Again::Same } else { Again::Afresh };
        self.world.tell(|| format!("the connection is lost, {again:?}"));
        Err(Error::new(ErrorKind::Unavailable, "simulated loss").with_again(again))
    }

    /// Does something with a moment before it and one after it: an error in the
    /// second is an answer that was lost.
    async fn around<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.point().await?;
        let done = work.await?;
        self.point().await?;
        Ok(done)
    }
}

pub(crate) struct FlakyPublisher {
    pub(crate) inner: MemoryPublisher,
    pub(crate) control: Arc<Control>,
}

#[async_trait]
impl Publisher for FlakyPublisher {
    fn supports(&self, method: PublishMethod, strategy: Strategy) -> bool {
        self.inner.supports(method, strategy)
    }

    async fn load(&self, load: &Load<'_>) -> Result<u64> {
        self.control.around(self.inner.load(load)).await
    }

    async fn ledger(&self, target: &TargetTable, run_id: RunId) -> Result<Option<LedgerEntry>> {
        self.inner.ledger(target, run_id).await
    }
}

pub(crate) struct FlakyStorage {
    pub(crate) inner: Arc<MemoryStorage>,
    pub(crate) control: Arc<Control>,
}

#[async_trait]
impl Storage for FlakyStorage {
    fn location(&self) -> String {
        self.inner.location()
    }

    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        self.inner.get(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>> {
        self.inner.head(key).await
    }

    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        self.inner.range(key, range).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.inner.list(folder).await
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.control.around(self.inner.put_new(key, bytes)).await
    }

    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        self.control.around(self.inner.put_if(key, bytes, version)).await
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.control.around(self.inner.put(key, bytes)).await
    }

    async fn begin(&self, key: &str) -> Result<UploadRef> {
        self.control.around(self.inner.begin(key)).await
    }

    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        self.control.around(self.inner.put_part(upload, place, bytes)).await
    }

    async fn persist(&self, upload: &UploadRef) -> Result<()> {
        self.inner.persist(upload).await
    }

    async fn complete(&self, object: &StagedObject) -> Result<()> {
        self.control.around(self.inner.complete(object)).await
    }

    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        self.control.around(self.inner.abort(upload)).await
    }

    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>> {
        self.inner.uploads(folder).await
    }

    async fn abort_attempts(&self, folder: &str, run: RunId, below: u64) -> Result<u64> {
        self.inner.abort_attempts(folder, run, below).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.control.around(self.inner.delete(key)).await
    }
}

pub(crate) struct FlakyStore {
    pub(crate) inner: Arc<dyn StateStore>,
    pub(crate) control: Arc<Control>,
}

#[async_trait]
impl StateStore for FlakyStore {
    async fn identity(&self) -> Result<String> {
        self.inner.identity().await
    }

    fn location(&self) -> String {
        self.inner.location()
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    async fn now(&self) -> Result<i128> {
        self.inner.now().await
    }

    async fn create_sync(&self, sync: &SyncConfig) -> Result<()> {
        self.inner.create_sync(sync).await
    }

    async fn sync(&self, env: &str, sync_id: &str) -> Result<SyncConfig> {
        self.inner.sync(env, sync_id).await
    }

    async fn syncs(&self, env: Option<&str>) -> Result<Vec<SyncConfig>> {
        self.inner.syncs(env).await
    }

    async fn delete_sync(&self, env: &str, sync_id: &str) -> Result<()> {
        self.inner.delete_sync(env, sync_id).await
    }

    async fn begin_run(&self, request: &BeginRun) -> Result<Begun> {
        self.control.around(self.inner.begin_run(request)).await
    }

    async fn renew(&self, leases: &[Lease], ttl: Duration) -> Result<()> {
        self.inner.renew(leases, ttl).await
    }

    async fn break_lease(&self, key: &TableKey, token: u64) -> Result<bool> {
        self.inner.break_lease(key, token).await
    }

    async fn update_table(&self, lease: &Lease, update: &TableUpdate) -> Result<()> {
        self.control.around(self.inner.update_table(lease, update)).await
    }

    async fn advance(&self, lease: &Lease, advance: &Advance) -> Result<Advanced> {
        self.control.around(self.inner.advance(lease, advance)).await
    }

    async fn finish_run(
        &self,
        run_id: RunId,
        status: RunStatus,
        error: Option<&str>,
    ) -> Result<()> {
        self.control.around(self.inner.finish_run(run_id, status, error)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        self.inner.runs(filter).await
    }

    async fn table_runs(&self, run_id: RunId) -> Result<Vec<TableRun>> {
        self.inner.table_runs(run_id).await
    }

    async fn runs_of_table(&self, key: &TableKey, limit: u32) -> Result<Vec<TableRun>> {
        self.inner.runs_of_table(key, limit).await
    }

    async fn watermarks(&self, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>> {
        self.inner.watermarks(filter).await
    }

    async fn create_watermark(
        &self,
        key: &TableKey,
        settings: &WatermarkSettings,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<WatermarkRecord> {
        self.inner.create_watermark(key, settings, actor, reason).await
    }

    async fn claim_watermark(
        &self,
        lease: &Lease,
        settings: &WatermarkSettings,
    ) -> Result<Option<WatermarkRecord>> {
        self.inner.claim_watermark(lease, settings).await
    }

    async fn change_watermark(
        &self,
        id: &str,
        change: &Change,
        expected: Option<u64>,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<WatermarkRecord> {
        self.inner.change_watermark(id, change, expected, actor, reason).await
    }

    async fn delete_watermark(&self, id: &str) -> Result<()> {
        self.inner.delete_watermark(id).await
    }

    async fn history(&self, id: &str) -> Result<Vec<HistoryRow>> {
        self.inner.history(id).await
    }

    async fn adopt(
        &self,
        lease: &Lease,
        head: Option<&Head>,
        progress: Option<(&WatermarkSettings, &Progress)>,
        actor: &Actor,
    ) -> Result<TableState> {
        self.inner.adopt(lease, head, progress, actor).await
    }

    async fn tables(&self, env: &str, scope: &str) -> Result<Vec<KnownTable>> {
        self.inner.tables(env, scope).await
    }

    async fn prune(&self, filter: &PruneFilter) -> Result<Vec<RunRecord>> {
        self.control.around(self.inner.prune(filter)).await
    }

    async fn locks(&self, filter: &LockFilter) -> Result<Vec<HeldLease>> {
        self.inner.locks(filter).await
    }

    async fn release_locks(&self, filter: &LockFilter) -> Result<Vec<HeldLease>> {
        self.inner.release_locks(filter).await
    }

    async fn truncate(&self) -> Result<()> {
        self.inner.truncate().await
    }

    async fn destroy(&self) -> Result<()> {
        self.inner.destroy().await
    }
}
