//! The application: one file per thing a user can ask for.
//!
//! Every face (command line, HTTP, SDK) calls these functions and means the same
//! by them. [`run`](run::run) owns the order of a run; nothing here knows a
//! terminal, HTTP, an engine, Parquet, or any database by name.

mod application;
pub mod backfill;
mod casts;
pub mod cleanup;
mod column_requests;
mod columns;
mod commit;
pub mod compact;
mod context;
mod counted;
pub mod create;
mod cursor;
pub mod doctor;
mod drift;
mod edit;
mod events;
mod exact;
pub mod explain;
mod faults;
mod incremental;
mod lake_columns;
mod metadata;
mod one_table;
mod pass;
mod piece;
mod plan;
mod primary;
mod publish;
mod reach;
mod recover;
mod registry;
mod rereading;
mod retry;
pub mod run;
mod selection;
mod slices;
mod status;
mod steps;
mod table_run;
mod tables;
mod timeline;
pub mod verify;
pub mod watermarks;
mod window;

pub use application::{Application, Credential, Credentials, Host, LeaseTimes, Storages};
pub use backfill::{Backfill, BackfillRequest, Cut, backfill};
pub use casts::type_text as type_name;
pub use cleanup::{Cleanup, CleanupRequest, cleanup};
pub use column_requests::{CastRequest, CastType, ColumnRequests, TableColumns};
pub use compact::{CompactRequest, Compacted, Compaction, compact};
pub use create::{Created, SyncDraft, create};
pub use doctor::{Diagnosis, DoctorRequest, doctor};
pub use events::{Event, Events, Quiet};
pub use faults::{Faults, NoFaults};
pub use incremental::{CursorTypeName, IncrementalRequest};
pub use one_table::TableRequest;
pub use piece::{Piece, run_piece};
pub use plan::{Plan, TablePlan, plan};
pub use registry::Registry;
pub use retry::Patience;
pub use run::{OnMismatch, RunMode, RunReport, RunRequest, TableReport, run};
pub use status::{RunDetails, status};
