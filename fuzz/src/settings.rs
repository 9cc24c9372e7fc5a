//! The command line's own settings, as far as they read a language of their own.

use tidelake_model::{Error, ErrorKind, Result, TableReadSettings};

/// No library exports it.
#[path = "../../crates/cli/src/settings/table_config.rs"]
mod table_config;

pub(crate) fn parse(text: &str) -> Result<Vec<TableReadSettings>> {
    table_config::parse(text)
}

fn configuration(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

fn not_available(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} is not available"))
}
