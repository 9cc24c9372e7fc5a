//! Completions for shells.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;
use crate::output::Output;

/// Prints the script that a shell sources.
pub(super) fn print(output: &Output, args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tidelake", &mut script);
    output.terminal.result(&String::from_utf8_lossy(&script));
    Exit::Done
}
