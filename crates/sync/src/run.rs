//! One execution of a sync: leases, tables side by side, the end.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures::StreamExt;
use serde::Serialize;
use tidelake_connector::{Publisher, Source};
use tidelake_lake::Lake;
use tidelake_model::{
    Error, ErrorAction, ErrorKind, Notice, Result, RunId, RunStatus, Step, SyncConfig, TableKey,
    TableName, TableRunStatus, WindowRecord,
};
use tidelake_state::{BeginRun, Begun, LockFilter, RunFilter, TableState};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::application::{Application, LeaseTimes};
use crate::columns::Shares;
use crate::context::RunContext;
use crate::counted::{CountedStorage, Objects};
use crate::events::{Event, Events};
use crate::metadata;
use crate::primary::connect_primary;
use crate::publish::check_places;
use crate::retry::{PatientSource, Retry};
use crate::table_run::{Task, run_table};
use crate::tables::{SelectedTable, table_key, tables_of};
use crate::timeline::Timeline;

/// Most readers of a run, whatever was asked for: each has a connection.
const MOST_READERS: u32 = 64;

/// Which halves of a run are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunMode {
    /// Export, commit, publish, advance.
    #[default]
    Whole,
    /// Stop after the commit where a publish target waits; the watermark waits
    /// with it.
    ExportOnly,
    /// Publish and advance what an earlier export committed.
    PublishOnly,
}

/// What is done when state and lake disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMismatch {
    /// Nothing: the user decides.
    #[default]
    Refuse,
    /// The lake is right: the state takes its head and its progress from there.
    Adopt,
    /// Neither is: the table is read from the start and replaces what is there.
    Rebuild,
}

/// What a user asks of a run.
#[derive(Clone)]
pub struct RunRequest {
    /// Environment.
    pub env: String,
    /// The sync.
    pub sync_id: String,
    /// Which halves.
    pub mode: RunMode,
    /// Only tables of this earlier run are taken up; it must be known.
    pub resume: Option<RunId>,
    /// What is done when state and lake disagree.
    pub on_mismatch: OnMismatch,
    /// Whether every watermark of the sync is reset before its table is read.
    pub reset_watermarks: bool,
    /// Cores of the machine, for the automatic number of readers.
    pub cores: u32,
    /// Cancelled when the user interrupts.
    pub cancel: CancellationToken,
    /// Takes progress.
    pub events: Arc<dyn Events>,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The sync.
    pub sync_id: String,
    /// How it ended.
    pub status: RunStatus,
    /// Each table, by name.
    pub tables: Vec<TableReport>,
    /// What the user should know of the run as a whole.
    pub notices: Vec<Notice>,
}

/// What became of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableReport {
    /// The table.
    pub table: TableName,
    /// How it ended; `None` where it was not started.
    pub status: Option<TableRunStatus>,
    /// `incremental` or `full`.
    pub mode: &'static str,
    /// The window in words.
    pub window: Option<String>,
    /// Rows exported.
    pub rows: u64,
    /// Bytes written to the lake.
    pub bytes: u64,
    /// Data objects written to the lake.
    pub files: u64,
    /// Whether the lake changed: a manifest was committed, with or without files.
    pub committed: bool,
    /// The watermark before, in canonical text.
    pub watermark_before: Option<String>,
    /// The watermark after.
    pub watermark_after: Option<String>,
    /// Where the table's folder is.
    pub location: String,
    /// Counts, by name.
    pub counters: BTreeMap<String, u64>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// What went wrong.
    pub error: Option<ErrorReport>,
}

/// An error as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorReport {
    /// What the caller can do, in snake case.
    pub kind: &'static str,
    /// The message with its causes.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The kind, for programs in this process.
    #[serde(skip)]
    pub error_kind: ErrorKind,
}

impl From<&Error> for ErrorReport {
    fn from(error: &Error) -> Self {
        Self {
            kind: kind_name(error.kind()),
            message: error.chain(),
            hint: error.hint().map(str::to_owned),
            error_kind: error.kind(),
        }
    }
}

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Configuration => "configuration",
        ErrorKind::NotFound => "not_found",
        ErrorKind::AlreadyExists => "already_exists",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Locked => "locked",
        ErrorKind::Mismatch => "mismatch",
        ErrorKind::Denied => "denied",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Data => "data",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Interrupted => "interrupted",
        ErrorKind::Internal => "internal",
    }
}

