//! A database and a publish target in memory.
//!
//! Not a mock: it keeps every promise of the contracts and passes the same
//! suites as the real systems. It is deterministic, its clock is set by hand and
//! its transactions stay open for as long as one wants, so that it can play out
//! the schedules that a real server only shows once a year.
//!
//! ```
//! use arrow::datatypes::DataType;
//! use tidelake_connector::memory::{MemoryDatabase, column};
//! use tidelake_model::{Table, TableKind, TableName};
//! use tidelake_watermark::Value;
//!
//! # fn main() -> tidelake_model::Result<()> {
//! let database = MemoryDatabase::new();
//! let orders = TableName::new("main", "orders");
//! database.create_table(Table {
//!     name: orders.clone(),
//!     kind: TableKind::Table,
//!     columns: vec![column("id", DataType::Int64, false)?],
//!     estimated_rows: None,
//!     estimated_bytes: None,
//! })?;
//! let transaction = database.begin();
//! database.insert(transaction, &orders, vec![Some(Value::Integer(1))])?;
//! assert!(database.rows(&orders)?.is_empty());
//! database.commit(transaction)?;
//! assert_eq!(database.rows(&orders)?.len(), 1);
//! # Ok(())
//! # }
//! ```

mod arrow_rows;
mod connector;
mod cursor;
mod database;
mod diagnose;
mod find;
mod publisher;
mod source;

pub use arrow_rows::column;
pub use connector::MemoryConnector;
pub use database::{MemoryDatabase, Row, TransactionId};
pub use publisher::MemoryPublisher;
pub use source::MemorySource;
