//! What every source and every publisher must do, as lists of cases.
//!
//! A connector implements [`SourceFixture`] (and [`PublisherFixture`]) in its
//! tests, so that the cases can make tables and write into them, and runs the
//! list. A failure reads `<connector>::reads_nothing_at_the_low_bound`. Cases
//! that need what the source cannot do, by its own
//! [`Capabilities`](crate::Capabilities), are passed over.
//!
//! ```no_run
//! use tidelake_connector::conformance::{Outcome, SourceFixture, run_source_suite};
//!
//! async fn suite(fixture: impl SourceFixture + 'static) -> Outcome {
//!     run_source_suite("mine", &fixture).await.verdict()
//! }
//! ```
//!
//! The environment is the caller's affair: a test for each case is made by
//! naming one of [`source_cases`] to [`run_source_case`].

mod fixture;
mod harness;
mod publish;
mod source;
mod subject;

pub use crate::memory::Row;
pub use fixture::{
    ColumnSpec, ColumnType, OpenTransaction, PublisherFixture, SourceFixture, TableSpec,
};
pub use harness::{Case, Failure, Need, Outcome, Report};
pub use publish::{publisher_cases, run_publisher_case, run_publisher_suite};
pub use source::{run_source_case, run_source_suite, source_cases};
