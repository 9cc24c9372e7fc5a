//! The contracts between tidelake and the systems it reads and publishes to.
//!
//! A [`Connector`] knows one system; [`Connector::source`] gives a [`Source`]
//! that is read from, [`Connector::publisher`] a [`Publisher`] that committed
//! files are loaded into. Arrow record batches are the only currency. No system
//! is named here: what a system can do is said by its [`Capabilities`], as data.
//!
//! Implementers get no defaults: every method is required, and the
//! [`conformance`] suites say what each must do.

#![deny(missing_docs)]

mod capabilities;
pub mod conformance;
mod extent;
pub mod memory;
mod publish;
mod reading;
mod source;
pub mod sql;

pub use capabilities::Capabilities;
pub use extent::{CursorExtent, cursor_extent, rows_outside};
pub use publish::{LedgerEntry, Load, OpenRows, Publisher, TargetTable};
pub use reading::{BatchStream, Counters, Reading};
pub use source::{
    ClockReading, ClockRequest, Connector, Effort, FencePurpose, Highest, HighestRequest, Hold,
    Slices, Source, SplitRequest, TableFilter,
};
