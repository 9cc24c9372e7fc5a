//! `compact`: the small files of a table become few, by a manifest that takes
//! them out. No row is added, changed or removed, and nothing is published again.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use serde::Serialize;
use tidelake_lake::{FileExtent, TableWriter, WriterSettings};
use tidelake_model::{
    DataFile, Error, ErrorKind, Latest, MANIFEST_FORMAT, Manifest, ManifestWindow, Notice,
    PendingCommit, Purpose, Result, RunId, StagedObject, Step, TableName, TableRunStatus, TakenOut,
    WindowRecord,
};

use crate::application::Application;
use crate::edit::file_extent;
use crate::one_table::{OneTable, TableRequest, table_names};
use crate::run::{ErrorReport, TableReport};
use crate::slices::abort;
use crate::table_run::{TableWork, Task, now_text};
use crate::window::whole;

/// How files are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Size of a merged file, about; files of half of it and more stay.
    pub target_bytes: u64,
}

/// What a user asks of a compaction.
#[derive(Clone)]
pub struct CompactRequest {
    /// For whom; the table's name is that of the only table, or empty for all.
    pub table: TableRequest,
    /// How.
    pub compaction: Compaction,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// What became of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compacted {
    /// The table.
    pub table: TableName,
    /// The run; `None` where there was nothing to do.
    pub run_id: Option<RunId>,
    /// Small files that were, or would be, merged.
    pub files: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Files that took their place, or would.
    pub merged_files: u64,
    /// Bytes of those; 0 before they are written.
    pub merged_bytes: u64,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// What went wrong.
    pub error: Option<ErrorReport>,
}

/// Merges the small files of one table, or of all tables of a sync, a run for each.
/// A table whose files are large enough is left as it is. A failure of one table
/// stops no other.
pub async fn compact(app: &Application, request: CompactRequest) -> Result<Vec<Compacted>> {
    let mut compacted = vec![];
    let names = if request.table.table.is_empty() {
        table_names(app, &request.table).await?
    } else {
        vec![request.table.table.clone()]
    };
    for name in names {
        let table = TableRequest { table: name, ..request.table.clone() };
        if table.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Interrupted, "the compaction was interrupted"));
        }
        let one = OneTable::open(app, table).await?;
        let name = one.name().clone();
        let done = compact_one(&one, &request).await.unwrap_or_else(|error| Compacted {
            error: Some((&error.in_table(&name)).into()),
            ..nothing(&name)
        });
        compacted.push(done);
    }
    Ok(compacted)
}

fn nothing(table: &TableName) -> Compacted {
    Compacted {
        table: table.clone(),
        run_id: None,
        files: 0,
        rows: 0,
        bytes: 0,
        merged_files: 0,
        merged_bytes: 0,
        notices: vec![],
        error: None,
    }
}

async fn compact_one(one: &OneTable<'_>, request: &CompactRequest) -> Result<Compacted> {
    let lake = one.lake();
    let mut done = nothing(one.name());
    // Looked at without a lease, so that a table with nothing to merge costs
    // nothing and disturbs nobody.
    let Some(latest) = lake.latest().await? else { return Ok(done) };
    let groups = groups(lake.live_files(&latest).await?, request.compaction.target_bytes);
    for file in groups.iter().flatten() {
        done.files += 1;
        done.rows = done.rows.saturating_add(file.rows);
        done.bytes = done.bytes.saturating_add(file.bytes);
    }
    done.merged_files = u64::try_from(groups.len()).unwrap_or(u64::MAX);
    if groups.is_empty() || request.dry_run {
        return Ok(done);
    }
    let report = one.run(&Task::Compact(request.compaction)).await?;
    done.run_id = Some(report.run_id);
    done.notices = report.notices;
    if let Some(table) = report.tables.into_iter().next() {
        let TableReport { counters, notices, error, files, bytes, .. } = table;
        let counted = |name: &str| counters.get(name).copied().unwrap_or(0);
        done.files = counted(MERGED_FILES);
        done.rows = counted(MERGED_ROWS);
        done.bytes = counted(MERGED_BYTES);
        (done.merged_files, done.merged_bytes) = (files, bytes);
        done.notices.extend(notices);
        done.error = error;
    }
    Ok(done)
}

const MERGED_FILES: &str = "merged_files";
const MERGED_ROWS: &str = "merged_rows";
const MERGED_BYTES: &str = "merged_bytes";

