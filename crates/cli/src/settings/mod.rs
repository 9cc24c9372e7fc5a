//! What the command line means: one resolved struct per command, checked, and
//! passed on whole.

mod column_options;
mod create;
pub(crate) mod house;
mod names;
mod quantity;
mod sync;
mod table_config;

use std::path::PathBuf;
use std::time::Instant;

use tidelake_model::{Error, ErrorKind, Result, RunId};
use tidelake_state::LockFilter;
use tracing::Level;

use crate::args::{GlobalArgs, LocksArgs, LogLevelName, OutputName, ReleaseArgs};

pub(crate) use create::CreateSettings;
pub(crate) use sync::{Resume, SyncSettings};

/// What every command is told.
#[derive(Debug, Clone)]
pub(crate) struct GlobalSettings {
    pub(crate) auth_file: Option<PathBuf>,
    pub(crate) state_credential: Option<String>,
    pub(crate) env: String,
    pub(crate) log_level: Level,
    pub(crate) log_dir: Option<PathBuf>,
    /// Names of options that have no meaning here.
    pub(crate) ignored: Vec<&'static str>,
    /// When the program began.
    pub(crate) began: Instant,
}

/// Form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputForm {
    Table,
    Json,
}

impl From<OutputName> for OutputForm {
    fn from(name: OutputName) -> Self {
        match name {
            OutputName::Table => Self::Table,
            OutputName::Json => Self::Json,
        }
    }
}

impl GlobalSettings {
    /// Resolves the global options.
    pub(crate) fn resolve(args: GlobalArgs, began: Instant) -> Result<Self> {
        let env = args.env_name.unwrap_or_default();
        if !env.is_empty() {
            names::check_identifier("the environment's name", "--env-name", &env)?;
        }
        let ignored = args.ignored;
        let ignored = [
            (ignored.fastbcp_dir_path.is_some(), "--fastbcp-dir-path"),
            (ignored.quiet_fbcp, "--quiet-fbcp"),
            (ignored.license.is_some(), "--license"),
            (ignored.no_banner, "--no-banner"),
        ];
        Ok(Self {
            auth_file: args.auth_file,
            state_credential: args.lxdb_auth_id.filter(|id| !id.is_empty()),
            env,
            log_level: match args.log_level {
                LogLevelName::Debug => Level::DEBUG,
                LogLevelName::Info => Level::INFO,
                LogLevelName::Warning => Level::WARN,
                LogLevelName::Error => Level::ERROR,
            },
            log_dir: args.log_dir,
            ignored: ignored
                .into_iter()
                .filter_map(|(given, name)| given.then_some(name))
                .collect(),
            began,
        })
    }

    /// The same, but nothing is told that is no warning, unless details were
    /// asked for.
    pub(crate) fn without_remarks(self) -> Self {
        let level = if self.log_level == Level::INFO { Level::WARN } else { self.log_level };
        Self { log_level: level, ..self }
    }
}

/// A run's id as it was typed.
pub(crate) fn run_id(text: &str) -> Result<RunId> {
    text.parse().map_err(|message: String| {
        configuration(message).with_hint("'tidelake status' lists the runs with their ids")
    })
}

/// Which locks are meant.
pub(crate) fn lock_filter(env: &str, args: &LocksArgs) -> Result<LockFilter> {
    Ok(LockFilter {
        env: Some(env.to_owned()),
        scope: args.sync_id.clone(),
        run_id: args.run_id.as_deref().map(run_id).transpose()?,
        expired_only: args.expired,
    })
}

/// Which locks are to be taken away; never all of them by mistake.
pub(crate) fn release_filter(env: &str, args: &ReleaseArgs) -> Result<LockFilter> {
    let select = &args.select;
    let chosen = select.sync_id.is_some() || select.run_id.is_some() || select.expired;
    if chosen || args.all {
        return lock_filter(env, select);
    }
    Err(configuration("no locks were chosen")
        .with_hint("say which: --sync-id ID, --run-id RUN, --expired or --all"))
}

/// An error about what was typed.
pub(crate) fn configuration(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

/// An error about something that is known but not built.
pub(crate) fn not_available(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} is not available yet"))
}

/// A comma list without blanks around its parts; empty parts are mistakes.
pub(crate) fn comma_list(option: &str, text: Option<&str>) -> Result<Vec<String>> {
    let Some(text) = text else { return Ok(vec![]) };
    let parts: Vec<_> = text.split(',').map(|part| part.trim().to_owned()).collect();
    if parts.iter().any(String::is_empty) {
        return Err(configuration(format!("{option} {text:?} has an empty part"))
            .with_hint("separate the parts by single commas, for example a,b%"));
    }
    Ok(parts)
}
