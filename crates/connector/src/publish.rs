//! Making committed files queryable.

use async_trait::async_trait;
use tidelake_model::{Manifest, PublishMethod, Result, RunId, Strategy};

use crate::reading::BatchStream;

/// A table in a publish target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TargetTable {
    /// Schema.
    pub schema: String,
    /// Table.
    pub table: String,
}

/// Opens the rows of a manifest's files from the start; may be called again
/// after a failure.
pub type OpenRows<'a> = dyn Fn() -> BatchStream + Send + Sync + 'a;

/// What is loaded.
pub struct Load<'a> {
    /// The committed manifest.
    pub manifest: &'a Manifest,
    /// Where to.
    pub target: &'a TargetTable,
    /// How rows arrive.
    pub strategy: Strategy,
    /// Tables inside the target, or views over the files.
    pub method: PublishMethod,
    /// Whether the target's rows are replaced as a whole: a full table, or a new
    /// generation.
    pub replaces: bool,
    /// Whether the primary key is declared on a new table.
    pub primary_key: bool,
    /// Whose rows these are: two syncs may not load into one table, where each
    /// would double or replace what the other loaded.
    pub owner: &'a str,
    /// Whether a table that another owner loaded into becomes this one's: the
    /// user decided so after a state store was lost.
    pub takes_over: bool,
    /// The rows of exactly the manifest's files.
    pub rows: &'a OpenRows<'a>,
}

/// A load that a target's ledger names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The run.
    pub run_id: RunId,
    /// Rows that it loaded.
    pub rows: u64,
}

/// A system that committed files are loaded into.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Whether rows can arrive in this way. Asked before a run starts.
    fn supports(&self, method: PublishMethod, strategy: Strategy) -> bool;

    /// Loads the rows and writes the run into the ledger, in one transaction,
    /// and returns the rows that the ledger names for it. A run that the ledger
    /// already names is not loaded again. Rows that differ in number from the
    /// manifest's are an error, and nothing is loaded. `Mismatch` where the ledger
    /// names another owner.
    async fn load(&self, load: &Load<'_>) -> Result<u64>;

    /// What the ledger says of a run in a target table.
    async fn ledger(&self, target: &TargetTable, run_id: RunId) -> Result<Option<LedgerEntry>>;
}
