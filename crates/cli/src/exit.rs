//! How the process ends: its exit code, and what is said of an error.

use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

use clap::error::ErrorKind as ClapErrorKind;
use clap::{Command, CommandFactory};
use serde::Serialize;
use tidelake_model::{ErrorKind, RunStatus, TableRunStatus};
use tidelake_sync::RunReport;
use tidelake_sync::run::ErrorReport;

use crate::args::{Cli, PLANNED};
use crate::output::one_line;

/// The exit codes that the manual promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All done, also when nothing was new.
    Done = 0,
    /// Failed, no table done.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// Some tables failed, others are done.
    Partial = 3,
    /// Locked by another run.
    Locked = 4,
    /// Refused to guess: state and lake disagree.
    Mismatch = 5,
    /// Interrupted; what was durable is kept.
    Interrupted = 130,
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Partial => 3,
            Self::Locked => 4,
            Self::Mismatch => 5,
            Self::Interrupted => 130,
        }
    }

    /// How an error ends a command that did not get as far as a table.
    pub(crate) fn of_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Configuration
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Unsupported => Self::Usage,
            ErrorKind::Locked => Self::Locked,
            ErrorKind::Mismatch => Self::Mismatch,
            ErrorKind::Interrupted => Self::Interrupted,
            ErrorKind::Conflict
            | ErrorKind::Denied
            | ErrorKind::Unavailable
            | ErrorKind::Data
            | ErrorKind::Internal => Self::Failed,
        }
    }

    /// How a run ends.
    pub(crate) fn of_report(report: &RunReport) -> Self {
        match report.status {
            RunStatus::Completed => return Self::Done,
            RunStatus::Cancelled => return Self::Interrupted,
            RunStatus::Partial | RunStatus::Failed | RunStatus::Running => {}
        }
        let errors: Vec<_> =
            report.tables.iter().filter_map(|table| table.error.as_ref()).collect();
        let none_done = !report.tables.iter().any(|table| {
            let done = Some(TableRunStatus::Completed) == table.status
                || Some(TableRunStatus::Committed) == table.status;
            done && table.error.is_none()
        });
        let is = |kind| move |error: &&&ErrorReport| error.error_kind == kind;
        let caused_by = |kind| {
            let count = errors.iter().filter(is(kind)).count();
            count > 0 && (none_done || count == errors.len())
        };
        if caused_by(ErrorKind::Mismatch) {
            Self::Mismatch
        } else if caused_by(ErrorKind::Locked) {
            Self::Locked
        } else if report.status == RunStatus::Partial {
            Self::Partial
        } else {
            Self::Failed
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// What is said of an error: its chain, and always a hint.
pub(crate) fn report_text(error: &ErrorReport) -> String {
    let hint = error.hint.as_deref().unwrap_or_else(|| generic_hint(error.error_kind));
    format!("error: {}\nhint: {}\n", one_line(&error.message), one_line(hint))
}

fn generic_hint(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Configuration => "see the command's --help",
        ErrorKind::NotFound => "check the spelling; upper and lower case differ",
        ErrorKind::AlreadyExists => "choose another name, or delete the existing one first",
        ErrorKind::Conflict => {
            "it was changed meanwhile: look at it again, then repeat the command"
        }
        ErrorKind::Locked => "wait until that run has ended; 'tidelake lxdb locks' shows who runs",
        ErrorKind::Mismatch => {
            "decide: 'sync --on-mismatch adopt' takes over what the lake says, \
             '--on-mismatch rebuild' reads again from the start"
        }
        ErrorKind::Denied => "check the user's name, password and rights",
        ErrorKind::Unavailable => "check that the server runs and can be reached, then try again",
        ErrorKind::Data => "look at the named value or column in the source",
        ErrorKind::Unsupported => "choose another way; 'tidelake --help' shows what is available",
        ErrorKind::Interrupted => "run the same command again, it goes on where it stopped",
        ErrorKind::Internal => {
            "this should not happen: please report it with the output of --log-level DEBUG"
        }
    }
}

/// What is said of a command line that cannot be parsed, in the same form.
pub(crate) fn usage_text(error: &clap::Error, arguments: &[OsString]) -> String {
    use clap::error::{ContextKind, ContextValue};
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && PLANNED.contains(&name.as_str())
    {
        return format!(
            "error: the command '{name}' is not available yet\n\
             hint: 'tidelake --help' lists what is\n"
        );
    }
    let (path, mut command) = typed_command(arguments);
    // A missing command is answered with those that there are.
    if matches!(
        error.kind(),
        ClapErrorKind::MissingSubcommand | ClapErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return command.render_help().to_string();
    }
    let rendered = error.render().to_string();
    let mut text = String::new();
    let mut hint = None;
    for line in rendered.lines() {
        match line.trim_start().strip_prefix("tip: ") {
            Some(tip) => hint = hint.or_else(|| Some(tip.to_owned())),
            None if line.starts_with("Usage: ") => break,
            None if line.is_empty() || line.starts_with("For more information") => {}
            None => {
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
    }
    let hint = hint.unwrap_or_else(|| {
        let remedy = match error.kind() {
            ClapErrorKind::ArgumentConflict => "keep one of the two",
            ClapErrorKind::MissingRequiredArgument => "add what is missing",
            ClapErrorKind::InvalidValue if rendered.contains("possible values") => {
                "choose one of the possible values"
            }
            ClapErrorKind::InvalidValue | ClapErrorKind::ValueValidation => "correct the value",
            _ => return format!("see '{path} --help'"),
        };
        format!("{remedy}; see '{path} --help'")
    });
    format!("{text}hint: {hint}\n")
}

/// The command that was typed, without its options.
fn typed_command(arguments: &[OsString]) -> (String, Command) {
    let mut root = Cli::command();
    root.build();
    let mut command = &root;
    let mut path = root.get_name().to_owned();
    for word in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner;
            path.push(' ');
            path.push_str(inner.get_name());
        }
    }
    (path, command.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tidelake_model::{Error, RunId, TableName};
    use tidelake_sync::TableReport;

    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_names() {
        for exit in [Exit::Done, Exit::Failed, Exit::Usage, Exit::Partial, Exit::Interrupted] {
            assert_eq!(exit.code(), exit as u8);
        }
    }

    /// The exit of a run whose tables ended so; `None` is done.
    fn exit(status: RunStatus, tables: &[Option<ErrorKind>]) -> Exit {
        let tables = tables.iter().map(|error| TableReport {
            table: TableName::new("main", "orders"),
            status: Some(match error {
                None => TableRunStatus::Completed,
                Some(_) => TableRunStatus::Failed,
            }),
            mode: "full",
            window: None,
            rows: 0,
            bytes: 0,
            files: 0,
            committed: error.is_none(),
            watermark_before: None,
            watermark_after: None,
            location: String::new(),
            counters: BTreeMap::new(),
            notices: vec![],
            error: error.map(|kind| ErrorReport::from(&Error::new(kind, "it failed"))),
        });
        Exit::of_report(&RunReport {
            run_id: RunId::from_number(1),
            sync_id: "nightly".into(),
            status,
            tables: tables.collect(),
            notices: vec![],
        })
    }

    #[test]
    fn a_run_ends_by_its_tables() {
        use ErrorKind::{Data, Locked, Mismatch};
        use RunStatus::{Cancelled, Completed, Failed, Partial};
        for (status, tables, expected) in [
            (Completed, &[None, None][..], Exit::Done),
            (Cancelled, &[None, Some(Data)], Exit::Interrupted),
            (Partial, &[None, Some(Data)], Exit::Partial),
            (Partial, &[None, Some(Data), Some(Mismatch)], Exit::Partial),
            (Partial, &[None, Some(Mismatch)], Exit::Mismatch),
            (Partial, &[None, Some(Locked)], Exit::Locked),
            (Failed, &[Some(Data)], Exit::Failed),
            (Failed, &[Some(Data), Some(Mismatch)], Exit::Mismatch),
            (Failed, &[Some(Locked)], Exit::Locked),
        ] {
            assert_eq!(exit(status, tables), expected, "{status:?} {tables:?}");
        }
    }

    #[test]
    fn every_error_has_a_hint() {
        let error = Error::new(ErrorKind::Locked, "held by another run");
        let text = report_text(&ErrorReport::from(&error));
        assert!(text.starts_with("error: held by another run\nhint: wait"), "{text}");
    }
}
