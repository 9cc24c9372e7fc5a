//! The command line as it is typed. Parsing does nothing else; what the words
//! mean is resolved in [`settings`](crate::settings).

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod backfill;
mod config;
mod create;
mod house;
mod lxdb;
mod simple;
pub(crate) mod spelling;
mod sync;
mod verify;
mod watermarks;

pub(crate) use backfill::BackfillArgs;
pub(crate) use config::ConfigCommand;
pub(crate) use create::{
    ColumnArgs, CompressionName, CreateArgs, DriftName, ErrorActionName, FenceName, FormatName,
    InfiniteTimeName, NullCursorName, PublishMethodName, SpecialNumberName, TimestampUnitName,
    ZeroDateName,
};
pub(crate) use house::{CleanupArgs, CompactArgs, DoctorArgs, RunStatusName};
pub(crate) use lxdb::{LocksArgs, LxdbCommand, ReleaseArgs};
pub(crate) use simple::{CompletionsArgs, DemoArgs, ManArgs, PlanArgs, StatusArgs};
pub(crate) use sync::{OnMismatchName, SyncArgs};
pub(crate) use verify::{ExplainArgs, VerifyArgs};
pub(crate) use watermarks::{EditArgs, SelectArgs, SetArgs, WatermarksCommand};

const EXAMPLES: &str = "\
First steps:
  tidelake demo                     see it work, without any server
  tidelake config create -a credentials.json --source-db-auth-id shop \\
      --output-dir ./lake --incremental-table main.orders:updated_at:datetime
                                    check and store a sync, print its id
  tidelake plan -a credentials.json --sync-id ID
                                    what the next sync would do
  tidelake sync -a credentials.json --sync-id ID
                                    move what is new

Every option may also be spelled with underscores (--auth_file). Results go to
stdout, everything else to stderr.

Exit codes: 0 all done, also when nothing was new; 1 failed; 2 wrong usage or
configuration; 3 some tables failed, others are done; 4 locked by another run;
5 state and lake disagree; 130 interrupted.";

/// Move what is new in a database into a data lake, and know exactly how far it got.
#[derive(Debug, Parser)]
#[command(name = "tidelake", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes, before or after its name.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Credentials, a JSON file
    #[arg(short, long, global = true, value_name = "FILE")]
    #[arg(env = "TIDELAKE_AUTH_FILE", hide_env_values = true)]
    pub(crate) auth_file: Option<PathBuf>,

    /// Credential of the state store; without one it is a file in your data folder
    #[arg(long, global = true, value_name = "ID")]
    #[arg(env = "TIDELAKE_LXDB_AUTH_ID", hide_env_values = true)]
    pub(crate) lxdb_auth_id: Option<String>,

    /// Environment; keeps several apart in one state store
    #[arg(long, global = true, value_name = "NAME")]
    #[arg(env = "TIDELAKE_ENV_NAME", hide_env_values = true)]
    pub(crate) env_name: Option<String>,

    /// Form of the results
    #[arg(long, global = true, value_name = "FORM", value_enum, ignore_case = true)]
    #[arg(default_value = "table", env = "TIDELAKE_OUTPUT", hide_env_values = true)]
    pub(crate) output: OutputName,

    /// How much is told on stderr; DEBUG shows windows and SQL
    #[arg(long, global = true, value_name = "LEVEL", value_enum, ignore_case = true)]
    #[arg(default_value = "INFO", env = "TIDELAKE_LOG_LEVEL", hide_env_values = true)]
    pub(crate) log_level: LogLevelName,

    /// Also write log files there, one JSON document per line
    #[arg(long, global = true, value_name = "DIR")]
    #[arg(env = "TIDELAKE_LOG_DIR", hide_env_values = true)]
    pub(crate) log_dir: Option<PathBuf>,

    /// Draw no progress bars
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,

    #[command(flatten)]
    pub(crate) ignored: IgnoredArgs,
}

/// Options of older command lines that have no meaning here.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accepted and ignored")]
pub(crate) struct IgnoredArgs {
    /// There is no helper binary
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) fastbcp_dir_path: Option<PathBuf>,

    /// There is no helper binary
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) quiet_fbcp: bool,

    /// There is no licence to enter
    #[arg(long, global = true, value_name = "TEXT", hide_short_help = true)]
    pub(crate) license: Option<String>,

    /// There is no banner
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_banner: bool,
}

/// A whole number, refused in plain words.
fn whole<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "a whole number is needed")
}

/// Form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputName {
    Table,
    Json,
}

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum LogLevelName {
    Debug,
    Info,
    Warning,
    Error,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a small shop, sync it twice with new rows in between, show what moved
    Demo(DemoArgs),
    /// Make, list, show and delete syncs
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Move what is new: export, commit, publish, advance the watermarks
    Sync(SyncArgs),
    /// Show what the next sync would do; reads, never writes
    Plan(PlanArgs),
    /// Compare the lake with the source, and say where they differ
    Verify(VerifyArgs),
    /// Say why a row was or was not synced
    Explain(ExplainArgs),
    /// Read a range below the watermark, in pieces; the watermark stays
    Backfill(BackfillArgs),
    /// Merge the small files of a table into few
    Compact(CompactArgs),
    /// Delete what runs left behind: files, uploads, records
    Cleanup(CleanupArgs),
    /// Look for what would make a sync fail or go slowly
    Doctor(DoctorArgs),
    /// Show runs and what became of their tables
    Status(StatusArgs),
    /// Show and change how far tables were read
    #[command(subcommand)]
    Watermarks(WatermarksCommand),
    /// Look after the state store
    #[command(subcommand)]
    Lxdb(LxdbCommand),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(hide = true)]
    Man(ManArgs),
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

/// Commands that are known but not built: they are in no help text.
pub(crate) const PLANNED: [&str; 5] = ["keys", "credentials", "serve", "worker", "scheduler"];

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_agree_with_one_another() {
        Cli::command().debug_assert();
    }

    #[test]
    fn planned_commands_are_not_built() {
        for name in PLANNED {
            assert!(Cli::command().find_subcommand(name).is_none(), "{name} is built");
        }
    }

    #[test]
    fn global_options_stand_on_either_side() {
        for line in ["tidelake -a c.json config list", "tidelake config list -a c.json"] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(cli.global.auth_file, Some(PathBuf::from("c.json")));
        }
    }
}
