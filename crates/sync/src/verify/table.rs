//! One table: what is compared, one pass over both sides, and more where they
//! differ.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use tidelake_connector::{Effort, HighestRequest, Slices, SplitRequest};
use tidelake_lake::{FileFault, TableLake};
use tidelake_model::{
    DataFile, Error, ErrorKind, HistoryRow, Latest, Manifest, Notice, NoticeCode, Purpose, Result,
    TableRunStatus, WatermarkFilter, WatermarkRecord, WindowRecord,
};
use tidelake_watermark::{Bound, Progress, Range};

use super::bounds::Bounds;
use super::collect::{Collector, ENTRY_BYTES, Kept, Wanted};
use super::digest::{Digest, Suspects};
use super::files;
use super::finding::{Describer, Finding, run_of, sort};
use super::lookup::Lookup;
use super::matching::{Case, Difference, Keep, Matched, Rules};
use super::report::{ColumnChecksum, TableVerification, Verified};
use super::rows::RowHasher;
use super::sides::{Sides, Visitor};
use super::{Context, repair};
use crate::columns::{Shares, table_read};
use crate::create::watermark_settings;
use crate::run::degree_of;
use crate::tables::{SelectedTable, table_key};
use crate::window::{describe_range, whole};

/// Rows of the lake alone that are looked up at the source.
const MOST_LOOKUPS: usize = 1_000;
/// Rows that share a bucket with a difference, up to which their values are kept
/// in the pass that finds them.
const FEW: u64 = 4_096;
/// Errors whose place is remembered for a repair.
const MOST_WRONG: usize = 200_000;
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
        let key = table_key(self.context.sync, &self.selected.table.name);
        let filter = WatermarkFilter {
            env: Some(key.env),
            scope: Some(key.scope),
            table: Some(self.selected.table.name.to_string()),
            ..WatermarkFilter::default()
        };
        let stored = self.context.app.state.watermarks(&filter).await?;
        Ok(stored.into_iter().find(|record| record.column == column))
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
            report.note(
                NoticeCode::Setting,
                "the table has no cursor and is compared as the source has it now: rows that were \
                 changed since the last sync differ",
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
                format!("{rows} rows in {} are read by the next run", describe_range(&range)),
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
            degree: degree_of(sync, self.selected, &window, *degree),
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

/// Both sides against each other.
struct Comparison<'a> {
    work: &'a Work<'a>,
    sides: &'a Sides,
    hasher: &'a RowHasher,
}

struct Done {
    errors: u64,
    repair: repair::Plan,
}

