//! `config create`: everything a sync can be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::whole;

const EXAMPLES: &str = "\
Example:
  tidelake config create -a credentials.json --source-db-auth-id shop \\
      --source-schema-name main --output-dir ./lake \\
      --incremental-table main.orders:updated_at:datetime \\
      --incremental-table 'main.events:id:integer@1000'

Only the sync's id is printed on stdout: SYNC=$(tidelake config create …)";

const INCREMENTAL_TABLE: &str = "\
A table that is read incrementally, by the column that grows; repeatable

TABLE is [schema.]table:column:type[:i|:e][@start][!strategy]. The type is date, \
datetime (or timestamp), integer, number, text or binary. Names may stand in double \
quotes. A composite cursor is written updated_at,id, a fallback updated_at|created_at. \
:e means [low, high) instead of (low, high]. With @start the first run reads only rows \
above that value (with :e, from it on). The strategy is append, upsert or \
delete_insert. Tables that are not named are exported whole each time.";

const TYPE_CAST: &str = "\
Types of columns in the lake, schema.table:column:type; repeatable

The type is text, boolean, int8 to int64, uint8 to uint64 (widths in bits), float64, \
decimal(p,s), date, timestamp, timestamptz, time, binary, uuid or json. Only what loses \
nothing is taken: a cast that could round is refused, and a value that does not fit the \
type fails the table.";

const SCHEMA_DRIFT: &str = "\
When a column of an incremental table was added, dropped or changed

fail stops the table before anything is read. evolve lets the lake follow: new columns are \
added, dropped ones stay and are NULL, types become wider. ignore leaves new columns out. \
A type that became narrower, or another, always stops the table. A table that is exported \
whole takes its present columns each time.";

/// A new sync.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) cursor: CursorArgs,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) publish: PublishArgs,
    #[command(flatten)]
    pub(crate) sync: IdentityArgs,
}

/// What is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is read")]
pub(crate) struct SourceArgs {
    /// Credential of the source
    #[arg(long, value_name = "ID")]
    pub(crate) source_db_auth_id: String,

    /// Database; the credential's own otherwise
    #[arg(long, value_name = "NAME")]
    pub(crate) source_db_name: Option<String>,

    /// Schemas, a comma list of LIKE patterns; all user schemas otherwise
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) source_schema_name: Option<String>,

    /// Tables to take, a comma list of LIKE patterns
    #[arg(short, long, value_name = "PATTERNS")]
    pub(crate) include: Option<String>,

    /// Tables to leave out, a comma list of LIKE patterns
    #[arg(short, long, value_name = "PATTERNS")]
    pub(crate) exclude: Option<String>,

    /// Only tables of at least so many rows, by the catalogue's estimate
    #[arg(long, value_name = "ROWS", value_parser = whole::<u64>)]
    pub(crate) min_rows: Option<u64>,

    /// Only tables of at most so many rows, by the catalogue's estimate
    #[arg(long, value_name = "ROWS", value_parser = whole::<u64>)]
    pub(crate) max_rows: Option<u64>,
}

/// How far is read, and how that is remembered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Incremental tables")]
pub(crate) struct CursorArgs {
    /// A table that is read incrementally, by the column that grows; repeatable
    #[arg(long, value_name = "TABLE", long_help = INCREMENTAL_TABLE)]
    pub(crate) incremental_table: Vec<String>,

