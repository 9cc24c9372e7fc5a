//! The suites that every source and every publisher passes.

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

use arrow::array::RecordBatch;
use async_trait::async_trait;
use common::Database;
use futures::TryStreamExt;
use tidelake_connector::conformance::{
    ColumnType, OpenTransaction, Outcome, PublisherFixture, Row, SourceFixture, TableSpec,
    publisher_cases, run_publisher_suite, run_source_suite, source_cases,
};
use tidelake_connector::sql::{quote_ansi, quote_text};
use tidelake_connector::{Publisher, Source, SplitRequest, TableFilter, TargetTable};
use tidelake_model::{Policies, ReadMethod, TableRead};
use tidelake_watermark::Value;
use tokio_postgres::Client;

const SCHEMA: &str = "We\"ird schéma.%_";

struct Fixture<'a> {
    database: &'a Database,
    source: Arc<dyn Source>,
    client: Client,
}

fn table_name(table: &TableSpec) -> String {
    format!("{}.{}", quote_ansi(&table.name.schema), quote_ansi(&table.name.table))
}

fn declaration(column_type: ColumnType) -> String {
    match column_type {
        ColumnType::Integer => "bigint".to_owned(),
        ColumnType::Number { precision, scale } => format!("numeric({precision}, {scale})"),
        ColumnType::Float => "double precision".to_owned(),
        ColumnType::Text => "text".to_owned(),
        ColumnType::Date => "date".to_owned(),
        ColumnType::Datetime => "timestamp".to_owned(),
        ColumnType::Timestamp => "timestamptz".to_owned(),
        ColumnType::Binary => "bytea".to_owned(),
    }
}

fn literal(cell: Option<&Value>) -> String {
    let Some(value) = cell else { return "NULL".to_owned() };
    let text = value.to_string();
    // The server spells years before the first another way.
    let text = match (value, text.strip_prefix('-')) {
        (Value::Date(_) | Value::Datetime(_) | Value::Timestamp(_), Some(rest)) => {
            let (year, rest) = rest.split_once('-').unwrap();
            format!("{:04}-{rest} BC", year.parse::<i64>().unwrap() + 1)
        }
        (Value::Date(_) | Value::Datetime(_) | Value::Timestamp(_), None) => {
            match text.strip_prefix("0000-") {
                Some(rest) => format!("0001-{rest} BC"),
                None => text.trim_start_matches('+').to_owned(),
            }
        }
        (Value::Binary(_), _) => text.replacen("0x", "\\x", 1),
        _ => text,
    };
    quote_text(&text)
}

async fn insert(client: &Client, table: &TableSpec, rows: &[Row]) -> Outcome {
    for chunk in rows.chunks(500) {
        let rows: Vec<_> = chunk
            .iter()
            .map(|row| {
                let cells: Vec<_> = row.iter().map(|cell| literal(cell.as_ref())).collect();
                format!("({})", cells.join(", "))
            })
            .collect();
        let statement = format!("INSERT INTO {} VALUES {}", table_name(table), rows.join(", "));
        client.batch_execute(&statement).await?;
    }
    Ok(())
}

