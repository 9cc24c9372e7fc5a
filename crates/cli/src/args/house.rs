//! `compact`, `cleanup` and `doctor`: keep house.

use clap::{Args, ValueEnum};

/// Which files are merged.
#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: String,

    /// This table; all tables of the sync without it
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,

    /// Size of a merged file, about; files of half of it or more stay as they are
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub(crate) target_size: String,

    /// Show what would be merged, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is cleaned up.
#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// Of this sync; of all syncs without it
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: Option<String>,

    /// Only what is at least so old: seconds, or a number with m, h or d
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub(crate) older_than: String,

    /// Remove only records of runs that ended so, comma separated
    #[arg(long, value_name = "STATUS", value_enum, value_delimiter = ',', ignore_case = true)]
    pub(crate) status: Vec<RunStatusName>,

    /// Name what would go, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunStatusName {
    Completed,
    Partial,
    Failed,
    Cancelled,
}

/// What is looked at.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// This sync with its source, lake and target; all syncs without it
    #[arg(long, value_name = "ID", conflicts_with = "source_db_auth_id")]
    pub(crate) sync_id: Option<String>,

    /// This source alone, before a sync is made
    #[arg(long, value_name = "ID")]
    pub(crate) source_db_auth_id: Option<String>,

    /// Show also what is fine
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
