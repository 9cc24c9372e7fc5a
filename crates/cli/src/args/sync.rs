//! `sync`: one run of a sync, or one half of it.

use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
sync[export] is sync --export-only, sync[publish] is sync --publish-only.

A run that was cut off, by Ctrl-C or a crash, is finished by the next sync: the
same command again is always right, and no row is exported twice.";

/// One run of a sync.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SyncArgs {
    /// The sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: String,

    /// Take up only the tables of this earlier run
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id: Option<String>,

    /// Take up the run of --run-id, or the newest one that did not end well
    #[arg(long)]
    pub(crate) resume: bool,

    /// Only export and commit; where a publish target waits, the watermark waits
    /// with it
    #[arg(long, conflicts_with = "publish_only")]
    pub(crate) export_only: bool,

    /// Only publish what an earlier export committed
    #[arg(long)]
    pub(crate) publish_only: bool,

    /// Forget all watermarks of the sync first: everything is read again and
    /// replaces what the lake holds
    #[arg(long)]
    pub(crate) reset_watermarks: bool,

    /// When state and lake disagree: take over what the lake says, or read again
    /// from the start and replace it
    #[arg(long, value_enum, ignore_case = true, value_name = "DECISION")]
    pub(crate) on_mismatch: Option<OnMismatchName>,

    /// How long a table stays taken by a run that no longer answers; the run renews
    /// it three times as often
    #[arg(long, value_name = "SECONDS", default_value_t = 15, hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(3..=3600))]
    pub(crate) lease_seconds: u64,

    /// What carries the slices: local
    #[arg(long, value_name = "ENGINE", default_value = "local", hide_short_help = true)]
    pub(crate) engine: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnMismatchName {
    Adopt,
    Rebuild,
}
