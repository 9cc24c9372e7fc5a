//! Steps 6 to 8: what is staged is committed, published, and the watermark
//! advances.

use std::time::Instant;

use tidelake_model::{
    Column, ErrorKind, Head, MANIFEST_FORMAT, Manifest, ManifestWindow, PendingCommit, Purpose,
    Result, RunId, Step, TableRunStatus, WatermarkFilter, WindowRecord,
};
use tidelake_state::{Advance, AdvanceWatermark, TableUpdate};
use tidelake_watermark::{Position, Progress};

use crate::edit::Replacement;
use crate::run::RunMode;
use crate::slices::Written;
use crate::table_run::{TableWork, now_text};

impl TableWork<'_> {
    /// The commit as it will be recorded.
    pub(crate) async fn pending(
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
            source_types: self.selected.read_columns.iter().map(source_type).collect(),
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
    pub(crate) async fn commit(&mut self, pending: PendingCommit, release: bool) -> Result<()> {
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
        let state = &self.run.app.state;
        let (lease, table) = (&self.state.lease, Some(&self.report.table));
        // Recorded twice, it says the same.
        let recorded = self.run.retry.keep(table, || state.update_table(lease, &update));
        let recorded = self.run.timeline.of(table, "record", recorded).await;
        if let Err(error) = recorded {
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
    pub(crate) async fn finish_commit(
        &mut self,
        pending: &PendingCommit,
        release: bool,
    ) -> Result<()> {
        let manifest = &pending.manifest;
        let began = Instant::now();
        self.clean_before(manifest.run_id).await?;
        for staged in &pending.objects {
            self.lake.complete(staged).await?;
            self.fault(Step::Completed).await?;
        }
        self.lake.put_manifest(manifest).await?;
        self.fault(Step::Manifest).await?;
        let latest = self.lake.commit_latest(pending).await?;
        self.timed("commit", began);
        self.fault(Step::Latest).await?;
        self.latest = Some(latest);
        self.head = Some(manifest.clone());
        self.report.committed = true;
        self.report.bytes += manifest.files.iter().map(|file| file.bytes).sum::<u64>();
        self.report.files += u64::try_from(manifest.files.len()).unwrap_or(u64::MAX);
        // Merged files hold no row that was not published before.
        if self.publishes() && !is_compaction(manifest) {
            self.record.lock().await.status = TableRunStatus::Committed;
            if self.run.request.mode == RunMode::ExportOnly {
                return self.wait_for_publish().await;
            }
            self.fault(Step::Committed).await?;
            let began = Instant::now();
            self.publish(manifest, pending.replaces).await?;
            self.timed("publish", began);
            self.fault(Step::Published).await?;
        }
        let progress = manifest.window.as_ref().map(|window| window.progress.clone());
        let head = Head { run_id: manifest.run_id, location: self.lake.location() };
        self.advance(progress.unwrap_or_default(), Some(head), release).await?;
        self.clean().await
    }

    /// Step 8. `head` is the new head of the lake, if there is one.
    pub(crate) async fn advance(
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
        let compacts =
            record.window.as_ref().is_some_and(|window| window.purpose == Purpose::Compact);
        let settings = if compacts { None } else { self.watermark_settings()? };
        let watermark =
            settings.map(|settings| AdvanceWatermark { settings, expected, next: progress, rows });
        if release {
            self.run.forget(&self.state.lease);
        }
        let mut advance = Advance { record, head: head.clone(), watermark, release };
        let began = Instant::now();
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
        self.timed("advance", began);
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
        let filter = WatermarkFilter {
            env: Some(known.key.env.clone()),
            scope: Some(known.key.scope.clone()),
            table: known.key.table.as_ref().map(ToString::to_string),
            ..WatermarkFilter::default()
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

    async fn wait_for_publish(&mut self) -> Result<()> {
        let record = self.record.lock().await.clone();
        self.run.forget(&self.state.lease);
        let update = TableUpdate { record, release: true };
        self.run.app.state.update_table(&self.state.lease, &update).await?;
        self.report.status = Some(TableRunStatus::Committed);
        self.fault(Step::Committed).await
    }
}

fn is_compaction(manifest: &Manifest) -> bool {
    manifest.window.as_ref().is_some_and(|window| window.window.purpose == Purpose::Compact)
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
