//! The suite that every source passes, once for each stored form of times that
//! keeps microseconds.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::Connection;
use rusqlite::types::Value as Stored;
use tidelake_connector::conformance::{
    ColumnType, OpenTransaction, Outcome, Row, SourceFixture, TableSpec, run_source_case,
    source_cases,
};
use tidelake_connector::sql::quote_ansi;
use tidelake_connector::{Connector, Source};
use tidelake_model::CredentialInfo;
use tidelake_sqlite::SqliteConnector;
use tidelake_watermark::Value;

/// How the fixture writes times.
#[derive(Clone, Copy)]
enum Form {
    /// `2026-11-30 09:15:00.5`.
    Space,
    /// `2026-11-30T09:15:00.5Z`, whose text does not sort as time does.
    Iso,
    /// Each row in another spelling.
    Any,
    /// A number.
    Microseconds,
}

struct Fixture {
    source: Arc<dyn Source>,
    writer: Mutex<Connection>,
    form: Form,
    written: AtomicUsize,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn new(form: Form) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("it's \"odd\" %20 ü?.db");
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", "WAL").unwrap();
        let info = CredentialInfo::new(serde_json::json!({ "filepath": path }));
        let source = SqliteConnector.source(&info).await.unwrap();
        let written = AtomicUsize::new(0);
        Self { source, writer: Mutex::new(writer), form, written, _folder: folder }
    }

    fn stored(&self, value: &Value) -> Stored {
        match value {
            Value::Date(_) | Value::Text(_) => Stored::Text(value.to_string()),
            Value::Datetime(nanos) | Value::Timestamp(nanos) => self.stored_time(*nanos),
            Value::Integer(number) => Stored::Integer(i64::try_from(*number).unwrap()),
            Value::Number(number) => Stored::Text(number.to_string()),
            Value::Binary(bytes) => Stored::Blob(bytes.clone()),
        }
    }

    fn stored_time(&self, nanos: i128) -> Stored {
        let iso = Value::Datetime(nanos).to_string();
        Stored::Text(match self.form {
            Form::Space => iso.replace('T', " "),
            Form::Iso => format!("{iso}Z"),
            Form::Microseconds => {
                return Stored::Integer(i64::try_from(nanos / 1_000).unwrap());
            }
            Form::Any => {
                let moved = |hours: i128| {
                    let text = Value::Datetime(nanos + hours * 3_600_000_000_000).to_string();
                    // SQLite's years have four digits, in whatever zone.
                    (text.find('-') == Some(4)).then_some(text)
                };
                match (self.written.fetch_add(1, Ordering::Relaxed) % 5, moved(11), moved(-12)) {
                    (1, _, _) => iso.replace('T', " "),
                    (2, _, _) => format!("{iso}Z"),
                    (3, Some(moved), _) => format!("{moved}+11:00"),
                    (4, _, Some(moved)) => format!("{}-1200", moved.replace('T', " ")),
                    _ => iso,
                }
            }
        })
    }

    fn execute(&self, statement: &str) -> Outcome {
        Ok(self.writer.lock().unwrap().execute_batch(statement)?)
    }
}

fn declaration(column_type: ColumnType) -> String {
    match column_type {
        ColumnType::Integer => "BIGINT".to_owned(),
        ColumnType::Number { precision, scale } => format!("DECIMAL({precision}, {scale})"),
        ColumnType::Float => "DOUBLE".to_owned(),
        ColumnType::Text => "TEXT".to_owned(),
        ColumnType::Date => "DATE".to_owned(),
        ColumnType::Datetime => "DATETIME".to_owned(),
        ColumnType::Timestamp => "TIMESTAMP WITH TIME ZONE".to_owned(),
        ColumnType::Binary => "BLOB".to_owned(),
    }
}

#[async_trait]
impl SourceFixture for Fixture {
    fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    fn schema(&self) -> String {
        "main".to_owned()
    }

    fn now(&self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i128::try_from(since.as_nanos()).unwrap()
    }

    fn exports_snapshots(&self) -> bool {
        true
    }

