//! The lake's own documents: manifests, the list of live ones, the owner, and
//! what a commit has to finish.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidelake_watermark::{Position, Progress};

use crate::notice::Notice;
use crate::run::{RunId, WindowRecord};
use crate::table::TableName;

/// Version of the manifest's format that this code writes.
pub const MANIFEST_FORMAT: u32 = 1;

/// The immutable document that makes a table run's files count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format.
    pub format_version: u32,
    /// The run.
    pub run_id: RunId,
    /// The fencing token of the attempt that wrote the files.
    pub attempt: u64,
    /// The table.
    pub table: TableName,
    /// Raised whenever a run replaces everything before it.
    pub generation: u64,
    /// What was read; absent where a commit only takes rows out.
    pub window: Option<ManifestWindow>,
    /// Raised when the schema differs from the manifest before.
    pub schema_version: u32,
    /// The Arrow schema of every file.
    #[schemars(with = "serde_json::Value")]
    pub schema: arrow_schema::Schema,
    /// Types as the source's catalogue prints them, by column.
    pub source_types: BTreeMap<String, String>,
    /// Columns of the primary key.
    pub key: Vec<String>,
    /// Files that this run adds.
    pub files: Vec<DataFile>,
    /// Files of earlier manifests that count no more.
    pub taken_out: Vec<TakenOut>,
    /// Highest cursor value in all live files after this commit. A run that reads
    /// only above it cannot meet rows that the lake already holds.
    #[serde(with = "crate::text::position_text")]
    #[schemars(with = "serde_json::Value")]
    pub live_highest: Option<Position>,
    /// Rows, NULL cursors, rows held back, values changed by policy, by name.
    pub counters: BTreeMap<String, u64>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// Start and end of the reading, RFC 3339 in UTC.
    pub started_at: String,
    /// See `started_at`.
    pub finished_at: String,
    /// Version of tidelake that wrote it.
    pub tool_version: String,
}

/// What a run read, and how far the table is read after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ManifestWindow {
    /// The cursor's columns; absent for a full table.
    pub cursor: Option<String>,
    /// The window as it was fixed.
    #[schemars(with = "serde_json::Value")]
    pub window: WindowRecord,
    /// Progress after the run, from which a lost state can be adopted.
    #[serde(with = "crate::text::progress_text")]
    #[schemars(with = "serde_json::Value")]
    pub progress: Progress,
}

/// One data object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DataFile {
    /// Key, relative to the table's folder.
    pub key: String,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// SHA-256 of the object, in hexadecimal.
    pub sha256: String,
    /// Lowest cursor value in the file, NULLs aside.
    #[serde(with = "crate::text::position_text")]
    #[schemars(with = "serde_json::Value")]
    pub cursor_min: Option<Position>,
    /// Highest cursor value in the file.
    #[serde(with = "crate::text::position_text")]
    #[schemars(with = "serde_json::Value")]
    pub cursor_max: Option<Position>,
    /// Rows whose cursor is NULL.
    pub cursor_nulls: u64,
}

/// A file of an earlier manifest that counts no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TakenOut {
    /// Key, relative to the table's folder.
    pub key: String,
    /// Rows of it that are gone; the others were written anew.
    pub rows: u64,
}

/// `latest.json`: which manifests count. A run counts from the moment it stands
/// here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latest {
    /// Version of this format.
    pub format_version: u32,
    /// Raised by every commit.
    pub sequence: u64,
    /// The newest run.
    pub head: RunId,
    /// Generation of the live manifests.
    pub generation: u64,
    /// A document that lists the live files of all manifests before
    /// `manifests`, relative to the table's folder.
    pub checkpoint: Option<String>,
    /// Live manifests, oldest first.
    pub manifests: Vec<LiveManifest>,
    /// Replaced generations, newest first. Those beyond the number that is kept
    /// are dropped from here by the commit after the one that deleted their files.
    #[serde(default)]
    pub replaced: Vec<ReplacedGeneration>,
}

/// A generation that a later run replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReplacedGeneration {
    /// Its number.
    pub generation: u64,
    /// Its checkpoint, if it had one.
    pub checkpoint: Option<String>,
    /// Its manifests.
    pub manifests: Vec<LiveManifest>,
}

/// A live manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveManifest {
    /// The run.
    pub run_id: RunId,
    /// Key of the manifest, relative to the table's folder.
    pub key: String,
}

/// `owner.json`: whose folder this is. Another owner is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Version of this format.
    pub format_version: u32,
    /// Identity of the state store.
    pub state_store: String,
    /// Environment.
    pub env: String,
    /// The sync, or empty.
    pub scope: String,
    /// The table.
    pub table: TableName,
}

/// A part of an upload that is not yet complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UploadPart {
    /// What the store calls the part.
    pub content_id: String,
}

/// An upload that can be completed or aborted later, by another process too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UploadRef {
    /// Key of the object, relative to the table's folder.
    pub key: String,
    /// What the store calls the upload; for a local folder, the temporary file's
    /// key.
    pub upload_id: String,
}

/// An object that is uploaded but not yet visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StagedObject {
    /// The upload.
    pub upload: UploadRef,
    /// Its parts in order.
    pub parts: Vec<UploadPart>,
    /// Bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// All that whoever holds the lease needs to finish a commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCommit {
    /// The manifest that is to be written.
    pub manifest: Manifest,
    /// The objects that are to be completed; the same as the manifest's files.
    pub objects: Vec<StagedObject>,
    /// Head of the lake that this commit follows; `None` for the first.
    pub previous_head: Option<RunId>,
    /// Whether it replaces all earlier manifests.
    pub replaces: bool,
    /// Earlier generations that stay readable when it does.
    pub keep_generations: u32,
}
