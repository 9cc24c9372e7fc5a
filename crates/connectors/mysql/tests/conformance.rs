//! The suite that every source passes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

mod common;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use common::{Database, Server, quoted, servers, unique};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tidelake_connector::Source;
use tidelake_connector::conformance::{
    ColumnSpec, ColumnType, OpenTransaction, Outcome, Row, SourceFixture, TableSpec,
    run_source_suite, source_cases,
};
use tidelake_watermark::Value;
use tokio::sync::Mutex;

const SCHEMA: &str = "We\"ird `schéma.%_";

struct Fixture {
    database: &'static Database,
    source: Arc<dyn Source>,
    client: Mutex<Conn>,
}

fn table_name(table: &TableSpec) -> String {
    format!("{}.{}", quoted(&table.name.schema), quoted(&table.name.table))
}

fn declaration(server: Server, column: &ColumnSpec) -> String {
    // An index needs a length.
    let is_short = column.indexed || column.key_position.is_some();
    match column.column_type {
        ColumnType::Integer => "bigint".to_owned(),
        ColumnType::Number { precision, scale } => format!("decimal({precision}, {scale})"),
        ColumnType::Float => "double".to_owned(),
        ColumnType::Text => {
            let length = if is_short { "varchar(700)" } else { "longtext" };
            format!("{length} CHARACTER SET utf8mb4 COLLATE {}", server.exact())
        }
        ColumnType::Date => "date".to_owned(),
        // TIMESTAMP ends in the years 1970 and 2038; its own tests are elsewhere.
        ColumnType::Datetime | ColumnType::Timestamp => "datetime(6)".to_owned(),
        ColumnType::Binary if is_short => "varbinary(700)".to_owned(),
        ColumnType::Binary => "longblob".to_owned(),
    }
}

fn literal(cell: Option<&Value>) -> String {
    let Some(value) = cell else { return "NULL".to_owned() };
    let text = value.to_string();
    match value {
        Value::Binary(_) => format!("X'{}'", text.trim_start_matches("0x")),
        Value::Datetime(_) | Value::Timestamp(_) => {
            format!("'{}'", text.trim_end_matches('Z').replace('T', " "))
        }
        _ => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
    }
}

async fn insert(client: &mut Conn, table: &TableSpec, rows: &[Row]) -> Outcome {
    for chunk in rows.chunks(100) {
        let rows: Vec<_> = chunk
            .iter()
            .map(|row| {
                let cells: Vec<_> = row.iter().map(|cell| literal(cell.as_ref())).collect();
                format!("({})", cells.join(", "))
            })
            .collect();
        let statement = format!("INSERT INTO {} VALUES {}", table_name(table), rows.join(", "));
        client.query_drop(statement).await?;
    }
    Ok(())
}

impl Fixture {
    async fn run(&self, statement: String) -> Outcome {
        Ok(self.client.lock().await.query_drop(statement).await?)
    }
}

#[async_trait]
impl SourceFixture for Fixture {
    fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    fn schema(&self) -> String {
        self.database.name.clone()
    }

    fn now(&self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i128::try_from(since.as_nanos()).unwrap()
    }

    fn exports_snapshots(&self) -> bool {
        true
    }

    fn writer(&self) -> Option<String> {
        Some(self.database.server.variable("USER"))
    }

    fn fence_slack(&self) -> i128 {
        // Starts are told in whole seconds, and one more is taken off.
        2_000_000_000
    }

    async fn create_table(&self, table: &TableSpec) -> Outcome {
        let mut parts = vec![];
        for column in &table.columns {
            let null = if column.nullable { "NULL" } else { "NOT NULL" };
            let declared = declaration(self.database.server, column);
            parts.push(format!("{} {declared} {null}", quoted(&column.name)));
        }
        let mut key: Vec<_> =
            table.columns.iter().filter(|column| column.key_position.is_some()).collect();
        key.sort_by_key(|column| column.key_position);
        if !key.is_empty() {
            let names: Vec<_> = key.iter().map(|column| quoted(&column.name)).collect();
            parts.push(format!("PRIMARY KEY ({})", names.join(", ")));
        }
        for column in table.columns.iter().filter(|column| column.indexed) {
            parts.push(format!("INDEX ({})", quoted(&column.name)));
        }
        self.run(format!("CREATE TABLE {} ({})", table_name(table), parts.join(", "))).await
    }

    async fn insert(&self, table: &TableSpec, rows: &[Row]) -> Outcome {
        insert(&mut *self.client.lock().await, table, rows).await
    }

    async fn drop_column(&self, table: &TableSpec, column: &str) -> Outcome {
        self.run(format!("ALTER TABLE {} DROP COLUMN {}", table_name(table), quoted(column))).await
    }

    async fn make_text(&self, table: &TableSpec, column: &str) -> Outcome {
        let (table, column) = (table_name(table), quoted(column));
        self.run(format!("ALTER TABLE {table} MODIFY COLUMN {column} longtext")).await
    }

    async fn begin(&self) -> Outcome<Box<dyn OpenTransaction>> {
        let mut client = self.database.client().await;
        // A transaction without a snapshot is unknown to the server until it is used.
        client.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
        // The source may take what it saw a moment ago for the present, which is right
        // for times: it then calls that moment the present.
        tokio::time::sleep(std::time::Duration::from_millis(120)).await;
        Ok(Box::new(Transaction(client)))
    }
}

struct Transaction(Conn);

#[async_trait]
impl OpenTransaction for Transaction {
    async fn insert(&mut self, table: &TableSpec, rows: &[Row]) -> Outcome {
        insert(&mut self.0, table, rows).await
    }

    async fn commit(mut self: Box<Self>) -> Outcome {
        Ok(self.0.query_drop("COMMIT").await?)
    }

    async fn rollback(mut self: Box<Self>) -> Outcome {
        Ok(self.0.query_drop("ROLLBACK").await?)
    }
}

#[tokio::test]
async fn source_suite() {
    for server in servers() {
        let database = Database::named(server, unique(SCHEMA)).await;
        // The suite wants a fixture without borrows; the database outlives it.
        let database: &'static Database = Box::leak(Box::new(database));
        let client = Mutex::new(database.client().await);
        let fixture = Fixture { database, source: database.source().await, client };
        let report = run_source_suite("mysql", &fixture).await;
        let passed = report.passed.len();
        let verdict = report.verdict();
        database.drop_now().await;
        verdict.unwrap();
        assert!(passed * 10 >= source_cases().len() * 9, "{passed} cases were run");
    }
}
