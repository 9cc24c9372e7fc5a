//! `cleanup`: what runs left behind goes: data files that no manifest names,
//! uploads that nobody will complete, documents of generations that are gone, and
//! old records of runs. Only what our own records or our own form of keys name is
//! touched, never a prefix; and only under the table's lease, since a run that is
//! being committed has files that no manifest names yet.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use serde::Serialize;
use tidelake_lake::{Garbage, Lake, TableLake};
use tidelake_model::{
    Error, ErrorKind, MANIFEST_FORMAT, Owner, Result, RunId, RunRecord, RunStatus, SyncConfig,
    TableKey, TableName, TableRun,
};
use tidelake_state::{KnownTable, Lease, LockFilter, PruneFilter, RunFilter, TableUpdate};
use tokio_util::sync::CancellationToken;

use crate::application::Application;
use crate::run::{ErrorReport, begin_tables};

/// What a user asks of a cleanup.
#[derive(Clone)]
pub struct CleanupRequest {
    /// Environment.
    pub env: String,
    /// The sync; all of the environment without one.
    pub sync_id: Option<String>,
    /// Only what is at least so old goes.
    pub older_than: Duration,
    /// Records of runs that ended so; however they ended when empty.
    pub statuses: Vec<RunStatus>,
    /// Whether everything is only named, and stays.
    pub dry_run: bool,
    /// Cancelled when the user interrupts.
    pub cancel: CancellationToken,
}

/// What went, or would go.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cleanup {
    /// Whether it was only named.
    pub dry_run: bool,
    /// What was found in the lake, by table; tables with nothing are left out.
    pub tables: Vec<CleanedTable>,
    /// Records of runs, oldest first.
    pub runs: Vec<RunRecord>,
}

/// What went of one table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CleanedTable {
    /// The sync.
    pub sync_id: String,
    /// The table.
    pub table: TableName,
    /// Its folder.
    pub location: String,
    /// Data files.
    pub files: Vec<String>,
    /// Manifests and checkpoints.
    pub documents: Vec<String>,
    /// Keys of uploads.
    pub uploads: Vec<String>,
    /// Why the table was passed over.
    pub skipped: Option<String>,
    /// What went wrong.
    pub error: Option<ErrorReport>,
}

/// Cleans up the lakes of one sync or of all, and then the records of runs, which
/// say whose files those are. Records stay where a lake could not be cleaned.
pub async fn cleanup(app: &Application, request: &CleanupRequest) -> Result<Cleanup> {
    let syncs = match &request.sync_id {
        Some(sync_id) => vec![app.state.sync(&request.env, sync_id).await?],
        None => app.state.syncs(Some(&request.env)).await?,
    };
    let mut done = Cleanup { dry_run: request.dry_run, tables: vec![], runs: vec![] };
    let mut cleaned = vec![];
    for sync in &syncs {
        let tables = clean_sync(app, request, sync).await?;
        let is_clean = |table: &CleanedTable| table.error.is_none() && table.skipped.is_none();
        if tables.iter().all(is_clean) {
            cleaned.push(sync.sync_id.clone());
        }
        let is_empty = |table: &CleanedTable| {
            let CleanedTable { files, documents, uploads, .. } = table;
            is_clean(table) && files.is_empty() && documents.is_empty() && uploads.is_empty()
        };
        done.tables.extend(tables.into_iter().filter(|table| !is_empty(table)));
    }
    // Without a sync's name, the records of syncs that were deleted go as well.
    let everything = request.sync_id.is_none() && cleaned.len() == syncs.len();
    let scopes = if everything { vec![None] } else { cleaned.into_iter().map(Some).collect() };
    for scope in scopes {
        let filter = PruneFilter {
            env: Some(request.env.clone()),
            scope,
            statuses: request.statuses.clone(),
            older_than: request.older_than,
            dry_run: request.dry_run,
        };
        done.runs.extend(app.state.prune(&filter).await?);
    }
    Ok(done)
}

