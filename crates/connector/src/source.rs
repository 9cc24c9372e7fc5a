//! Reading from a system.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tidelake_model::{
    CredentialInfo, CursorRead, FenceMode, Notice, ReadMethod, Result, Slice, Table, TableName,
    TableRead,
};
use tidelake_watermark::{Fence, Position, Range};

use crate::capabilities::Capabilities;
use crate::publish::Publisher;
use crate::reading::Reading;

/// One system that tidelake can reach.
#[async_trait]
pub trait Connector: Send + Sync {
    /// The name in credentials (`ds_type`) and in the API (`connector_type`).
    fn name(&self) -> &'static str;

    /// JSON Schema of the credential's `info`.
    fn config_schema(&self) -> serde_json::Value;

    /// Checks the credential and connects once, so that a wrong password is told
    /// here. Errors: `Configuration` for a bad field, `Denied` for a refused
    /// login, `NotFound` for a missing database or file, `Unavailable` where
    /// nobody answers.
    async fn source(&self, info: &CredentialInfo) -> Result<Arc<dyn Source>>;

    /// The same for a publish target; `None` where the system is none.
    async fn publisher(&self, info: &CredentialInfo) -> Result<Option<Arc<dyn Publisher>>>;
}

/// Which tables are meant. Patterns are SQL LIKE patterns (`%`, `_`, `\` to
/// escape), matched against the exact spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFilter {
    /// Schemas; all user schemas when empty.
    pub schemas: Vec<String>,
    /// Tables to take; all when empty.
    pub include: Vec<String>,
    /// Tables to leave out.
    pub exclude: Vec<String>,
}

/// What a fence is wanted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FencePurpose {
    /// None: the whole table is read, or the user switched the fence off.
    None,
    /// A cursor of time stamps: how far back does the oldest open transaction
    /// reach?
    Time,
    /// A cursor of numbers taken from a sequence: wait until every transaction
    /// that could still write has ended.
    Identifier,
}

/// What a reading of the clock has to do with the log that a server's copies
/// follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogPosition {
    /// Nothing.
    #[default]
    Unasked,
    /// It tells how far the log has come, read after the fence.
    Wanted,
    /// A copy first waits until it has come as far as another server told, for
    /// `wait` at most. Where it has not by then, its own clock or fence hold back
    /// what it may lack; a fence that must hold is an error. A server that is no
    /// copy has come as far.
    Reach(String),
}

/// What [`Source::clock`] is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockRequest {
    /// The table.
    pub table: TableName,
    /// What the fence is for.
    pub purpose: FencePurpose,
    /// Whether the fence must hold.
    pub mode: FenceMode,
    /// How long to wait for writers, for [`FencePurpose::Identifier`].
    pub wait: Duration,
    /// Users whose transactions do not count.
    pub ignore_users: Vec<String>,
    /// What is wanted of the server's log.
    pub log: LogPosition,
}

/// The source's clock, and what is in flight.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockReading {
    /// The source's own time, in nanoseconds since the epoch.
    pub now: i128,
    /// The server's configured time zone, an IANA name.
    pub zone: String,
    /// What may be read.
    pub fence: Fence,
    /// In words, for the manifest: what the fence rests on.
    pub fence_note: Option<String>,
    /// What the user should know, such as who holds the fence.
    pub notices: Vec<Notice>,
    /// How far the log has come, in the server's own terms, where it was asked and
    /// the server has one.
    pub log_position: Option<String>,
}

/// How much a look at the highest value may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Only what an index or the catalogue gives at once.
    Cheap,
    /// A scan of the table if need be; counts are still given only where cheap.
    Scan,
}

/// What [`Source::highest`] is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct HighestRequest {
    /// The table.
    pub table: TableName,
    /// The cursor.
    pub cursor: CursorRead,
    /// What it may cost.
    pub effort: Effort,
    /// Count the rows in this range, where an index makes that cheap.
    pub count: Option<Range>,
    /// Count the rows whose cursor is NULL, where that is cheap.
    pub count_nulls: bool,
}

