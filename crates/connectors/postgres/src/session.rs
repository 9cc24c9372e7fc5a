//! One connection with everything pinned that could change what values mean.

use std::collections::HashSet;
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
use crate::tap::{Slot, Tap, TlsTap};
use crate::tls::client_config;

/// Begins the application name of sessions that can only read.
pub(crate) const READER_NAME: &str = "tidelake reader";

/// Settings that change how a value is printed, which rows are seen or when a
/// statement is cut off, with the first major version that knows them.
const PINNED: [(u32, &str, &str); 15] = [
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
    (0, "statement_timeout", "0"),
    (0, "idle_in_transaction_session_timeout", "0"),
    (0, "lock_timeout", "30s"),
    (0, "client_min_messages", "warning"),
    (14, "idle_session_timeout", "0"),
    (17, "transaction_timeout", "0"),
];

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
    pid: i32,
    open: OpenSessions,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.pid);
    }
}

impl Session {
    /// Connects, logs in and pins the settings.
    pub(crate) async fn open(
        config: &PostgresConfig,
        role: Role,
        open: &OpenSessions,
    ) -> Result<Self> {
        let limit = Duration::from_secs(config.connect_timeout.max(1));
        let opened = tokio::time::timeout(limit, connect(config, role)).await;
        let (client, tap, version) = opened.map_err(|_| {
            let message = format!("{} did not answer within {} s", place(config), limit.as_secs());
            unreachable(message)
        })??;
        if version < OLDEST {
            let message = format!("{} is of version {version}", place(config));
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint(format!("version {OLDEST} is the oldest that is supported")));
        }
        let mut session = Self { client, tap, version, pid: 0, open: Arc::clone(open) };
        session.pid = pin(&session.client, role, version).await?;
        open.lock().unwrap_or_else(PoisonError::into_inner).insert(session.pid);
        Ok(session)
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

async fn pin(client: &Client, role: Role, version: u32) -> Result<i32> {
    let mut statements = String::new();
    for (since, name, value) in PINNED {
        if version >= since {
            // A list in quotes would be taken as one name.
            let value = if name == "search_path" { value.to_owned() } else { format!("'{value}'") };
            statements.push_str(&format!("SET {name} = {value};"));
        }
    }
    if role == Role::Reader {
        statements.push_str("SET default_transaction_read_only = on;");
    }
    statements.push_str("SELECT pg_catalog.pg_backend_pid()");
    let doing = "the session's settings cannot be pinned";
    let answer = client.simple_query(&statements).await.map_err(|error| failure(error, doing))?;
    let pid = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    pid.ok_or_else(|| internal(doing))
}

async fn connect(config: &PostgresConfig, role: Role) -> Result<(Client, Tap, u32)> {
    let mode = config.tls_mode()?;
    let first = attempt(config, role, mode).await;
    // Like libpq: a server that refuses encrypted logins is asked without.
    match first {
        Err(error)
            if mode == TlsMode::Prefer
                && !config.is_socket()
                && matches!(error.kind(), ErrorKind::Configuration | ErrorKind::Denied)
                && !is_wrong_password(&error) =>
        {
            attempt(config, role, TlsMode::Disable).await.map_err(|_| error)
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

async fn attempt(config: &PostgresConfig, role: Role, mode: TlsMode) -> Result<(Client, Tap, u32)> {
    let doing = format!("logging in to {} as {:?} failed", place(config), config.username);
    let tap = dial(config).await?;
    let driver = driver_config(config, role, mode);
    let tls = if mode == TlsMode::Disable { None } else { client_config(config)? };
    let Some(tls) = tls else {
        let mut driver = driver;
        driver.ssl_mode(SslMode::Disable);
        let connected = driver.connect_raw(tap.clone(), NoTls).await;
        let (client, connection) = connected.map_err(|error| failure(error, &doing))?;
        let version = drive(connection);
        return Ok((client, tap, version));
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
    Ok((client, encrypted.unwrap_or(tap), version))
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

async fn dial(config: &PostgresConfig) -> Result<Tap> {
    let refused = |error| {
        let message = format!("{} cannot be reached", place(config));
        broken(error, &message)
            .with_hint("check server and port, and that the server runs and can be reached")
    };
    if config.is_socket() {
        let path = format!("{}/.s.PGSQL.{}", config.server.trim_end_matches('/'), config.port);
        let stream = UnixStream::connect(path).await.map_err(refused)?;
        return Ok(Tap::new(stream));
    }
    let stream =
        TcpStream::connect((config.server.as_str(), config.port)).await.map_err(refused)?;
    keep_alive(&stream).map_err(refused)?;
    Ok(Tap::new(stream))
}

/// A server that vanished without a word ends the connection in two minutes, and
/// small statements are sent at once.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let probes = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15));
    socket2::SockRef::from(stream).set_tcp_keepalive(&probes)
}

/// Asks the server to stop what a session does; the answer does not matter.
pub(crate) async fn cancel(config: &PostgresConfig, token: tokio_postgres::CancelToken) {
    let cancelled = tokio::time::timeout(Duration::from_secs(5), async {
        let tap = dial(config).await?;
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
