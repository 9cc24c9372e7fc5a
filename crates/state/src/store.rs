//! The contract of a state store.

use std::time::Duration;

use async_trait::async_trait;
use tidelake_model::{
    Actor, Change, Head, HeldLease, HistoryRow, Holder, Result, RunId, RunRecord, RunStatus,
    SyncConfig, TableKey, TableRun, WatermarkFilter, WatermarkRecord,
};
use tidelake_watermark::{Progress, Versioned};

/// The right to work on one table: the token must be shown with every change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The table.
    pub key: TableKey,
    /// The run that holds it.
    pub run_id: RunId,
    /// The fencing token: higher than that of any lease of the table before, and
    /// never 0.
    pub token: u64,
}

/// What a run needs to begin.
#[derive(Debug, Clone)]
pub struct BeginRun {
    /// The run.
    pub run_id: RunId,
    /// Environment.
    pub env: String,
    /// The sync, or empty.
    pub scope: String,
    /// Its tables; each key has a table.
    pub tables: Vec<TableKey>,
    /// Who runs it.
    pub holder: Holder,
    /// How long a lease lasts without being renewed, by the store's clock.
    pub ttl: Duration,
}

/// A run that has begun.
#[derive(Debug, Clone)]
pub struct Begun {
    /// Identity of the store, as [`StateStore::identity`] tells it.
    pub identity: String,
    /// The run as it is recorded, with the store's own time.
    pub run: RunRecord,
    /// In the order in which the tables were asked for.
    pub tables: Vec<TableState>,
}

/// All that is remembered of one table, loaded together with its lease.
#[derive(Debug, Clone)]
pub struct TableState {
    /// The lease.
    pub lease: Lease,
    /// Head of the lake.
    pub head: Option<Head>,
    /// Watermark.
    pub watermark: Option<WatermarkRecord>,
    /// An earlier table run that is neither completed nor failed.
    pub unfinished: Option<TableRun>,
}

/// Which column a watermark follows.
#[derive(Debug, Clone, PartialEq)]
pub struct WatermarkSettings {
    /// The cursor's columns, as they are written on the command line.
    pub column: String,
    /// Kinds joined by commas.
    pub kind: String,
    /// First bound and direction. The values are empty, unless somebody makes a
    /// watermark with a value by hand.
    pub initial: Progress,
}

/// A change of a table run's record.
#[derive(Debug, Clone)]
pub struct TableUpdate {
    /// The whole record as it is from now on. `started_at` and `finished_at` are
    /// filled in by the store, the latter when the status becomes final.
    pub record: TableRun,
    /// Whether the lease is given back with it.
    pub release: bool,
}

/// The last step of a table run.
#[derive(Debug, Clone)]
pub struct Advance {
    /// The record, with its final status.
    pub record: TableRun,
    /// Head of the lake from now on; `None` leaves it.
    pub head: Option<Head>,
    /// The watermark's move; `None` for a full table.
    pub watermark: Option<AdvanceWatermark>,
    /// Whether the lease is given back with it; not where an earlier run was
    /// finished and this one goes on.
    pub release: bool,
}

/// How a watermark moves.
#[derive(Debug, Clone)]
pub struct AdvanceWatermark {
    /// What it follows, for one that does not exist yet.
    pub settings: WatermarkSettings,
    /// The version that the run loaded; `None` where there was none.
    pub expected: Option<u64>,
    /// From now on.
    pub next: Progress,
    /// Rows of this run.
    pub rows: u64,
}

/// What is stored after an advance, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Advanced {
    /// The watermark.
    pub watermark: Option<WatermarkRecord>,
}

/// How often a store was asked for something since it was opened, opening it
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Transactions that may write; each ends on the disk.
    pub transactions: u64,
    /// Transactions that only read.
    pub reads: u64,
    /// Times that something was sent to a server and its answer waited for; what is
    /// sent together counts once. 0 for a store without a server.
    pub round_trips: u64,
}

/// Which runs are meant.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Environment.
    pub env: Option<String>,
    /// Sync.
    pub scope: Option<String>,
    /// One run.
    pub run_id: Option<RunId>,
    /// State.
    pub status: Option<RunStatus>,
    /// At most so many, newest first; 0 is all.
    pub limit: u32,
}

