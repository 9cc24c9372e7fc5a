//! Opening a database file, and what its errors mean.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tidelake_model::{Error, ErrorKind, Result};

use crate::statement::add_time_function;

/// How long a lock that a writer holds is waited for.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the file for reading.
///
/// Nothing here opens it but SQLite itself: whoever closes a file gives up all locks
/// that its process has on it, also those by which a read of another connection
/// keeps writers out.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|error| unreachable_file(path, error))?;
    if metadata.is_dir() {
        let message = format!("{shown} is a folder, not a database file");
        return Err(Error::new(ErrorKind::Configuration, message)
            .with_hint("set filepath to the database file inside it"));
    }
    // A whole path never begins with `file:`, which would be taken for a URI.
    let whole = fs::canonicalize(path).map_err(|error| unreachable_file(path, error))?;

    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let prepare = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(&whole, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A view in a file from elsewhere cannot call what has side effects.
        connection.pragma_update(None, "trusted_schema", false)?;
        add_time_function(&connection)?;
        // Opening reads nothing; this does.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    prepare().map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            Error::new(ErrorKind::Configuration, format!("{shown} is not a SQLite database"))
                .with_hint("set filepath to a database file; an encrypted one cannot be read")
        }
        Some(ErrorCode::CannotOpen) if !may_read(path) => {
            unreachable_file(path, io::ErrorKind::PermissionDenied.into()).with_source(error)
        }
        _ => failure(error, &format!("cannot open {shown}")),
    })
}

/// Whether this user may read the file, without opening it.
fn may_read(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_ok()
}

fn unreachable_file(path: &Path, error: io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::new(ErrorKind::NotFound, format!("there is no file {shown}")).with_hint(
                "check filepath; a relative path starts at the folder in which tidelake runs",
            )
        }
        io::ErrorKind::PermissionDenied => {
            Error::new(ErrorKind::Denied, format!("{shown} may not be read"))
                .with_hint("give the user that runs tidelake the right to read the file")
        }
        _ => Error::new(ErrorKind::Unavailable, format!("cannot open {shown}")),
    }
    .with_source(error)
}

/// An error of SQLite in our terms.
pub(crate) fn failure(error: rusqlite::Error, doing: &str) -> Error {
    use ErrorCode as Code;
    let (kind, hint) = match error.sqlite_error_code() {
        Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed) => (
            ErrorKind::Unavailable,
            "another program holds the database; try again, or switch it to journal_mode=WAL so \
             that readers and writers do not wait for each other",
        ),
        Some(Code::CannotOpen | Code::ReadOnly) => (
            ErrorKind::Unavailable,
            "a database in WAL mode needs its -wal and -shm files, or a folder in which they can \
             be made; one with a -journal file must first be opened by its own program",
        ),
        Some(Code::SystemIoFailure | Code::OutOfMemory | Code::SchemaChanged) => {
            (ErrorKind::Unavailable, "check the disk that holds the file")
        }
        Some(Code::PermissionDenied | Code::AuthorizationForStatementDenied) => {
            (ErrorKind::Denied, "give the user that runs tidelake the right to read the file")
        }
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => {
            (ErrorKind::Data, "check the file with `PRAGMA integrity_check`")
        }
        Some(Code::OperationInterrupted) => {
            (ErrorKind::Interrupted, "the reader went away before the read was over")
        }
        Some(Code::Unknown) => {
            (ErrorKind::Data, "run the statement in the sqlite3 shell to see what it refuses")
        }
        _ => (ErrorKind::Internal, "report this, with the statement from the log"),
    };
    Error::new(kind, doing.to_owned()).with_hint(hint).with_source(error)
}
