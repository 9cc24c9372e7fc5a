//! From a store that can run transactions to a [`StateStore`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tidelake_model::{
    Actor, Change, Error, ErrorKind, Head, HeldLease, HistoryRow, Result, RunId, RunRecord,
    RunStatus, SyncConfig, TableKey, TableRun, WatermarkFilter, WatermarkRecord,
};
use tidelake_watermark::Progress;

use crate::logic::{begin, house, leases, progress, syncs, table_runs, watermarks};
use crate::rows::Rows;
use crate::store::{
    Advance, Advanced, BeginRun, Begun, KnownTable, Lease, LockFilter, PruneFilter, RunFilter,
    StateStore, TableState, TableUpdate, Usage, WatermarkSettings,
};

/// What is done in one transaction. It may be done again from the start when the
/// store could not keep two transactions apart, so it owns nothing.
pub(crate) type Operation<A, T> = for<'a> fn(&'a mut dyn Rows, &'a A) -> BoxFuture<'a, Result<T>>;

/// Whether a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It only reads, and stands in nobody's way.
    Read,
    /// It writes.
    Write,
}

/// Counts what a store is asked.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    transactions: AtomicU64,
    reads: AtomicU64,
    round_trips: AtomicU64,
}

impl Counts {
    /// A transaction begins.
    pub(crate) fn begun(&self, access: Access) {
        let count = if access == Access::Write { &self.transactions } else { &self.reads };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer of a server is waited for.
    pub(crate) fn asked(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    fn usage(&self) -> Usage {
        Usage {
            transactions: self.transactions.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            round_trips: self.round_trips.load(Ordering::Relaxed),
        }
    }
}

/// A store that runs transactions.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Where it is, without secrets.
    fn location(&self) -> String;

    /// What it was asked so far.
    fn counts(&self) -> &Counts;

    /// Runs the operation in one transaction: committed when it returns a
    /// value, undone when it returns an error.
    async fn transact<A, T>(
        &self,
        access: Access,
        arguments: A,
        operation: Operation<A, T>,
    ) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static;
}

#[async_trait]
impl<B: Backend> StateStore for B {
    async fn identity(&self) -> Result<String> {
        self.transact(Access::Read, (), |rows, ()| Box::pin(house::identity(rows))).await
    }

    fn location(&self) -> String {
        Backend::location(self)
    }

    fn usage(&self) -> Usage {
        self.counts().usage()
    }

    async fn now(&self) -> Result<i128> {
        self.transact(Access::Read, (), |rows, ()| rows.now()).await
    }

    async fn create_sync(&self, sync: &SyncConfig) -> Result<()> {
        self.transact(Access::Write, sync.clone(), |rows, sync| Box::pin(syncs::create(rows, sync)))
            .await
    }

    async fn sync(&self, env: &str, sync_id: &str) -> Result<SyncConfig> {
        let arguments = (env.to_owned(), sync_id.to_owned());
        self.transact(Access::Read, arguments, |rows, (env, id)| {
            Box::pin(syncs::get(rows, env, id))
        })
        .await
    }

    async fn syncs(&self, env: Option<&str>) -> Result<Vec<SyncConfig>> {
        self.transact(Access::Read, env.map(str::to_owned), |rows, env| rows.syncs(env.as_deref()))
            .await
    }

    async fn delete_sync(&self, env: &str, sync_id: &str) -> Result<()> {
        let arguments = (env.to_owned(), sync_id.to_owned());
        self.transact(Access::Write, arguments, |rows, (env, id)| {
            Box::pin(syncs::delete(rows, env, id))
        })
        .await
    }

    async fn begin_run(&self, request: &BeginRun) -> Result<Begun> {
        self.transact(Access::Write, request.clone(), |rows, request| {
            Box::pin(begin::begin_run(rows, request))
        })
        .await
    }

    async fn renew(&self, leases: &[Lease], ttl: Duration) -> Result<()> {
        let arguments = (leases.to_vec(), ttl);
        // What is lost is told after the commit: the other leases go on.
        let lost = self
            .transact(Access::Write, arguments, |rows, (leases, ttl)| {
                Box::pin(leases::renew(rows, leases, *ttl))
            })
            .await?;
        lost.map_or(Ok(()), |(lease, row)| Err(leases::lost(&lease, &row)))
    }

    async fn break_lease(&self, key: &TableKey, token: u64) -> Result<bool> {
        let arguments = (key.clone(), token);
        self.transact(Access::Write, arguments, |rows, (key, token)| {
            Box::pin(leases::break_lease(rows, key, *token))
        })
        .await
    }

    async fn update_table(&self, lease: &Lease, update: &TableUpdate) -> Result<()> {
        let arguments = (lease.clone(), update.clone());
        self.transact(Access::Write, arguments, |rows, (lease, update)| {
            Box::pin(table_runs::update(rows, lease, update))
        })
        .await
    }

    async fn advance(&self, lease: &Lease, advance: &Advance) -> Result<Advanced> {
        let arguments = (lease.clone(), advance.clone());
        self.transact(Access::Write, arguments, |rows, (lease, advance)| {
            Box::pin(progress::advance(rows, lease, advance))
        })
        .await
    }