impl Comparison<'_> {
    async fn run(
        &self,
        report: &mut TableVerification,
        faults: BTreeMap<u32, FileFault>,
    ) -> Result<Done> {
        let lake = &self.work.lake;
        let file = |number: u32| {
            usize::try_from(number).ok().and_then(|number| self.sides.files.get(number))
        };
        for (number, fault) in &faults {
            let found = file(*number).map(|file| files::finding(lake, file, fault));
            report.file_faults.extend(found);
        }
        // A file of other bytes can still be read, and says more than its checksum.
        let mut damaged: BTreeSet<u32> = faults.keys().copied().collect();
        let mut passed_over: BTreeMap<u32, Error> = faults
            .into_iter()
            .filter(|(_, fault)| !matches!(fault, FileFault::Checksum { .. }))
            .map(|(number, _)| (number, Error::new(ErrorKind::Mismatch, "the file is damaged")))
            .collect();
        let digest = loop {
            let rows = self.sides.files.iter().map(|file| file.rows).sum();
            let digest = Arc::new(Digest::new(self.hasher.clone(), rows));
            let visitor = Arc::clone(&digest) as Arc<dyn Visitor>;
            let scan = self.sides.scan(visitor, &passed_over).await?;
            if scan.unreadable.is_empty() {
                report.beyond_rows = scan.beyond;
                break digest;
            }
            for (number, error) in scan.unreadable {
                let found = file(number).map(|file| files::unreadable(lake, file, &error));
                report.file_faults.extend(found);
                damaged.insert(number);
                passed_over.insert(number, error);
            }
        };
        self.sum_up(&digest, report);
        let suspects = digest.suspects();
        drop(digest);
        let mut wrong = vec![];
        let mut is_cut = false;
        if !suspects.is_empty() {
            let (matched, kept) = self.collect(&suspects, &passed_over).await?;
            report.counts = matched.counts;
            is_cut = matched.wrong_is_cut;
            wrong.clone_from(&matched.wrong);
            let kept = match kept {
                Some(kept) => kept,
                None => self.fetch(&matched, &passed_over).await?,
            };
            report.findings = self.describe(matched, &kept, report).await?;
            self.check_altered(report).await?;
        }
        let errors = report.counts.errors();
        let is_same = errors == 0 && report.file_faults.is_empty();
        report.outcome = if is_same { Verified::Same } else { Verified::Differs };
        let mut plan = repair::Plan::default();
        if self.work.context.request.repair && !is_same {
            let damaged = damaged.iter().filter_map(|number| file(*number));
            plan =
                repair::plan(self.sides, self.hasher, wrong, is_cut, damaged, &passed_over).await?;
        }
        Ok(Done { errors, repair: plan })
    }

    fn sum_up(&self, digest: &Digest, report: &mut TableVerification) {
        let (source, lake) = digest.totals();
        report.source_rows = source.rows;
        report.lake_rows = lake.rows;
        let sums = self.hasher.names().iter().zip(source.sums).zip(lake.sums);
        report.columns = sums
            .map(|((name, source), lake)| ColumnChecksum {
                column: name.clone(),
                same: source == lake,
                source: format!("{source:032x}"),
                lake: format!("{lake:032x}"),
            })
            .collect();
    }

    /// The rows of buckets that differ, group by group as memory allows, put
    /// against each other. Their values come along where they are few.
    async fn collect(
        &self,
        suspects: &Suspects,
        passed_over: &BTreeMap<u32, Error>,
    ) -> Result<(Matched, Option<Vec<Kept>>)> {
        let Context { sync, request, .. } = self.work.context;
        let most = (sync.memory_limit / 2 / ENTRY_BYTES).max(100_000);
        let rules = Rules {
            has_key: !self.hasher.key().is_empty(),
            reads_all: self.hasher.cursor().is_none(),
        };
        let keep = Keep {
            errors: request.limit,
            others: request.limit,
            unknown: MOST_LOOKUPS,
            wrong: MOST_WRONG,
        };
        let is_few = suspects.rows() <= FEW;
        let mut matched = Matched::default();
        let mut values = None;
        for group in suspects.groups(most) {
            let wanted = Wanted::Buckets { bits: group.bits, marks: group.marks() };
            let names = is_few.then(|| self.hasher.names().to_vec());
            let collector = Arc::new(Collector::new(self.hasher.clone(), wanted, names));
            let visitor = Arc::clone(&collector) as Arc<dyn Visitor>;
            self.sides.scan(visitor, passed_over).await?;
            let (entries, kept) = collector.finish();
            matched.add(&entries, rules, keep);
            values = kept;
        }
        Ok((matched, values.filter(|_| is_few)))
    }

    /// The values of the rows that are named or looked up.
    async fn fetch(
        &self,
        matched: &Matched,
        passed_over: &BTreeMap<u32, Error>,
    ) -> Result<Vec<Kept>> {
        let whole = matched.errors.iter().chain(&matched.others).map(|case| case.identity);
        let brief = matched.unknown.iter().map(|case| case.identity);
        let wanted = Wanted::Identities { whole: whole.collect(), brief: brief.collect() };
        let names = Some(self.hasher.names().to_vec());
        let collector = Arc::new(Collector::new(self.hasher.clone(), wanted, names));
        let visitor = Arc::clone(&collector) as Arc<dyn Visitor>;
        self.sides.scan(visitor, passed_over).await?;
        Ok(collector.finish().1.unwrap_or_default())
    }

    /// Names what was found; rows of the lake alone are looked up first.
    async fn describe(
        &self,
        matched: Matched,
        kept: &[Kept],
        report: &mut TableVerification,
    ) -> Result<Vec<Finding>> {
        let Context { request, sync, source, .. } = self.work.context;
        let location = |key: &str| self.work.lake.file_location(key);
        let files = &self.sides.files;
        let describer = Describer::new(self.hasher, files, &location, request.values, kept);
        let Matched { errors, mut others, mut unknown, .. } = matched;
        let mut present = HashMap::new();
        if !self.hasher.key().is_empty() && !unknown.is_empty() {
            let lookup = Lookup {
                source: source.as_ref(),
                table: &self.sides.table,
                columns: self.lookup_columns(),
                policies: sync.policies,
                hasher: self.hasher,
            };
            present = lookup.settle(&mut unknown, &describer).await?;
        }
        for case in &unknown {
            if case.class != Difference::Unknown {
                report.counts.unknown = report.counts.unknown.saturating_sub(1);
                report.counts.add(case.class, 1);
            }
        }
        others.extend(unknown);
        others.truncate(request.limit);
        let mut findings = vec![];
        for case in errors.iter().chain(&others) {
            let mut finding = describer.finding(case)?;
            if let Some(now) = moved(case, &present) {
                finding.remark = Some(now);
            }
            findings.push(finding);
        }
        sort(&mut findings);
        Ok(findings)
    }

    fn lookup_columns(&self) -> Vec<tidelake_model::Column> {
        let cursor = self.hasher.cursor().map(|cursor| cursor.cursor.columns()).unwrap_or(&[]);
        let is_wanted =
            |name: &str| self.hasher.key().iter().chain(cursor).any(|wanted| wanted == name);
        let columns = self.work.selected.read_columns.iter();
        let mut columns: Vec<_> =
            columns.filter(|column| is_wanted(column.name())).cloned().collect();
        for column in &mut columns {
            column.field.set_nullable(true);
        }
        columns
    }

    /// Whether a file that holds a wrong row was altered after it was committed.
    async fn check_altered(&self, report: &mut TableVerification) -> Result<()> {
        let wrong = report.findings.iter().filter(|finding| finding.class.is_error());
        let suspected: HashSet<_> =
            wrong.flat_map(|finding| &finding.files).map(|place| place.file.clone()).collect();
        for file in self.sides.files.iter() {
            let location = self.work.lake.file_location(&file.key);
            let is_told = report.file_faults.iter().any(|fault| fault.file == location);
            if !suspected.contains(&location) || is_told {
                continue;
            }
            let fault = self.work.lake.check_file(file, true).await?;
            report
                .file_faults
                .extend(fault.map(|fault| files::finding(&self.work.lake, file, &fault)));
        }
        Ok(())
    }
}

/// Where a row of the lake stands in the source now.
fn moved(case: &Case, present: &HashMap<u64, Option<String>>) -> Option<String> {
    if case.class != Difference::Changed {
        return None;
    }
    let now = present.get(&case.key)?.as_deref().unwrap_or("NULL");
    Some(format!("the source has this key at {now}"))
}

impl TableVerification {
    fn note(&mut self, code: NoticeCode, message: impl Into<String>) {
        self.notices.push(Notice::new(code, message));
    }
}