/// What is known of the runs of a sync.
struct Known {
    /// Runs on record.
    runs: BTreeSet<RunId>,
    /// Runs that hold a lease.
    at_work: BTreeSet<RunId>,
    /// Only runs that began before go, in milliseconds since the epoch.
    before: u64,
}

impl Known {
    /// Whether what a run left may go. The folder's own manifest tells of a run
    /// whose record is gone.
    fn may_go(&self, run: RunId, has_manifest: bool) -> bool {
        run.millis() <= self.before
            && (has_manifest || self.runs.contains(&run))
            && !self.at_work.contains(&run)
    }
}

async fn clean_sync(
    app: &Application,
    request: &CleanupRequest,
    sync: &SyncConfig,
) -> Result<Vec<CleanedTable>> {
    let lake = Lake::new(app.storages.open(&sync.target.location).await?);
    let mut tables = vec![];
    let mut run_id = None;
    for KnownTable { key, .. } in app.state.tables(&sync.env, &sync.sync_id).await? {
        let Some(name) = key.table.clone() else { continue };
        if request.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Interrupted, "the cleanup was interrupted"));
        }
        let folder = lake.table(sync.target.sub_path.as_deref(), &name);
        let mut table = CleanedTable {
            sync_id: sync.sync_id.clone(),
            table: name.clone(),
            location: folder.location(),
            files: vec![],
            documents: vec![],
            uploads: vec![],
            skipped: None,
            error: None,
        };
        let work = Work { app, request, sync, key, folder };
        let cleaned = match request.dry_run {
            true => work.look(&mut table).await.map(drop),
            false => {
                let run_id = *run_id.get_or_insert_with(|| app.host.new_run_id());
                work.clean(run_id, &mut table).await
            }
        };
        match cleaned {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Locked => {
                table.skipped = Some(error.chain());
            }
            Err(error) => table.error = Some((&error.in_table(&name)).into()),
        }
        tables.push(table);
    }
    Ok(tables)
}

/// The cleaning of one table.
struct Work<'a> {
    app: &'a Application,
    request: &'a CleanupRequest,
    sync: &'a SyncConfig,
    key: TableKey,
    folder: TableLake,
}

/// What was found.
struct Found {
    garbage: Garbage,
    /// Records of failed runs that still name uploads.
    records: Vec<TableRun>,
}

