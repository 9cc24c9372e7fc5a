//! What a run does before it reads: state and lake must agree, and what an
//! earlier run left unfinished is finished.

use std::sync::Arc;

use tidelake_lake::Claim;
use tidelake_model::{
    Actor, Error, ErrorKind, Head, MANIFEST_FORMAT, Notice, NoticeCode, Owner, Purpose, Result,
    TableRun, TableRunStatus, WindowRecord,
};
use tidelake_state::{TableState, TableUpdate, WatermarkSettings};
use tidelake_watermark::Progress;
use tokio::sync::Mutex;

use crate::run::{OnMismatch, RunMode};
use crate::table_run::TableWork;

impl TableWork<'_> {
    /// Loads the lake's head and compares it with what the state remembers.
    pub(crate) async fn check_lake(&mut self) -> Result<()> {
        self.latest = self.lake.latest().await?;
        let in_lake = self.latest.as_ref().map(|latest| latest.head);
        let remembered = self.state.head.as_ref().map(|head| head.run_id);
        let committing =
            self.state.unfinished.as_ref().and_then(|unfinished| unfinished.pending.as_ref());
        let being_committed = committing.is_some_and(|pending| {
            in_lake == Some(pending.manifest.run_id) || in_lake == pending.previous_head
        });
        if remembered.is_none() {
            self.claim().await?;
        }
        if in_lake != remembered && !being_committed {
            self.mismatch().await?;
        }
        if let Some(latest) = &self.latest {
            let listed = latest.manifests.last().ok_or_else(|| {
                Error::new(ErrorKind::Mismatch, "the lake's list of manifests is empty")
            })?;
            self.head = Some(self.lake.manifest(listed).await?);
        }
        Ok(())
    }

    pub(crate) fn owner(&self) -> Owner {
        Owner {
            format_version: MANIFEST_FORMAT,
            state_store: self.run.identity.clone(),
            env: self.run.sync.env.clone(),
            scope: self.run.sync.sync_id.clone(),
            table: self.report.table.clone(),
        }
    }

    /// Makes the folder ours, or refuses when it is another's.
    async fn claim(&mut self) -> Result<()> {
        let owner = self.owner();
        let other = match self.lake.claim(&owner).await? {
            Claim::Ours => return Ok(()),
            Claim::Other(other) => other,
        };
        let place = self.lake.location();
        let same_store = other.state_store == owner.state_store;
        let still_there =
            same_store && self.run.app.state.sync(&other.env, &other.scope).await.is_ok();
        if self.run.request.on_mismatch != OnMismatch::Refuse && !still_there {
            return self.lake.take_over(&owner).await;
        }
        let error = Error::new(
            ErrorKind::Mismatch,
            format!(
                "{place} belongs to the table {} of the sync {:?}{}",
                other.table,
                other.scope,
                if same_store { "" } else { " of another state store" }
            ),
        );
        Err(if still_there {
            error.with_hint(
                "two syncs may not write to one folder: choose another --sub-path or target for \
                 one of them, or delete the other sync",
            )
        } else {
            error.with_hint(
                "if that state store is lost, decide: sync --on-mismatch adopt goes on from what \
                 the lake says, sync --on-mismatch rebuild reads the table anew; otherwise choose \
                 another --sub-path",
            )
        })
    }

    /// State and lake disagree: refuse, or do what the user decided.
    async fn mismatch(&mut self) -> Result<()> {
        let in_lake = self.latest.as_ref().map(|latest| latest.head);
        let head = in_lake.map(|run_id| Head { run_id, location: self.lake.location() });
        let settings = self.watermark_settings()?;
        let adopted = match (self.run.request.on_mismatch, in_lake) {
            (OnMismatch::Refuse, _) => {
                return Err(self.refusal().with_hint(
                    "a state store or a lake was lost or restored; going on could lose or double \
                     rows. Decide: sync --on-mismatch adopt goes on from what the lake says, sync \
                     --on-mismatch rebuild reads the table anew",
                ));
            }
            (OnMismatch::Adopt, None) => {
                return Err(self.refusal().with_hint(
                    "there is nothing in the lake to adopt: sync --on-mismatch rebuild reads the \
                     table anew",
                ));
            }
            (OnMismatch::Adopt, Some(run_id)) => {
                let manifest = self.lake.manifest_of(run_id).await?;
                let column = settings.as_ref().map(|settings| settings.column.clone());
                match manifest.and_then(|manifest| manifest.window) {
                    Some(window) if window.cursor == column => Some(window.progress),
                    _ => {
                        return Err(self.refusal().with_hint(
                            "the lake was written with another cursor and cannot be adopted: sync \
                             --on-mismatch rebuild reads the table anew",
                        ));
                    }
                }
            }
            (OnMismatch::Rebuild, _) => None,
        };
        let pair = settings
            .as_ref()
            .map(|settings| (settings, adopted.as_ref().unwrap_or(&settings.initial)));
        self.state = self.adopt(head.as_ref(), pair).await?;
        self.give_up_unfinished().await
    }

    /// What an earlier run left to be finished is void after the user decided.
    async fn give_up_unfinished(&mut self) -> Result<()> {
        let Some(mut unfinished) = self.state.unfinished.take() else { return Ok(()) };
        let objects = unfinished.pending.iter().flat_map(|pending| &pending.objects);
        let uploads: Vec<_> =
            objects.map(|staged| &staged.upload).chain(&unfinished.uploads).cloned().collect();
        self.abort(uploads.iter()).await;
        unfinished.error =
            Some(format!("given up by the decision made in run {}", self.run.run_id));
        self.fail_earlier(unfinished).await
    }

    /// Records that an earlier run of the table is not taken up.
    async fn fail_earlier(&self, mut record: TableRun) -> Result<()> {
        record.status = TableRunStatus::Failed;
        record.uploads.clear();
        record.pending = None;
        let update = TableUpdate { record, release: false };
        self.run.app.state.update_table(&self.state.lease, &update).await
    }

    /// Forgets the watermark under the lease, so that this run reads everything
    /// and replaces what the lake holds.
    pub(crate) async fn reset(&mut self) -> Result<()> {
        let Some(settings) = self.watermark_settings()? else { return Ok(()) };
        let pair = Some((&settings, &settings.initial));
        let head = self.state.head.clone();
        self.state = self.adopt(head.as_ref(), pair).await?;
        Ok(())
    }

    async fn adopt(
        &self,
        head: Option<&Head>,
        progress: Option<(&WatermarkSettings, &Progress)>,
    ) -> Result<TableState> {
        let actor = Actor { kind: "run".into(), name: self.run.run_id.to_string() };
        self.run.app.state.adopt(&self.state.lease, head, progress, &actor).await
    }

    fn refusal(&self) -> Error {
        let place = self.lake.location();
        let remembered = self.state.head.as_ref().map(|head| head.run_id);
        let message = match (self.latest.as_ref().map(|latest| latest.head), remembered) {
            (Some(in_lake), Some(remembered)) => format!(
                "{place} was last written by run {in_lake}, but the state store remembers run \
                 {remembered}"
            ),
            (Some(in_lake), None) => format!(
                "{place} holds what run {in_lake} wrote, but the state store remembers nothing of it"
            ),
            (None, Some(remembered)) => format!(
                "the state store remembers run {remembered} in {place}, but nothing is there"
            ),
            (None, None) => format!("{place} and the state store disagree"),
        };
        Error::new(ErrorKind::Mismatch, message)
    }

    /// Finishes what an earlier run of the table left. Returns whether the table
    /// is done with for this run.
    pub(crate) async fn finish_unfinished(&mut self) -> Result<bool> {
        let Some(unfinished) = self.state.unfinished.take() else { return Ok(false) };
        let earlier = unfinished.run_id;
        tracing::info!(table = %self.report.table, run = %earlier, "finishing an earlier run");
        if unfinished.status == TableRunStatus::Reading {
            return self.redo_reading(unfinished).await;
        }
        let Some(pending) = unfinished.pending.clone() else {
            return Err(Error::new(
                ErrorKind::Internal,
                format!("run {earlier} was being committed, but its list of files is missing"),
            ));
        };
        if self.publishes() && self.run.request.mode == RunMode::ExportOnly {
            self.note(Notice::new(
                NoticeCode::Setting,
                format!("run {earlier} waits to be published; nothing new is exported before"),
            ));
            self.report.status = Some(TableRunStatus::Committed);
            return Ok(true);
        }
        let was_exported = unfinished.status == TableRunStatus::Committed;
        let window = unfinished.window.clone();
        self.record = Arc::new(Mutex::new(unfinished));
        self.finish_commit(&pending, false).await?;
        let manifest = &pending.manifest;
        let rows = manifest.counters.get("rows").copied().unwrap_or(0);
        self.report.rows = self.report.rows.saturating_add(rows);
        self.note(Notice::new(
            NoticeCode::Recovered,
            match was_exported {
                true => format!("run {earlier} had exported {rows} row(s), which were published"),
                false => format!(
                    "run {earlier} was interrupted while it committed {rows} row(s); it was \
                     finished"
                ),
            },
        ));
        self.finished_earlier = window;
        self.start_over().await;
        Ok(false)
    }

    /// An earlier run died while it read. Nothing of it is visible: its uploads
    /// are aborted, and the same window is read afresh where it still applies.
    async fn redo_reading(&mut self, mut unfinished: TableRun) -> Result<bool> {
        let earlier = unfinished.run_id;
        self.abort(unfinished.uploads.iter()).await;
        self.lake.abort_attempts(earlier, self.state.lease.token).await?;
        let still_applies = self.run.request.mode != RunMode::PublishOnly
            && !self.run.request.reset_watermarks
            && unfinished.window.as_ref().is_some_and(|window| self.applies(window));
        if let (true, Some(window)) = (still_applies, unfinished.window.take()) {
            self.pass(earlier, window.clone(), vec![], vec![], false, false).await?;
            self.finished_earlier = Some(window);
            self.note(Notice::new(
                NoticeCode::Recovered,
                format!("run {earlier} was interrupted while it read; its window was read afresh"),
            ));
            self.start_over().await;
            return Ok(false);
        }
        unfinished.error = Some(format!("interrupted; run {} began afresh", self.run.run_id));
        self.fail_earlier(unfinished).await?;
        Ok(false)
    }

    /// Whether a window that was fixed earlier is still right: the cursor and
    /// the watermark are what they were.
    fn applies(&self, window: &WindowRecord) -> bool {
        let Some(cursor) = &self.selected.cursor else { return false };
        if window.purpose == Purpose::Compact {
            return false;
        }
        let same_kinds = window.high.as_ref().is_some_and(|high| high.kinds() == cursor.read.kinds);
        same_kinds && window.version == self.version()
    }
}