/// The highest value of a cursor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Highest {
    /// `None`: not looked up, since it was not cheap. `Some(None)`: no row has a
    /// value.
    pub value: Option<Option<Position>>,
    /// Rows in the range that was asked for; `None` where not cheap.
    pub rows: Option<u64>,
    /// Rows with a NULL cursor; `None` where not cheap.
    pub nulls: Option<u64>,
    /// Rows whose cursor has a value above all that a window can reach, such as NaN
    /// or a time without an end, counted up to a million at least; `None` where not
    /// cheap. One below all values is none of them: a window without a lower bound
    /// has it.
    pub unreachable: Option<u64>,
}

/// What [`Source::split`] is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitRequest {
    /// What is read.
    pub read: TableRead,
    /// How many readers there may be.
    pub degree: u32,
    /// How the table is cut.
    pub method: ReadMethod,
    /// Column to cut by, for [`ReadMethod::Range`].
    pub key: Option<String>,
}

/// What [`Source::find`] is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct FindRequest {
    /// The table and the columns that are wanted; its range and its cursor do not
    /// count.
    pub read: TableRead,
    /// The columns by which rows are found, such as those of the key.
    pub key: Vec<String>,
    /// Values of those columns, as the source itself prints them, one list for
    /// each row that is looked for; `None` is NULL. At most a few hundred.
    pub values: Vec<Vec<Option<String>>>,
}

/// What [`Source::diagnose`] is asked of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct DiagnosedTable {
    /// The table.
    pub table: Table,
    /// Its cursor, where it has one.
    pub cursor: Option<CursorRead>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// Works, with a weakness that the user should know.
    Warning,
    /// A run would fail.
    Failure,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub verdict: Verdict,
    /// What was looked at, in one or two words, such as `clock`.
    pub topic: String,
    /// The table, where it is about one.
    pub table: Option<TableName>,
    /// What was found: a lowercase sentence without a full stop.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
}

/// Keeps a snapshot alive until it is dropped.
pub type Hold = Box<dyn Any + Send + Sync>;

/// A read, cut into slices that all see one snapshot.
pub struct Slices {
    /// The pieces; they tile the read, with NULL cursors in exactly one.
    pub slices: Vec<Slice>,
    /// Names of all columns that the table has in the snapshot, read or not.
    pub columns: Vec<String>,
    /// The snapshot ends when this is dropped. Slices of a lost snapshot fail
    /// with `Unavailable`.
    pub hold: Hold,
}

/// A system that is read from. No method has a default.
#[async_trait]
pub trait Source: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Tables with their columns, from the catalogue, sorted by name. An empty
    /// result is no error.
    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>>;

    /// The source's clock and what is in flight, each read by statements of
    /// their own outside any transaction that reads rows.
    async fn clock(&self, request: &ClockRequest) -> Result<ClockReading>;

    /// The highest committed value of a cursor.
    async fn highest(&self, request: &HighestRequest) -> Result<Highest>;

    /// Takes a snapshot, checks in it that the columns still are as the read
    /// says (error of kind `Data` naming the column otherwise), and cuts the
    /// read.
    async fn split(&self, request: &SplitRequest) -> Result<Slices>;

    /// Reads one slice. Each row of the range arrives exactly once over all
    /// slices of a split. The statement that is run is logged at DEBUG.
    async fn read(&self, slice: &Slice) -> Result<Reading>;

    /// Reads the rows that have these keys, in a snapshot of its own. A value that
    /// does not fit its column is an error of kind `Configuration` that names it.
    async fn find(&self, request: &FindRequest) -> Result<Reading>;

    /// Looks for what would make a run fail or go slowly: privileges, replica lag,
    /// settings of the server, and for each table whether its cursor is indexed,
    /// nullable, a plain date, and rising. Reads only what is cheap.
    async fn diagnose(&self, tables: &[DiagnosedTable]) -> Result<Vec<Finding>>;

    /// The statement that reads the slice, for people to see.
    fn statement(&self, slice: &Slice) -> String;

    /// How often something was sent to the server and its answer waited for, logins
    /// included, since this source was made. What is sent together counts once; a
    /// system without a server has none.
    fn round_trips(&self) -> u64;
}
