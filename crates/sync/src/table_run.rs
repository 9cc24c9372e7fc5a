//! One table within a run: the order of things, a statement per step.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidelake_connector::{Publisher, Slices, Source, SplitRequest};
use tidelake_lake::{Lake, TableLake, UploadRecorder};
use tidelake_model::{
    Column, Error, ErrorKind, Head, Latest, MANIFEST_FORMAT, Manifest, ManifestWindow, Notice,
    NoticeCode, NullCursor, PendingCommit, Result, RunId, Step, SyncConfig, TableRun,
    TableRunStatus, UploadRef, WindowRecord,
};
use tidelake_state::{
    Advance, AdvanceWatermark, Lease, StateStore, TableState, TableUpdate, WatermarkSettings,
};
use tidelake_watermark::{Ceiling, Position, Progress, Window};
use tokio::sync::{Mutex, OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::application::Application;
use crate::columns::{Shares, column_notices, table_read};
use crate::edit::{Replacement, rows_to_take_out};
use crate::events::Event;
use crate::run::{RunMode, RunRequest, TableReport, degree_of};
use crate::slices::{Readers, WindowRecorder, Written};
use crate::tables::SelectedTable;
use crate::window::{Fixed, Fixer, describe, whole};

/// What all tables of a run share.
pub(crate) struct RunContext {
    pub(crate) app: Application,
    pub(crate) request: RunRequest,
    pub(crate) sync: SyncConfig,
    pub(crate) run_id: RunId,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) publisher: Option<Arc<dyn Publisher>>,
    pub(crate) lake: Lake,
    pub(crate) pool: Arc<Semaphore>,
    /// Readers inside one large table.
    pub(crate) degree: u32,
    pub(crate) shares: Shares,
    /// Identity of the state store.
    pub(crate) identity: String,
    /// The user interrupted, or a lease is lost.
    pub(crate) stop: CancellationToken,
    /// Tables whose leases are renewed.
    pub(crate) held: std::sync::Mutex<Vec<Lease>>,
}

impl RunContext {
    /// A run that was not interrupted by its user, and stopped all the same, lost
    /// its lease.
    fn reason_of(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Interrupted || self.request.cancel.is_cancelled() {
            return error;
        }
        Error::new(ErrorKind::Conflict, "the lease went to another run while this one worked")
            .with_hint(
                "nothing is lost: the other run does the work; was this machine asleep, or the \
                 state store out of reach?",
            )
    }

    /// No longer renews a lease; called just before it is given back.
    pub(crate) fn forget(&self, lease: &Lease) {
        let mut held = self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        held.retain(|other| other != lease);
    }
}

/// The work on one table.
pub(crate) struct TableWork<'a> {
    pub(crate) run: &'a RunContext,
    pub(crate) selected: SelectedTable,
    pub(crate) state: TableState,
    pub(crate) lake: TableLake,
    pub(crate) latest: Option<Latest>,
    /// The manifest of the lake's head.
    pub(crate) head: Option<Manifest>,
    pub(crate) report: TableReport,
    /// The record of the pass that is under way.
    pub(crate) record: Arc<Mutex<TableRun>>,
}

/// Keeps the record of a table run in the state store.
struct Recorder {
    state: Arc<dyn StateStore>,
    lease: Lease,
    record: Arc<Mutex<TableRun>>,
    app: Application,
}

#[async_trait::async_trait]
impl WindowRecorder for Recorder {
    async fn record_window(&self) -> Result<()> {
        let record = self.record.lock().await.clone();
        let table = record.table.clone();
        self.state.update_table(&self.lease, &TableUpdate { record, release: false }).await?;
        self.app.faults.after(Step::Window, Some(&table)).await
    }
}

#[async_trait::async_trait]
impl UploadRecorder for Recorder {
    async fn begun(&self, upload: &UploadRef) -> Result<()> {
        let mut record = self.record.lock().await;
        record.uploads.push(upload.clone());
        let record = record.clone();
        self.state.update_table(&self.lease, &TableUpdate { record, release: false }).await
    }
}

