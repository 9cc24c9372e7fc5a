//! Steps 3 to 5: one window is read into staged objects.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use tidelake_lake::UploadRecorder;
use tidelake_model::{
    Error, ErrorKind, Notice, NoticeCode, NullCursor, Result, RunId, Step, TableRun, UploadRef,
    WindowRecord,
};
use tidelake_state::{Lease, TableUpdate};
use tidelake_watermark::{Ceiling, Progress, Window};
use tokio::sync::{Mutex, OnceCell};

use crate::application::Application;
use crate::edit::{Replacement, rows_to_take_out};
use crate::events::Event;
use crate::retry::Retry;
use crate::slices::{Places, Readers, WindowRecorder, Written};
use crate::table_run::{TableWork, new_record};
use crate::window::{describe, whole};

/// Keeps the record of a table run in the state store.
struct Recorder {
    app: Application,
    retry: Arc<Retry>,
    lease: Lease,
    record: Arc<Mutex<TableRun>>,
}

impl Recorder {
    async fn write(&self, record: TableRun) -> Result<()> {
        let table = record.table.clone();
        let update = TableUpdate { record, release: false };
        self.retry.keep(Some(&table), || self.app.state.update_table(&self.lease, &update)).await
    }
}

#[async_trait::async_trait]
impl WindowRecorder for Recorder {
    async fn record_window(&self) -> Result<()> {
        let record = self.record.lock().await.clone();
        let table = record.table.clone();
        self.write(record).await?;
        self.app.faults.after(Step::Window, Some(&table)).await
    }
}

#[async_trait::async_trait]
impl UploadRecorder for Recorder {
    async fn begun(&self, upload: &UploadRef) -> Result<()> {
        let mut record = self.record.lock().await;
        record.uploads.push(upload.clone());
        self.write(record.clone()).await
    }
}

impl TableWork<'_> {
    /// Reads one window, commits, publishes and advances. A window that is known to
    /// hold no row is not read.
    pub(crate) async fn pass(
        &mut self,
        run_id: RunId,
        window: WindowRecord,
        notices: Vec<Notice>,
        counters: Vec<(&'static str, u64)>,
        is_vacant: bool,
        release: bool,
    ) -> Result<()> {
        self.keep_schema(&window)?;
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
        // What the lake holds of a vacant window is still taken out.
        let written = match is_vacant {
            true => Written::default(),
            false => self.read_window(&window, &readers).await?,
        };
        self.note_losses();

        let progress = self.after(&window, &written)?;
        for (name, count) in &written.counters {
            self.note(Notice::new(
                NoticeCode::ValueChanged,
                format!("{count} values could not be carried as they are ({})", counted(name)),
            ));
            self.report.counters.insert(name.clone(), *count);
        }
        let is_full = self.selected.cursor.is_none();
        self.report.rows = self.report.rows.saturating_add(written.rows);
        let began = Instant::now();
        let replacement = self.take_out(&window, &readers).await;
        self.timed("take out", began);
        let replacement = match replacement {
            Ok(replacement) => replacement,
            Err(error) => {
                self.abort(written.files.iter().map(|(_, staged)| &staged.upload)).await;
                return Err(error);
            }
        };
        // Rows that the source no longer has leave the lake, also where nothing
        // is left of the range that was read again.
        if written.rows == 0 && !is_full && replacement.is_empty() {
            return self.nothing(run_id, Some(window), progress, false, release).await;
        }
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

    pub(crate) fn readers(&self, run_id: RunId) -> Arc<Readers> {
        let run = self.run;
        let degree = self.selected.read.degree.unwrap_or(run.degree);
        let recorder = Arc::new(self.recorder());
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
            places: Places::new(degree, &run.pool),
            recorder: Arc::clone(&recorder) as Arc<dyn WindowRecorder>,
            uploads: recorder,
            recorded: OnceCell::new(),
            events: Arc::clone(&run.request.events),
            faults: Arc::clone(&run.app.faults),
            retry: Arc::clone(&run.retry),
            next_number: AtomicU32::new(0),
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
    pub(crate) async fn nothing(
        &mut self,
        run_id: RunId,
        window: Option<WindowRecord>,
        progress: Progress,
        closed: bool,
        release: bool,
    ) -> Result<()> {
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
            app: self.run.app.clone(),
            retry: Arc::clone(&self.run.retry),
            lease: self.state.lease.clone(),
            record: Arc::clone(&self.record),
        }
    }
}

/// A counter of changed values for people: its policy, and its column if it has one.
fn counted(name: &str) -> String {
    match name.split_once(':') {
        Some((policy, column)) => format!("{policy}, column {column:?}"),
        None => name.to_owned(),
    }
}

fn is_empty(window: &WindowRecord) -> Result<bool> {
    let Some(range) = &window.range else { return Ok(false) };
    let empty = range
        .is_empty()
        .map_err(|error| Error::new(ErrorKind::Data, "cursor values differ").with_source(error))?;
    Ok(empty && !window.null_cursors)
}
