//! Idle sessions, kept for the next statement.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidelake_model::Result;

use crate::config::PostgresConfig;
use crate::session::{OpenSessions, Role, Session};

const MOST_IDLE: usize = 8;
const LONGEST_IDLE: Duration = Duration::from_secs(240);

/// Opens sessions and keeps a few of those that are free. How many are in use at
/// once is up to the caller.
pub(crate) struct Pool {
    pub(crate) config: PostgresConfig,
    role: Role,
    idle: Mutex<Vec<(Instant, Session)>>,
    open: OpenSessions,
}

impl Pool {
    /// An empty pool; a contradiction in the settings is told now.
    pub(crate) fn new(config: PostgresConfig, role: Role) -> Result<Self> {
        config.tls_mode()?;
        let open = Arc::new(Mutex::new(HashSet::new()));
        Ok(Self { config, role, idle: Mutex::default(), open })
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
        Session::open(&self.config, self.role, &self.open).await
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
