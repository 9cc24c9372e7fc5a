//! Commands with few options.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::whole;

/// A first look.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Put everything there, in a folder that is empty or new; a temporary one
    /// otherwise
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// What the next sync would do.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: String,
}

/// Which runs.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Runs of this sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: Option<String>,

    /// This run, with its tables
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id: Option<String>,

    /// Show the tables of every run
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// At most so many runs, newest first; 0 is all
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u32>)]
    pub(crate) limit: u32,

    /// Show it again every two seconds, with --run-id until that run has ended
    #[arg(long)]
    pub(crate) watch: bool,
}

/// Which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page per command there instead of printing the first one
    pub(crate) dir: Option<PathBuf>,
}
