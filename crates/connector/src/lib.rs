//! The contracts between tidelake and the systems it reads and publishes to.
//!
//! A [`Connector`] knows one system; [`Connector::source`] gives a [`Source`]
//! that is read from, [`Connector::publisher`] a [`Publisher`] that committed
//! files are loaded into. Arrow record batches are the only currency. No system
//! is named here: what a system can do is said by its [`Capabilities`], as data.
//!
//! ```
//! use futures::TryStreamExt;
//! use tidelake_connector::memory::{MemoryDatabase, MemorySource, column};
//! use tidelake_connector::{Source, SplitRequest, TableFilter};
//! use tidelake_model::{Policies, ReadMethod, Table, TableKind, TableName, TableRead};
//! use tidelake_watermark::Value;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> tidelake_model::Result<()> {
//! // The memory source stands for any other.
//! let database = MemoryDatabase::new();
//! let orders = TableName::new("main", "orders");
//! database.create_table(Table {
//!     name: orders.clone(),
//!     kind: TableKind::Table,
//!     columns: vec![column("id", arrow::datatypes::DataType::Int64, false)?],
//!     estimated_rows: None,
//!     estimated_bytes: None,
//! })?;
//! database.insert_committed(&orders, (1..=10).map(|id| vec![Some(Value::Integer(id))]))?;
//! let source = MemorySource::new(database);
//!
//! // The catalogue says what there is, a split cuts the read into slices that
//! // see one snapshot, and each slice is read by whoever wants to.
//! let tables = source.tables(&TableFilter::default()).await?;
//! let read = TableRead {
//!     table: orders,
//!     columns: tables[0].columns.clone(),
//!     cursor: None,
//!     range: None,
//!     null_cursors: false,
//!     policies: Policies::default(),
//!     batch_bytes: 1 << 20,
//! };
//! let request = SplitRequest { read, degree: 3, method: ReadMethod::Auto, key: None };
//! let slices = source.split(&request).await?;
//! let mut rows = 0;
//! for slice in &slices.slices {
//!     let mut reading = source.read(slice).await?;
//!     while let Some(batch) = reading.batches.try_next().await? {
//!         rows += batch.num_rows();
//!     }
//! }
//! assert_eq!((slices.slices.len(), rows), (3, 10));
//! # Ok(())
//! # }
//! ```
//!
//! Implementers get no defaults: every method is required, and the
//! [`conformance`] suites say what each must do. SQL sources find quoting and
//! the condition of a window in [`sql`]; [`memory`] is a system without a
//! server, for tests and simulations.

#![deny(missing_docs)]

mod capabilities;
pub mod conformance;
mod diagnosis;
mod extent;
pub mod memory;
mod publish;
mod reading;
mod source;
pub mod sql;

pub use capabilities::Capabilities;
pub use diagnosis::{cursor_findings, missing_finding, null_finding, size_finding};
pub use extent::{CursorExtent, cursor_extent, rows_outside};
pub use publish::{LedgerEntry, Load, OpenRows, Publisher, TargetTable};
pub use reading::{BatchStream, Counters, Reading};
pub use source::{
    ClockReading, ClockRequest, Connector, DiagnosedTable, Effort, FencePurpose, FindRequest,
    Finding, Highest, HighestRequest, Hold, LogPosition, Slices, Source, SplitRequest, TableFilter,
    Verdict,
};