    /// Stay so far behind the source's clock: seconds, or 90s, 5m, 2h
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) incremental_safety_lag: String,

    /// Read again so far below the watermark, for late updates: seconds, 90s, 5m,
    /// 2h, or an amount for numbers; needs upsert or delete_insert
    #[arg(long, value_name = "TIME|AMOUNT")]
    pub(crate) lookback: Option<String>,

    /// Stay so far below the highest value of a number
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub(crate) safety_gap: Option<String>,

    /// Rows whose cursor is NULL: in the first run, in every run, never, or an error
    #[arg(long, value_enum, ignore_case = true, default_value = "first", value_name = "POLICY")]
    pub(crate) null_cursor: NullCursorName,

    /// Time zone of cursors without one, an IANA name; the server's own otherwise
    #[arg(long, value_name = "ZONE")]
    pub(crate) cursor_zone: Option<String>,

    /// Wait behind transactions that are still open in the source
    #[arg(long, value_enum, ignore_case = true, default_value = "auto", value_name = "MODE")]
    pub(crate) inflight_fence: FenceName,

    /// How long to wait for writers of a table with an id cursor
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) inflight_wait: String,

    /// Database users whose transactions do not count, a comma list
    #[arg(long, value_name = "USERS")]
    pub(crate) inflight_ignore: Option<String>,

    /// Credential of the primary, where the source is a standby
    #[arg(long, value_name = "ID", hide_short_help = true)]
    pub(crate) fence_auth_id: Option<String>,
}

/// What becomes of columns and values.
#[derive(Debug, Args)]
#[command(next_help_heading = "Columns and values")]
pub(crate) struct ColumnArgs {
    /// Columns to read, schema.table:a,b; repeatable, all columns otherwise
    #[arg(long, value_name = "TABLE:COLUMNS")]
    pub(crate) columns: Vec<String>,

    /// Columns to leave out, schema.table:a,b; repeatable
    #[arg(long, value_name = "TABLE:COLUMNS")]
    pub(crate) exclude_columns: Vec<String>,

    /// Columns of the key, schema.table:a,b; repeatable, the catalogue's otherwise
    #[arg(long, value_name = "TABLE:COLUMNS")]
    pub(crate) key: Vec<String>,

    /// Digits of exact numbers, in all and after the point, schema.table:column:p,s;
    /// repeatable
    #[arg(long, value_name = "TABLE:COLUMN:P,S")]
    pub(crate) decimal: Vec<String>,

    /// Types of columns in the lake, schema.table:column:type; repeatable
    #[arg(long, value_name = "TABLE:COLUMN:TYPE", long_help = TYPE_CAST)]
    pub(crate) type_cast: Vec<String>,

    /// When a column of an incremental table was added, dropped or changed
    #[arg(long, value_enum, ignore_case = true, default_value = "fail", value_name = "POLICY")]
    #[arg(long_help = SCHEMA_DRIFT)]
    pub(crate) on_schema_drift: DriftName,

    /// NaN and infinity: kept where the type has them, always NULL, decimals as
    /// text, or an error
    #[arg(long, value_enum, ignore_case = true, default_value = "nan", value_name = "POLICY")]
    pub(crate) on_special_number: SpecialNumberName,

    /// Infinite dates and times: NULL, the last value there is, all dates and times
    /// as text, or an error
    #[arg(long, value_enum, ignore_case = true, default_value = "null", value_name = "POLICY")]
    pub(crate) on_infinite_time: InfiniteTimeName,

    /// Dates such as 0000-00-00: NULL, all dates and times as text, or an error
    #[arg(long, value_enum, ignore_case = true, default_value = "null", value_name = "POLICY")]
    pub(crate) on_zero_date: ZeroDateName,

    /// Unit of times that have more digits than microseconds: us makes them text
    #[arg(long, value_enum, ignore_case = true, default_value = "us", value_name = "UNIT")]
    pub(crate) timestamp_unit: TimestampUnitName,
}

/// Where the lake is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where it goes")]
pub(crate) struct TargetArgs {
    /// A local folder (this or --target-storage-id)
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,

    /// Credential of a storage (this or --output-dir)
    #[arg(long, value_name = "ID")]
    pub(crate) target_storage_id: Option<String>,

    /// Path between the base and the schema's folder
    #[arg(long, value_name = "PATH")]
    pub(crate) sub_path: Option<String>,

    /// Form of the tables in the lake
    #[arg(long, value_enum, ignore_case = true, default_value = "parquet", value_name = "FORMAT")]
    pub(crate) format: FormatName,

