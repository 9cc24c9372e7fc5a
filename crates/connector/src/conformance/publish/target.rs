//! What the cases of a publisher share: a target table and ways to load it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use tidelake_model::{
    DataFile, Error, MANIFEST_FORMAT, Manifest, ManifestWindow, PublishMethod, RunId, Strategy,
    TableName,
};

use crate::conformance::harness::ensure_same;
use crate::conformance::{Outcome, PublisherFixture};
use crate::publish::{Load, Publisher, TargetTable};

/// A target table under test.
pub(super) struct Target<'a> {
    fixture: &'a dyn PublisherFixture,
    pub(super) publisher: Arc<dyn Publisher>,
    pub(super) table: TargetTable,
}

/// One load, to be varied.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) run: u128,
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    /// Rows that the manifest names.
    pub(super) rows: usize,
    pub(super) key: Vec<String>,
    pub(super) window: Option<ManifestWindow>,
    pub(super) strategy: Strategy,
    pub(super) replaces: bool,
    pub(super) primary_key: bool,
    pub(super) owner: &'static str,
    pub(super) takes_over: bool,
    /// Whether the rows end in an error.
    pub(super) breaks: bool,
}

impl Run {
    /// An append of one batch.
    pub(super) fn new(run: u128, batch: RecordBatch) -> Self {
        Self {
            run,
            schema: batch.schema(),
            rows: batch.num_rows(),
            batches: vec![batch],
            key: vec![],
            window: None,
            strategy: Strategy::Append,
            replaces: false,
            primary_key: false,
            owner: "a sync",
            takes_over: false,
            breaks: false,
        }
    }

    pub(super) fn id(&self) -> RunId {
        RunId::from_number(self.run)
    }

    fn manifest(&self) -> Manifest {
        let rows = u64::try_from(self.rows).unwrap_or(u64::MAX);
        let file = DataFile {
            key: format!("{}-1-0-0.parquet", self.id()),
            rows,
            bytes: 1_000,
            sha256: "0".repeat(64),
            cursor_min: None,
            cursor_max: None,
            cursor_nulls: 0,
        };
        Manifest {
            format_version: MANIFEST_FORMAT,
            run_id: self.id(),
            attempt: 1,
            table: TableName::new("main", "exported"),
            generation: 1,
            window: self.window.clone(),
            schema_version: 1,
            schema: self.schema.as_ref().clone(),
            source_types: BTreeMap::new(),
            key: self.key.clone(),
            files: if rows == 0 { vec![] } else { vec![file] },
            taken_out: vec![],
            live_highest: None,
            counters: BTreeMap::new(),
            notices: vec![],
            started_at: "2026-11-30T09:15:00Z".to_owned(),
            finished_at: "2026-11-30T09:15:01Z".to_owned(),
            tool_version: "0.0.0".to_owned(),
        }
    }
}

impl<'a> Target<'a> {
    pub(super) fn new(fixture: &'a dyn PublisherFixture, table: &str) -> Self {
        let table = TargetTable { schema: fixture.schema(), table: table.to_owned() };
        Self { fixture, publisher: fixture.publisher(), table }
    }

    pub(super) async fn load(&self, run: &Run) -> Result<u64, Error> {
        let manifest = run.manifest();
        let rows = || {
            let batches = run.batches.clone().into_iter().map(Ok);
            let broken = run.breaks.then(|| {
                let message = "the case breaks the rows off";
                Err(Error::new(tidelake_model::ErrorKind::Unavailable, message))
            });
            futures::stream::iter(batches.chain(broken)).boxed()
        };
        let load = Load {
            manifest: &manifest,
            target: &self.table,
            strategy: run.strategy,
            method: PublishMethod::Internal,
            replaces: run.replaces,
            primary_key: run.primary_key,
            owner: run.owner,
            takes_over: run.takes_over,
            rows: &rows,
        };
        self.publisher.load(&load).await
    }

    /// Loads, and checks that the ledger names the rows.
    pub(super) async fn loads(&self, run: &Run, rows: u64) -> Outcome {
        ensure_same("rows loaded", &self.load(run).await?, &rows)?;
        let entry = self.publisher.ledger(&self.table, run.id()).await?;
        let entry = entry.map(|entry| (entry.run_id, entry.rows));
        ensure_same("ledger", &entry, &Some((run.id(), rows)))
    }

    /// Checks that the target holds exactly the rows of these batches, which may
    /// lack columns that are then NULL.
    pub(super) async fn holds(&self, schema: &SchemaRef, batches: &[RecordBatch]) -> Outcome {
        let found = lines(schema, &self.fixture.rows(&self.table).await?)?;
        ensure_same("rows of the target", &found, &lines(schema, batches)?)
    }
}

/// Every row as text in a fixed order, after a cast to the columns of a schema.
fn lines(schema: &SchemaRef, batches: &[RecordBatch]) -> Outcome<Vec<Vec<Option<String>>>> {
    let options = FormatOptions::default();
    let mut lines = vec![];
    for batch in batches {
        let mut columns: Vec<ArrayRef> = vec![];
        for field in schema.fields() {
            columns.push(match batch.column_by_name(field.name()) {
                Some(column) => plain(&cast(column, field.data_type())?)?,
                None => new_null_array(field.data_type(), batch.num_rows()),
            });
        }
        let formatters = columns
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(&formatters).map(|(column, formatter)| {
                (!column.is_null(row)).then(|| formatter.value(row).to_string())
            });
            lines.push(cells.collect());
        }
    }
    lines.sort();
    Ok(lines)
}

/// Time stamps as counts of their unit, whose text would need a list of zones.
fn plain(column: &ArrayRef) -> Outcome<ArrayRef> {
    match column.data_type() {
        DataType::Timestamp(_, _) => Ok(cast(column, &DataType::Int64)?),
        _ => Ok(column.clone()),
    }
}
