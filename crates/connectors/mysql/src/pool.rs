//! Connections that are ready for statements, kept for the next one.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidelake_connector::BatchStream;
use tidelake_model::{Error, ErrorKind, Result};

use crate::activity::LastListing;
use crate::config::MysqlConfig;
use crate::decode::DecodePlan;
use crate::failure::ServerError;
use crate::wire::{NamedRow, RowConnection};
use crate::{Mysql, internal};

const MOST_IDLE: usize = 8;
const LONGEST_IDLE: Duration = Duration::from_secs(240);
/// The oldest versions that show what the fence needs and can wait for a lock.
const OLDEST_MYSQL: (u32, u32) = (8, 0);
const OLDEST_MARIADB: (u32, u32) = (10, 5);

/// The numbers of the connections that are open, by which the fence knows its own.
type OpenConnections = Arc<Mutex<HashSet<u32>>>;

/// A row of a small result.
pub(crate) type Row = Vec<Option<String>>;

/// Round trips of a login with everything that is pinned after it.
const LOGIN_TRIPS: u64 = 5;
/// Those of a statement that is prepared and whose rows are streamed.
const READ_TRIPS: u64 = 2;

/// Keeps a connection's number in the list of the open ones, and counts what is sent.
struct Listed {
    id: u32,
    open: OpenConnections,
    trips: Arc<AtomicU64>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// A connection with everything pinned that could change what values mean.
pub(crate) struct Session {
    connection: RowConnection,
    listed: Listed,
}

impl Session {
    pub(crate) fn is_mariadb(&self) -> bool {
        self.connection.is_mariadb()
    }

    /// Major and minor version of the server.
    pub(crate) fn version(&self) -> (u32, u32) {
        version(self.connection.version())
    }

    /// The server's version as it says it.
    pub(crate) fn version_text(&self) -> &str {
        self.connection.version()
    }

    /// Runs a statement without a result; `doing` says what did not work.
    pub(crate) async fn run(&mut self, statement: &str, doing: &str) -> Result<()> {
        tracing::debug!(statement, "running");
        self.listed.trips.fetch_add(1, Ordering::Relaxed);
        self.connection.run(statement).await.map_err(|error| named(error, doing))
    }

    /// Runs a statement and takes its whole, small result.
    pub(crate) async fn ask(&mut self, statement: &str, doing: &str) -> Result<Vec<Row>> {
        self.listed.trips.fetch_add(1, Ordering::Relaxed);
        self.connection.ask(statement).await.map_err(|error| named(error, doing))
    }

    /// The same with the names of the columns.
    pub(crate) async fn ask_named(
        &mut self,
        statement: &str,
        doing: &str,
    ) -> Result<Vec<NamedRow>> {
        self.listed.trips.fetch_add(1, Ordering::Relaxed);
        self.connection.ask_named(statement).await.map_err(|error| named(error, doing))
    }

    /// The only row of a result.
    pub(crate) async fn ask_one(&mut self, statement: &str, doing: &str) -> Result<Row> {
        let row = self.ask(statement, doing).await?.into_iter().next();
        row.ok_or_else(|| internal(doing))
    }

    /// Streams the rows of a statement. At their end the session is given back.
    pub(crate) async fn read(
        self,
        statement: &str,
        plan: DecodePlan,
        give_back: impl FnOnce(Session) + Send + 'static,
    ) -> Result<BatchStream> {
        let Self { connection, listed } = self;
        listed.trips.fetch_add(READ_TRIPS, Ordering::Relaxed);
        let back = move |connection| give_back(Session { connection, listed });
        connection.read(statement, plan, Box::new(back)).await
    }
}

/// The error of a statement, with what it was for in front.
fn named(error: Error, doing: &str) -> Error {
    let again = error.again();
    let hint = error.hint().map(str::to_owned);
    let outer = Error::new(error.kind(), doing).with_again(again);
    let outer = match hint {
        Some(hint) => outer.with_hint(hint),
        None => outer,
    };
    outer.with_source(error)
}

/// The server's number of an error, where it sent one.
pub(crate) fn code(error: &Error) -> Option<u16> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(server) = error.downcast_ref::<ServerError>() {
            return Some(server.code);
        }
        cause = error.source();
    }
    None
}

