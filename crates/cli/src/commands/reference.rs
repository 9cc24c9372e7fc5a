//! The reference of all commands as Markdown; `docs/reference/commands.md` is
//! this output, and a test compares them.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::Output;

/// Prints the reference.
pub(super) fn print(output: &Output) -> Exit {
    output.terminal.result(&markdown());
    Exit::Done
}

fn markdown() -> String {
    let mut text = String::from(
        "# Commands\n\nWritten by `tidelake reference`; do not edit. Each section is what \
         `--help` shows.\n",
    );
    let mut command = Cli::command().term_width(96);
    command.build();
    section(&mut text, &command, "tidelake", 0);
    text
}

fn section(text: &mut String, command: &Command, path: &str, depth: usize) {
    let mut shown = command.clone().bin_name(path).term_width(96);
    if depth > 0 {
        // Said once, at the top.
        for option in GLOBAL {
            shown = shown.mut_arg(option, |argument| argument.hide(true));
        }
    }
    let help = shown.render_long_help().to_string();
    let _ = write!(text, "\n## `{path}`\n\n```text\n");
    for line in help.trim_end().lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push_str("```\n");
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        section(text, inner, &format!("{path} {}", inner.get_name()), depth + 1);
    }
}

const GLOBAL: [&str; 11] = [
    "auth_file",
    "lxdb_auth_id",
    "env_name",
    "output",
    "log_level",
    "log_dir",
    "no_progress",
    "fastbcp_dir_path",
    "quiet_fbcp",
    "license",
    "no_banner",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_reference_is_that_of_this_program() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            stored == markdown(),
            "docs/reference/commands.md is old: tidelake reference > docs/reference/commands.md"
        );
    }
}
