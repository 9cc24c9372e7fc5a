//! One table: what is compared, one pass over both sides, and more where they
//! differ.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use tidelake_connector::{Effort, HighestRequest, Slices, SplitRequest};
use tidelake_lake::TableLake;
use tidelake_model::{
    DataFile, Error, ErrorKind, HistoryRow, Latest, Manifest, Notice, NoticeCode, Purpose, Result,
    SchemaDrift, TableRunStatus, WatermarkRecord, WindowRecord,
};
use tidelake_watermark::{Bound, Progress, Range};

use super::bounds::Bounds;
use super::comparison::Comparison;
use super::files;
use super::finding::run_of;
use super::report::TableVerification;
use super::rows::RowHasher;
use super::sides::Sides;
use super::{Context, repair};
use crate::columns::{Shares, table_read};
use crate::create::watermark_settings;
use crate::drift::reconcile;
use crate::run::degree_of;
use crate::tables::{SelectedTable, table_key};
use crate::watermarks::stored;
use crate::window::{describe_range, whole};

/// How often a table is begun anew, because the lake changed or a connection broke.
const ATTEMPTS: u32 = 3;

/// What is known of a table before anything of it is read.
struct Known {
    progress: Progress,
    history: Vec<HistoryRow>,
    /// Ranges that were read beside the ordinary runs.
    extra: Vec<Range>,
}

/// What was found, and what a repair has to read again.
pub(super) struct Outcome {
    pub(super) report: TableVerification,
    pub(super) repair: repair::Plan,
}

/// The work on one table.
pub(super) struct Work<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) selected: &'a SelectedTable,
    pub(super) lake: TableLake,
}