/// Executes a sync. An error is one of the run as a whole, before any table was
/// begun; what becomes of a table stands in the report.
pub async fn run(app: &Application, request: RunRequest) -> Result<RunReport> {
    let timeline = Timeline::new(app.began);
    timeline.started();
    let sync = app.state.sync(&request.env, &request.sync_id).await?;
    let systems =
        timeline.of(None, "connect", Box::pin(connect(app, sync, &timeline, true))).await?;
    let mut selected = vec![];
    let mut reports = vec![];
    let Systems { sync, source, lake, .. } = &systems;
    let retry = retry_of(app, &request.cancel);
    let patient = PatientSource::over(Arc::clone(source), &retry, &timeline);
    for table in tables_of(sync, patient.as_ref()).await? {
        match table {
            Ok(table) => selected.push(table),
            Err(error) => reports.push(unstarted(&error)),
        }
    }
    if let Some(earlier) = request.resume {
        keep_tables_of(app, earlier, &mut selected).await?;
    }
    check_places(sync, selected.iter().map(|selected| &selected.table.name))?;
    let names: Vec<_> = selected.iter().map(|selected| &selected.table.name).collect();
    lake.check_folders(sync.target.sub_path.as_deref(), &names).await?;
    // Largest first, so that the last big table is not begun when all is done.
    selected.sort_by_key(|table| std::cmp::Reverse(table.table.estimated_bytes));

    let run_id = app.host.new_run_id();
    let begun = begin(app, sync, run_id, &selected);
    let begun = timeline.of(None, "lease", begun).await?;
    app.faults.after(Step::Lease, None).await?;
    request.events.event(&Event::RunStarted {
        run_id,
        tables: selected.iter().map(|table| table.table.name.clone()).collect(),
    });
    let objects = systems.objects.clone();
    let context = context(app, request, systems, &begun);
    let work = work(&context, selected, begun.tables);
    let mut done = tokio::select! {
        biased;
        done = work => done,
        never = renew_leases(&context) => match never {},
    };
    reports.append(&mut done);
    let ending = Instant::now();
    reports.sort_by(|left, right| left.table.cmp(&right.table));
    let names: Vec<_> = reports.iter().map(|report| report.table.clone()).collect();
    let notices = metadata::renew(&context, &reports, &names).await;
    let status = status_of(&reports, context.request.cancel.is_cancelled());
    let error = reports.iter().find_map(|report| report.error.as_ref());
    app.state.finish_run(run_id, status, error.map(|error| error.message.as_str())).await?;
    app.faults.after(Step::Finished, None).await?;
    timeline.note(None, "end", ending);
    context.tell_timeline(&objects);
    let sync_id = context.sync.sync_id;
    Ok(RunReport { run_id, sync_id, status, tables: reports, notices })
}

/// What a run works between.
#[derive(Clone)]
pub(crate) struct Systems {
    pub(crate) sync: SyncConfig,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) primary: Option<Arc<dyn Source>>,
    pub(crate) publisher: Option<Arc<dyn Publisher>>,
    pub(crate) lake: Lake,
    pub(crate) timeline: Arc<Timeline>,
    /// What is asked of the lake's storage.
    pub(crate) objects: Objects,
}

/// Connects to all systems of a sync at once; to the source's primary only where a
/// fence is wanted.
pub(crate) async fn connect(
    app: &Application,
    sync: SyncConfig,
    timeline: &Arc<Timeline>,
    is_fenced: bool,
) -> Result<Systems> {
    let primary = async { if is_fenced { connect_primary(app, &sync).await } else { Ok(None) } };
    let (source, primary, publisher, storage) = futures::try_join!(
        connect_source(app, &sync),
        primary,
        connect_publisher(app, &sync),
        app.storages.open(&sync.target.location),
    )?;
    let (storage, objects) = CountedStorage::over(storage);
    let (lake, timeline) = (Lake::new(storage), Arc::clone(timeline));
    Ok(Systems { sync, source, primary, publisher, lake, timeline, objects })
}

