//! What a run says while it works.

use tidelake_model::{Notice, RunId, TableName, TableRunStatus};

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The leases are held.
    RunStarted {
        /// The run.
        run_id: RunId,
        /// Its tables.
        tables: Vec<TableName>,
    },
    /// Work on a table began.
    TableStarted {
        /// The table.
        table: TableName,
        /// Rows as the catalogue estimates them, for a full read.
        estimated_rows: Option<u64>,
    },
    /// A table's window is fixed.
    WindowFixed {
        /// The table.
        table: TableName,
        /// In words.
        window: String,
    },
    /// Rows were read since the last such event.
    RowsRead {
        /// The table.
        table: TableName,
        /// Rows.
        rows: u64,
        /// Bytes in memory.
        bytes: u64,
    },
    /// Rows that were told as read are read again, since a connection was lost.
    RowsTakenBack {
        /// The table.
        table: TableName,
        /// Rows.
        rows: u64,
    },
    /// The user should know.
    Noticed {
        /// The table.
        table: TableName,
        /// What.
        notice: Notice,
    },
    /// Work on a table ended.
    TableFinished {
        /// The table.
        table: TableName,
        /// How.
        status: TableRunStatus,
        /// Rows of this run.
        rows: u64,
    },
}

/// Takes the events of a run; must not block.
pub trait Events: Send + Sync {
    /// Something happened.
    fn event(&self, event: &Event);
}

/// Takes no notice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Events for Quiet {
    fn event(&self, _: &Event) {}
}
