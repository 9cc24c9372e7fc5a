//! Watermarks as they are stored, and the history of their changes.

use serde::{Deserialize, Serialize};
use tidelake_watermark::Progress;

use crate::lease::TableKey;
use crate::run::RunId;

/// A stored watermark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatermarkRecord {
    /// Its id, a ULID.
    pub id: String,
    /// What it belongs to.
    pub key: TableKey,
    /// The cursor's columns, as they are written on the command line.
    pub column: String,
    /// Kinds of the value joined by commas; known before the first value is.
    pub kind: String,
    /// Value, highest exported value, first bound and direction.
    #[serde(with = "crate::text::progress_text")]
    pub progress: Progress,
    /// Raised by every change.
    pub version: u64,
    /// Rows of the last sync.
    pub row_count: u64,
    /// When it last advanced.
    pub last_sync_at: Option<String>,
    /// When a run last looked, whether or not it advanced.
    pub last_checked_at: Option<String>,
    /// The run that last looked.
    pub last_run_id: Option<RunId>,
    /// Whether the next run starts a new generation: after a reset or a change
    /// of the cursor's columns, it reads everything and replaces the lake's rows.
    pub starts_generation: bool,
}

/// Who changed a watermark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// `run`, `cli`, `api` or `ui`.
    pub kind: String,
    /// Run id, user name or key name.
    pub name: String,
}

/// A change of a watermark that is no advance.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Sets a value.
    Edit(tidelake_watermark::Position),
    /// Forgets the values; the record stays.
    Reset,
    /// Puts the values before the last change back.
    Undo,
}

/// One change of a watermark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// The version that the change made.
    pub version: u64,
    /// `create`, `advance`, `edit`, `undo`, `reset`, `adopt`.
    pub change: String,
    /// Before.
    #[serde(with = "crate::text::progress_text")]
    pub before: Progress,
    /// After.
    #[serde(with = "crate::text::progress_text")]
    pub after: Progress,
    /// Who.
    pub actor: Actor,
    /// Why, in the user's words.
    pub reason: Option<String>,
    /// When, RFC 3339 in UTC by the state store's clock.
    pub at: String,
}

/// Which watermarks are meant; an absent field matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatermarkFilter {
    /// Environment.
    pub env: Option<String>,
    /// Sync.
    pub scope: Option<String>,
    /// Connector.
    pub connector_type: Option<String>,
    /// Source key.
    pub source_key: Option<String>,
    /// `schema.table`, in the catalogue's spelling.
    pub table: Option<String>,
}