    /// Codec inside the files
    #[arg(long, value_enum, ignore_case = true, default_value = "Zstd", value_name = "CODEC")]
    pub(crate) compression_type: CompressionName,

    /// Older generations of full tables that stay for slow readers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u32>)]
    pub(crate) keep_generations: u32,

    /// Write Common Data Model files
    #[arg(long)]
    pub(crate) generate_metadata: bool,

    /// Name in those files; the schema's name otherwise
    #[arg(long, value_name = "NAME")]
    pub(crate) manifest_name: Option<String>,
}

/// How fast it goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speed and memory")]
pub(crate) struct SpeedArgs {
    /// Readers inside one large table: 0 all cores, -N cores/N; otherwise one pool
    /// of as many readers as cores
    #[arg(short = 'p', long = "fastbcp-p", visible_alias = "parallel", value_name = "N")]
    #[arg(allow_negative_numbers = true, value_parser = whole::<i32>)]
    pub(crate) parallel: Option<i32>,

    /// Tables at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<u32>)]
    pub(crate) n_jobs: u32,

    /// Rows from which a table is read in slices, by the catalogue's estimate
    #[arg(long, value_name = "ROWS", default_value_t = 100_000, value_parser = whole::<u64>)]
    pub(crate) large_table_threshold: u64,

    /// How single tables are cut: [schema.]table:method:key:degree;…
    #[arg(long, value_name = "TABLES")]
    pub(crate) fastbcp_table_config: Option<String>,

    /// Data in memory at once, over the idle process: 256MiB, 1GB, …
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub(crate) memory_limit: String,
}

/// Where committed files are made queryable.
#[derive(Debug, Args)]
#[command(next_help_heading = "Publishing")]
pub(crate) struct PublishArgs {
    /// Credential of the system that is to show the rows
    #[arg(long, value_name = "ID")]
    pub(crate) publish_target: Option<String>,

    /// Whether it holds the rows itself or reads the lake's files [default: external]
    #[arg(long, value_enum, ignore_case = true, value_name = "METHOD")]
    pub(crate) publish_method: Option<PublishMethodName>,

    /// Its database; the credential's own otherwise
    #[arg(long, value_name = "NAME")]
    pub(crate) publish_database_name: Option<String>,

    /// Name of its schemas, of {schema} {subpath} {date} {timestamp} [default: {schema}]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) publish_schema_pattern: Option<String>,

    /// Name of its tables, of the same and {table} [default: {table}]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) publish_table_pattern: Option<String>,

    /// Make external tables without views over them
    #[arg(long, hide_short_help = true)]
    pub(crate) no_views: bool,

    /// Declare primary keys in the target
    #[arg(long)]
    pub(crate) pk_constraints: bool,
}

/// What the sync is called, and how it takes failures.
#[derive(Debug, Args)]
#[command(next_help_heading = "The sync")]
pub(crate) struct IdentityArgs {
    /// Its id, 1 to 64 of A-Z a-z 0-9 _ -; made up otherwise
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: Option<String>,

    /// When a table fails: start no other one, or go on with the others
    #[arg(long, value_enum, ignore_case = true, default_value = "fail", value_name = "ACTION")]
    pub(crate) error_action: ErrorActionName,

    /// Check everything, store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NullCursorName {
    First,
    Include,
    Exclude,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FenceName {
    Auto,
    Require,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriftName {
    Evolve,
    Fail,
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpecialNumberName {
    Nan,
    Null,
    Text,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InfiniteTimeName {
    Null,
    Clamp,
    Text,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ZeroDateName {
    Null,
    Text,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimestampUnitName {
    Us,
    Ns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    Parquet,
    Delta,
    Iceberg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum CompressionName {
    Zstd,
    Snappy,
    Gzip,
    Lz4,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PublishMethodName {
    Internal,
    External,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorActionName {
    Fail,
    Continue,
}
