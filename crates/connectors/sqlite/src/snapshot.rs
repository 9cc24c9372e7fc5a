//! Snapshots: connections whose read transactions see the same state of the
//! database.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tidelake_model::Result;

use crate::connection::{BUSY_TIMEOUT, failure, open};
use crate::forms::Units;
use crate::reader::Shared;

/// How often it is tried to begin together before one reader has to do.
const TRIES: u32 = 12;
/// The wait after the first try; each further one is longer by as much.
const PAUSE: Duration = Duration::from_millis(1);

/// One state of the database.
struct Snapshot {
    connections: Vec<Shared>,
    units: Units,
}

/// The snapshots that are held, by their number.
#[derive(Default)]
pub(crate) struct Snapshots {
    held: Mutex<HashMap<u64, Snapshot>>,
    last: AtomicU64,
}

/// Keeps a snapshot in its place until it is dropped.
pub(crate) struct SnapshotHold {
    snapshots: Arc<Snapshots>,
    pub(crate) number: u64,
}

impl Drop for SnapshotHold {
    fn drop(&mut self) {
        let snapshot = {
            let mut held = self.snapshots.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.remove(&self.number)
        };
        // Closing may wait for the disk, which nobody else should have to.
        drop(snapshot);
    }
}

impl Snapshots {
    pub(crate) fn keep(self: &Arc<Self>, connections: Vec<Connection>) -> SnapshotHold {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let connections = connections.into_iter().map(|one| Arc::new(Mutex::new(one))).collect();
        let snapshot = Snapshot { connections, units: Units::default() };
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(number, snapshot);
        SnapshotHold { snapshots: self.clone(), number }
    }

    /// One of the connections of a snapshot, and the units that its slices agree on.
    pub(crate) fn get(&self, number: u64, reader: usize) -> Option<(Shared, Units)> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = held.get(&number)?;
        Some((snapshot.connections.get(reader)?.clone(), snapshot.units.clone()))
    }
}

/// Connections in read transactions of one state of the database: as many as are
/// wanted, or one where writers leave no moment in which several can begin.
pub(crate) fn begin(path: &Path, wanted: usize) -> Result<Vec<Connection>> {
    let mut readers = vec![open(path)?];
    if wanted > 1 {
        let watcher = open(path)?;
        for _ in 1..wanted {
            readers.push(open(path)?);
        }
        if begin_together(&watcher, &readers, || {}).map_err(failed)? {
            return Ok(readers);
        }
        tracing::debug!("writers commit all the time, so that one reader has to do");
        readers.truncate(1);
    }
    for reader in &readers {
        begin_one(reader).map_err(failed)?;
    }
    Ok(readers)
}

fn failed(error: rusqlite::Error) -> tidelake_model::Error {
    failure(error, "cannot take a snapshot")
}

/// Begins a read transaction on each of the connections, and tells whether all see
/// the same state; none is in a transaction where they do not.
///
/// A connection beside them looks at `PRAGMA data_version` before the first and
/// after the last has begun: it is the same only where nobody committed between.
/// `between` is called after each that began.
fn begin_together(
    watcher: &Connection,
    readers: &[Connection],
    between: impl Fn(),
) -> rusqlite::Result<bool> {
    // A writer with a rollback journal that waits for the first reader keeps the
    // others out, for as long as the first one waits for them.
    for connection in readers {
        connection.busy_timeout(Duration::ZERO)?;
    }
    let mut began = Ok(false);
    for attempt in 1..=TRIES {
        began = try_together(watcher, readers, &between);
        if !matches!(began, Ok(false)) {
            break;
        }
        std::thread::sleep(PAUSE * attempt);
    }
    for connection in readers {
        connection.busy_timeout(BUSY_TIMEOUT)?;
    }
    began
}

fn try_together(
    watcher: &Connection,
    readers: &[Connection],
    between: &impl Fn(),
) -> rusqlite::Result<bool> {
    watcher.busy_timeout(BUSY_TIMEOUT)?;
    let before = data_version(watcher)?;
    watcher.busy_timeout(Duration::ZERO)?;
    let begin_all = || {
        for reader in readers {
            begin_one(reader)?;
            between();
        }
        data_version(watcher)
    };
    let together = match begin_all() {
        Ok(after) => after == before,
        Err(error) if is_busy(&error) => false,
        Err(error) => return Err(error),
    };
    if !together {
        for reader in readers.iter().filter(|reader| !reader.is_autocommit()) {
            reader.execute_batch("ROLLBACK")?;
        }
    }
    Ok(together)
}

/// The transaction sees what is committed at its first look.
fn begin_one(reader: &Connection) -> rusqlite::Result<()> {
    reader.execute_batch("BEGIN")?;
    reader.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// A number that is another one after every commit of another connection.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT data_version FROM pragma_data_version", [], |row| row.get(0))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn database(mode: &str) -> (tempfile::TempDir, Connection, Connection, Vec<Connection>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.db");
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", mode).unwrap();
        writer.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (0)").unwrap();
        writer.busy_timeout(Duration::ZERO).unwrap();
        let readers = (0..3).map(|_| open(&path).unwrap()).collect();
        let watcher = open(&path).unwrap();
        (folder, writer, watcher, readers)
    }

    fn seen(readers: &[Connection]) -> Vec<i64> {
        let sum = |reader: &Connection| {
            reader.query_row("SELECT sum(n) FROM t", [], |row| row.get(0)).unwrap()
        };
        readers.iter().map(sum).collect()
    }

    #[test]
    fn a_commit_between_two_readers_is_seen_and_they_begin_again() {
        let (_folder, writer, watcher, readers) = database("wal");
        let calls = Cell::new(0);
        // Only the first try is disturbed.
        let commit = || {
            calls.set(calls.get() + 1);
            if calls.get() == 1 {
                writer.execute_batch("UPDATE t SET n = n + 1").unwrap();
            }
        };
        assert!(begin_together(&watcher, &readers, commit).unwrap());
        assert_eq!(calls.get(), 6);
        writer.execute_batch("UPDATE t SET n = n + 100").unwrap();
        assert_eq!(seen(&readers), [1, 1, 1]);
    }

    #[test]
    fn readers_that_never_agree_are_in_no_transaction() {
        let (_folder, writer, watcher, readers) = database("wal");
        let commit = || writer.execute_batch("UPDATE t SET n = n + 1").unwrap();
        assert!(!begin_together(&watcher, &readers, commit).unwrap());
        assert!(readers.iter().all(Connection::is_autocommit));
    }

    #[test]
    fn a_writer_that_waits_for_the_first_reader_is_let_through() {
        let (_folder, writer, watcher, readers) = database("delete");
        for reader in &readers {
            reader.busy_timeout(Duration::ZERO).unwrap();
        }
        let calls = Cell::new(0);
        // The commit waits for the reader, and lets no other one in.
        let begin_commit = || {
            calls.set(calls.get() + 1);
            if calls.get() == 1 {
                writer.execute_batch("BEGIN IMMEDIATE; UPDATE t SET n = n + 1").unwrap();
                assert!(writer.execute_batch("COMMIT").is_err());
            } else if calls.get() == 2 {
                panic!("a reader began while a commit was waiting");
            }
        };
        let watched =
            std::panic::AssertUnwindSafe(|| try_together(&watcher, &readers, &begin_commit));
        assert!(!std::panic::catch_unwind(watched).unwrap().unwrap());
        writer.execute_batch("COMMIT").unwrap();
        assert!(begin_together(&watcher, &readers, || {}).unwrap());
        assert_eq!(seen(&readers), [1, 1, 1]);
    }
}
