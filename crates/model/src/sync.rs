//! A sync: the stored configuration of what is read and where it goes.

use std::fmt;

use serde::{Deserialize, Serialize};
use tidelake_watermark::{Cursor, Direction, Kind};

use crate::read::Policies;
use crate::table::TableName;

/// A stored configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncConfig {
    /// Its id, 1–64 of `[A-Za-z0-9_-]`.
    pub sync_id: String,
    /// Environment; empty when none is named.
    pub env: String,
    /// What is read.
    pub source: SourceSettings,
    /// Tables with a cursor; others are exported whole each time.
    pub incremental: Vec<IncrementalTable>,
    /// Seconds that the clock ceiling stays behind the source's clock.
    pub safety_lag: u64,
    /// Seconds or amount that a window re-reads below its lower bound.
    pub lookback: Option<String>,
    /// How far the observed ceiling of a number stays below the highest value.
    pub safety_gap: Option<String>,
    /// What becomes of rows whose cursor is NULL.
    pub null_cursor: NullCursor,
    /// Zone in which naive cursors are meant; the server's own when absent.
    pub cursor_zone: Option<String>,
    /// The in-flight fence.
    pub fence: FenceSettings,
    /// What becomes of values that cannot be represented.
    pub policies: Policies,
    /// Per table: the columns that are read, where not all are.
    #[serde(default)]
    pub columns: Vec<ColumnSelection>,
    /// Per table: the key, where it is not the catalogue's.
    #[serde(default)]
    pub keys: Vec<DeclaredKey>,
    /// Per column: the type in the lake, where it is not the catalogue's.
    #[serde(default)]
    pub casts: Vec<ColumnCast>,
    /// What a changed column means for an incremental table.
    #[serde(default)]
    pub schema_drift: SchemaDrift,
    /// Where the lake is.
    pub target: TargetSettings,
    /// Readers inside one large table: `None` automatic, 0 all cores, −n cores/n.
    pub parallel: Option<i32>,
    /// Tables at once.
    pub n_jobs: u32,
    /// Estimated rows from which a table is sliced.
    pub large_table_threshold: u64,
    /// Per table: how it is read.
    pub read_settings: Vec<TableReadSettings>,
    /// Codec of the Parquet files.
    pub compression: Compression,
    /// Bytes of data in memory at once, over the idle process.
    pub memory_limit: u64,
    /// Where committed files are made queryable.
    pub publish: Option<PublishSettings>,
    /// Common Data Model files.
    pub metadata: Option<MetadataSettings>,
    /// What a failed table means for the others.
    pub error_action: ErrorAction,
    /// Older generations of full tables that are kept.
    pub keep_generations: u32,
}

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSettings {
    /// Credential of the source.
    pub credential_id: String,
    /// Connector's name, as the credential said when the sync was made.
    pub connector_type: String,
    /// Database; the credential's own when absent.
    pub database: Option<String>,
    /// Schemas as LIKE patterns; all user schemas when empty.
    pub schemas: Vec<String>,
    /// Table name patterns to take; all when empty.
    pub include: Vec<String>,
    /// Table name patterns to leave out.
    pub exclude: Vec<String>,
    /// Least estimated rows.
    pub min_rows: Option<u64>,
    /// Most estimated rows.
    pub max_rows: Option<u64>,
}

/// A table with a cursor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IncrementalTable {
    /// The table, in the catalogue's spelling.
    pub table: TableName,
    /// The cursor.
    #[serde(with = "crate::text::cursor_text")]
    pub cursor: Cursor,
    /// Kind of each component.
    #[serde(with = "crate::text::kinds")]
    pub kinds: Vec<Kind>,
    /// Whether a time column counts in whole days.
    pub day_ticks: bool,
    /// Which side of a window is open.
    #[serde(with = "crate::text::direction")]
    pub direction: Direction,
    /// Lower bound of the first run, in the cursor's canonical text.
    pub start: Option<String>,
    /// How rows arrive in the target.
    pub strategy: Strategy,
}

/// How rows arrive in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Rows are added.
    #[default]
    Append,
    /// Rows with the same key are replaced.
    Upsert,
    /// Rows of the window are deleted, then inserted.
    DeleteInsert,
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Append => "append",
            Self::Upsert => "upsert",
            Self::DeleteInsert => "delete_insert",
        })
    }
}

