//! Runs, table runs, and the steps of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tidelake_watermark::{Position, Progress, Range};

use crate::manifest::{PendingCommit, UploadRef};
use crate::notice::Notice;
use crate::table::TableName;

/// The identity of a run: a ULID, so that ids sort by time of start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(u128);

impl schemars::JsonSchema for RunId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9A-HJKMNP-TV-Z]{26}$" })
    }
}

impl RunId {
    /// The run of that number.
    pub fn from_number(number: u128) -> Self {
        Self(number)
    }

    /// When the run began, by the clock of the machine that ran it, in
    /// milliseconds since the epoch.
    pub fn millis(self) -> u64 {
        ulid::Ulid(self.0).timestamp_ms()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        ulid::Ulid(self.0).fmt(formatter)
    }
}

impl FromStr for RunId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ulid::Ulid::from_string(text)
            .map(|ulid| Self(ulid.0))
            .map_err(|_| format!("{text:?} is not a run id of 26 characters"))
    }
}

impl TryFrom<String> for RunId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

/// The steps of a table run, in their order; a crash test stops at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The leases are held and the run is recorded.
    Lease,
    /// Watermark, version and the lake's head are loaded and agree.
    Load,
    /// The source's clock and the fence are read.
    Clock,
    /// The snapshot is taken and the read is cut into slices.
    Split,
    /// The window is recorded with the run.
    Window,
    /// A data object was begun.
    Begin,
    /// A batch was read and encoded.
    Batch,
    /// All objects are uploaded and not yet visible.
    Staged,
    /// The state store holds the exact list of what is to be committed.
    Committing,
    /// One of the objects was completed.
    Completed,
    /// The manifest is written.
    Manifest,
    /// `latest.json` lists the manifest.
    Latest,
    /// The state store knows that the files are committed.
    Committed,
    /// The target holds the rows.
    Published,
    /// The watermark moved, and the table run is done.
    Advanced,
    /// Replaced files are deleted.
    Cleaned,
    /// The run is recorded as finished.
    Finished,
}

impl Step {
    /// Every step in order.
    pub const ALL: [Self; 17] = [
        Self::Lease,
        Self::Load,
        Self::Clock,
        Self::Split,
        Self::Window,
        Self::Begin,
        Self::Batch,
        Self::Staged,
        Self::Committing,
        Self::Completed,
        Self::Manifest,
        Self::Latest,
        Self::Committed,
        Self::Published,
        Self::Advanced,
        Self::Cleaned,
        Self::Finished,
    ];

    /// The name used in settings and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Load => "load",
            Self::Clock => "clock",
            Self::Split => "split",
            Self::Window => "window",
            Self::Begin => "begin",
            Self::Batch => "batch",
            Self::Staged => "staged",
            Self::Committing => "committing",
            Self::Completed => "completed",
            Self::Manifest => "manifest",
            Self::Latest => "latest",
            Self::Committed => "committed",
            Self::Published => "published",
            Self::Advanced => "advanced",
            Self::Cleaned => "cleaned",
            Self::Finished => "finished",
        }
    }

    /// The step of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Under way, or its process died.
    Running,
    /// Every table is done.
    Completed,
    /// Some tables failed, others are done.
    Partial,
    /// No table is done.
    Failed,
    /// Interrupted by the user.
    Cancelled,
}

/// One execution of a sync.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id.
    pub run_id: RunId,
    /// Environment.
    pub env: String,
    /// The sync, or empty for a single-table request.
    pub scope: String,
    /// State.
    pub status: RunStatus,
    /// Start by the state store's clock, as RFC 3339 text in UTC.
    pub started_at: String,
    /// End.
    pub finished_at: Option<String>,
    /// What went wrong, without secrets.
    pub error: Option<String>,
}

/// State of a table run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableRunStatus {
    /// Reading; nothing of it is visible yet, and a successor reads the same
    /// window afresh.
    Reading,
    /// The list of files is fixed; whoever holds the lease finishes that list.
    Committing,
    /// The files count in the lake; publishing or advancing is left.
    Committed,
    /// Watermark advanced, all done.
    Completed,
    /// Failed; the watermark is where it was.
    Failed,
    /// Interrupted; the watermark is where it was.
    Cancelled,
}

impl TableRunStatus {
    /// Whether a later run of the table has to finish or redo this one first.
    pub fn is_unfinished(self) -> bool {
        matches!(self, Self::Reading | Self::Committing | Self::Committed)
    }
}

/// The window of a table run as it was fixed, before the first object is begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// The range read, gap and lookback included; `None` reads every row.
    #[serde(with = "crate::text::range_text")]
    pub range: Option<Range>,
    /// The part below the watermark that held no exported row.
    #[serde(with = "crate::text::range_text")]
    pub gap: Option<Range>,
    /// The upper bound.
    #[serde(with = "crate::text::position_text")]
    pub high: Option<Position>,
    /// Whether the watermark stays where it is.
    pub stays: bool,
    /// Whether the rows replace everything that the lake holds of the table.
    pub replaces: bool,
    /// Whether rows with a NULL cursor are read as well.
    pub null_cursors: bool,
    /// `clock`, `observed`, or `none` for a full table.
    pub ceiling: String,
    /// What the fence said, in words.
    pub fence: Option<String>,
    /// Safety lag in seconds.
    pub safety_lag: u64,
    /// Version of the watermark that was loaded; `None` where there was none.
    pub version: Option<u64>,
    /// Progress that was loaded.
    #[serde(with = "crate::text::progress_text")]
    pub progress: Progress,
    /// What the window is for.
    #[serde(default)]
    pub purpose: Purpose,
}

/// What a window is read, or a commit made, for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// An ordinary run.
    #[default]
    Run,
    /// One piece of a backfill.
    Backfill(BackfillPiece),
    /// Rows that `verify` found to differ are read again.
    Repair,
    /// Small files are merged; nothing is read from the source.
    Compact,
}

/// One piece of a backfill, which is a run of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillPiece {
    /// The backfill: the run id of its first piece.
    pub backfill: RunId,
    /// Its whole range, in words: what it is found by.
    pub range: String,
    /// Number of the piece, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// Where its equal steps begin, if not at the lower end of the range.
    #[serde(default)]
    pub from: Option<String>,
}

/// One table within a run, as the state store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRun {
    /// The run.
    pub run_id: RunId,
    /// The table.
    pub table: TableName,
    /// The fencing token under which it runs; the attempt in the lake's keys.
    pub token: u64,
    /// State.
    pub status: TableRunStatus,
    /// The window, once it is fixed.
    pub window: Option<WindowRecord>,
    /// Uploads begun so far whose objects are not visible.
    pub uploads: Vec<UploadRef>,
    /// What is being committed.
    pub pending: Option<PendingCommit>,
    /// Rows read.
    pub rows: u64,
    /// Bytes written to the lake.
    pub bytes: u64,
    /// Rows, values and NULLs that were counted, by name.
    pub counters: BTreeMap<String, u64>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// Start, RFC 3339 in UTC by the state store's clock.
    pub started_at: String,
    /// End.
    pub finished_at: Option<String>,
    /// What went wrong, without secrets.
    pub error: Option<String>,
}
