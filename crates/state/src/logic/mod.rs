//! The rules, written once over [`Rows`].
//!
//! Every operation locks the rows of its tables first, in the order of their
//! keys, and then touches what belongs to them; so two of them never wait for
//! each other in a circle.

pub(crate) mod begin;
pub(crate) mod house;
pub(crate) mod leases;
pub(crate) mod progress;
pub(crate) mod syncs;
pub(crate) mod table_runs;
pub(crate) mod watermarks;

use tidelake_model::{Error, ErrorKind, Result, TableKey, WatermarkRecord, position_text};
use tidelake_watermark::{Progress, Refused};

use crate::rows::{Rows, TableRow};

/// Locks one table's row.
pub(crate) async fn lock_table(rows: &mut dyn Rows, key: &TableKey) -> Result<TableRow> {
    let locked = rows.lock_tables(std::slice::from_ref(key)).await?;
    locked.into_iter().next().ok_or_else(|| internal("a row that was locked is not there"))
}

/// The watermark of a table whose row is locked.
pub(crate) async fn watermark_of(
    rows: &mut dyn Rows,
    key: &TableKey,
) -> Result<Option<WatermarkRecord>> {
    Ok(rows.watermarks_of(std::slice::from_ref(key)).await?.into_iter().next())
}

pub(crate) fn internal(message: &str) -> Error {
    Error::new(ErrorKind::Internal, message)
}

pub(crate) fn conflict(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Conflict, message)
}

/// Adds the table's name, where the key has one.
pub(crate) fn in_table(error: Error, key: &TableKey) -> Error {
    match &key.table {
        Some(table) => error.in_table(table),
        None => error,
    }
}

/// A change that the algebra refuses.
pub(crate) fn refused(refused: &Refused, key: &TableKey) -> Error {
    let (kind, hint) = match refused {
        Refused::Version { .. } => (ErrorKind::Conflict, "load the watermark again"),
        Refused::Backwards { .. } => {
            (ErrorKind::Conflict, "only an edit, an undo or a reset may lower a watermark")
        }
        Refused::Compare(_) => (ErrorKind::Data, "reset the watermark to follow another column"),
    };
    in_table(Error::new(kind, refused.to_string()).with_hint(hint), key)
}

/// Refuses values of another kind than the watermark's own; they could neither
/// be compared nor read back.
pub(crate) fn check_kinds(progress: &Progress, kind: &str, key: &TableKey) -> Result<()> {
    let Progress { watermark, max_seen, first, .. } = progress;
    for position in [watermark, max_seen, first].into_iter().flatten() {
        let (found, value) = position_text::to_parts(position);
        if found != kind {
            let message = format!("{value:?} is of kind {found}, the watermark is of kind {kind}");
            return Err(in_table(Error::new(ErrorKind::Configuration, message), key)
                .with_hint("give a value of the watermark's own kind, or reset it first"));
        }
    }
    Ok(())
}