    async fn finish_run(
        &self,
        run_id: RunId,
        status: RunStatus,
        error: Option<&str>,
    ) -> Result<()> {
        let arguments = (run_id, status, error.map(str::to_owned));
        self.transact(Access::Write, arguments, |rows, (run_id, status, error)| {
            Box::pin(begin::finish_run(rows, *run_id, *status, error.as_deref()))
        })
        .await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        self.transact(Access::Read, filter.clone(), |rows, filter| rows.runs(filter)).await
    }

    async fn table_runs(&self, run_id: RunId) -> Result<Vec<TableRun>> {
        self.transact(Access::Read, run_id, |rows, run_id| rows.table_runs(*run_id)).await
    }

    async fn runs_of_table(&self, key: &TableKey, limit: u32) -> Result<Vec<TableRun>> {
        self.transact(Access::Read, (key.clone(), limit), |rows, (key, limit)| {
            rows.runs_of_table(key, *limit)
        })
        .await
    }

    async fn watermarks(&self, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>> {
        self.transact(Access::Read, filter.clone(), |rows, filter| rows.watermarks(filter)).await
    }

    async fn create_watermark(
        &self,
        key: &TableKey,
        settings: &WatermarkSettings,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<WatermarkRecord> {
        let arguments = (key.clone(), settings.clone(), by(actor, reason));
        self.transact(Access::Write, arguments, |rows, (key, settings, by)| {
            Box::pin(watermarks::create(rows, key, settings, by))
        })
        .await
    }

    async fn claim_watermark(
        &self,
        lease: &Lease,
        settings: &WatermarkSettings,
    ) -> Result<Option<WatermarkRecord>> {
        let arguments = (lease.clone(), settings.clone());
        self.transact(Access::Write, arguments, |rows, (lease, settings)| {
            Box::pin(progress::claim(rows, lease, settings))
        })
        .await
    }

    async fn change_watermark(
        &self,
        id: &str,
        change: &Change,
        expected: Option<u64>,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<WatermarkRecord> {
        let arguments = (id.to_owned(), change.clone(), expected, by(actor, reason));
        self.transact(Access::Write, arguments, |rows, (id, change, expected, by)| {
            Box::pin(watermarks::change(rows, id, change, *expected, by))
        })
        .await
    }

    async fn delete_watermark(&self, id: &str) -> Result<()> {
        self.transact(Access::Write, id.to_owned(), |rows, id| {
            Box::pin(watermarks::delete(rows, id))
        })
        .await
    }

    async fn history(&self, id: &str) -> Result<Vec<HistoryRow>> {
        self.transact(Access::Read, id.to_owned(), |rows, id| {
            Box::pin(watermarks::history(rows, id))
        })
        .await
    }

    async fn adopt(
        &self,
        lease: &Lease,
        head: Option<&Head>,
        progress: Option<(&WatermarkSettings, &Progress)>,
        actor: &Actor,
    ) -> Result<TableState> {
        let progress = progress.map(|(settings, progress)| (settings.clone(), progress.clone()));
        let arguments = (lease.clone(), head.cloned(), progress, by(actor, None));
        self.transact(Access::Write, arguments, |rows, (lease, head, progress, by)| {
            Box::pin(progress::adopt(rows, lease, head.as_ref(), progress.as_ref(), by))
        })
        .await
    }

    async fn tables(&self, env: &str, scope: &str) -> Result<Vec<KnownTable>> {
        let arguments = (env.to_owned(), scope.to_owned());
        self.transact(Access::Read, arguments, |rows, (env, scope)| {
            Box::pin(house::tables(rows, env, scope))
        })
        .await
    }

    async fn prune(&self, filter: &PruneFilter) -> Result<Vec<RunRecord>> {
        let access = if filter.dry_run { Access::Read } else { Access::Write };
        self.transact(access, filter.clone(), |rows, filter| Box::pin(house::prune(rows, filter)))
            .await
    }

    async fn locks(&self, filter: &LockFilter) -> Result<Vec<HeldLease>> {
        self.transact(Access::Read, filter.clone(), |rows, filter| {
            Box::pin(leases::locks(rows, filter))
        })
        .await
    }

    async fn release_locks(&self, filter: &LockFilter) -> Result<Vec<HeldLease>> {
        self.transact(Access::Write, filter.clone(), |rows, filter| {
            Box::pin(leases::release(rows, filter))
        })
        .await
    }

    async fn truncate(&self) -> Result<()> {
        self.transact(Access::Write, (), |rows, ()| Box::pin(house::truncate(rows))).await
    }

    async fn destroy(&self) -> Result<()> {
        self.transact(Access::Write, (), |rows, ()| rows.destroy()).await
    }
}

fn by(actor: &Actor, reason: Option<&str>) -> watermarks::By {
    watermarks::By { actor: actor.clone(), reason: reason.map(str::to_owned) }
}

/// An operation that waits although its store never does.
pub(crate) fn waited() -> Error {
    Error::new(ErrorKind::Internal, "a state store operation waited where none can")
}