    fn writer(&self) -> Option<String> {
        None
    }

    fn fence_slack(&self) -> i128 {
        0
    }

    async fn create_table(&self, table: &TableSpec) -> Outcome {
        let name = quote_ansi(&table.name.table);
        let mut parts = vec![];
        for column in &table.columns {
            let not_null = if column.nullable { "" } else { " NOT NULL" };
            let declared = declaration(column.column_type);
            parts.push(format!("{} {declared}{not_null}", quote_ansi(&column.name)));
        }
        let mut key: Vec<_> =
            table.columns.iter().filter(|column| column.key_position.is_some()).collect();
        key.sort_by_key(|column| column.key_position);
        if !key.is_empty() {
            let names: Vec<_> = key.iter().map(|column| quote_ansi(&column.name)).collect();
            parts.push(format!("PRIMARY KEY ({})", names.join(", ")));
        }
        self.execute(&format!("CREATE TABLE {name} ({})", parts.join(", ")))?;
        for column in table.columns.iter().filter(|column| column.indexed) {
            let index = quote_ansi(&index_name(table, &column.name));
            self.execute(&format!(
                "CREATE INDEX {index} ON {name} ({})",
                quote_ansi(&column.name)
            ))?;
        }
        Ok(())
    }

    async fn insert(&self, table: &TableSpec, rows: &[Row]) -> Outcome {
        let mut writer = self.writer.lock().unwrap();
        let transaction = writer.transaction()?;
        let places = vec!["?"; table.columns.len()].join(", ");
        let statement = format!("INSERT INTO {} VALUES ({places})", quote_ansi(&table.name.table));
        for row in rows {
            let values = row.iter().map(|cell| match cell {
                Some(value) => self.stored(value),
                None => Stored::Null,
            });
            transaction.execute(&statement, rusqlite::params_from_iter(values))?;
        }
        Ok(transaction.commit()?)
    }

    async fn drop_column(&self, table: &TableSpec, column: &str) -> Outcome {
        let (name, index) = (quote_ansi(&table.name.table), index_name(table, column));
        self.execute(&format!("DROP INDEX IF EXISTS {}", quote_ansi(&index)))?;
        self.execute(&format!("ALTER TABLE {name} DROP COLUMN {}", quote_ansi(column)))
    }

    async fn make_text(&self, table: &TableSpec, column: &str) -> Outcome {
        self.drop_column(table, column).await?;
        let name = quote_ansi(&table.name.table);
        self.execute(&format!("ALTER TABLE {name} ADD COLUMN {} TEXT", quote_ansi(column)))
    }

    async fn begin(&self) -> Outcome<Box<dyn OpenTransaction>> {
        unreachable!("writers are serialised")
    }
}

fn index_name(table: &TableSpec, column: &str) -> String {
    format!("{} by {column}", table.name.table)
}

/// A declared decimal is kept as a float, in which 22 digits are lost before
/// anybody reads them; `tests/values.rs` has those that can be carried.
const NUMBERS: &str = "carries_and_finds_every_number";
/// A few microseconds around 1970 as a number could be seconds as well, and are
/// refused among others.
const TIMES: [&str; 2] = ["carries_and_finds_every_naive_time", "carries_and_finds_every_instant"];

async fn run(form: Form) {
    let fixture = Fixture::new(form).await;
    let mut failures = vec![];
    for case in source_cases() {
        let is_number = matches!(form, Form::Microseconds);
        if case.name == NUMBERS || (is_number && TIMES.contains(&case.name)) {
            continue;
        }
        if let Err(failure) = run_source_case(case.name, &fixture).await {
            failures.push(format!("sqlite::{}: {failure}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn suite_with_times_as_text_with_a_space() {
    run(Form::Space).await;
}

#[tokio::test]
async fn suite_with_times_as_iso_text_in_utc() {
    run(Form::Iso).await;
}

#[tokio::test]
async fn suite_with_times_as_text_in_any_spelling() {
    run(Form::Any).await;
}

#[tokio::test]
async fn suite_with_times_as_microseconds() {
    run(Form::Microseconds).await;
}