/// Which records of runs are old.
#[derive(Debug, Clone, Default)]
pub struct PruneFilter {
    /// Environment.
    pub env: Option<String>,
    /// Sync.
    pub scope: Option<String>,
    /// Only runs that ended so; however they ended when empty.
    pub statuses: Vec<RunStatus>,
    /// Only runs that ended at least so long ago, by the store's clock.
    pub older_than: Duration,
    /// Whether they are only named, and stay.
    pub dry_run: bool,
}

/// A table that the store has a row of: it was leased once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTable {
    /// The table.
    pub key: TableKey,
    /// Head of its lake.
    pub head: Option<Head>,
}

/// Which leases are meant.
#[derive(Debug, Clone, Default)]
pub struct LockFilter {
    /// Environment.
    pub env: Option<String>,
    /// Sync.
    pub scope: Option<String>,
    /// One run.
    pub run_id: Option<RunId>,
    /// Only those whose time has passed.
    pub expired_only: bool,
}

/// The memory between runs. Each method is one transaction; errors are of kind
/// `Conflict` where a version or a token is no longer the stored one,
/// `Locked` (naming the run) where a lease stands in the way, `NotFound`,
/// `AlreadyExists`, and `Unavailable` where the store cannot be reached.
///
/// # Leases
///
/// A lease has a time and a token. The *time* only decides when another run may
/// take the table over; until one does, the lease stays its holder's, however
/// late it is. The *token* decides whose writes count: every acquisition gets a
/// higher one than any before, also after the sync was deleted and made again or
/// the store was emptied, and a write that shows another than the stored one is
/// refused. All times are those of the store's own clock.
///
/// A run whose leases are taken over, broken or released by hand is recorded as
/// failed; what it left of a table is offered to the next run of the table as
/// [`TableState::unfinished`]. That run writes the old run's record under its own
/// lease, so a record's run may differ from the lease's.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// Identity of this store, made with it: a restored copy has the same one.
    async fn identity(&self) -> Result<String>;

    /// Where it is, without secrets, for messages.
    fn location(&self) -> String;

    /// How often it was asked.
    fn usage(&self) -> Usage;

    /// The store's own clock, in nanoseconds since the epoch.
    async fn now(&self) -> Result<i128>;

    // Syncs.

    /// Stores a sync; `AlreadyExists` when the id is taken in its environment.
    async fn create_sync(&self, sync: &SyncConfig) -> Result<()>;

    /// One sync; `NotFound` naming those that exist.
    async fn sync(&self, env: &str, sync_id: &str) -> Result<SyncConfig>;

    /// All syncs of an environment, by id; of all environments without one.
    async fn syncs(&self, env: Option<&str>) -> Result<Vec<SyncConfig>>;

    /// Removes a sync with its watermarks, heads and leases; runs stay. `Locked`
    /// while one of its tables is leased.
    async fn delete_sync(&self, env: &str, sync_id: &str) -> Result<()>;

    // Runs.

    /// Records the run, takes the leases of all its tables (all or none) and
    /// loads what is remembered of them. A lease whose time has passed is taken
    /// over. `Locked`, naming run and holder, where one is held, unless by the
    /// same run in the same process, whose first answer was lost on the way. A
    /// run that is already recorded is taken up again and keeps its start.
    async fn begin_run(&self, request: &BeginRun) -> Result<Begun>;

    /// Prolongs those of `leases` that are still held; `Conflict`, naming the
    /// table, when one went to another: the rest is prolonged all the same. One
    /// that its holder gave back meanwhile is passed over.
    async fn renew(&self, leases: &[Lease], ttl: Duration) -> Result<()>;

    /// Ends a lease at once, if the token is still the stored one: its holder
    /// is known to be gone. Returns whether it did.
    async fn break_lease(&self, key: &TableKey, token: u64) -> Result<bool>;

    /// Writes a table run's record; `Conflict` when the lease went to another.
    async fn update_table(&self, lease: &Lease, update: &TableUpdate) -> Result<()>;

    /// Moves the watermark by compare-and-set on version and token, writes the
    /// history, the head and the record, and returns what is stored; gives the
    /// lease back where asked. `Conflict` when version or token changed, or a
    /// value would become lower; nothing is written then.
    ///
    /// Where the stored watermark follows another column than `settings` say, its
    /// values are reset first, with a history row of their own. A run that reached
    /// nothing new leaves value, version and history as they are. An advance ends
    /// [`WatermarkRecord::starts_generation`].
    async fn advance(&self, lease: &Lease, advance: &Advance) -> Result<Advanced>;

    /// Records the end of a run and gives back the leases that it still holds.
    async fn finish_run(&self, run_id: RunId, status: RunStatus, error: Option<&str>)
    -> Result<()>;

    /// Runs, newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>>;

    /// The table runs of a run, by table.
    async fn table_runs(&self, run_id: RunId) -> Result<Vec<TableRun>>;

    /// The table runs of a table, newest first; at most `limit`, 0 is all.
    async fn runs_of_table(&self, key: &TableKey, limit: u32) -> Result<Vec<TableRun>>;

    // Watermarks.

    /// Watermarks, by key.
    async fn watermarks(&self, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>>;

    /// Makes a watermark; `AlreadyExists`, naming the candidates, when its key
    /// has one, and for a key without a table when its source has any. `Locked`
    /// while a run holds the table, `Conflict` while one of it is committed and
    /// not finished: that run makes the watermark.
    async fn create_watermark(
        &self,
        key: &TableKey,
        settings: &WatermarkSettings,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<WatermarkRecord>;

    /// Gives the leased table the watermark that somebody made by hand for its
    /// source (same environment, scope, connector and source key) before the
    /// table was known, if it follows the same column and its kind fits: the kind
    /// of `settings`, one of the same family (times, numbers) in which its values
    /// are written alike, or none of its values is set. Called by a run before it
    /// fixes its window, where the table has no watermark. `None` when there is
    /// nothing to claim or the table has a watermark of its own.
    async fn claim_watermark(
        &self,
        lease: &Lease,
        settings: &WatermarkSettings,
    ) -> Result<Option<WatermarkRecord>>;

    /// Edits, resets or undoes. `Conflict` while a run of the table is committed
    /// and not finished, or when `expected` is given and is not
    /// the stored version or when there is nothing to undo, `Locked` while a run
    /// holds the table. A reset, and an undo back to no value at all, start a new
    /// generation; an edit ends it again, since rows are added from there on.
    /// Undo takes back the newest change, an undo too.
    async fn change_watermark(
        &self,
        id: &str,
        change: &Change,
        expected: Option<u64>,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<WatermarkRecord>;

    /// Removes a watermark and its history; `Locked` while a run holds the table.
    /// The lake's head stays.
    async fn delete_watermark(&self, id: &str) -> Result<()>;

    /// The changes of a watermark, newest first.
    async fn history(&self, id: &str) -> Result<Vec<HistoryRow>>;

    /// Sets the head of a table's lake, and the watermark to what its manifest
    /// says, after the user decided that the lake is right. `progress` is absent
    /// for a full table.
    async fn adopt(
        &self,
        lease: &Lease,
        head: Option<&Head>,
        progress: Option<(&WatermarkSettings, &Progress)>,
        actor: &Actor,
    ) -> Result<TableState>;

    // Keeping house.

    /// The tables of a sync that were ever leased, by key; those of a sync that was
    /// deleted have no head.
    async fn tables(&self, env: &str, scope: &str) -> Result<Vec<KnownTable>>;

    /// Removes the records of old runs with those of their tables, and returns
    /// them, oldest first. What something still rests on stays: a run that is
    /// under way or holds a lease, one that left a table to be finished, the head
    /// of a lake, the newest completed run of each table, and the runs of a backfill
    /// that is not done, or not old as a whole.
    async fn prune(&self, filter: &PruneFilter) -> Result<Vec<RunRecord>>;

    /// Leases that are held.
    async fn locks(&self, filter: &LockFilter) -> Result<Vec<HeldLease>>;

    /// Ends leases by hand and returns them.
    async fn release_locks(&self, filter: &LockFilter) -> Result<Vec<HeldLease>>;

    /// Empties every table, leases too; the identity changes.
    async fn truncate(&self) -> Result<()>;

    /// Removes the store's tables.
    async fn destroy(&self) -> Result<()>;
}

/// The versioned progress of a record.
pub(crate) fn versioned(record: &WatermarkRecord) -> Versioned {
    Versioned { version: record.version, progress: record.progress.clone() }
}