impl Work<'_> {
    /// Cleans the table, under its lease.
    async fn clean(&self, run_id: RunId, table: &mut CleanedTable) -> Result<()> {
        let Self { app, sync, key, .. } = self;
        let begun = begin_tables(app, sync, run_id, vec![key.clone()]).await?;
        let leases: Vec<_> = begun.tables.iter().map(|state| state.lease.clone()).collect();
        let work = async {
            let Some(found) = self.look(table).await? else { return Ok(()) };
            self.folder.delete(&found.garbage).await?;
            self.forget_uploads(leases.first(), found.records).await
        };
        let done = tokio::select! {
            biased;
            done = work => done,
            never = renew(app, &leases) => match never {},
        };
        let (status, error) = match &done {
            Ok(()) => (RunStatus::Completed, None),
            Err(error) => (RunStatus::Failed, Some(error.chain())),
        };
        let finished = app.state.finish_run(run_id, status, error.as_deref()).await;
        done.and(finished)
    }

    /// Looks for what may go, and names it; `None` where the table is passed over.
    async fn look(&self, table: &mut CleanedTable) -> Result<Option<Found>> {
        let Self { app, sync, key, folder, request } = self;
        let runs = app.state.runs_of_table(key, 0).await?;
        if let Some(left) = runs.iter().find(|run| run.status.is_unfinished()) {
            let message = format!("run {} has to be finished first, by tidelake sync", left.run_id);
            table.skipped = Some(message);
            return Ok(None);
        }
        let records = self.old_records(&runs);
        let latest = folder.latest().await?;
        self.check_head(latest.as_ref().map(|latest| latest.head)).await?;
        let mut garbage = Garbage::default();
        if self.is_ours(table).await? {
            let known = self.known().await?;
            let may_go = |run: RunId, has_manifest: bool| known.may_go(run, has_manifest);
            let kept = sync.keep_generations;
            garbage = folder.garbage(latest.as_ref(), kept, &may_go).await?;
        }
        // Those that the storage cannot list are on record.
        for upload in records.iter().flat_map(|record| &record.uploads) {
            if !garbage.uploads.contains(upload) {
                garbage.uploads.push(upload.clone());
            }
        }
        table.files.clone_from(&garbage.files);
        table.documents.clone_from(&garbage.documents);
        table.uploads = garbage.uploads.iter().map(|upload| upload.key.clone()).collect();
        tracing::debug!(
            table = %table.table,
            files = garbage.files.len(),
            uploads = garbage.uploads.len(),
            dry_run = request.dry_run,
            "looked for what counts no more"
        );
        Ok(Some(Found { garbage, records }))
    }

    /// State and lake must agree on what counts.
    async fn check_head(&self, in_lake: Option<RunId>) -> Result<()> {
        let Self { app, sync, key, folder, .. } = self;
        let tables = app.state.tables(&sync.env, &sync.sync_id).await?;
        let known = tables.into_iter().find(|table| table.key == *key);
        let remembered = known.and_then(|table| table.head).map(|head| head.run_id);
        if remembered == in_lake {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Mismatch,
            format!("{} and the state store disagree on the newest run", folder.location()),
        )
        .with_hint(
            "decide first: sync --on-mismatch adopt goes on from what the lake says, sync \
             --on-mismatch rebuild reads the table anew",
        ))
    }

    async fn is_ours(&self, table: &CleanedTable) -> Result<bool> {
        let ours = Owner {
            format_version: MANIFEST_FORMAT,
            state_store: self.app.state.identity().await?,
            env: self.sync.env.clone(),
            scope: self.sync.sync_id.clone(),
            table: table.table.clone(),
        };
        let owner = self.folder.owner().await?;
        Ok(owner.is_some_and(|owner| Owner { format_version: MANIFEST_FORMAT, ..owner } == ours))
    }

    async fn known(&self) -> Result<Known> {
        let Self { app, sync, request, .. } = self;
        let (env, scope) = (Some(sync.env.clone()), Some(sync.sync_id.clone()));
        let filter = RunFilter { env: env.clone(), scope: scope.clone(), ..RunFilter::default() };
        let runs = app.state.runs(&filter).await?;
        let locks = app.state.locks(&LockFilter { env, scope, ..LockFilter::default() }).await?;
        Ok(Known {
            runs: runs.into_iter().map(|run| run.run_id).collect(),
            at_work: locks.into_iter().map(|lock| lock.run_id).collect(),
            before: before(request.older_than),
        })
    }

    /// Records of runs that failed long enough ago and still name uploads.
    fn old_records(&self, runs: &[TableRun]) -> Vec<TableRun> {
        let before = before(self.request.older_than);
        let is_old = |run: &&TableRun| !run.uploads.is_empty() && run.run_id.millis() <= before;
        runs.iter().filter(is_old).cloned().collect()
    }

    /// The records name no upload any more that was given up.
    async fn forget_uploads(&self, lease: Option<&Lease>, records: Vec<TableRun>) -> Result<()> {
        let Some(lease) = lease else { return Ok(()) };
        for mut record in records {
            record.uploads.clear();
            let update = TableUpdate { record, release: false };
            self.app.state.update_table(lease, &update).await?;
        }
        Ok(())
    }
}

/// The moment before which runs are old, by this machine's clock, as their ids are.
fn before(older_than: Duration) -> u64 {
    let now = u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or(0);
    now.saturating_sub(u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX))
}

async fn renew(app: &Application, leases: &[Lease]) -> Infallible {
    loop {
        tokio::time::sleep(app.leases.renew_every).await;
        if let Err(error) = app.state.renew(leases, app.leases.ttl).await {
            tracing::warn!(error = error.chain(), "the lease was not renewed");
        }
    }
}
