//! `explain`: why a row was or was not synced.

mod cells;
mod lake;
mod unreachable;
mod verdict;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use futures::TryStreamExt;
use serde::Serialize;
use tidelake_connector::{FindRequest, Source, TableFilter};
use tidelake_lake::{Lake, TableLake};
use tidelake_model::{
    Column, Error, ErrorKind, HeldLease, Notice, NoticeCode, Policies, Result, RunId, SyncConfig,
    Table, TableName, TableRead, TableRun, TableRunStatus,
};
use tidelake_state::LockFilter;

use crate::application::Application;
use crate::exact::in_schema;
use crate::one_table::find;
use crate::run::connect_source;
use crate::tables::{SelectedTable, table_key, tables_of};
use crate::verify::finding::cursor_text;

use cells::KeyCells;
use lake::Searched;
use verdict::Judge;

pub use verdict::Verdict;

/// Rows of one key that are explained.
const MOST_ROWS: usize = 20;

/// Which row is meant.
#[derive(Debug, Clone)]
pub struct ExplainRequest {
    /// Environment.
    pub env: String,
    /// The sync.
    pub sync_id: String,
    /// The table, as `schema.table` or, where only one schema has it, `table`.
    pub table: String,
    /// Columns and their values, as the source prints them; `None` is NULL.
    pub key: Vec<(String, Option<String>)>,
}

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The sync.
    pub sync_id: String,
    /// The table.
    pub table: TableName,
    /// `incremental` or `full`; absent where the table is not in the sync.
    pub mode: Option<&'static str>,
    /// What was asked for.
    pub key: serde_json::Map<String, serde_json::Value>,
    /// In one word.
    pub verdict: Verdict,
    /// In words.
    pub reasons: Vec<String>,
    /// What can be done.
    pub hint: Option<String>,
    /// The cursor's columns.
    pub cursor: Option<String>,
    /// How far the table was read.
    pub watermark: Option<String>,
    /// The highest value that any run exported.
    pub max_seen: Option<String>,
    /// What the next run reads; absent where it reads nothing now.
    pub next_window: Option<String>,
    /// The row in the source; several where the key is none.
    pub source: Vec<SourceRow>,
    /// Every version of it in the lake.
    pub lake: Vec<LakeRow>,
    /// What else the user should know.
    pub notices: Vec<Notice>,
}

/// A row of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceRow {
    /// Cursor value.
    pub cursor: Option<String>,
    /// What became of it.
    pub verdict: Verdict,
}

/// A version of the row in the lake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LakeRow {
    /// Cursor value.
    pub cursor: Option<String>,
    /// The file that holds it.
    pub file: String,
    /// The run that wrote the file.
    pub run_id: Option<RunId>,
    /// When that run finished reading.
    pub read_at: Option<String>,
    /// What it read.
    pub window: Option<String>,
    /// What it was for: `run`, `backfill`, `repair` or `compact`.
    pub purpose: Option<&'static str>,
}

/// Explains a row. Errors: `NotFound` for a sync or a table that does not exist,
/// `Configuration` for a column that does not exist or a value that does not fit.
pub async fn explain(app: &Application, request: ExplainRequest) -> Result<Explanation> {
    let sync = app.state.sync(&request.env, &request.sync_id).await?;
    let source = connect_source(app, &sync).await?;
    let selected = match find(tables_of(&sync, source.as_ref()).await?, &request.table) {
        Ok(selected) => selected,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return outside(&sync, source.as_ref(), &request, error).await;
        }
        Err(error) => return Err(error),
    };
    let lake = Lake::new(app.storages.open(&sync.target.location).await?);
    let lake = lake.table(sync.target.sub_path.as_deref(), &selected.table.name);
    let work = Work { app, request: &request, sync: &sync, source, selected: &selected, lake };
    work.explain().await.map_err(|error| error.in_table(&selected.table.name))
}

