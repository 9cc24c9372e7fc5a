//! Snapshots: a transaction of each reading connection, all of which see the same.
//!
//! The server can hand a snapshot to nobody else: it lives in the connection that
//! took it. Several connections see the same rows when they take theirs while nobody
//! can write to the table, which a lock for a moment brings about. A slice names the
//! snapshot by a number that only this process knows.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidelake_connector::sql::qualified;
use tidelake_model::{Again, Error, ErrorKind, Result, TableName};
use tokio::sync::Notify;

use crate::activity::prepared;
use crate::dialect::MysqlDialect;
use crate::pool::{Pool, Session};

const DOING: &str = "the snapshot cannot be taken";
/// Connections of one snapshot; slices beyond that wait for one that is free.
const MOST_CONNECTIONS: usize = 16;

/// Connections that see one snapshot.
pub(crate) struct Snapshot {
    pool: Arc<Pool>,
    idle: Mutex<Vec<Session>>,
    /// Those that are idle or read.
    live: AtomicUsize,
    ended: AtomicBool,
    changed: Notify,
}

/// All snapshots of a source, by number.
#[derive(Default)]
pub(crate) struct Snapshots {
    by_number: Mutex<HashMap<String, Arc<Snapshot>>>,
    next: AtomicU64,
}

/// Keeps a snapshot until it is dropped.
pub(crate) struct Hold {
    number: String,
    snapshots: Arc<Snapshots>,
    snapshot: Arc<Snapshot>,
}

/// One connection of a snapshot that was lent.
pub(crate) struct Lent {
    snapshot: Arc<Snapshot>,
    is_back: bool,
}

impl Lent {
    /// Takes the connection back.
    pub(crate) fn give_back(mut self, session: Session) {
        self.is_back = true;
        self.snapshot.put(session);
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.is_back {
            self.snapshot.live.fetch_sub(1, Ordering::SeqCst);
            self.snapshot.changed.notify_waiters();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut by_number = self.snapshots.by_number.lock().unwrap_or_else(PoisonError::into_inner);
        by_number.remove(&self.number);
        drop(by_number);
        self.snapshot.ended.store(true, Ordering::SeqCst);
        let idle =
            std::mem::take(&mut *self.snapshot.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for session in idle {
            self.snapshot.pool.end(session);
        }
        self.snapshot.changed.notify_waiters();
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Unavailable, "the snapshot of this read has ended")
        .with_again(Again::Afresh)
}

impl Snapshot {
    fn put(&self, session: Session) {
        if self.ended.load(Ordering::SeqCst) {
            self.pool.end(session);
            return;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        self.changed.notify_waiters();
    }

    fn take(&self) -> Option<Session> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// A connection that sees the snapshot; waits for one where all of them read.
    async fn lend(self: &Arc<Self>) -> Result<(Session, Lent)> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.ended.load(Ordering::SeqCst) || self.live.load(Ordering::SeqCst) == 0 {
                return Err(lost());
            }
            if let Some(session) = self.take() {
                return Ok((session, Lent { snapshot: Arc::clone(self), is_back: false }));
            }
            changed.await;
        }
    }
}

impl Snapshots {
    /// Keeps connections that see one snapshot under a number of their own.
    pub(crate) fn keep(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        sessions: Vec<Session>,
    ) -> (String, Hold) {
        let random = RandomState::new().build_hasher().finish();
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let number = format!("{random:016x}-{count}");
        let snapshot = Arc::new(Snapshot {
            pool: Arc::clone(pool),
            live: AtomicUsize::new(sessions.len()),
            idle: Mutex::new(sessions),
            ended: AtomicBool::new(false),
            changed: Notify::new(),
        });
        let mut by_number = self.by_number.lock().unwrap_or_else(PoisonError::into_inner);
        by_number.insert(number.clone(), Arc::clone(&snapshot));
        drop(by_number);
        let hold = Hold { number: number.clone(), snapshots: Arc::clone(self), snapshot };
        (number, hold)
    }

    /// A connection of that snapshot.
    pub(crate) async fn lend(&self, number: &str) -> Result<(Session, Lent)> {
        let found = self
            .by_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(number)
            .map(Arc::clone);
        found.ok_or_else(lost)?.lend().await
    }
}

/// Begins a transaction that can only read and sees all that is committed now; the
/// session's isolation is that of snapshots.
pub(crate) async fn begin(session: &mut Session) -> Result<()> {
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", DOING).await
}

/// Keeps the table as it is until the transaction ends: it can be written to, but
/// not altered.
pub(crate) async fn pin(session: &mut Session, table: &TableName) -> Result<()> {
    let look = format!("SELECT 1 FROM {} LIMIT 0", qualified(&MysqlDialect, table));
    session.ask(&look, "the table cannot be read").await.map(|_| ())
}

/// One connection with a snapshot.
pub(crate) async fn one(pool: &Pool, table: &TableName) -> Result<Session> {
    let mut session = pool.get().await?;
    begin(&mut session).await?;
    pin(&mut session, table).await?;
    Ok(session)
}

/// Several connections that see the same; `None` where the table cannot be locked
/// for the moment that this takes.
pub(crate) async fn several(
    pool: &Pool,
    table: &TableName,
    count: usize,
) -> Result<Option<Vec<Session>>> {
    let count = count.min(MOST_CONNECTIONS);
    let sessions: Vec<_> = (0..count).map(|_| pool.get()).collect();
    let mut sessions = futures::future::try_join_all(sessions).await?;
    // It is closed afterwards, and with it the lock is gone, whatever happens.
    let mut locker = pool.open().await?;
    if let Err(error) = lock(&mut locker, table).await {
        tracing::warn!(
            %table,
            error = error.chain(),
            "the table cannot be locked for a moment, so that one connection reads it; \
             grant LOCK TABLES to the user"
        );
        return Ok(None);
    }
    // What is prepared holds no lock in every version, and may be committed any time.
    if prepared(&mut locker).await?.is_some_and(|names| !names.is_empty()) {
        tracing::warn!(%table, "a prepared transaction is open, so that one connection reads it");
        return Ok(None);
    }
    futures::future::try_join_all(sessions.iter_mut().map(begin)).await?;
    locker.run("UNLOCK TABLES", DOING).await?;
    drop(locker);
    let pins = sessions.iter_mut().map(|session| pin(session, table));
    futures::future::try_join_all(pins).await?;
    Ok(Some(sessions))
}

/// Waits until nobody who has written is still open, for a second at most: as long
/// others wait to write.
async fn lock(session: &mut Session, table: &TableName) -> Result<()> {
    session.run("SET SESSION lock_wait_timeout = 1", DOING).await?;
    let lock = format!("LOCK TABLES {} READ", qualified(&MysqlDialect, table));
    session.run(&lock, "the table cannot be locked for reading").await
}