/// What becomes of rows whose cursor is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NullCursor {
    /// The first, full run carries them; later runs count them.
    #[default]
    First,
    /// Every run carries them.
    Include,
    /// They are left out and counted.
    Exclude,
    /// The table fails when there is one.
    Fail,
}

/// Whether the in-flight fence must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FenceMode {
    /// Where it can be had; else the user is told.
    #[default]
    Auto,
    /// A table fails where it cannot be had.
    Require,
    /// Not used.
    Off,
}

/// The in-flight fence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceSettings {
    /// Whether it must hold.
    pub mode: FenceMode,
    /// Seconds to wait for writers of an id column.
    pub wait: u64,
    /// Database users whose transactions do not count.
    pub ignore_users: Vec<String>,
    /// Credential of the primary, where the source is a standby.
    #[serde(default)]
    pub primary_credential_id: Option<String>,
}

/// Which columns of a table are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSelection {
    /// The table, as the catalogue spells it.
    pub table: TableName,
    /// Only these, where some are named.
    pub include: Vec<String>,
    /// Not these.
    pub exclude: Vec<String>,
}

/// The key of a table as the user declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredKey {
    /// The table.
    pub table: TableName,
    /// Its columns, in order.
    pub columns: Vec<String>,
}

/// The type that a column has in the lake by the user's wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnCast {
    /// The table.
    pub table: TableName,
    /// The column.
    pub column: String,
    /// The type.
    pub data_type: arrow_schema::DataType,
    /// The Arrow extension type, where it has one: `arrow.uuid`, `arrow.json`.
    #[serde(default)]
    pub extension: Option<String>,
}

/// What a changed column means for a table whose lake is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaDrift {
    /// The table stops before a byte is read.
    #[default]
    Fail,
    /// The lake follows where it can: columns are added, dropped ones stay NULL,
    /// and types are widened.
    Evolve,
    /// The lake keeps its columns: new ones are left out, dropped ones are NULL.
    Ignore,
}

/// Where the lake is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSettings {
    /// Folder or storage credential.
    pub location: TargetLocation,
    /// Path between the base and the schema, without leading or trailing `/`.
    pub sub_path: Option<String>,
}

/// Folder or storage credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetLocation {
    /// A local folder, absolute.
    Folder(String),
    /// The id of a storage credential.
    Credential(String),
}

/// How one table is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableReadSettings {
    /// Schema, or any.
    pub schema: Option<String>,
    /// Table.
    pub table: String,
    /// How it is cut.
    pub method: ReadMethod,
    /// Column to cut by.
    pub key: Option<String>,
    /// Number of readers.
    pub degree: Option<u32>,
}

/// How a table is cut into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadMethod {
    /// The connector chooses.
    #[default]
    Auto,
    /// One reader.
    None,
    /// By physical place.
    Physical,
    /// By ranges of a column.
    Range,
}

/// Codec of the Parquet files.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Zstandard, level 1.
    #[default]
    Zstd,
    /// Snappy.
    Snappy,
    /// Gzip.
    Gzip,
    /// LZ4 raw blocks.
    Lz4,
    /// None.
    None,
}

/// Where committed files are made queryable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishSettings {
    /// Credential of the target.
    pub credential_id: String,
    /// Connector's name of the target.
    pub connector_type: String,
    /// Tables inside the target, or views over the lake's files.
    pub method: PublishMethod,
    /// Database; the credential's own when absent.
    pub database: Option<String>,
    /// Pattern of the schema's name.
    pub schema_pattern: String,
    /// Pattern of the table's name; it holds `{table}`.
    pub table_pattern: String,
    /// Whether the primary key is declared on the target's tables.
    pub primary_keys: bool,
}

/// Tables inside the target, or views over the lake's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishMethod {
    /// The target holds the rows itself.
    Internal,
    /// The target reads the lake's files.
    #[default]
    External,
}

/// Common Data Model files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataSettings {
    /// Name of the manifest; the schema's name when absent.
    pub manifest_name: Option<String>,
}

/// What a failed table means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorAction {
    /// No new table is started; those that run are finished.
    #[default]
    Fail,
    /// The others go on.
    Continue,
}