/// A table that exists and is not in the sync.
async fn outside(
    sync: &SyncConfig,
    source: &dyn Source,
    request: &ExplainRequest,
    error: Error,
) -> Result<Explanation> {
    let wanted = &request.table;
    let is_meant =
        |table: &&Table| table.name.to_string() == *wanted || table.name.table == *wanted;
    let tables = source.tables(&TableFilter::default()).await?;
    let Some(table) = tables.iter().find(is_meant) else { return Err(error) };
    let settings = &sync.source;
    let mut patterns = vec![];
    for (option, list) in [
        ("--source-schema-name", &settings.schemas),
        ("--include", &settings.include),
        ("--exclude", &settings.exclude),
    ] {
        if !list.is_empty() {
            patterns.push(format!("{option} {}", list.join(",")));
        }
    }
    for (option, limit) in [("--min-rows", settings.min_rows), ("--max-rows", settings.max_rows)] {
        patterns.extend(limit.map(|limit| format!("{option} {limit}")));
    }
    let mut explanation = Explanation::new(sync, &table.name, &request.key);
    explanation.verdict = Verdict::NotInSync;
    explanation.reasons.push(format!(
        "{} exists and is not among the tables of the sync, which was made with {}",
        table.name,
        if patterns.is_empty() { "no patterns".to_owned() } else { patterns.join(" ") }
    ));
    explanation.hint =
        Some("make a sync that includes the table with tidelake config create".to_owned());
    Ok(explanation)
}

impl Explanation {
    fn new(sync: &SyncConfig, table: &TableName, key: &[(String, Option<String>)]) -> Self {
        Self {
            sync_id: sync.sync_id.clone(),
            table: table.clone(),
            mode: None,
            key: key.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect(),
            verdict: Verdict::NoSuchRow,
            reasons: vec![],
            hint: None,
            cursor: None,
            watermark: None,
            max_seen: None,
            next_window: None,
            source: vec![],
            lake: vec![],
            notices: vec![],
        }
    }
}

/// The work on one row.
struct Work<'a> {
    app: &'a Application,
    request: &'a ExplainRequest,
    sync: &'a SyncConfig,
    source: Arc<dyn Source>,
    selected: &'a SelectedTable,
    lake: TableLake,
}

