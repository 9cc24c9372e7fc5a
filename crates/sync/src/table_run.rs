//! One table within a run: the order of things, a statement per step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tidelake_lake::TableLake;
use tidelake_model::{
    Error, ErrorKind, Latest, Manifest, Notice, NoticeCode, Result, RunId, Step, TableRun,
    TableRunStatus, UploadRef, WindowRecord,
};
use tidelake_state::{Lease, TableState, TableUpdate, WatermarkSettings};
use tidelake_watermark::Progress;
use tokio::sync::Mutex;

use crate::columns::column_notices;
use crate::compact::Compaction;
use crate::context::RunContext;
use crate::events::Event;
use crate::piece::Piece;
use crate::run::{RunMode, TableReport};
use crate::slices::abort;
use crate::tables::SelectedTable;
use crate::timeline::WORK;
use crate::window::{Fixed, Fixer, whole};

/// What is done with a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Task {
    /// The window above the watermark is read, or the whole table.
    Window,
    /// One fixed range below the watermark is read again.
    Piece(Box<Piece>),
    /// Small files of the lake are merged.
    Compact(Compaction),
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
    /// The window of an earlier run that this one finished.
    pub(crate) finished_earlier: Option<WindowRecord>,
}

/// Works on one table from lease to advance, and says what became of it.
pub(crate) async fn run_table(
    run: &RunContext,
    selected: SelectedTable,
    state: TableState,
    task: &Task,
) -> TableReport {
    let began = Instant::now();
    let mut work = TableWork::new(run, selected, state);
    let table = work.selected.table.name.clone();
    run.request.events.event(&Event::TableStarted {
        table: table.clone(),
        estimated_rows: work.selected.table.estimated_rows,
    });
    if let Err(error) = Box::pin(work.go(task)).await {
        let error = work.reason_of(error).await;
        work.end_with(error.in_table(&table).in_run(run.run_id)).await;
    }
    work.note_losses();
    run.timeline.note(Some(&table), WORK, began);
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
        Self {
            run,
            selected,
            state,
            lake,
            latest: None,
            head: None,
            report,
            record,
            finished_earlier: None,
        }
    }

    /// A runner that slept while its lease went to another sees what the other did,
    /// and could take it for a disagreement of state and lake.
    async fn reason_of(&self, error: Error) -> Error {
        let app = &self.run.app;
        let lease = std::slice::from_ref(&self.state.lease);
        if error.kind() == ErrorKind::Mismatch
            && let Err(lost) = app.state.renew(lease, app.leases.ttl).await
            && lost.kind() == ErrorKind::Conflict
        {
            return lost;
        }
        self.run.reason_of(error)
    }

    /// The whole order of things.
    async fn go(&mut self, task: &Task) -> Result<()> {
        let began = Instant::now();
        self.check_lake().await?;
        self.timed("lake", began);
        self.fault(Step::Load).await?;
        if self.finish_unfinished().await? {
            return Ok(());
        }
        self.check_stop()?;
        match task {
            Task::Window => self.window().await,
            Task::Piece(piece) => self.piece(piece).await,
            Task::Compact(compaction) => self.compact(compaction).await,
        }
    }

    /// What is new is read, or the whole table.
    async fn window(&mut self) -> Result<()> {
        if self.run.request.mode == RunMode::PublishOnly {
            // There was nothing to publish; the end of the run gives the lease back.
            self.report.status.get_or_insert(TableRunStatus::Completed);
            return Ok(());
        }
        self.note_all(column_notices(&self.selected));
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
            return self.pass(self.run.run_id, whole(), vec![], vec![], false, true).await;
        };
        let replaces =
            progress.watermark.is_none() && progress.max_seen.is_none() && self.latest.is_some();
        let fixed = {
            let name = self.selected.table.name.clone();
            let fixer = self.fixer(&name, &cursor);
            self.unless_stopped(fixer.fix(&progress, version, replaces)).await?
        };
        self.fault(Step::Clock).await?;
        match fixed.window {
            Some(window) => {
                let Fixed { notices, counters, is_vacant, .. } = fixed;
                let run_id = self.run.run_id;
                self.pass(run_id, window, notices, counters, is_vacant, true).await
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
            primary: self.run.primary.as_deref(),
            table,
            cursor,
            may_wait: true,
        }
    }

    /// Starts the record of this run's own pass, after an earlier one was
    /// finished.
    pub(crate) async fn start_over(&mut self) {
        self.record =
            Arc::new(Mutex::new(new_record(self.run.run_id, &self.selected, &self.state.lease)));
        self.report.status = None;
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

    pub(crate) async fn abort(&self, uploads: impl Iterator<Item = &UploadRef>) {
        abort(&self.lake, uploads).await;
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

    /// Gives a wait up when the run is stopped: for a lock, or for writers in
    /// flight.
    pub(crate) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            () = self.run.stop.cancelled() => Err(interrupted()),
            done = work => done,
        }
    }

    /// Notes a phase that began at that moment and has just ended.
    pub(crate) fn timed(&self, phase: &'static str, began: Instant) {
        self.run.timeline.note(Some(&self.report.table), phase, began);
    }

    pub(crate) fn check_stop(&self) -> Result<()> {
        if self.run.stop.is_cancelled() {
            return Err(interrupted());
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

    /// Tells of connections that were lost so far.
    pub(crate) fn note_losses(&mut self) {
        let lost = self.run.retry.notice(Some(&self.report.table));
        self.report.notices.retain(|notice| notice.code != NoticeCode::Retried);
        self.note_all(lost.into_iter().collect());
    }

    pub(crate) fn note_all(&mut self, notices: Vec<Notice>) {
        notices.into_iter().for_each(|notice| self.note(notice));
    }

    pub(crate) fn count_all(&mut self, counters: Vec<(&'static str, u64)>) {
        let counters = counters.into_iter().map(|(name, count)| (name.to_owned(), count));
        self.report.counters.extend(counters);
    }

    /// What is stored, or what the sync says a new watermark starts with.
    pub(crate) fn progress(&self) -> Result<Progress> {
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

fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "the run was interrupted")
}

/// A record of a table run that begins.
pub(crate) fn new_record(run_id: RunId, selected: &SelectedTable, lease: &Lease) -> TableRun {
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

/// This machine's time, for people who read a manifest; nothing is decided by it.
pub(crate) fn now_text() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}
