//! One connection with everything pinned that could change what values mean.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidelake_model::{Error, ErrorKind, Result};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Connection, NoTls, SimpleQueryMessage};

use crate::config::{APPLICATION_NAME, PostgresConfig, TlsMode};
use crate::failure::{broken, failure};
use crate::internal;
use crate::pool::Pool;
use crate::round_trips::{Counted, RoundTrips};
use crate::tap::{Slot, Tap, TlsTap};
use crate::tls::client_config;

/// Begins the application name of sessions that can only read.
pub(crate) const READER_NAME: &str = "tidelake reader";

/// Settings that change how a value is printed, which rows are seen or when a
/// statement is cut off, with the first major version that knows them.
const PINNED: [(u32, &str, &str); 14] = [
    (0, "TimeZone", "UTC"),
    (0, "DateStyle", "ISO, YMD"),
    (0, "IntervalStyle", "iso_8601"),
    (0, "bytea_output", "hex"),
    (0, "extra_float_digits", "3"),
    (0, "standard_conforming_strings", "on"),
    (0, "quote_all_identifiers", "off"),
    (0, "search_path", "pg_catalog"),
    // A policy that hides rows is an error, never a silent filter.
    (0, "row_security", "off"),
    (0, "idle_in_transaction_session_timeout", "0"),
    (0, "lock_timeout", "30s"),
    (0, "client_min_messages", "warning"),
    (14, "idle_session_timeout", "0"),
    (17, "transaction_timeout", "0"),
];

/// A setting of our own, by which a session knows that it still is the one whose
/// settings were pinned.
const MARK: &str = "tidelake.session";

/// The oldest major version whose views show what the fence needs.
const OLDEST: u32 = 13;

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reading only; every transaction of it is read-only.
    Reader,
    /// Loading rows.
    Publisher,
}

/// Process ids of the sessions that are open, by which the fence knows its own.
pub(crate) type OpenSessions = Arc<Mutex<HashSet<i32>>>;

/// A connection that is ready for statements.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) tap: Tap,
    /// Major version of the server.
    pub(crate) version: u32,
    /// The server's process of this session.
    pub(crate) pid: i32,
    /// Whether nothing stands between the server and us, as far as can be seen.
    pub(crate) is_direct: bool,
    /// The limit of a statement, as a setting's value.
    pub(crate) statement_timeout: String,
    mark: String,
    open: OpenSessions,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.pid);
    }
}

impl Session {
    /// Connects, logs in and pins the settings.
    pub(crate) async fn open(pool: &Pool) -> Result<Self> {
        let limit = Duration::from_secs(pool.config.connect_timeout.max(1));
        let opened = tokio::time::timeout(limit, Self::log_in(pool)).await;
        opened.map_err(|_| {
            let place = place(&pool.config);
            let message = format!("{place} did not answer within {} s", limit.as_secs());
            unreachable(message)
        })?
    }

