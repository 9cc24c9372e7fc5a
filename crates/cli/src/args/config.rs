//! `config`: make, list, show and delete syncs.

use clap::{Args, Subcommand};

use super::CreateArgs;

/// What to do with syncs.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check everything that can be checked, store the sync, print its id
    Create(Box<CreateArgs>),
    /// List the syncs
    List,
    /// Show all settings of a sync
    Show(SyncIdArgs),
    /// Delete a sync with its watermarks; the lake stays as it is
    Delete(SyncIdArgs),
}

/// One sync.
#[derive(Debug, Args)]
pub(crate) struct SyncIdArgs {
    /// The sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: String,
}