impl Work<'_> {
    /// Verifies the table. A lake that changes meanwhile, and a connection that
    /// breaks, begin it anew.
    pub(super) async fn verify(&self) -> Result<Outcome> {
        let mut attempt = 1;
        loop {
            match self.attempt().await {
                Err(error)
                    if attempt < ATTEMPTS
                        && matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unavailable) =>
                {
                    tracing::info!(
                        table = %self.selected.table.name,
                        error = error.chain(),
                        "begun anew"
                    );
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    async fn attempt(&self) -> Result<Outcome> {
        // The state before the lake: what the watermark says was read is there.
        let known = self.known().await?;
        let mut report = TableVerification::new(self.selected, &self.lake);
        let Some(latest) = self.lake.latest().await? else {
            report.note(NoticeCode::Setting, "nothing was committed to the lake yet");
            return Ok(Outcome { report, repair: repair::Plan::default() });
        };
        let listed = latest.manifests.last().ok_or_else(|| {
            Error::new(ErrorKind::Mismatch, "the lake's list of manifests is empty")
        })?;
        let head = self.lake.manifest(listed).await?;
        if self.selected.cursor.is_some() {
            // A column that became another one cannot be compared, and is told as a
            // run tells it.
            reconcile(SchemaDrift::Evolve, &head, &mut self.selected.clone())?;
        }
        let lake_files = self.lake.live_files(&latest).await?;
        report.describe_lake(&head, &lake_files);
        let Some(bounds) = self.bounds(&known, &latest, &lake_files, &mut report).await? else {
            return Ok(Outcome { report, repair: repair::Plan::default() });
        };
        self.tell_unread(&bounds, &known.progress, &mut report).await?;
        let (hasher, schema) = self.columns(&latest, &head, &lake_files, &mut report).await?;
        let faults = files::check(&self.lake, &lake_files, self.context.request.checksums).await?;
        let sides = self.sides(bounds, lake_files, schema).await?;
        let comparison = Comparison { work: self, sides: &sides, hasher: &hasher };
        let done = comparison.run(&mut report, faults).await?;
        if (done.errors > 0 || !report.file_faults.is_empty()) && self.is_replaced(&latest).await? {
            return Err(Error::new(ErrorKind::Conflict, "the lake changed while it was read")
                .with_hint("verify again when no run of the table is under way"));
        }
        Ok(Outcome { report, repair: done.repair })
    }

    async fn is_replaced(&self, latest: &Latest) -> Result<bool> {
        Ok(self.lake.latest().await?.as_ref().map(|now| now.head) != Some(latest.head))
    }

    /// The watermark with its history, and what was read beside it.
    async fn known(&self) -> Result<Known> {
        let nothing = Known { progress: Progress::default(), history: vec![], extra: vec![] };
        let Some(cursor) = &self.selected.cursor else { return Ok(nothing) };
        let settings = watermark_settings(&cursor.settings)?;
        let Some(record) = self.record(&settings.column).await? else {
            return Ok(Known { progress: settings.initial, ..nothing });
        };
        let state = &self.context.app.state;
        let key = table_key(self.context.sync, &self.selected.table.name);
        let backfills = state.runs_of_table(&key, 0).await?.into_iter().filter_map(|run| {
            let window = run.window.filter(|_| run.status == TableRunStatus::Completed)?;
            beside(&window)
        });
        Ok(Known {
            progress: record.progress,
            history: state.history(&record.id).await?,
            extra: backfills.collect(),
        })
    }

    async fn record(&self, column: &str) -> Result<Option<WatermarkRecord>> {
        let name = &self.selected.table.name;
        stored(self.context.app, self.context.sync, name, column).await
    }

    /// What is compared; `None` where there is nothing.
    async fn bounds(
        &self,
        known: &Known,
        latest: &Latest,
        lake_files: &[DataFile],
        report: &mut TableVerification,
    ) -> Result<Option<Bounds>> {
        let Some(cursor) = &self.selected.cursor else {
            let since = report.head_finished_at.clone().unwrap_or_default();
            report.note(
                NoticeCode::Setting,
                format!(
                    "the table has no cursor and is compared as the source has it now: rows that \
                     were changed since the last sync, at {since}, differ"
                ),
            );
            let bounds = Bounds::whole();
            report.compared = Some(bounds.describe());
            return Ok(Some(bounds));
        };
        let mut extra = known.extra.clone();
        for live in &latest.manifests {
            let window = self.lake.manifest(live).await?.window;
            extra.extend(window.and_then(|found| beside(&found.window)));
        }
        let sync = self.context.sync;
        let bounds = Bounds::of(sync, cursor, &known.progress, &known.history, &extra)?;
        let Some(bounds) = bounds.filter(|bounds| !bounds.is_empty()) else {
            let is_lost = known.progress.watermark.is_none() && known.history.is_empty();
            if is_lost && lake_files.iter().any(|file| file.cursor_max.is_some()) {
                return Err(Error::new(
                    ErrorKind::Mismatch,
                    "the lake holds rows, and the state store has no watermark of the table",
                )
                .with_hint(
                    "decide: sync --on-mismatch adopt takes over what the lake says, \
                     --on-mismatch rebuild reads the table anew",
                ));
            }
            report.note(NoticeCode::Setting, "the next run reads every row, nothing is compared");
            return Ok(None);
        };
        report.compared = Some(bounds.describe());
        report.verified_through = bounds.through.as_ref().map(|bound| bound.at.to_string());
        for range in &bounds.skipped {
            report.note(
                NoticeCode::Setting,
                format!(
                    "{} was passed over when the watermark was set by hand, and is not compared; \
                     backfill reads it",
                    describe_range(range)
                ),
            );
        }
        Ok(Some(bounds))
    }

    /// Rows between what was read and the watermark, which the next run reads.
    async fn tell_unread(
        &self,
        bounds: &Bounds,
        progress: &Progress,
        report: &mut TableVerification,
    ) -> Result<()> {
        let (Some(cursor), Some(through), Some(watermark)) =
            (&self.selected.cursor, &bounds.through, &progress.watermark)
        else {
            return Ok(());
        };
        if through.at == *watermark || !cursor.indexed {
            return Ok(());
        }
        let range = Range {
            low: Some(Bound { at: through.at.clone(), inclusive: !through.inclusive }),
            high: Some(Bound { at: watermark.clone(), inclusive: true }),
        };
        let request = HighestRequest {
            table: self.selected.table.name.clone(),
            cursor: cursor.read.clone(),
            effort: Effort::Cheap,
            count: Some(range.clone()),
            count_nulls: false,
        };
        report.unread_rows = self.context.source.highest(&request).await?.rows;
        if let Some(rows) = report.unread_rows.filter(|rows| *rows > 0) {
            report.note(
                NoticeCode::HeldBack,
                format!("{rows} row(s) in {} are read by the next run", describe_range(&range)),
            );
        }
        Ok(())
    }

    /// The columns that are compared, and the schema in which both sides are read.
    async fn columns(
        &self,
        latest: &Latest,
        head: &Manifest,
        lake_files: &[DataFile],
        report: &mut TableVerification,
    ) -> Result<(RowHasher, SchemaRef)> {
        let SelectedTable { table, read_columns, cursor, .. } = self.selected;
        let added = self.added_columns(latest, head, lake_files).await?;
        let mut fields: Vec<Field> = vec![];
        for column in &table.columns {
            let name = column.name();
            let reason = if !read_columns.iter().any(|read| read.name() == name) {
                Some("the source has it no more")
            } else if head.schema.field_with_name(name).is_err() {
                Some("the lake does not have it yet")
            } else if added.contains(name) {
                Some("files that were written before it was added do not have it")
            } else {
                None
            };
            match reason {
                // What was NULL once may be read, whatever the catalogue says now.
                None => fields.push(column.field.clone().with_nullable(true)),
                Some(reason) => report.note(
                    NoticeCode::SchemaChanged,
                    format!("column {name:?} is not compared: {reason}"),
                ),
            }
        }
        let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let mut key = table.key();
        if !key.iter().all(|name| names.contains(name)) {
            key.clear();
        }
        report.key.clone_from(&key);
        let cursor = cursor.as_ref().map(|cursor| cursor.read.clone());
        Ok((RowHasher::new(names, key, cursor), Arc::new(Schema::new(fields))))
    }

    /// Columns that some live file lacks, since they were added later.
    async fn added_columns(
        &self,
        latest: &Latest,
        head: &Manifest,
        lake_files: &[DataFile],
    ) -> Result<HashSet<String>> {
        let mut added = HashSet::new();
        let oldest = match latest.manifests.first() {
            Some(live) => self.lake.manifest(live).await?.schema_version,
            None => head.schema_version,
        };
        if oldest == head.schema_version && latest.checkpoint.is_none() {
            return Ok(added);
        }
        let runs: HashSet<_> = lake_files.iter().filter_map(|file| run_of(&file.key)).collect();
        for run in runs {
            let Some(manifest) = self.lake.manifest_of(run).await? else { continue };
            let lacks = |field: &&Arc<Field>| manifest.schema.index_of(field.name()).is_err();
            added.extend(
                head.schema.fields().iter().filter(lacks).map(|field| field.name().clone()),
            );
        }
        Ok(added)
    }

    /// Takes the source's snapshot.
    async fn sides(
        &self,
        bounds: Bounds,
        lake_files: Vec<DataFile>,
        schema: SchemaRef,
    ) -> Result<Sides> {
        let Context { sync, source, degree, readers, .. } = self.context;
        let window = WindowRecord { range: bounds.hull(), null_cursors: bounds.nulls, ..whole() };
        let shares = Shares::of(sync.memory_limit, readers.saturating_mul(2));
        let mut read = table_read(sync, self.selected, &window, shares);
        read.columns.retain(|column| schema.index_of(column.name()).is_ok());
        for column in &mut read.columns {
            column.field.set_nullable(true);
        }
        let request = SplitRequest {
            read,
            // Nearly all of the table is read, whatever the lower end.
            degree: degree_of(sync, self.selected, &whole(), *degree),
            method: self.selected.read.method,
            key: self.selected.read.key.clone(),
        };
        let slices: Slices = source.split(&request).await?;
        Ok(Sides {
            table: self.selected.table.name.clone(),
            source: Arc::clone(source),
            slices,
            lake: self.lake.clone(),
            files: Arc::new(lake_files),
            schema,
            bounds: Arc::new(bounds),
            degree: *degree,
            events: Arc::clone(&self.context.request.events),
            stop: self.context.request.cancel.clone(),
        })
    }
}

/// The range of a window that is no step of the watermark.
fn beside(window: &WindowRecord) -> Option<Range> {
    matches!(window.purpose, Purpose::Backfill(_)).then(|| window.range.clone()).flatten()
}

impl TableVerification {
    fn note(&mut self, code: NoticeCode, message: impl Into<String>) {
        self.notices.push(Notice::new(code, message));
    }
}
