//! What is read of a table, and how large its pieces may be.

use tidelake_model::{Notice, NoticeCode, SyncConfig, TableRead, WindowRecord};

use crate::tables::SelectedTable;

/// Largest batch in bytes, however much memory there is.
const LARGEST_BATCH: u64 = 8 << 20;
/// Largest amount of encoded data that waits for its row group.
const LARGEST_ROW_GROUP: u64 = 96 << 20;

/// How the memory budget of a run is shared among its readers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// Bytes of a batch.
    pub(crate) batch: u64,
    /// Bytes that an encoder may hold.
    pub(crate) encoder: u64,
}

impl Shares {
    /// Each reader holds a batch that is decoded, one that is encoded, and what
    /// its encoder keeps; each object holds a part that is uploaded.
    pub(crate) fn of(memory_limit: u64, readers: u32) -> Self {
        let share = memory_limit / u64::from(readers.max(1));
        Self {
            batch: (share / 8).clamp(64 << 10, LARGEST_BATCH),
            encoder: (share / 2).clamp(1 << 20, LARGEST_ROW_GROUP),
        }
    }
}

/// What is read in a window.
pub(crate) fn table_read(
    sync: &SyncConfig,
    selected: &SelectedTable,
    window: &WindowRecord,
    shares: Shares,
) -> TableRead {
    TableRead {
        table: selected.table.name.clone(),
        columns: selected.read_columns.clone(),
        cursor: selected.cursor.as_ref().map(|cursor| cursor.read.clone()),
        range: window.range.clone(),
        null_cursors: window.null_cursors,
        policies: sync.policies,
        batch_bytes: shares.batch,
    }
}

/// What the user should know of the columns that are read.
pub(crate) fn column_notices(selected: &SelectedTable) -> Vec<Notice> {
    let warnings = selected
        .table
        .columns
        .iter()
        .filter_map(|column| Some((column.name(), column.warning.as_ref()?)))
        .map(|(name, warning)| {
            Notice::new(NoticeCode::TypeAsText, format!("column {name:?}: {warning}"))
        });
    selected.notices.iter().cloned().chain(warnings).collect()
}
