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
#[cfg(feature = "postgres")]
pub mod postgres;
mod rows;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod store;
mod time;

pub use store::{
    Advance, AdvanceWatermark, Advanced, BeginRun, Begun, Lease, LockFilter, RunFilter, StateStore,
    TableState, TableUpdate, WatermarkSettings,
};
