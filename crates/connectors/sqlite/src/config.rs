//! What a credential says.

use std::path::PathBuf;

use serde::Deserialize;

/// The `info` of a credential with `ds_type` `sqlite`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "SQLite")]
pub struct SqliteConfig {
    /// The database file. It must exist; a relative path starts at the folder
    /// in which tidelake runs.
    #[schemars(with = "String")]
    pub filepath: PathBuf,
}
