//! What the suites ask of a connector's tests.

use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use tidelake_model::TableName;
use tidelake_watermark::Kind;

use super::{Outcome, Row};
use crate::publish::{Publisher, TargetTable};
use crate::source::Source;

/// The type of a column, whatever a system calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Whole numbers of 64 bits.
    Integer,
    /// Exact decimals with that many digits in all and after the point.
    Number {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Double precision numbers; only NULL is ever inserted.
    Float,
    /// Text of any length.
    Text,
    /// Days.
    Date,
    /// Naive time stamps in microseconds.
    Datetime,
    /// Instants in microseconds.
    Timestamp,
    /// Bytes of any length.
    Binary,
}

impl ColumnType {
    /// The kind of the values that are inserted; `None` for floats.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::Integer => Some(Kind::Integer),
            Self::Number { .. } => Some(Kind::Number),
            Self::Float => None,
            Self::Text => Some(Kind::Text),
            Self::Date => Some(Kind::Date),
            Self::Datetime => Some(Kind::Datetime),
            Self::Timestamp => Some(Kind::Timestamp),
            Self::Binary => Some(Kind::Binary),
        }
    }
}

/// A column to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name, to be quoted.
    pub name: String,
    /// Type.
    pub column_type: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Place in the primary key, from 0.
    pub key_position: Option<u32>,
    /// Whether it gets an index of its own.
    pub indexed: bool,
}

impl ColumnSpec {
    /// A nullable column without an index.
    pub fn new(name: &str, column_type: ColumnType) -> Self {
        Self {
            name: name.to_owned(),
            column_type,
            nullable: true,
            key_position: None,
            indexed: false,
        }
    }

    /// The same, never NULL, in the primary key at that place.
    #[must_use]
    pub fn key(self, position: u32) -> Self {
        Self { nullable: false, key_position: Some(position), ..self }
    }

    /// The same, never NULL.
    #[must_use]
    pub fn required(self) -> Self {
        Self { nullable: false, ..self }
    }

    /// The same with an index.
    #[must_use]
    pub fn indexed(self) -> Self {
        Self { indexed: true, ..self }
    }
}

/// A table to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// Name, both parts to be quoted. The schema is the fixture's.
    pub name: TableName,
    /// Columns in order.
    pub columns: Vec<ColumnSpec>,
}

/// A source, and the means to write into what it reads from.
///
/// The database is the fixture's own: nothing else is in flight in it.
#[async_trait]
pub trait SourceFixture: Send + Sync {
    /// The source under test, always the same one.
    fn source(&self) -> Arc<dyn Source>;

    /// The schema in which tables are made; an odd name where that is possible.
    fn schema(&self) -> String;

    /// The time by which the source's clock is judged, in nanoseconds since the
    /// epoch: the test machine's own for a server beside it.
    fn now(&self) -> i128;

    /// Whether the snapshot of a split ends when its hold is dropped, and cannot
    /// be read any more.
    fn exports_snapshots(&self) -> bool;

    /// The user under whom [`begin`](Self::begin) begins transactions, where
    /// there are users.
    fn writer(&self) -> Option<String>;

    /// How far before the start of a transaction its fence may lie, in nanoseconds:
    /// some servers tell the second only.
    fn fence_slack(&self) -> i128;

    /// Makes a table.
    async fn create_table(&self, table: &TableSpec) -> Outcome;

    /// Inserts rows and commits. Values are of the kinds of the table's columns.
    async fn insert(&self, table: &TableSpec, rows: &[Row]) -> Outcome;

    /// Takes a column away.
    async fn drop_column(&self, table: &TableSpec, column: &str) -> Outcome;

    /// Replaces a column that is not text by one of the same name that is, by an
    /// alteration or by dropping and adding it.
    async fn make_text(&self, table: &TableSpec, column: &str) -> Outcome;

    /// Begins a transaction of which the server knows at once. Called only for
    /// sources whose rows commit out of order.
    async fn begin(&self) -> Outcome<Box<dyn OpenTransaction>>;
}

/// A transaction that stays open until it is told to end.
#[async_trait]
pub trait OpenTransaction: Send {
    /// Inserts rows, which nobody else sees yet.
    async fn insert(&mut self, table: &TableSpec, rows: &[Row]) -> Outcome;

    /// Commits.
    async fn commit(self: Box<Self>) -> Outcome;

    /// Rolls back.
    async fn rollback(self: Box<Self>) -> Outcome;
}

/// A publisher, and the means to see what it loaded.
#[async_trait]
pub trait PublisherFixture: Send + Sync {
    /// The publisher under test, always the same one.
    fn publisher(&self) -> Arc<dyn Publisher>;

    /// The schema of the target tables.
    fn schema(&self) -> String;

    /// All rows of a target table in any order and in any types that can be cast
    /// to those that were loaded; none where there is no such table.
    async fn rows(&self, target: &TargetTable) -> Outcome<Vec<RecordBatch>>;
}