impl Work<'_> {
    async fn explain(&self) -> Result<Explanation> {
        let SelectedTable { table, cursor, .. } = self.selected;
        let mut explanation = Explanation::new(self.sync, &table.name, &self.request.key);
        explanation.mode = Some(self.selected.mode());
        explanation.cursor = cursor.as_ref().map(|cursor| cursor.settings.cursor.to_string());
        let judge =
            Judge::prepare(self.app, self.sync, self.source.as_ref(), self.selected).await?;
        judge.describe(&mut explanation);
        let rows = self.source_rows().await?;
        let beyond = self.beyond(&rows).await?;
        let Searched { found, latest } = self.lake_rows(&rows).await?;
        explanation.lake = found;
        explanation.notices.extend(self.notices().await?);
        judge.judge(&rows, &beyond, latest.as_ref(), &mut explanation)?;
        Ok(explanation)
    }

    /// Columns by which rows are told apart, found and placed.
    fn wanted(&self, name: &str) -> bool {
        let SelectedTable { table, cursor, .. } = self.selected;
        let cursor = cursor.as_ref().map(|cursor| cursor.settings.cursor.columns()).unwrap_or(&[]);
        let asked = self.request.key.iter().map(|(name, _)| name);
        cursor.iter().chain(asked).any(|wanted| wanted == name)
            || table.key().iter().any(|key| key == name)
    }

    /// The schema of those columns in the lake.
    fn schema(&self) -> SchemaRef {
        let columns = self.selected.table.columns.iter();
        let fields: Vec<Field> = columns
            .filter(|column| self.wanted(column.name()))
            .map(|column| column.field.clone().with_nullable(true))
            .collect();
        Arc::new(Schema::new(fields))
    }

    /// The rows of the source, as the lake would have them.
    async fn source_rows(&self) -> Result<Vec<RecordBatch>> {
        let mut columns: Vec<_> = self
            .selected
            .read_columns
            .iter()
            .filter(|column| self.wanted(column.name()))
            .cloned()
            .collect();
        for column in &mut columns {
            column.field.set_nullable(true);
        }
        let schema = self.schema();
        let request = self.find_request(columns, self.explained_policies());
        let mut reading = self.source.find(&request).await?;
        let mut rows = vec![];
        while let Some(batch) = reading.batches.try_next().await? {
            let batch = in_schema(batch, &schema)?;
            for row in 0..batch.num_rows() {
                if rows.len() < MOST_ROWS {
                    rows.push(batch.slice(row, 1));
                }
            }
        }
        Ok(rows)
    }

    fn find_request(&self, columns: Vec<Column>, policies: Policies) -> FindRequest {
        let read = TableRead {
            table: self.selected.table.name.clone(),
            columns,
            cursor: None,
            range: None,
            null_cursors: false,
            policies,
            batch_bytes: 1 << 20,
        };
        let (key, values) = self.request.key.iter().cloned().unzip();
        FindRequest { read, key, values: vec![values] }
    }

    /// Every version in the lake: by the source's own key where it has the row,
    /// else by what was asked for.
    async fn lake_rows(&self, rows: &[RecordBatch]) -> Result<Searched> {
        let schema = self.schema();
        let mut keys = vec![];
        let key = self.selected.table.key();
        for row in rows {
            keys.extend(KeyCells::of_row(row, &key));
        }
        if keys.is_empty() {
            keys.push(KeyCells::of_texts(&self.request.key, &schema)?);
        }
        lake::search(&self.lake, schema, keys, self.cursor()).await
    }

    fn cursor(&self) -> Option<&tidelake_model::CursorRead> {
        self.selected.cursor.as_ref().map(|cursor| &cursor.read)
    }

    /// What stands in the way of every row: a run under way, one that failed,
    /// columns that are left out.
    async fn notices(&self) -> Result<Vec<Notice>> {
        let mut notices = vec![];
        let name = &self.selected.table.name;
        let key = table_key(self.sync, name);
        let filter = LockFilter {
            env: Some(key.env.clone()),
            scope: Some(key.scope.clone()),
            ..LockFilter::default()
        };
        let locks = self.app.state.locks(&filter).await?;
        let is_held = |lock: &&HeldLease| lock.key.table.as_ref() == Some(name) && !lock.expired;
        if let Some(lock) = locks.iter().find(is_held) {
            notices.push(Notice::new(
                NoticeCode::Setting,
                format!("run {} works on the table now", lock.run_id),
            ));
        }
        let last: Option<TableRun> =
            self.app.state.runs_of_table(&key, 1).await?.into_iter().next();
        if let Some(run) = last.filter(|run| run.status == TableRunStatus::Failed) {
            let error = run.error.unwrap_or_else(|| "no reason is recorded".to_owned());
            notices.push(Notice::new(
                NoticeCode::Setting,
                format!("the last run of the table, {}, failed: {error}", run.run_id),
            ));
        }
        let selection = self.sync.columns.iter().find(|selection| selection.table == *name);
        if let Some(selection) = selection {
            let only = selection.include.join(", ");
            let without = selection.exclude.join(", ");
            let text = match (only.is_empty(), without.is_empty()) {
                (false, _) => format!("the sync carries only the columns {only}"),
                (true, false) => format!("the sync leaves out the columns {without}"),
                (true, true) => return Ok(notices),
            };
            notices.push(Notice::new(NoticeCode::Setting, text));
        }
        Ok(notices)
    }
}

/// The cursor of a row of the source.
fn cursor_of(row: &RecordBatch, selected: &SelectedTable) -> Option<String> {
    cursor_text(row, &selected.cursor.as_ref()?.read)
}