/// What the tables of a run share, whose leases are held.
pub(crate) fn context(
    app: &Application,
    request: RunRequest,
    systems: Systems,
    begun: &Begun,
) -> RunContext {
    let Systems { sync, source, primary, publisher, lake, timeline, .. } = systems;
    let (degree, readers) = readers(&sync, request.cores);
    let stop = request.cancel.child_token();
    let run_id = begun.run.run_id;
    let retry = Retry::new(app.patience, run_id, stop.clone());
    RunContext {
        app: app.clone(),
        run_id,
        source: PatientSource::over(source, &retry, &timeline),
        primary: primary.map(|primary| PatientSource::over(primary, &retry, &timeline)),
        publisher,
        lake,
        pool: Arc::new(Semaphore::new(usize::try_from(readers).unwrap_or(1))),
        degree,
        shares: Shares::of(sync.memory_limit, readers),
        timeline,
        identity: begun.identity.clone(),
        retry,
        stop,
        held: std::sync::Mutex::new(begun.tables.iter().map(|table| table.lease.clone()).collect()),
        request,
        sync,
    }
}

/// Works on the tables, so many at once. After a failure no new one is started,
/// unless the sync says to go on.
async fn work(
    context: &RunContext,
    selected: Vec<SelectedTable>,
    states: Vec<TableState>,
) -> Vec<TableReport> {
    let failed = AtomicBool::new(false);
    let failed = &failed;
    let goes_on = context.sync.error_action == ErrorAction::Continue;
    let jobs = usize::try_from(context.sync.n_jobs.max(1)).unwrap_or(1);
    let tables = selected.into_iter().zip(states).map(|(selected, state)| async move {
        let is_over = failed.load(Ordering::Relaxed) && !goes_on;
        if is_over || context.stop.is_cancelled() {
            return TableReport::unstarted(&selected.table.name, selected.mode());
        }
        // In a place of its own: all of a run in one would be much for a small stack.
        let report = Box::pin(run_table(context, selected, state, &Task::Window)).await;
        if report.error.is_some() {
            failed.store(true, Ordering::Relaxed);
        }
        report
    });
    futures::stream::iter(tables).buffer_unordered(jobs).collect().await
}

/// Renews the leases for as long as the run lasts. When one went to another, the
/// run stops reading; the state store refuses whatever it still tries.
pub(crate) async fn renew_leases(context: &RunContext) -> Infallible {
    let LeaseTimes { ttl, renew_every } = context.app.leases;
    loop {
        tokio::time::sleep(renew_every).await;
        let held = context.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        if held.is_empty() {
            continue;
        }
        match context.app.state.renew(&held, ttl).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => {
                tracing::error!(error = error.chain(), "a lease went to another run");
                context.stop.cancel();
            }
            Err(error) => tracing::warn!(error = error.chain(), "leases were not renewed"),
        }
    }
}

/// Takes the leases. Where a holder on this machine is gone for certain, its
/// leases end at once, so that cron need not wait after a kill.
pub(crate) async fn begin(
    app: &Application,
    sync: &SyncConfig,
    run_id: RunId,
    selected: &[SelectedTable],
) -> Result<Begun> {
    let tables = selected.iter().map(|table| table_key(sync, &table.table.name)).collect();
    begin_tables(app, sync, run_id, tables).await
}

/// The same for tables that are known by their keys alone.
pub(crate) async fn begin_tables(
    app: &Application,
    sync: &SyncConfig,
    run_id: RunId,
    tables: Vec<TableKey>,
) -> Result<Begun> {
    let request = BeginRun {
        run_id,
        env: sync.env.clone(),
        scope: sync.sync_id.clone(),
        tables,
        holder: app.host.holder(),
        ttl: app.leases.ttl,
    };
    loop {
        let error = match app.state.begin_run(&request).await {
            Err(error) if error.kind() == ErrorKind::Locked => error,
            other => return other,
        };
        let filter = LockFilter { run_id: error.run(), ..LockFilter::default() };
        let mut broken = false;
        if error.run().is_some() {
            for lock in app.state.locks(&filter).await? {
                if app.host.is_gone(&lock.holder) {
                    tracing::info!(run = %lock.run_id, "the holder's process is gone");
                    broken |= app.state.break_lease(&lock.key, lock.token).await?;
                }
            }
        }
        if !broken {
            return Err(error);
        }
    }
}

/// The source of a sync, with the database that it names.
pub(crate) async fn connect_source(
    app: &Application,
    sync: &SyncConfig,
) -> Result<Arc<dyn Source>> {
    let credential = app.credentials.credential(&sync.source.credential_id)?;
    let info = match &sync.source.database {
        Some(database) => credential.info.with("database", database),
        None => credential.info,
    };
    let connector = app.connectors.connector(&credential.kind)?;
    retry_of(app, &CancellationToken::new()).connect(|| connector.source(&info)).await
}