/// Works on one table from lease to advance, and says what became of it.
pub(crate) async fn run_table(
    run: &RunContext,
    selected: SelectedTable,
    state: TableState,
) -> TableReport {
    let mut work = TableWork::new(run, selected, state);
    let table = work.selected.table.name.clone();
    run.request.events.event(&Event::TableStarted {
        table: table.clone(),
        estimated_rows: work.selected.table.estimated_rows,
    });
    if let Err(error) = work.go().await {
        let error = run.reason_of(error);
        work.end_with(error.in_table(&table).in_run(run.run_id)).await;
    }
    let TableReport { status, rows, .. } = &work.report;
    run.request.events.event(&Event::TableFinished {
        table,
        status: status.unwrap_or(TableRunStatus::Failed),
        rows: *rows,
    });
    work.report
}

impl<'a> TableWork<'a> {
    fn new(run: &'a RunContext, selected: SelectedTable, state: TableState) -> Self {
        let name = selected.table.name.clone();
        let lake = run.lake.table(run.sync.target.sub_path.as_deref(), &name);
        let before = state.watermark.as_ref().and_then(|found| found.progress.watermark.clone());
        let report = TableReport {
            watermark_before: before.map(|position| position.to_string()),
            location: lake.location(),
            ..TableReport::unstarted(&name, selected.mode())
        };
        let record = Arc::new(Mutex::new(new_record(run.run_id, &selected, &state.lease)));
        Self { run, selected, state, lake, latest: None, head: None, report, record }
    }

    /// The whole order of things.
    async fn go(&mut self) -> Result<()> {
        self.check_lake().await?;
        self.fault(Step::Load).await?;
        if self.finish_unfinished().await? {
            return Ok(());
        }
        self.check_stop()?;
        if self.run.request.mode == RunMode::PublishOnly {
            return self.give_back().await;
        }
        self.note_all(column_notices(&self.selected.table.columns));
        if self.state.watermark.is_none()
            && let Some(settings) = self.watermark_settings()?
        {
            // One that was made by hand before its table was known.
            let state = &self.run.app.state;
            self.state.watermark = state.claim_watermark(&self.state.lease, &settings).await?;
        }
        if self.run.request.reset_watermarks {
            self.reset().await?;
        }
        let (progress, version) = (self.progress()?, self.version());
        let Some(cursor) = self.selected.cursor.clone() else {
            return self.pass(self.run.run_id, whole(), vec![], vec![], true).await;
        };
        let replaces =
            progress.watermark.is_none() && progress.max_seen.is_none() && self.latest.is_some();
        let fixed = {
            let name = self.selected.table.name.clone();
            let fixer = self.fixer(&name, &cursor);
            fixer.fix(&progress, version, replaces).await?
        };
        self.fault(Step::Clock).await?;
        match fixed.window {
            Some(window) => {
                let Fixed { notices, counters, .. } = fixed;
                self.pass(self.run.run_id, window, notices, counters, true).await
            }
            None => {
                let closed =
                    fixed.notices.iter().any(|notice| notice.code == NoticeCode::FenceClosed);
                self.note_all(fixed.notices);
                self.count_all(fixed.counters);
                self.nothing(self.run.run_id, None, progress, closed, true).await
            }
        }
    }

