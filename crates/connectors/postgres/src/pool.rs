//! Idle sessions, kept for the next statement.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tidelake_model::{Result, TableName};

use crate::catalogue::Known;
use crate::config::PostgresConfig;
use crate::round_trips::RoundTrips;
use crate::session::{OpenSessions, Role, Session};
use crate::tls::client_config;

const MOST_IDLE: usize = 8;
const LONGEST_IDLE: Duration = Duration::from_secs(240);

/// Opens sessions and keeps a few of those that are free. How many are in use at
/// once is up to the caller.
pub(crate) struct Pool {
    pub(crate) config: PostgresConfig,
    pub(crate) role: Role,
    idle: Mutex<Vec<(Instant, Session)>>,
    pub(crate) open: OpenSessions,
    pub(crate) trips: RoundTrips,
    /// Made once: the certificates of an operating system are many.
    tls: OnceLock<Option<ClientConfig>>,
    /// What the catalogue said last of each table.
    known: Mutex<HashMap<TableName, Arc<Known>>>,
    /// Sessions inside the transaction whose snapshot they exported, by that snapshot.
    parked: Mutex<HashMap<String, Session>>,
}

impl Pool {
    /// An empty pool; a contradiction in the settings is told now.
    pub(crate) fn new(config: PostgresConfig, role: Role) -> Result<Self> {
        config.tls_mode()?;
        let open = Arc::new(Mutex::new(HashSet::new()));
        Ok(Self {
            config,
            role,
            idle: Mutex::default(),
            open,
            trips: RoundTrips::default(),
            tls: OnceLock::new(),
            known: Mutex::default(),
            parked: Mutex::default(),
        })
    }

    /// A session with no transaction open.
    pub(crate) async fn get(&self) -> Result<Session> {
        if let Some(session) = self.take_idle() {
            return Ok(session);
        }
        self.open().await
    }

    /// A new session.
    pub(crate) async fn open(&self) -> Result<Session> {
        Session::open(self).await
    }

    /// How connections are encrypted; `None` where they are not.
    pub(crate) fn tls(&self) -> Result<Option<ClientConfig>> {
        if let Some(made) = self.tls.get() {
            return Ok(made.clone());
        }
        let made = client_config(&self.config)?;
        Ok(self.tls.get_or_init(|| made).clone())
    }

    /// What the catalogue said of a table.
    pub(crate) fn known(&self, table: &TableName) -> Option<Arc<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(table).cloned()
    }

    pub(crate) fn remember(&self, tables: impl IntoIterator<Item = (TableName, Known)>) {
        let tables = tables.into_iter().map(|(name, known)| (name, Arc::new(known)));
        self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(tables);
    }

    /// Something else was found than the catalogue had said.
    pub(crate) fn forget(&self, table: &TableName) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(table);
    }

    /// Keeps a session inside its transaction for whoever reads the snapshot.
    pub(crate) fn park(&self, snapshot: &str, session: Session) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        parked.insert(snapshot.to_owned(), session);
    }

    /// The session that keeps a snapshot, unless it was taken before.
    pub(crate) fn unpark(&self, snapshot: &str) -> Option<Session> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).remove(snapshot)
    }

    fn take_idle(&self) -> Option<Session> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(since, session)| {
            since.elapsed() < LONGEST_IDLE && !session.client.is_closed()
        });
        // The one used last is the least likely to have been cut off since.
        idle.pop().map(|(_, session)| session)
    }

    /// Takes back a session that has no transaction open.
    pub(crate) fn put(&self, session: Session) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE && !session.client.is_closed() {
            idle.push((Instant::now(), session));
        }
    }

    /// Process ids of all sessions of this pool.
    pub(crate) fn open_sessions(&self) -> Vec<i32> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}