/// For what is done before a run has begun.
pub(crate) fn retry_of(app: &Application, stop: &CancellationToken) -> Arc<Retry> {
    Retry::new(app.patience, RunId::from_number(0), stop.clone())
}

/// The publish target of a sync.
pub(crate) async fn connect_publisher(
    app: &Application,
    sync: &SyncConfig,
) -> Result<Option<Arc<dyn Publisher>>> {
    let Some(settings) = &sync.publish else { return Ok(None) };
    let credential = app.credentials.credential(&settings.credential_id)?;
    let info = match &settings.database {
        Some(database) => credential.info.with("database", database),
        None => credential.info,
    };
    let connector = app.connectors.connector(&credential.kind)?;
    let retry = retry_of(app, &CancellationToken::new());
    let publisher = retry.connect(|| connector.publisher(&info)).await?.ok_or_else(|| {
        Error::new(
            ErrorKind::Configuration,
            format!("{:?} is no system that files can be published to", credential.kind),
        )
        .with_hint("choose another --publish-target")
    })?;
    Ok(Some(publisher))
}

/// Keeps the tables that an earlier run did not complete.
async fn keep_tables_of(
    app: &Application,
    earlier: RunId,
    selected: &mut Vec<SelectedTable>,
) -> Result<()> {
    let known =
        app.state.runs(&RunFilter { run_id: Some(earlier), ..RunFilter::default() }).await?;
    if known.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no run {earlier}"))
            .with_hint("see the runs with tidelake status"));
    }
    let completed: Vec<_> = app
        .state
        .table_runs(earlier)
        .await?
        .into_iter()
        .filter(|table| table.status == TableRunStatus::Completed)
        .map(|table| table.table)
        .collect();
    selected.retain(|table| !completed.contains(&table.table.name));
    Ok(())
}

/// Readers inside one large table, and readers of the whole run.
pub(crate) fn readers(sync: &SyncConfig, cores: u32) -> (u32, u32) {
    let cores = cores.max(1);
    let degree = match sync.parallel {
        None | Some(0) => return (cores, cores),
        Some(wanted) if wanted > 0 => wanted.unsigned_abs(),
        Some(divisor) => (cores / divisor.unsigned_abs()).max(1),
    };
    (degree, degree.saturating_mul(sync.n_jobs.max(1)).min(MOST_READERS).max(degree))
}

/// Readers of one table in one window.
pub(crate) fn degree_of(
    sync: &SyncConfig,
    selected: &SelectedTable,
    window: &WindowRecord,
    degree: u32,
) -> u32 {
    let SelectedTable { table, read, .. } = selected;
    let is_large = table.estimated_rows.is_none_or(|rows| rows >= sync.large_table_threshold);
    // A window above a lower bound is usually small and has an index; cutting it
    // by place would scan the table.
    let is_open = window.range.as_ref().is_none_or(|range| range.low.is_none());
    match read.degree {
        Some(wanted) => wanted,
        None if is_large && is_open => degree,
        None => 1,
    }
}

/// `stopped` tells that the user interrupted: tables may not even have been begun.
pub(crate) fn status_of(reports: &[TableReport], stopped: bool) -> RunStatus {
    let is_done = |report: &&TableReport| {
        report.error.is_none()
            && matches!(report.status, Some(TableRunStatus::Completed | TableRunStatus::Committed))
    };
    let done = reports.iter().filter(is_done).count();
    let interrupted =
        stopped || reports.iter().any(|report| report.status == Some(TableRunStatus::Cancelled));
    if done == reports.len() {
        RunStatus::Completed
    } else if interrupted {
        RunStatus::Cancelled
    } else if done > 0 {
        RunStatus::Partial
    } else {
        RunStatus::Failed
    }
}

/// The report of a table that could not be selected.
fn unstarted(error: &Error) -> TableReport {
    let table = error.table().cloned().unwrap_or_else(|| TableName::new("", ""));
    TableReport {
        status: Some(TableRunStatus::Failed),
        error: Some(error.into()),
        ..TableReport::unstarted(&table, "incremental")
    }
}

impl TableReport {
    /// The report of a table that was not begun.
    pub(crate) fn unstarted(table: &TableName, mode: &'static str) -> Self {
        Self {
            table: table.clone(),
            status: None,
            mode,
            window: None,
            rows: 0,
            bytes: 0,
            files: 0,
            committed: false,
            watermark_before: None,
            watermark_after: None,
            location: String::new(),
            counters: BTreeMap::new(),
            notices: vec![],
            error: None,
        }
    }
}
