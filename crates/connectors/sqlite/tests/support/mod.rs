//! A database in a folder of its own, and short ways to read it.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use rusqlite::Connection;
use tidelake_connector::{Connector, Slices, Source, SplitRequest, TableFilter};
use tidelake_model::{
    CredentialInfo, CursorRead, Policies, ReadMethod, Result, Table, TableName, TableRead,
};
use tidelake_sqlite::SqliteConnector;
use tidelake_watermark::{Bound, Cursor, Kind, Position, Range, Value};

pub(crate) struct Database {
    pub(crate) writer: Connection,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) path: PathBuf,
    _folder: tempfile::TempDir,
}

pub(crate) async fn connect(info: serde_json::Value) -> Result<Arc<dyn Source>> {
    SqliteConnector.source(&CredentialInfo::new(info)).await
}

impl Database {
    pub(crate) async fn new(statements: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.db");
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", "WAL").unwrap();
        writer.execute_batch(statements).unwrap();
        let source = connect(serde_json::json!({ "filepath": path })).await.unwrap();
        Self { writer, source, path, _folder: folder }
    }

    pub(crate) fn execute(&self, statements: &str) {
        self.writer.execute_batch(statements).unwrap();
    }

    pub(crate) async fn tables(&self) -> Vec<Table> {
        self.source.tables(&TableFilter::default()).await.unwrap()
    }

    pub(crate) async fn table(&self, name: &str) -> Table {
        let tables = self.tables().await;
        let name = TableName::new("main", name);
        tables.into_iter().find(|table| table.name == name).unwrap()
    }

    pub(crate) async fn whole(&self, name: &str) -> TableRead {
        let table = self.table(name).await;
        TableRead {
            table: table.name,
            columns: table.columns,
            cursor: None,
            range: None,
            null_cursors: false,
            policies: Policies::default(),
            batch_bytes: 1 << 20,
        }
    }

    /// A read of one table by one cursor column, of the kind that it has.
    pub(crate) async fn by(&self, name: &str, column: &str, range: Range) -> TableRead {
        let read = self.whole(name).await;
        let kind = read.columns.iter().find(|found| found.name() == column).unwrap().cursor;
        let kinds = vec![kind.unwrap().kind];
        let cursor = CursorRead { cursor: Cursor::Single(column.to_owned()), kinds };
        TableRead { cursor: Some(cursor), range: Some(range), ..read }
    }

    pub(crate) async fn split(&self, read: &TableRead) -> Result<Slices> {
        self.split_by(read, 4).await
    }

    pub(crate) async fn split_by(&self, read: &TableRead, degree: u32) -> Result<Slices> {
        let request =
            SplitRequest { read: read.clone(), degree, method: ReadMethod::Auto, key: None };
        self.source.split(&request).await
    }

    pub(crate) async fn batches(&self, read: &TableRead) -> Result<Vec<RecordBatch>> {
        self.batches_by(read, 4).await
    }

    pub(crate) async fn batches_by(
        &self,
        read: &TableRead,
        degree: u32,
    ) -> Result<Vec<RecordBatch>> {
        let slices = self.split_by(read, degree).await?;
        let mut batches = vec![];
        for slice in &slices.slices {
            let reading = self.source.read(slice).await?;
            batches.extend(reading.batches.try_collect::<Vec<_>>().await?);
        }
        Ok(batches)
    }

    /// All cells as text, NULL as `-`, in the order in which they are read.
    pub(crate) async fn rows(&self, read: &TableRead) -> Result<Vec<Vec<String>>> {
        Ok(self.batches(read).await?.iter().flat_map(cells).collect())
    }

    /// One column of a whole table.
    pub(crate) async fn column(&self, table: &str, column: &str) -> Result<Vec<String>> {
        let read = self.whole(table).await;
        let place = read.columns.iter().position(|found| found.name() == column).unwrap();
        let rows = self.rows(&read).await?;
        Ok(rows.into_iter().map(|row| row[place].clone()).collect())
    }
}

pub(crate) fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("-");
    // Names of time zones are not shown without a library of them; offsets are.
    let shown = |column: &ArrayRef| match column.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            cast(column, &DataType::Timestamp(*unit, Some("+00:00".into()))).unwrap()
        }
        _ => column.clone(),
    };
    let columns: Vec<_> = batch.columns().iter().map(shown).collect();
    let columns: Vec<_> =
        columns.iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect();
    (0..batch.num_rows()).map(row).collect()
}

pub(crate) fn position(kind: Kind, text: &str) -> Position {
    Value::parse(kind, text).unwrap().into()
}

/// `(low, high]`, either end open where it is `None`.
pub(crate) fn window(kind: Kind, low: Option<&str>, high: Option<&str>) -> Range {
    let bound = |text: &str, inclusive| Bound { at: position(kind, text), inclusive };
    Range { low: low.map(|text| bound(text, false)), high: high.map(|text| bound(text, true)) }
}