    async fn log_in(pool: &Pool) -> Result<Self> {
        let Pool { config, role, open, .. } = pool;
        let (client, tap, version, port) = connect(pool).await?;
        if version < OLDEST {
            let message = format!("{} is of version {version}", place(config));
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint(format!("version {OLDEST} is the oldest that is supported")));
        }
        let mut session = Self {
            client,
            tap,
            version,
            pid: 0,
            is_direct: false,
            statement_timeout: format!("{}s", config.statement_timeout),
            mark: format!("{:016x}", RandomState::new().build_hasher().finish()),
            open: Arc::clone(open),
        };
        let (pid, seen_port) = session.pin(*role).await?;
        session.pid = pid;
        session.is_direct = port.is_some() && port == seen_port;
        open.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        Ok(session)
    }

    /// Pins the settings; returns the server's process and the port from which it
    /// sees us come.
    async fn pin(&self, role: Role) -> Result<(i32, Option<u16>)> {
        let mut statements = String::new();
        for (since, name, value) in PINNED {
            if self.version >= since {
                // A list in quotes would be taken as one name.
                let value =
                    if name == "search_path" { value.to_owned() } else { format!("'{value}'") };
                statements.push_str(&format!("SET {name} = {value};"));
            }
        }
        statements.push_str(&format!("SET statement_timeout = '{}';", self.statement_timeout));
        if role == Role::Reader {
            statements.push_str("SET default_transaction_read_only = on;");
        }
        statements.push_str(&format!(
            "SET {MARK} = '{}'; SELECT pg_catalog.pg_backend_pid(), pg_catalog.inet_client_port()",
            self.mark
        ));
        let doing = "the session's settings cannot be pinned";
        let answer = self.client.simple_query(&statements).await;
        let answer = answer.map_err(|error| failure(error, doing))?;
        let found = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let port = row.get(1).and_then(|port| port.parse().ok());
                Some((row.get(0)?.parse().ok()?, port))
            }
            _ => None,
        });
        found.ok_or_else(|| internal(doing))
    }

    /// Runs statements, the last of which must find itself in this session's own
    /// process with the settings that were pinned there.
    pub(crate) async fn run_pinned(
        &self,
        statements: &str,
    ) -> Result<Result<(), Error>, tokio_postgres::Error> {
        let statements = format!("{statements}; SELECT {}", Self::IDENTITY);
        let answer = self.client.simple_query(&statements).await?;
        let same = answer.iter().any(|message| match message {
            SimpleQueryMessage::Row(row) => {
                row.get(0).is_some_and(|identity| self.is_identity(identity))
            }
            _ => false,
        });
        Ok(if same { Ok(()) } else { Err(pooled()) })
    }

    /// An expression that only this session's process answers as
    /// [`is_identity`](Self::is_identity) wants it.
    pub(crate) const IDENTITY: &str = "pg_catalog.pg_backend_pid()::text OPERATOR(pg_catalog.||) \
         ' ' OPERATOR(pg_catalog.||) pg_catalog.current_setting('tidelake.session', true)";

    /// Whether a statement of this session ran where its settings are pinned.
    pub(crate) fn is_identity(&self, identity: &str) -> bool {
        identity
            .split_once(' ')
            .is_some_and(|(pid, mark)| pid.parse() == Ok(self.pid) && mark == self.mark)
    }

    /// Runs statements without a result.
    pub(crate) async fn run(&self, statements: &str, doing: &str) -> Result<()> {
        tracing::debug!(statement = statements, "running");
        self.client.batch_execute(statements).await.map_err(|error| failure(error, doing))
    }
}

/// The server as people know it: no user, no password.
fn place(config: &PostgresConfig) -> String {
    format!("the server at {} port {}", config.server, config.port)
}

fn unreachable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("check server and port, and that the server runs and can be reached")
}

/// Statements of one session were run by several processes of the server.
pub(crate) fn pooled() -> Error {
    let message = "the server is reached through a pooler that lends a connection for one \
                   transaction or statement only, so that settings and snapshots get lost";
    Error::new(ErrorKind::Unsupported, message).with_hint(
        "connect to the server itself, or to a pool in session mode (pool_mode = session)",
    )
}

/// A client, its line, the server's version, and the port from which it was
/// called, where it is one.
type Connected = (Client, Tap, u32, Option<u16>);

async fn connect(pool: &Pool) -> Result<Connected> {
    let config = &pool.config;
    let mode = config.tls_mode()?;
    let first = attempt(pool, mode).await;
    // Like libpq: a server that refuses encrypted logins is asked without.
    match first {
        Err(error)
            if mode == TlsMode::Prefer
                && !config.is_socket()
                && matches!(error.kind(), ErrorKind::Configuration | ErrorKind::Denied)
                && !is_wrong_password(&error) =>
        {
            attempt(pool, TlsMode::Disable).await.map_err(|_| error)
        }
        other => other,
    }
}

fn is_wrong_password(error: &Error) -> bool {
    error.chain().contains("28P01")
}

