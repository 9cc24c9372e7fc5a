//! The memory system under test.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, TimeUnit};
use async_trait::async_trait;
use tidelake_connector::conformance::{
    ColumnType, OpenTransaction, Outcome, PublisherFixture, Row, SourceFixture, TableSpec,
};
use tidelake_connector::memory::{
    MemoryDatabase, MemoryPublisher, MemorySource, TransactionId, column,
};
use tidelake_connector::{Publisher, Source, TargetTable};
use tidelake_model::{Table, TableKind};

pub(crate) struct Fixture {
    database: MemoryDatabase,
    source: Arc<dyn Source>,
    publisher: Arc<dyn Publisher>,
    target: MemoryPublisher,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::through(|source| Arc::new(source), |publisher| Arc::new(publisher))
    }

    /// A fixture whose source and publisher are seen through something else.
    pub(crate) fn through(
        source: impl FnOnce(MemorySource) -> Arc<dyn Source>,
        publisher: impl FnOnce(MemoryPublisher) -> Arc<dyn Publisher>,
    ) -> Self {
        let database = MemoryDatabase::new();
        database.set_now(1_796_030_100_000_000_000);
        let source = source(MemorySource::new(database.clone()));
        let target = MemoryPublisher::new();
        let publisher = publisher(target.clone());
        Self { database, source, publisher, target }
    }

    /// Every look at the clock moves it, as that of a server moves.
    fn tick(&self) {
        self.database.set_now(self.database.now() + 1_000_000);
    }
}

fn data_type(column: ColumnType) -> DataType {
    match column {
        ColumnType::Integer => DataType::Int64,
        ColumnType::Number { precision, scale } => {
            DataType::Decimal128(precision, scale.try_into().unwrap())
        }
        ColumnType::Float | ColumnType::Text => DataType::Utf8,
        ColumnType::Date => DataType::Date32,
        ColumnType::Datetime => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ColumnType::Binary => DataType::Binary,
    }
}

#[async_trait]
impl SourceFixture for Fixture {
    fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    fn schema(&self) -> String {
        "An \"odd\" schema.名".to_owned()
    }

    fn now(&self) -> i128 {
        self.tick();
        self.database.now()
    }

    fn exports_snapshots(&self) -> bool {
        true
    }

    fn writer(&self) -> Option<String> {
        Some("a writer".to_owned())
    }

    fn fence_slack(&self) -> i128 {
        0
    }

    async fn create_table(&self, table: &TableSpec) -> Outcome {
        let mut columns = vec![];
        for spec in &table.columns {
            let mut made = column(&spec.name, data_type(spec.column_type), spec.nullable)?;
            made.key_position = spec.key_position;
            made.indexed = spec.indexed || spec.key_position == Some(0);
            if spec.column_type == ColumnType::Float {
                // There are no floats in memory; the case is about cursors.
                made.cursor = None;
            }
            columns.push(made);
        }
        let name = table.name.clone();
        let kind = TableKind::Table;
        let (estimated_rows, estimated_bytes) = (None, None);
        let table = Table { name, kind, columns, estimated_rows, estimated_bytes };
        Ok(self.database.create_table(table)?)
    }

    async fn insert(&self, table: &TableSpec, rows: &[Row]) -> Outcome {
        Ok(self.database.insert_committed(&table.name, rows.iter().cloned())?)
    }

    async fn drop_column(&self, table: &TableSpec, column: &str) -> Outcome {
        Ok(self.database.drop_column(&table.name, column)?)
    }

    async fn make_text(&self, table: &TableSpec, column: &str) -> Outcome {
        self.database.drop_column(&table.name, column)?;
        Ok(self.database.add_column(&table.name, column, DataType::Utf8)?)
    }

    async fn begin(&self) -> Outcome<Box<dyn OpenTransaction>> {
        self.tick();
        let id = self.database.begin_as("a writer");
        self.tick();
        Ok(Box::new(Transaction { database: self.database.clone(), id }))
    }
}

struct Transaction {
    database: MemoryDatabase,
    id: TransactionId,
}

#[async_trait]
impl OpenTransaction for Transaction {
    async fn insert(&mut self, table: &TableSpec, rows: &[Row]) -> Outcome {
        for row in rows {
            self.database.insert(self.id, &table.name, row.clone())?;
        }
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Outcome {
        Ok(self.database.commit(self.id)?)
    }

    async fn rollback(self: Box<Self>) -> Outcome {
        Ok(self.database.rollback(self.id)?)
    }
}

#[async_trait]
impl PublisherFixture for Fixture {
    fn publisher(&self) -> Arc<dyn Publisher> {
        self.publisher.clone()
    }

    fn schema(&self) -> String {
        "target".to_owned()
    }

    async fn rows(&self, target: &TargetTable) -> Outcome<Vec<RecordBatch>> {
        Ok(self.target.rows(target))
    }
}
