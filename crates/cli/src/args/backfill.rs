//! `backfill`: read a range below the watermark.

use clap::Args;

use super::whole;

/// Which range of which table, and in what pieces.
#[derive(Debug, Args)]
pub(crate) struct BackfillArgs {
    /// The sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: String,

    /// The table, schema.table as the catalogue spells it
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: String,

    /// Read rows above this value of the cursor; from the first row without it
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) from: Option<String>,

    /// Read rows up to this value, which may not lie above the watermark
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) to: String,

    /// Cut the range into so many equal pieces, each a run of its own; cut by a
    /// million rows otherwise, where an index counts them
    #[arg(long, value_name = "N", value_parser = whole::<u32>, conflicts_with = "step")]
    pub(crate) pieces: Option<u32>,

    /// Cut the range into pieces of that step: seconds, or with m, h or d, for
    /// times, whole numbers otherwise
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,

    /// Begin anew instead of going on where the same backfill stopped
    #[arg(long)]
    pub(crate) restart: bool,

    /// Show the pieces and what they touch, and read nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
