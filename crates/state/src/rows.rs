//! What one transaction of a store can do: load and save rows.
//!
//! The rules of leases, fencing and watermarks are written once, in
//! [`crate::logic`], over this trait; a store has nothing but rows.

use async_trait::async_trait;
use tidelake_model::{
    Head, HistoryRow, Holder, Result, RunId, RunRecord, SyncConfig, TableKey, TableRun,
    WatermarkFilter, WatermarkRecord,
};

use crate::store::{PruneFilter, RunFilter};

/// Name of the row of `meta` that holds the store's identity.
pub(crate) const IDENTITY: &str = "identity";
/// Name of the row of `meta` below which no fencing token is given out.
pub(crate) const TOKEN_FLOOR: &str = "token_floor";

/// A lease as a row keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) run_id: RunId,
    pub(crate) holder: Holder,
    /// Nanoseconds since the epoch, in whole microseconds.
    pub(crate) expires_at: i128,
}

/// What is kept of one table: the row that is locked before anything else of
/// the table is read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableRow {
    pub(crate) key: TableKey,
    /// The last token given out; it stays when the lease is gone.
    pub(crate) token: u64,
    pub(crate) lease: Option<LeaseRow>,
    pub(crate) head: Option<Head>,
}

impl TableRow {
    pub(crate) fn new(key: TableKey) -> Self {
        Self { key, token: 0, lease: None, head: None }
    }
}

/// Which table rows are meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableFilter {
    pub(crate) env: Option<String>,
    pub(crate) scope: Option<String>,
    /// Only those leased by that run.
    pub(crate) run_id: Option<RunId>,
    /// Only those that are leased.
    pub(crate) leased: bool,
}

impl TableFilter {
    pub(crate) fn of_run(run_id: RunId) -> Self {
        Self { run_id: Some(run_id), leased: true, ..Self::default() }
    }
}

/// One open transaction. All reads see its own writes. Table rows that were
/// locked stay so until it ends; the watermark, the head and the table runs of
/// a table are only touched by who locked its row.
#[async_trait]
pub(crate) trait Rows: Send {
    /// The store's clock now, in whole microseconds as nanoseconds.
    async fn now(&mut self) -> Result<i128>;

    /// An id that no row has.
    fn new_id(&mut self) -> String;

    async fn meta(&mut self, name: &str) -> Result<Option<String>>;
    async fn set_meta(&mut self, name: &str, value: &str) -> Result<()>;

    /// Returns whether it was new; an existing one stays as it is.
    async fn insert_sync(&mut self, sync: &SyncConfig, now: i128) -> Result<bool>;
    /// By environment and id.
    async fn syncs(&mut self, env: Option<&str>) -> Result<Vec<SyncConfig>>;
    async fn delete_sync(&mut self, env: &str, sync_id: &str) -> Result<bool>;

    /// Locks the rows of these keys, which are sorted and unique, and returns
    /// them in that order; missing ones are made.
    async fn lock_tables(&mut self, keys: &[TableKey]) -> Result<Vec<TableRow>>;
    /// Locks those that match now, by key.
    async fn lock_matching(&mut self, filter: &TableFilter) -> Result<Vec<TableRow>>;
    /// Reads those that match, by key, without waiting for anybody.
    async fn tables(&mut self, filter: &TableFilter) -> Result<Vec<TableRow>>;
    /// Writes rows that are locked.
    async fn save_tables(&mut self, rows: &[TableRow]) -> Result<()>;

    async fn watermark(&mut self, id: &str) -> Result<Option<WatermarkRecord>>;
    /// By key.
    async fn watermarks(&mut self, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>>;
    async fn watermarks_of(&mut self, keys: &[TableKey]) -> Result<Vec<WatermarkRecord>>;
    /// Inserts it or replaces the one of the same id.
    async fn save_watermark(&mut self, record: &WatermarkRecord) -> Result<()>;
    /// Removes it with its history.
    async fn delete_watermark(&mut self, id: &str) -> Result<()>;

    /// Newest first; at most `limit`, 0 is all.
    async fn history(&mut self, id: &str, limit: u32) -> Result<Vec<HistoryRow>>;
    async fn insert_history(&mut self, id: &str, row: &HistoryRow) -> Result<()>;

    async fn run(&mut self, run_id: RunId) -> Result<Option<RunRecord>>;
    /// Newest first.
    async fn runs(&mut self, filter: &RunFilter) -> Result<Vec<RunRecord>>;
    async fn save_run(&mut self, run: &RunRecord) -> Result<()>;

    async fn table_run(&mut self, run_id: RunId, key: &TableKey) -> Result<Option<TableRun>>;
    /// By table.
    async fn table_runs(&mut self, run_id: RunId) -> Result<Vec<TableRun>>;
    /// Those of these tables that are neither completed nor failed, in rising
    /// order of their tokens.
    async fn unfinished(&mut self, keys: &[TableKey]) -> Result<Vec<(TableKey, TableRun)>>;
    /// Newest first; at most `limit`, 0 is all.
    async fn runs_of_table(&mut self, key: &TableKey, limit: u32) -> Result<Vec<TableRun>>;
    /// Runs of the filter that ended at `until` or before and on which nothing
    /// rests, oldest first.
    async fn prunable(&mut self, filter: &PruneFilter, until: i128) -> Result<Vec<RunRecord>>;
    /// Removes a run with its table runs.
    async fn delete_run(&mut self, run_id: RunId) -> Result<()>;
    async fn save_table_run(&mut self, key: &TableKey, record: &TableRun) -> Result<()>;

    /// Removes every row.
    async fn clear(&mut self) -> Result<()>;
    /// Removes the tables themselves.
    async fn destroy(&mut self) -> Result<()>;
}