fn driver_config(config: &PostgresConfig, role: Role, mode: TlsMode) -> tokio_postgres::Config {
    let mut driver = tokio_postgres::Config::new();
    driver.user(&config.username).dbname(&config.database);
    if let Some(password) = &config.password {
        driver.password(password.expose());
    }
    let name = match (config.application_name.as_str(), role) {
        (APPLICATION_NAME, Role::Reader) => READER_NAME,
        (APPLICATION_NAME, Role::Publisher) => "tidelake publisher",
        (name, _) => name,
    };
    driver.application_name(name);
    driver.ssl_mode(match mode {
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
    });
    driver
}

async fn attempt(pool: &Pool, mode: TlsMode) -> Result<Connected> {
    let config = &pool.config;
    let doing = format!("logging in to {} as {:?} failed", place(config), config.username);
    let (tap, port) = dial(config, &pool.trips).await?;
    let driver = driver_config(config, pool.role, mode);
    let tls = if mode == TlsMode::Disable { None } else { pool.tls()? };
    let Some(tls) = tls else {
        let mut driver = driver;
        driver.ssl_mode(SslMode::Disable);
        let connected = driver.connect_raw(tap.clone(), NoTls).await;
        let (client, connection) = connected.map_err(|error| failure(error, &doing))?;
        let version = drive(connection);
        return Ok((client, tap, version, port));
    };
    let slot = Slot::default();
    let tls = TlsTap::new(tls, &config.server, Arc::clone(&slot)).ok_or_else(|| {
        let message = format!("{:?} is no host name that tls can check", config.server);
        Error::new(ErrorKind::Configuration, message)
    })?;
    let connected = driver.connect_raw(tap.clone(), tls).await;
    let (client, connection) = connected.map_err(|error| failure(error, &doing))?;
    let version = drive(connection);
    let encrypted = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok((client, encrypted.unwrap_or(tap), version, port))
}

/// Lets the driver work in a task of its own, which ends with the client, and
/// returns the server's major version.
fn drive<T>(connection: Connection<Tap, T>) -> u32
where
    T: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    let version = connection.parameter("server_version").and_then(|text| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    tokio::spawn(async move {
        // Whoever waits for a statement gets the error as well.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    version.unwrap_or(0)
}

async fn dial(config: &PostgresConfig, trips: &RoundTrips) -> Result<(Tap, Option<u16>)> {
    let refused = |error| {
        let message = format!("{} cannot be reached", place(config));
        broken(error, &message)
            .with_hint("check server and port, and that the server runs and can be reached")
    };
    if config.is_socket() {
        let path = format!("{}/.s.PGSQL.{}", config.server.trim_end_matches('/'), config.port);
        let stream = UnixStream::connect(path).await.map_err(refused)?;
        return Ok((Tap::new(Counted::new(stream, trips)), None));
    }
    let stream =
        TcpStream::connect((config.server.as_str(), config.port)).await.map_err(refused)?;
    let port = stream.local_addr().map(|address| address.port()).ok();
    keep_alive(&stream, config.keepalive).map_err(refused)?;
    Ok((Tap::new(Counted::new(stream, trips)), port))
}

/// A server that vanished without a word ends the connection, and small statements
/// are sent at once.
fn keep_alive(stream: &TcpStream, seconds: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // Operating systems ask nine times or so.
    let probes = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(seconds.max(1)))
        .with_interval(Duration::from_secs((seconds / 9).max(1)));
    socket2::SockRef::from(stream).set_tcp_keepalive(&probes)
}

/// Asks the server to stop what a session does; the answer does not matter.
pub(crate) async fn cancel(config: &PostgresConfig, token: tokio_postgres::CancelToken) {
    let cancelled = tokio::time::timeout(Duration::from_secs(5), async {
        let (tap, _) = dial(config, &RoundTrips::default()).await?;
        let doing = "cancelling failed";
        match client_config(config)? {
            Some(tls) => {
                let Some(tls) = TlsTap::new(tls, &config.server, Slot::default()) else {
                    return Ok(());
                };
                token.cancel_query_raw(tap, tls).await.map_err(|error| failure(error, doing))
            }
            None => token.cancel_query_raw(tap, NoTls).await.map_err(|error| failure(error, doing)),
        }
    });
    if let Ok(Err(error)) = cancelled.await {
        tracing::debug!(%error, "a statement could not be cancelled");
    }
}
