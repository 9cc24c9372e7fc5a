//! `verify` and `explain`: what the lake holds, against what the source has.

use clap::Args;

use super::whole;

/// Compare the lake with the source.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: String,

    /// Only this table, schema.table as the catalogue spells it; repeatable
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Vec<String>,

    /// Name at most so many rows that differ, of each table
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u32>)]
    pub(crate) limit: u32,

    /// Do not show the values of rows that differ, only their keys
    #[arg(long)]
    pub(crate) no_values: bool,

    /// Also compare the checksum of every file with its manifest
    #[arg(long)]
    pub(crate) files: bool,

    /// Read again what differs, then verify once more
    #[arg(long)]
    pub(crate) repair: bool,
}

/// Why a row was or was not synced.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: String,

    /// The table, schema.table as the catalogue spells it
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: String,

    /// The row: column=value, several joined by commas or given one by one; a
    /// value may stand in double quotes, and none at all (column) is NULL
    #[arg(long, value_name = "COLUMN=VALUE", required = true, allow_hyphen_values = true)]
    pub(crate) key: Vec<String>,
}