/// The first two numbers of a version.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    let mut next = || numbers.next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    (next(), next())
}

/// A cell of a row, NULL as an empty text.
pub(crate) fn text(row: &Row, index: usize) -> &str {
    row.get(index).and_then(Option::as_deref).unwrap_or("")
}

/// A cell that is a number.
pub(crate) fn number<T: std::str::FromStr>(row: &Row, index: usize) -> Option<T> {
    row.get(index)?.as_deref()?.parse().ok()
}

/// Opens sessions and keeps a few of those that are free. How many are in use at
/// once is up to the caller.
pub(crate) struct Pool {
    pub(crate) config: Arc<MysqlConfig>,
    family: Mysql,
    idle: Mutex<Vec<(Instant, Session)>>,
    open: OpenConnections,
    trips: Arc<AtomicU64>,
    /// What was in flight when that was asked last.
    pub(crate) listing: LastListing,
}

impl Pool {
    /// An empty pool; a contradiction in the settings is told now.
    pub(crate) fn new(config: MysqlConfig, family: Mysql) -> Result<Self> {
        config.tls_mode()?;
        Ok(Self {
            config: Arc::new(config),
            family,
            idle: Mutex::default(),
            open: Arc::default(),
            trips: Arc::default(),
            listing: LastListing::default(),
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
        let connection = RowConnection::connect(&self.config).await?;
        let id = connection.id();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        self.trips.fetch_add(LOGIN_TRIPS, Ordering::Relaxed);
        let trips = Arc::clone(&self.trips);
        let listed = Listed { id, open: Arc::clone(&self.open), trips };
        let session = Session { connection, listed };
        self.check(&session)?;
        Ok(session)
    }

    /// Refuses a server of the other family, and one that is too old.
    fn check(&self, session: &Session) -> Result<()> {
        let place = self.config.place();
        let found = if session.is_mariadb() { Mysql::MariaDb } else { Mysql::MySql };
        if found != self.family {
            let message = format!(
                "{place} is {}, and the credential says {}",
                found.title(),
                self.family.ds_type()
            );
            return Err(Error::new(ErrorKind::Configuration, message)
                .with_hint(format!("set ds_type to {:?} in the credential", found.ds_type())));
        }
        let oldest = if session.is_mariadb() { OLDEST_MARIADB } else { OLDEST_MYSQL };
        if session.version() < oldest {
            let message = format!("{place} is of version {}", session.version_text());
            return Err(Error::new(ErrorKind::Unsupported, message).with_hint(format!(
                "version {}.{} is the oldest that is supported",
                oldest.0, oldest.1
            )));
        }
        Ok(())
    }

    fn take_idle(&self) -> Option<Session> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain_mut(|(since, session)| {
            since.elapsed() < LONGEST_IDLE && !session.connection.is_closed()
        });
        // The one used last is the least likely to have been cut off since.
        idle.pop().map(|(_, session)| session)
    }

    /// Takes back a session that has no transaction open.
    pub(crate) fn put(&self, session: Session) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push((Instant::now(), session));
        }
    }

    /// Takes back a session with a transaction open, which it ends.
    pub(crate) fn end(self: &Arc<Self>, mut session: Session) {
        // Without a runtime the connection is closed, which ends it as well.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let pool = Arc::clone(self);
        runtime.spawn(async move {
            if session.run("ROLLBACK", "the transaction cannot be ended").await.is_ok() {
                pool.put(session);
            }
        });
    }

    /// How often an answer of the server was waited for.
    pub(crate) fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    /// The server's numbers of all connections of this pool.
    pub(crate) fn open_sessions(&self) -> Vec<u32> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("10.11.19-MariaDB-0+deb12u1"), (10, 11));
        assert_eq!(version("9.7.4-debian"), (9, 7));
        assert_eq!(version("8.0"), (8, 0));
        assert_eq!(version(""), (0, 0));
    }
}
