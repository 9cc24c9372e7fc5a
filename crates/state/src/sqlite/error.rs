//! What SQLite's errors mean to a caller.

use rusqlite::ErrorCode;
use tidelake_model::{Error, ErrorKind};

/// Whether another connection stood in the way.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The same error in the words of this program.
pub(super) fn understood(error: rusqlite::Error, location: &str) -> Error {
    let is_missing = error.to_string().contains("no such table");
    let (kind, message, hint) = match error.sqlite_error_code() {
        _ if is_missing => {
            (ErrorKind::Configuration, "it has no tables", "make them with: tidelake lxdb init")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Unavailable,
            "another process kept it locked for too long",
            "try again, and look for a process that hangs",
        ),
        Some(ErrorCode::NotADatabase) => {
            (ErrorKind::Configuration, "it is not a SQLite database", "name another filepath")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            (ErrorKind::Denied, "it cannot be written", "check the permissions of file and folder")
        }
        Some(ErrorCode::CannotOpen) => {
            (ErrorKind::Denied, "it cannot be opened", "check the permissions of file and folder")
        }
        Some(ErrorCode::DiskFull) => {
            (ErrorKind::Unavailable, "the disk is full", "make room, then try again")
        }
        _ => (
            ErrorKind::Internal,
            "a statement failed",
            "check the file with: sqlite3 FILE 'PRAGMA integrity_check'",
        ),
    };
    let message = format!("the state store {location}: {message}");
    Error::new(kind, message).with_hint(hint).with_source(error)
}
