//! `lxdb`: look after the state store.

use clap::{Args, Subcommand};

/// What to do with the state store.
#[derive(Debug, Subcommand)]
pub(crate) enum LxdbCommand {
    /// Make the store's tables, or bring them up to date
    Init,
    /// Remove the store's tables with everything in them
    Drop(ConfirmArgs),
    /// Empty the store's tables
    Truncate(ConfirmArgs),
    /// List the tables that runs hold
    Locks(LocksArgs),
    /// Take tables from runs that hold them
    #[command(alias = "release_locks")]
    ReleaseLocks(ReleaseArgs),
}

/// A word that it is meant.
#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Yes, forget all syncs, watermarks and runs
    #[arg(long)]
    pub(crate) confirm: bool,
}

/// Which locks.
#[derive(Debug, Args)]
pub(crate) struct LocksArgs {
    /// Of this sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: Option<String>,

    /// Of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id: Option<String>,

    /// Only those whose time has passed
    #[arg(long)]
    pub(crate) expired: bool,
}

/// Which locks are taken away.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) select: LocksArgs,

    /// All of them
    #[arg(long)]
    pub(crate) all: bool,
}
