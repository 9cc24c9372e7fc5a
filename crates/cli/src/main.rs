//! The terminal face of tidelake.
//!
//! `args` parses, `settings` resolves and checks, `commands` calls the
//! application and shows what it said. `wiring` is where all parts meet.

mod args;
mod commands;
mod credentials;
mod exit;
#[cfg(debug_assertions)]
mod faults;
mod host;
mod interrupt;
mod logging;
mod output;
mod progress;
mod settings;
mod terminal;
mod wiring;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use serde::Serialize;
use tidelake_model::Error;
use tidelake_sync::run::ErrorReport;

use crate::args::{Cli, spelling};
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::{GlobalSettings, OutputForm};
use crate::terminal::Terminal;

fn main() -> ExitCode {
    let began = Instant::now();
    let arguments = spelling::normalised(std::env::args_os());
    match Cli::try_parse_from(&arguments) {
        Ok(cli) => run(cli, began).into(),
        Err(error) if error.use_stderr() => {
            Terminal::new(false).talk(&exit::usage_text(&error, &arguments));
            Exit::Usage.into()
        }
        // Help and version are results.
        Err(error) => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
    }
}

fn run(cli: Cli, began: Instant) -> Exit {
    let form = OutputForm::from(cli.global.output);
    let terminal = Terminal::new(!cli.global.no_progress);
    let output = Output { form, terminal: terminal.clone() };
    // What the demo shows, it shows itself.
    let is_demo = matches!(cli.command, args::Command::Demo(_));
    let result = GlobalSettings::resolve(cli.global, began).and_then(|settings| {
        let settings = if is_demo { settings.without_remarks() } else { settings };
        logging::start(&settings, &terminal)?;
        for option in &settings.ignored {
            tracing::debug!("{option} has no meaning here and is ignored");
        }
        commands::execute(settings, output.clone(), cli.command)
    });
    result.unwrap_or_else(|error| failed(&output, &error))
}

/// An error, as JSON.
#[derive(Serialize)]
struct Failure<'a> {
    error: &'a ErrorReport,
    exit_code: u8,
}

/// Says what went wrong, to programs on stdout as well.
fn failed(output: &Output, error: &Error) -> Exit {
    let exit = Exit::of_error(error.kind());
    let report = ErrorReport::from(error);
    if output.form == OutputForm::Json {
        let failure = Failure { error: &report, exit_code: exit.code() };
        let _ = output.emit(&failure, |_| String::new());
    }
    output.terminal.talk(&exit::report_text(&report));
    exit
}
