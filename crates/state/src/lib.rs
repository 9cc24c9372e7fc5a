//! What tidelake remembers between runs.
//!
//! A [`StateStore`] keeps syncs, runs, watermarks with their history, leases, and
//! the head of each table's lake. It stores what it is told, and refuses to move
//! a watermark whose version has changed or whose lease has gone to another.
//! Every store passes the same [`conformance`] suite.

#![deny(missing_docs)]

mod backend;
pub mod conformance;
mod logic;
pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
mod rows;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod store;
mod time;

/// Names of the tables that a store keeps in its schema, wherever that is.
pub const OWN_TABLES: [&str; 8] = [
    "meta",
    "syncs",
    "table_state",
    "watermarks",
    "watermark_history",
    "runs",
    "table_runs",
    "refinery_schema_history",
];

pub use store::{
    Advance, AdvanceWatermark, Advanced, BeginRun, Begun, KnownTable, Lease, LockFilter,
    PruneFilter, RunFilter, StateStore, TableState, TableUpdate, Usage, WatermarkSettings,
};