/// Which files become one. Files that lie next to each other by their cursor come
/// together, so that each merged file has a narrow extent. Every group has two
/// files or more, so each compaction leaves fewer files than it found.
fn groups(mut files: Vec<DataFile>, target_bytes: u64) -> Vec<Vec<DataFile>> {
    files.retain(|file| file.bytes < target_bytes / 2);
    files.sort_by(|left, right| match (&left.cursor_min, &right.cursor_min) {
        (Some(left), Some(right)) => left.compare(right).unwrap_or(Ordering::Equal),
        (left, right) => right.is_some().cmp(&left.is_some()),
    });
    let mut groups: Vec<Vec<DataFile>> = vec![];
    let mut open = 0_u64;
    for file in files {
        open = open.saturating_add(file.bytes);
        match groups.last_mut() {
            Some(group) if open <= target_bytes => group.push(file),
            _ => {
                open = file.bytes;
                groups.push(vec![file]);
            }
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// What a group became.
type Merged = Vec<(DataFile, StagedObject)>;

impl TableWork<'_> {
    /// Merges and commits, in the order of every run.
    pub(crate) async fn compact(&mut self, compaction: &Compaction) -> Result<()> {
        let (Some(latest), Some(head)) = (self.latest.clone(), self.head.clone()) else {
            return self.nothing_to_merge();
        };
        self.check_cursor(&head)?;
        // Chosen anew under the lease.
        let groups = groups(self.lake.live_files(&latest).await?, compaction.target_bytes);
        if groups.is_empty() {
            return self.nothing_to_merge();
        }
        let window = WindowRecord {
            stays: true,
            replaces: false,
            null_cursors: false,
            version: self.version(),
            progress: self.progress()?,
            purpose: Purpose::Compact,
            ..whole()
        };
        let text = "small files, merged".to_owned();
        self.run.request.events.event(&crate::events::Event::WindowFixed {
            table: self.report.table.clone(),
            window: text.clone(),
        });
        self.report.window = Some(text);
        self.record.lock().await.window = Some(window.clone());

        let merged = self.merge(&head, &groups, compaction.target_bytes).await?;
        let pending = self.compaction(&latest, head, groups, merged, window).await;
        self.fault(Step::Staged).await?;
        if let Err(error) = self.check_stop() {
            self.abort(pending.objects.iter().map(|staged| &staged.upload)).await;
            return Err(error);
        }
        self.commit(pending, true).await
    }

    fn nothing_to_merge(&mut self) -> Result<()> {
        self.report.status.get_or_insert(TableRunStatus::Completed);
        Ok(())
    }

    /// The extents of the merged files are those of the cursor that the lake was
    /// written with.
    fn check_cursor(&self, head: &Manifest) -> Result<()> {
        let now = self.selected.cursor.as_ref().map(|cursor| cursor.settings.cursor.to_string());
        let before = head.window.as_ref().and_then(|window| window.cursor.clone());
        if now == before {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Configuration,
            "the lake was written with another cursor, and the next sync replaces all of its files",
        )
        .with_hint("run tidelake sync first"))
    }

    /// Writes the rows of each group into a file of its own; staged, not visible.
    async fn merge(
        &self,
        head: &Manifest,
        groups: &[Vec<DataFile>],
        target_bytes: u64,
    ) -> Result<Merged> {
        let readers = self.readers(self.run.run_id);
        let schema = Arc::new(head.schema.clone());
        readers.recorder.record_window().await?;
        let mut merged: Merged = vec![];
        for (number, group) in (0..).zip(groups) {
            let settings = WriterSettings {
                // A group is never cut in two, which would leave as many files.
                file_bytes: target_bytes.saturating_mul(2),
                // Files of an older schema are brought up to date on the way.
                schema: Arc::clone(&schema),
                ..readers.settings(number)
            };
            match self.merge_group(group, settings).await {
                Ok(files) => merged.extend(files),
                Err(error) => {
                    abort(&self.lake, merged.iter().map(|(_, staged)| &staged.upload)).await;
                    return Err(error);
                }
            }
        }
        Ok(merged)
    }

    async fn merge_group(&self, group: &[DataFile], settings: WriterSettings) -> Result<Merged> {
        let mut writer = self.lake.writer(settings)?;
        let copied = self.copy_files(group, &mut writer).await;
        let expected: u64 = group.iter().map(|file| file.rows).sum();
        let written = writer.rows();
        let failed = match copied {
            Ok(()) if written == expected => return writer.finish().await,
            Ok(()) => Error::new(
                ErrorKind::Internal,
                format!("{expected} rows were to be merged, and {written} were written"),
            ),
            Err(error) => error,
        };
        writer.abort().await;
        Err(failed)
    }

    async fn copy_files(&self, group: &[DataFile], writer: &mut TableWriter) -> Result<()> {
        self.fault(Step::Begin).await?;
        let cursor = self.selected.cursor.as_ref().map(|cursor| &cursor.read);
        let keep = |batch: &RecordBatch| Ok(BooleanArray::from(vec![true; batch.num_rows()]));
        let extent = |batch: &RecordBatch| match cursor {
            Some(cursor) => file_extent(batch, cursor),
            None => Ok(FileExtent::default()),
        };
        for file in group {
            self.check_stop()?;
            self.lake.take_out(file, &keep, writer, &extent).await?;
            self.fault(Step::Batch).await?;
        }
        Ok(())
    }

    async fn compaction(
        &mut self,
        latest: &Latest,
        head: Manifest,
        groups: Vec<Vec<DataFile>>,
        merged: Merged,
        window: WindowRecord,
    ) -> PendingCommit {
        let old: Vec<_> = groups.into_iter().flatten().collect();
        let total = |of: fn(&DataFile) -> u64| old.iter().map(of).fold(0, u64::saturating_add);
        let counters = &mut self.report.counters;
        counters.insert(MERGED_FILES.into(), total(|_| 1));
        counters.insert(MERGED_ROWS.into(), total(|file| file.rows));
        counters.insert(MERGED_BYTES.into(), total(|file| file.bytes));
        // What the status counts as rows are rows from the source.
        let mut counters = self.report.counters.clone();
        counters.insert("rows".into(), 0);
        let (files, objects) = merged.into_iter().unzip();
        let manifest = Manifest {
            format_version: MANIFEST_FORMAT,
            run_id: self.run.run_id,
            attempt: self.state.lease.token,
            generation: latest.generation,
            window: Some(ManifestWindow {
                cursor: head.window.as_ref().and_then(|window| window.cursor.clone()),
                progress: window.progress.clone(),
                window,
            }),
            files,
            taken_out: old.into_iter().map(|file| TakenOut { key: file.key, rows: 0 }).collect(),
            counters,
            notices: self.report.notices.clone(),
            started_at: self.record.lock().await.started_at.clone(),
            finished_at: now_text(),
            tool_version: env!("CARGO_PKG_VERSION").into(),
            // Table, schema, types, key and highest value are those of the lake.
            ..head
        };
        PendingCommit {
            manifest,
            objects,
            previous_head: Some(latest.head),
            replaces: false,
            keep_generations: self.run.sync.keep_generations,
        }
    }
}

#[cfg(test)]
mod tests {
    use tidelake_watermark::Value;

    use super::*;

    fn file(key: &str, bytes: u64, low: Option<i128>) -> DataFile {
        let at = low.map(|low| Value::Integer(low).into());
        DataFile {
            key: key.into(),
            rows: 1,
            bytes,
            sha256: String::new(),
            cursor_min: at.clone(),
            cursor_max: at,
            cursor_nulls: 0,
        }
    }

    fn names(groups: &[Vec<DataFile>]) -> Vec<Vec<&str>> {
        groups.iter().map(|group| group.iter().map(|file| file.key.as_str()).collect()).collect()
    }

    #[test]
    fn neighbours_by_cursor_come_together_up_to_the_target() {
        let files = vec![
            file("d", 40, Some(4)),
            file("large", 50, Some(3)),
            file("a", 40, Some(1)),
            file("none", 1, None),
            file("b", 40, Some(2)),
        ];
        assert_eq!(names(&groups(files, 100)), [vec!["a", "b"], vec!["d", "none"]]);
    }

    #[test]
    fn a_small_file_alone_stays() {
        assert!(groups(vec![file("a", 1, Some(1))], 100).is_empty());
        assert!(groups(vec![], 100).is_empty());
        let unequal = vec![file("a", 49, Some(1)), file("b", 49, Some(2)), file("c", 49, Some(3))];
        assert_eq!(names(&groups(unequal, 100)), [["a", "b"]]);
    }
}