    pub(crate) fn fixer<'b>(
        &'b self,
        table: &'b tidelake_model::TableName,
        cursor: &'b crate::cursor::TableCursor,
    ) -> Fixer<'b> {
        Fixer {
            sync: &self.run.sync,
            source: self.run.source.as_ref(),
            table,
            cursor,
            may_wait: true,
        }
    }

    /// Reads one window, commits, publishes and advances.
    pub(crate) async fn pass(
        &mut self,
        run_id: RunId,
        window: WindowRecord,
        notices: Vec<Notice>,
        counters: Vec<(&'static str, u64)>,
        release: bool,
    ) -> Result<()> {
        self.check_schema(&window)?;
        self.note_all(notices);
        self.count_all(counters);
        let text = describe(&window);
        self.run
            .request
            .events
            .event(&Event::WindowFixed { table: self.report.table.clone(), window: text.clone() });
        self.report.window = Some(text);
        let mut record = new_record(run_id, &self.selected, &self.state.lease);
        record.window = Some(window.clone());
        record.notices = self.report.notices.clone();
        self.record = Arc::new(Mutex::new(record));

        if is_empty(&window)? {
            let progress = self.after(&window, &Written::default())?;
            return self.nothing(run_id, Some(window), progress, false, release).await;
        }
        let readers = self.readers(run_id);
        let slices = self.split(&window).await?;
        self.fault(Step::Split).await?;
        let written = Arc::clone(&readers).read(slices.slices).await?;
        drop(slices.hold);

        let progress = self.after(&window, &written)?;
        for (name, count) in &written.counters {
            self.note(Notice::new(
                NoticeCode::ValueChanged,
                format!("{count} values could not be carried as they are ({name})"),
            ));
            self.report.counters.insert(name.clone(), *count);
        }
        let is_full = self.selected.cursor.is_none();
        if written.rows == 0 && !is_full {
            return self.nothing(run_id, Some(window), progress, false, release).await;
        }
        self.report.rows = self.report.rows.saturating_add(written.rows);
        let replacement = match self.take_out(&window, &readers).await {
            Ok(replacement) => replacement,
            Err(error) => {
                self.abort(written.files.iter().map(|(_, staged)| &staged.upload)).await;
                return Err(error);
            }
        };
        self.fault(Step::Staged).await?;
        let staged: Vec<_> = written
            .files
            .iter()
            .chain(&replacement.files)
            .map(|(_, staged)| staged.upload.clone())
            .collect();
        if let Err(error) = self.check_stop() {
            self.abort(staged.iter()).await;
            return Err(error);
        }
        let pending = self.pending(run_id, window, written, replacement, progress).await;
        self.commit(pending, release).await
    }

    /// A table whose columns changed cannot be added to: every file of a
    /// generation has the same schema.
    fn check_schema(&self, window: &WindowRecord) -> Result<()> {
        let (Some(head), false) = (&self.head, window.replaces) else { return Ok(()) };
        let now = self.selected.table.schema();
        let types = |schema: &arrow::datatypes::Schema, name: &str| {
            schema.field_with_name(name).ok().map(|field| field.data_type().to_string())
        };
        let names = head.schema.fields().iter().chain(now.fields()).map(|field| field.name());
        for name in names {
            let (before, after) = (types(&head.schema, name), types(&now, name));
            if before != after {
                let say = |found: Option<String>| found.unwrap_or_else(|| "absent".into());
                return Err(Error::new(
                    ErrorKind::Data,
                    format!(
                        "column {name:?} changed since the last run: it was {}, now it is {}",
                        say(before),
                        say(after)
                    ),
                )
                .with_hint(
                    "reset the watermark (tidelake watermarks reset), so that the next sync \
                     exports the table anew with its present columns",
                ));
            }
        }
        Ok(())
    }

    /// Starts the record of this run's own pass, after an earlier one was
    /// finished.
    pub(crate) async fn start_over(&mut self) {
        self.record =
            Arc::new(Mutex::new(new_record(self.run.run_id, &self.selected, &self.state.lease)));
        self.report.status = None;
    }

    /// Takes the snapshot and cuts the read.
    async fn split(&self, window: &WindowRecord) -> Result<Slices> {
        let request = SplitRequest {
            read: table_read(&self.run.sync, &self.selected, window, self.run.shares),
            degree: degree_of(&self.run.sync, &self.selected, window, self.run.degree),
            method: self.selected.read.method,
            key: self.selected.read.key.clone(),
        };
        self.run.source.split(&request).await
    }

    fn readers(&self, run_id: RunId) -> Arc<Readers> {
        let run = self.run;
        let recorder = Arc::new(Recorder {
            state: Arc::clone(&run.app.state),
            lease: self.state.lease.clone(),
            record: Arc::clone(&self.record),
            app: run.app.clone(),
        });
        Arc::new(Readers {
            source: Arc::clone(&run.source),
            lake: self.lake.clone(),
            table: self.report.table.clone(),
            run_id,
            attempt: self.state.lease.token,
            cursor: self.selected.cursor.as_ref().map(|cursor| cursor.read.clone()),
            nulls_fail: run.sync.null_cursor == NullCursor::Fail,
            schema: self.selected.table.schema(),
            compression: run.sync.compression,
            shares: run.shares,
            pool: Arc::clone(&run.pool),
            recorder: Arc::clone(&recorder) as Arc<dyn WindowRecorder>,
            uploads: recorder,
            recorded: OnceCell::new(),
            events: Arc::clone(&run.request.events),
            faults: Arc::clone(&run.app.faults),
            stop: run.stop.child_token(),
        })
    }

    /// Rows that the lake already holds in the range that was read.
    async fn take_out(&self, window: &WindowRecord, readers: &Readers) -> Result<Replacement> {
        let slice = u32::MAX;
        let settings = readers.settings(slice);
        let cursor = self.selected.cursor.as_ref().map(|cursor| &cursor.read);
        let nulls = self.run.sync.null_cursor == NullCursor::Include;
        let replacement = rows_to_take_out(
            &self.lake,
            self.latest.as_ref(),
            self.head.as_ref(),
            window,
            cursor,
            nulls,
            settings,
        )
        .await?;
        if !replacement.is_empty() && !window.replaces && self.publishes() {
            self.abort(replacement.files.iter().map(|(_, staged)| &staged.upload)).await;
            return Err(Error::new(
                ErrorKind::Mismatch,
                "the window holds rows that were published before, and the target only appends",
            )
            .with_hint(
                "reset the watermark (tidelake watermarks reset), so that the next sync reads the \
                 table anew and replaces the target's rows",
            ));
        }
        Ok(replacement)
    }

    /// Progress after the window was read.
    fn after(&self, window: &WindowRecord, written: &Written) -> Result<Progress> {
        let progress = window.progress.clone();
        let (Some(range), Some(high)) = (&window.range, &window.high) else {
            return Ok(progress);
        };
        let plan = Window {
            range: range.clone(),
            gap: window.gap.clone(),
            high: high.clone(),
            stays: window.stays,
        };
        let ceiling = if window.ceiling == "clock" { Ceiling::Clock } else { Ceiling::Observed };
        let mut next = progress.after(&plan, &written.outcome(), ceiling).map_err(|error| {
            Error::new(ErrorKind::Data, "cursor values differ").with_source(error)
        })?;
        // The first run carried rows without a value; the next is not the first.
        if next.watermark.is_none() && written.rows > 0 {
            next.watermark = Some(high.clone());
        }
        Ok(next)
    }

    /// A run that found nothing: the lake is touched only where it has no
    /// manifest yet, or holds rows that this run replaces.
    async fn nothing(
        &mut self,
        run_id: RunId,
        window: Option<WindowRecord>,
        progress: Progress,
        closed: bool,
        release: bool,
    ) -> Result<()> {
        if let (Some(cursor), Some(_)) = (&self.selected.cursor, &window) {
            let name = self.report.table.clone();
            let behind = self.fixer(&name, cursor).behind_after_nothing(&progress).await?;
            self.note_all(behind.into_iter().collect());
        }
        let starts_anew =
            window.as_ref().is_none_or(|window| window.replaces) && progress.max_seen.is_none();
        let holds_rows = match &self.latest {
            None => true,
            Some(latest) if starts_anew => !self.lake.live_files(latest).await?.is_empty(),
            Some(_) => false,
        };
        if holds_rows && !closed {
            let mut window = window.unwrap_or_else(|| WindowRecord {
                replaces: self.latest.is_some(),
                null_cursors: false,
                progress: progress.clone(),
                version: self.version(),
                ceiling: "observed".into(),
                ..whole()
            });
            window.replaces = self.latest.is_some();
            let written = Written::default();
            let pending =
                self.pending(run_id, window, written, Replacement::default(), progress).await;
            self.recorder().record_window().await?;
            return self.commit(pending, release).await;
        }
        self.advance(progress, None, release).await
    }

    fn recorder(&self) -> Recorder {
        Recorder {
            state: Arc::clone(&self.run.app.state),
            lease: self.state.lease.clone(),
            record: Arc::clone(&self.record),
            app: self.run.app.clone(),
        }
    }

    /// The commit as it will be recorded.
    async fn pending(
        &self,
        run_id: RunId,
        window: WindowRecord,
        written: Written,
        replacement: Replacement,
        progress: Progress,
    ) -> PendingCommit {
        let table = &self.selected.table;
        let record = self.record.lock().await;
        let previous = self.latest.as_ref();
        let replaces = window.replaces && previous.is_some();
        let (files, objects): (Vec<_>, Vec<_>) =
            written.files.into_iter().chain(replacement.files).unzip();
        let highest_before = if replaces { None } else { replacement.highest };
        let live_highest = join_highest(highest_before, written.extent.highest);
        let mut counters = self.report.counters.clone();
        counters.insert("rows".into(), written.rows);
        let schema = table.schema();
        let schema_version = match &self.head {
            Some(head) if head.schema == *schema => head.schema_version,
            Some(head) => head.schema_version.saturating_add(1),
            None => 1,
        };
        let cursor = self.selected.cursor.as_ref();
        let manifest = Manifest {
            format_version: MANIFEST_FORMAT,
            run_id,
            attempt: self.state.lease.token,
            table: table.name.clone(),
            generation: match previous {
                None => 1,
                Some(latest) => latest.generation.saturating_add(u64::from(replaces)),
            },
            window: Some(ManifestWindow {
                cursor: cursor.map(|cursor| cursor.settings.cursor.to_string()),
                window,
                progress,
            }),
            schema_version,
            schema: schema.as_ref().clone(),
            source_types: table.columns.iter().map(source_type).collect(),
            key: table.key(),
            files,
            taken_out: if replaces { vec![] } else { replacement.taken_out },
            counters,
            live_highest,
            notices: self.report.notices.clone(),
            started_at: record.started_at.clone(),
            finished_at: now_text(),
            tool_version: env!("CARGO_PKG_VERSION").into(),
        };
        PendingCommit {
            manifest,
            objects,
            previous_head: previous.map(|latest| latest.head),
            replaces,
            keep_generations: self.run.sync.keep_generations,
        }
    }

    /// Step 6 and what follows: from the first statement on, whoever holds the
    /// lease finishes exactly this list.
    async fn commit(&mut self, pending: PendingCommit, release: bool) -> Result<()> {
        let record = {
            let mut record = self.record.lock().await;
            record.status = TableRunStatus::Committing;
            record.rows = pending.manifest.counters.get("rows").copied().unwrap_or(0);
            record.bytes = pending.manifest.files.iter().map(|file| file.bytes).sum();
            record.counters = pending.manifest.counters.clone();
            record.notices = self.report.notices.clone();
            record.uploads = vec![];
            record.pending = Some(pending.clone());
            record.clone()
        };
        let update = TableUpdate { record, release: false };
        if let Err(error) = self.run.app.state.update_table(&self.state.lease, &update).await {
            // Not recorded, so not begun: a successor reads the window afresh.
            self.record.lock().await.status = TableRunStatus::Reading;
            if error.kind() != ErrorKind::Unavailable {
                self.abort(pending.objects.iter().map(|staged| &staged.upload)).await;
            }
            return Err(error);
        }
        self.fault(Step::Committing).await?;
        self.finish_commit(&pending, release).await
    }

    /// Completes, publishes, advances and cleans; may be done again by another.
    /// Returns whether the table waits for a publish.
    pub(crate) async fn finish_commit(
        &mut self,
        pending: &PendingCommit,
        release: bool,
    ) -> Result<()> {
        let manifest = &pending.manifest;
        self.clean_before(manifest.run_id).await?;
        for staged in &pending.objects {
            self.lake.complete(staged).await?;
            self.fault(Step::Completed).await?;
        }
        self.lake.put_manifest(manifest).await?;
        self.fault(Step::Manifest).await?;
        let latest = self.lake.commit_latest(pending).await?;
        self.fault(Step::Latest).await?;
        self.latest = Some(latest);
        self.head = Some(manifest.clone());
        self.report.committed = true;
        self.report.bytes += manifest.files.iter().map(|file| file.bytes).sum::<u64>();
        self.report.files += u64::try_from(manifest.files.len()).unwrap_or(u64::MAX);
        if self.publishes() {
            self.record.lock().await.status = TableRunStatus::Committed;
            if self.run.request.mode == RunMode::ExportOnly {
                return self.wait_for_publish().await;
            }
            self.fault(Step::Committed).await?;
            self.publish(manifest, pending.replaces).await?;
            self.fault(Step::Published).await?;
        }
        let progress = manifest.window.as_ref().map(|window| window.progress.clone());
        let head = Head { run_id: manifest.run_id, location: self.lake.location() };
        self.advance(progress.unwrap_or_default(), Some(head), release).await?;
        self.clean().await
    }

    /// Step 8. `head` is the new head of the lake, if there is one.
    async fn advance(
        &mut self,
        progress: Progress,
        head: Option<Head>,
        release: bool,
    ) -> Result<()> {
        let mut record = self.record.lock().await.clone();
        // The copy alone: should the answer be lost, what is kept here still says
        // what is left to be finished.
        record.status = TableRunStatus::Completed;
        record.notices = self.report.notices.clone();
        record.counters.extend(self.report.counters.clone());
        record.pending = None;
        record.uploads = vec![];
        let expected = match &record.window {
            Some(window) => window.version,
            None => self.version(),
        };
        let rows = record.rows;
        let watermark = self.watermark_settings()?.map(|settings| AdvanceWatermark {
            settings,
            expected,
            next: progress,
            rows,
        });
        if release {
            self.run.forget(&self.state.lease);
        }
        let mut advance = Advance { record, head: head.clone(), watermark, release };
        let state = &self.run.app.state;
        let advanced = match state.advance(&self.state.lease, &advance).await {
            Err(error) if error.kind() == ErrorKind::Conflict && self.was_edited().await? => {
                // The user changed the watermark after the files were committed:
                // the decision stands, and the rows count all the same.
                advance.watermark = None;
                state.advance(&self.state.lease, &advance).await?
            }
            other => other?,
        };
        if advanced.watermark.is_some() {
            self.state.watermark = advanced.watermark;
        }
        if head.is_some() {
            self.state.head = head;
        }
        let after =
            self.state.watermark.as_ref().and_then(|found| found.progress.watermark.clone());
        self.report.watermark_after = after.map(|position| position.to_string());
        self.report.status = Some(TableRunStatus::Completed);
        self.fault(Step::Advanced).await
    }

    /// Whether somebody changed the watermark since it was loaded, while the
    /// lease is still ours.
    async fn was_edited(&self) -> Result<bool> {
        let Some(known) = &self.state.watermark else { return Ok(false) };
        let filter = tidelake_model::WatermarkFilter {
            env: Some(known.key.env.clone()),
            scope: Some(known.key.scope.clone()),
            table: known.key.table.as_ref().map(ToString::to_string),
            ..Default::default()
        };
        let stored = self.run.app.state.watermarks(&filter).await?;
        let expected = self.record.lock().await.window.as_ref().and_then(|window| window.version);
        Ok(stored.iter().any(|record| record.id == known.id && Some(record.version) != expected))
    }

    /// What the head before took out is deleted before the head changes, in case
    /// its own run died before it did.
    async fn clean_before(&self, run_id: RunId) -> Result<()> {
        let (Some(head), Some(latest)) = (&self.head, &self.latest) else { return Ok(()) };
        if !head.taken_out.is_empty() && head.run_id != run_id {
            self.lake.clean(latest, self.run.sync.keep_generations).await?;
        }
        Ok(())
    }

    /// Deletes files that are replaced; a failure here fails nothing, since the
    /// next commit does it again.
    async fn clean(&mut self) -> Result<()> {
        if let Some(latest) = &self.latest {
            let kept = self.run.sync.keep_generations;
            if let Err(error) = self.lake.clean(latest, kept).await {
                tracing::warn!(
                    table = %self.report.table,
                    error = error.chain(),
                    "replaced files were not deleted; the next commit tries again"
                );
            }
        }
        self.fault(Step::Cleaned).await
    }

    /// Ends with an error. What is committed stays to be finished; what was only
    /// read is given up, and the watermark is where it was.
    async fn end_with(&mut self, error: Error) {
        let record = {
            let mut record = self.record.lock().await;
            if record.status == TableRunStatus::Reading {
                record.status = match error.kind() {
                    ErrorKind::Interrupted => TableRunStatus::Cancelled,
                    _ => TableRunStatus::Failed,
                };
            }
            record.error = Some(error.chain());
            record.clone()
        };
        self.report.status = Some(record.status);
        self.report.error = Some((&error).into());
        self.run.forget(&self.state.lease);
        let update = TableUpdate { record, release: true };
        if let Err(error) = self.run.app.state.update_table(&self.state.lease, &update).await {
            tracing::warn!(
                table = %self.report.table,
                error = error.chain(),
                "the end of the table run was not recorded"
            );
        }
    }

    /// Gives the lease back without a record: there was nothing to do.
    pub(crate) async fn give_back(&mut self) -> Result<()> {
        self.report.status.get_or_insert(TableRunStatus::Completed);
        Ok(())
    }

    async fn wait_for_publish(&mut self) -> Result<()> {
        let record = self.record.lock().await.clone();
        self.run.forget(&self.state.lease);
        let update = TableUpdate { record, release: true };
        self.run.app.state.update_table(&self.state.lease, &update).await?;
        self.report.status = Some(TableRunStatus::Committed);
        self.fault(Step::Committed).await
    }

    pub(crate) async fn abort(&self, uploads: impl Iterator<Item = &UploadRef>) {
        for upload in uploads {
            if let Err(error) = self.lake.abort(upload).await {
                tracing::warn!(key = upload.key, error = error.chain(), "upload not aborted");
            }
        }
    }

    pub(crate) fn publishes(&self) -> bool {
        self.run.publisher.is_some()
    }

    pub(crate) fn version(&self) -> Option<u64> {
        self.state.watermark.as_ref().map(|found| found.version)
    }

    pub(crate) async fn fault(&self, step: Step) -> Result<()> {
        self.run.app.faults.after(step, Some(&self.report.table)).await
    }

    pub(crate) fn check_stop(&self) -> Result<()> {
        if self.run.stop.is_cancelled() {
            return Err(Error::new(ErrorKind::Interrupted, "the run was interrupted"));
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, notice: Notice) {
        if self.report.notices.contains(&notice) {
            return;
        }
        self.run
            .request
            .events
            .event(&Event::Noticed { table: self.report.table.clone(), notice: notice.clone() });
        self.report.notices.push(notice);
    }

    fn note_all(&mut self, notices: Vec<Notice>) {
        notices.into_iter().for_each(|notice| self.note(notice));
    }

    fn count_all(&mut self, counters: Vec<(&'static str, u64)>) {
        let counters = counters.into_iter().map(|(name, count)| (name.to_owned(), count));
        self.report.counters.extend(counters);
    }

    /// What is stored, or what the sync says a new watermark starts with.
    fn progress(&self) -> Result<Progress> {
        let settings = self.watermark_settings()?;
        let stored = self.state.watermark.as_ref();
        Ok(match (settings, stored) {
            (Some(settings), Some(stored)) if stored.column == settings.column => {
                stored.progress.clone()
            }
            (Some(settings), _) => settings.initial,
            (None, _) => Progress::default(),
        })
    }

    /// What a new watermark of the table starts with.
    pub(crate) fn watermark_settings(&self) -> Result<Option<WatermarkSettings>> {
        let Some(cursor) = &self.selected.cursor else { return Ok(None) };
        crate::create::watermark_settings(&cursor.settings).map(Some)
    }
}

/// A record of a table run that begins.
fn new_record(run_id: RunId, selected: &SelectedTable, lease: &Lease) -> TableRun {
    TableRun {
        run_id,
        table: selected.table.name.clone(),
        token: lease.token,
        status: TableRunStatus::Reading,
        window: None,
        uploads: vec![],
        pending: None,
        rows: 0,
        bytes: 0,
        counters: BTreeMap::new(),
        notices: vec![],
        started_at: now_text(),
        finished_at: None,
        error: None,
    }
}

fn is_empty(window: &WindowRecord) -> Result<bool> {
    let Some(range) = &window.range else { return Ok(false) };
    let empty = range
        .is_empty()
        .map_err(|error| Error::new(ErrorKind::Data, "cursor values differ").with_source(error))?;
    Ok(empty && !window.null_cursors)
}

fn join_highest(left: Option<Position>, right: Option<Position>) -> Option<Position> {
    match (left, right) {
        (Some(left), Some(right)) => left.max(&right).ok().or(Some(right)),
        (left, right) => left.or(right),
    }
}

fn source_type(column: &Column) -> (String, String) {
    (column.name().to_owned(), column.source_type.clone())
}

/// This machine's time, for people who read a manifest; nothing is decided by it.
fn now_text() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}
