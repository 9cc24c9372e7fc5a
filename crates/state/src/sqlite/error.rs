//! What SQLite's errors mean to a caller.

use rusqlite::ErrorCode;
use tidelake_model::{Again, Error, ErrorKind};

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
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => (
            ErrorKind::Denied,
            "it cannot be written",
            "give tidelake's user the right to write the file and in its folder",
        ),
        // What cannot be made beside it, for want of rights or of space.
        Some(ErrorCode::CannotOpen) => (
            ErrorKind::Denied,
            "it cannot be opened",
            "check the permissions of file and folder, and that their disk has space",
        ),
        Some(ErrorCode::DiskFull) => {
            (ErrorKind::Unavailable, "the disk is full", "make room on its disk, then run again")
        }
        Some(ErrorCode::SystemIoFailure) => (
            ErrorKind::Unavailable,
            "the disk failed to read or to write it",
            "look for a full disk, a quota or a limit on file sizes, then run again",
        ),
        _ => (
            ErrorKind::Internal,
            "a statement failed",
            "check the file with: sqlite3 FILE 'PRAGMA integrity_check'",
        ),
    };
    let message = format!("the state store {location}: {message}");
    let failed = Error::new(kind, message).with_hint(hint);
    match error.sqlite_error_code() {
        // Waiting makes no room.
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => failed.with_again(Again::Never),
        _ => failed,
    }
    .with_source(error)
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn what_the_disk_refuses_is_not_taken_for_a_broken_file() {
        for (code, kind, told, hint) in [
            (ffi::SQLITE_FULL, ErrorKind::Unavailable, "the disk is full", "make room"),
            (ffi::SQLITE_IOERR_WRITE, ErrorKind::Unavailable, "the disk failed", "full disk"),
            (ffi::SQLITE_IOERR_SHMSIZE, ErrorKind::Unavailable, "the disk failed", "full disk"),
            (ffi::SQLITE_CANTOPEN, ErrorKind::Denied, "cannot be opened", "has space"),
            (ffi::SQLITE_READONLY, ErrorKind::Denied, "cannot be written", "the right to write"),
            (ffi::SQLITE_PERM, ErrorKind::Denied, "cannot be written", "the right to write"),
            (ffi::SQLITE_CORRUPT, ErrorKind::Internal, "a statement failed", "integrity_check"),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = understood(error, "/srv/state.db");
            assert_eq!(error.kind(), kind, "{code}");
            assert!(error.message().contains(told), "{code}: {error}");
            assert!(error.message().contains("/srv/state.db"), "{code}: {error}");
            assert!(error.hint().unwrap().contains(hint), "{code}: {error:?}");
            assert_eq!(error.again(), Again::Never, "{code}");
        }
    }
}
