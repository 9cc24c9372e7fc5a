//! Rows in a relational database, for every store that speaks SQL.
//!
//! The statements are written in what such databases share: numbered parameters
//! in the order in which they appear, row values, quoted names, and `ON CONFLICT`.
//! What differs, connections, types and locks, is behind [`Session`].

mod key;
pub(crate) mod migrate;
mod prune;
pub(crate) mod reader;
mod rows;
mod runs;
mod statement;
mod tables;
mod watermarks;

use async_trait::async_trait;
use tidelake_model::Result;

pub(crate) use rows::SqlRows;
pub(crate) use statement::Statement;

/// A value on its way in or out. Its type is known even where it is NULL.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(Option<String>),
    Integer(Option<i64>),
    Boolean(Option<bool>),
    /// Nanoseconds since the epoch, in whole microseconds.
    Time(Option<i128>),
    /// A JSON document.
    Json(Option<String>),
}

/// An open transaction.
#[async_trait]
pub(crate) trait Session: Send {
    /// Runs a statement that returns rows.
    async fn query(&mut self, statement: &Statement) -> Result<Vec<Vec<Cell>>>;

    /// Runs a statement and returns how many rows it touched.
    async fn execute(&mut self, statement: &Statement) -> Result<u64>;

    /// Runs a statement that returns rows and locks them. [`now`](Self::now) then
    /// tells the time after the lock, which may come with the same answer.
    async fn lock(&mut self, statement: &Statement) -> Result<Vec<Vec<Cell>>> {
        self.query(statement).await
    }

    /// Runs a statement of whose result nothing is wanted. It may be sent together
    /// with the next one; its error then is told there, at the latest by the commit.
    async fn send(&mut self, statement: Statement) -> Result<()> {
        self.execute(&statement).await.map(drop)
    }

    /// Runs several statements without parameters.
    async fn batch(&mut self, sql: &str) -> Result<()>;

    /// The database's clock, in whole microseconds as nanoseconds.
    async fn now(&mut self) -> Result<i128>;

    /// Whether the store has that table.
    async fn has_table(&mut self, name: &str) -> Result<bool>;

    /// What a SELECT ends with to lock its rows; empty where the transaction
    /// has locked everything already.
    fn for_update(&self) -> &'static str;

    /// Whether a row value can be looked for in a list of `VALUES`. Otherwise a
    /// condition is written for each one.
    fn has_value_lists(&self) -> bool {
        true
    }
}

/// Every table, in an order in which they can be emptied and dropped.
const TABLES: [&str; 7] =
    ["table_runs", "runs", "watermark_history", "watermarks", "table_state", "syncs", "meta"];