#[async_trait]
impl SourceFixture for Fixture<'static> {
    fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    fn schema(&self) -> String {
        SCHEMA.to_owned()
    }

    fn now(&self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i128::try_from(since.as_nanos()).unwrap()
    }

    fn exports_snapshots(&self) -> bool {
        true
    }

    fn writer(&self) -> Option<String> {
        Some(std::env::var("TIDELAKE_TEST_PG_USER").unwrap())
    }

    fn fence_slack(&self) -> i128 {
        0
    }

    async fn create_table(&self, table: &TableSpec) -> Outcome {
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
        let name = table_name(table);
        let mut statements = format!("CREATE TABLE {name} ({});", parts.join(", "));
        for column in table.columns.iter().filter(|column| column.indexed) {
            statements.push_str(&format!("CREATE INDEX ON {name} ({});", quote_ansi(&column.name)));
        }
        Ok(self.client.batch_execute(&statements).await?)
    }

    async fn insert(&self, table: &TableSpec, rows: &[Row]) -> Outcome {
        insert(&self.client, table, rows).await
    }

    async fn drop_column(&self, table: &TableSpec, column: &str) -> Outcome {
        let statement =
            format!("ALTER TABLE {} DROP COLUMN {}", table_name(table), quote_ansi(column));
        Ok(self.client.batch_execute(&statement).await?)
    }

    async fn make_text(&self, table: &TableSpec, column: &str) -> Outcome {
        let statement = format!(
            "ALTER TABLE {} ALTER COLUMN {} TYPE text",
            table_name(table),
            quote_ansi(column)
        );
        Ok(self.client.batch_execute(&statement).await?)
    }

    async fn begin(&self) -> Outcome<Box<dyn OpenTransaction>> {
        let client = self.database.client().await;
        client.batch_execute("BEGIN").await?;
        Ok(Box::new(Transaction(client)))
    }
}

struct Transaction(Client);

#[async_trait]
impl OpenTransaction for Transaction {
    async fn insert(&mut self, table: &TableSpec, rows: &[Row]) -> Outcome {
        insert(&self.0, table, rows).await
    }

    async fn commit(self: Box<Self>) -> Outcome {
        Ok(self.0.batch_execute("COMMIT").await?)
    }

    async fn rollback(self: Box<Self>) -> Outcome {
        Ok(self.0.batch_execute("ROLLBACK").await?)
    }
}

#[tokio::test]
async fn source_suite() {
    let Some(database) = Database::make().await else { return };
    // The suite wants a fixture without borrows; the database outlives it.
    let database: &'static Database = Box::leak(Box::new(database));
    let client = database.client().await;
    client.batch_execute(&format!("CREATE SCHEMA {}", quote_ansi(SCHEMA))).await.unwrap();
    let fixture = Fixture { database, source: database.source().await, client };
    let report = run_source_suite("postgres", &fixture).await;
    let passed = report.passed.len();
    let verdict = report.verdict();
    database.drop_now().await;
    verdict.unwrap();
    assert!(passed * 10 >= source_cases().len() * 9, "{passed} cases were run");
}

struct Target {
    publisher: Arc<dyn Publisher>,
    source: Arc<dyn Source>,
}

#[async_trait]
impl PublisherFixture for Target {
    fn publisher(&self) -> Arc<dyn Publisher> {
        self.publisher.clone()
    }

    fn schema(&self) -> String {
        SCHEMA.to_owned()
    }

    async fn rows(&self, target: &TargetTable) -> Outcome<Vec<RecordBatch>> {
        let tables = self.source.tables(&TableFilter::default()).await?;
        let table = tables.into_iter().find(|table| {
            (&table.name.schema, &table.name.table) == (&target.schema, &target.table)
        });
        let Some(table) = table else { return Ok(vec![]) };
        let read = TableRead {
            table: table.name,
            columns: table.columns,
            cursor: None,
            range: None,
            null_cursors: false,
            policies: Policies::default(),
            batch_bytes: 1 << 20,
        };
        let request = SplitRequest { read, degree: 1, method: ReadMethod::Auto, key: None };
        let slices = self.source.split(&request).await?;
        let mut batches = vec![];
        for slice in &slices.slices {
            batches.extend(self.source.read(slice).await?.batches.try_collect::<Vec<_>>().await?);
        }
        Ok(batches)
    }
}

#[tokio::test]
async fn publisher_suite() {
    let Some(database) = Database::make().await else { return };
    let target = Target { publisher: database.publisher().await, source: database.source().await };
    let report = run_publisher_suite("postgres", &target).await;
    let passed = report.passed.len();
    let verdict = report.verdict();
    database.drop_now().await;
    verdict.unwrap();
    assert!(passed * 10 >= publisher_cases().len() * 9, "{passed} cases were run");
}
