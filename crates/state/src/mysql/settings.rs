//! Where the store is and how it is reached.

use std::path::PathBuf;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, OptsBuilder};
use serde::{Deserialize, Deserializer};
use tidelake_model::{Error, ErrorKind, Result, Secret};

use super::error::{self, understood};
use super::tls;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Fixes what the meaning of a statement depends on. A connection that is silent
/// for a minute is closed by the server, so that a holder whose machine vanished
/// does not keep rows locked; it is made again when it is needed.
///
/// Each statement sees what was committed before it: after the wait for a lock a
/// transaction must not go on with what it saw before.
const SESSION: &str = "SET SESSION \
    sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,NO_ENGINE_SUBSTITUTION', \
    time_zone = '+00:00', autocommit = 1, innodb_lock_wait_timeout = 10, lock_wait_timeout = 30, \
    wait_timeout = 60, default_storage_engine = InnoDB, character_set_results = 'utf8mb4'; \
    SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// How a connection is encrypted; the names are those that a source knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never.
    Disable,
    /// If the server offers it; nobody is checked.
    #[default]
    Prefer,
    /// Always; any certificate is accepted.
    Require,
    /// Always, by a server with a certificate of a known authority.
    VerifyCa,
    /// The same, and the certificate must be for this server's name.
    VerifyFull,
}

/// The `info` of a credential with which a store is opened. It holds a password,
/// so it has no `Debug`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MysqlSettings {
    /// Host name, address, or the path of a Unix socket.
    pub server: String,
    /// Port; 3306 when absent.
    #[serde(default, deserialize_with = "port")]
    pub port: Option<u16>,
    /// User.
    pub username: String,
    /// Password, where the server asks for one.
    pub password: Option<Secret>,
    /// The database of a source with the same credential; the store does not use it.
    pub database: Option<String>,
    /// Encryption.
    #[serde(default)]
    pub sslmode: TlsMode,
    /// File with the certificates of trusted authorities; the system's when absent.
    pub sslrootcert: Option<PathBuf>,
    /// The database of the store's tables; `tidelake` when absent.
    pub schema: Option<String>,
}

/// A number, or text with one: a variable that was filled in is always text.
fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a port number")]
    enum Port {
        Number(u16),
        Text(String),
    }
    match Option::<Port>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Port::Number(number)) => Ok(Some(number)),
        Some(Port::Text(text)) => text
            .parse()
            .map(Some)
            .map_err(|_| serde::de::Error::custom("port is not a port number")),
    }
}

impl MysqlSettings {
    pub(super) fn schema_name(&self) -> &str {
        self.schema.as_deref().unwrap_or("tidelake")
    }

    pub(super) fn quoted_schema(&self) -> String {
        format!("`{}`", self.schema_name().replace('`', "``"))
    }

    pub(super) fn is_socket(&self) -> bool {
        self.server.starts_with('/')
    }

    pub(super) fn location(&self) -> String {
        let schema = self.schema_name();
        if self.is_socket() {
            return format!("{}/{schema}", self.server);
        }
        format!("{}:{}/{schema}", self.server, self.port.unwrap_or(3306))
    }

    /// A connection that uses the store's database, which must be there.
    pub(super) async fn connect(&self) -> Result<Conn> {
        let mut connection = self.log_in().await?;
        let session = format!("{SESSION}; USE {}", self.quoted_schema());
        let prepared = connection.query_drop(session).await;
        prepared.map_err(|error| understood(error, &self.location()))?;
        Ok(connection)
    }

    /// The same; the database is made where there is none.
    pub(super) async fn connect_or_make(&self) -> Result<Conn> {
        let failed = |error| understood(error, &self.location());
        let mut connection = self.log_in().await?;
        connection.query_drop(SESSION).await.map_err(failed)?;
        let schema = self.quoted_schema();
        match connection.query_drop(format!("USE {schema}")).await {
            Err(error) if error::is_no_database(&error) => {
                let make = format!(
                    "CREATE DATABASE IF NOT EXISTS {schema} CHARACTER SET utf8mb4; USE {schema}"
                );
                connection.query_drop(make).await.map_err(failed)?;
            }
            used => used.map_err(failed)?,
        }
        Ok(connection)
    }

    async fn log_in(&self) -> Result<Conn> {
        if self.schema_name().is_empty() || self.schema_name().contains('\0') {
            return Err(Error::new(
                ErrorKind::Configuration,
                "the database of the state store has no name",
            )
            .with_hint("name a database with schema, or leave it out"));
        }
        let options = self.options()?;
        let mode = if self.is_socket() { TlsMode::Disable } else { self.sslmode };
        let mut encryption = tls::options(mode, self.sslrootcert.as_deref())?;
        let mut retried = false;
        loop {
            let options = options.clone().ssl_opts(encryption.clone());
            let connected = tokio::time::timeout(CONNECT_TIMEOUT, Conn::new(options)).await;
            let error = match connected {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => error,
                Err(_) => {
                    let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
                    return Err(understood(late.into(), &self.location()));
                }
            };
            encryption = match &error {
                mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer)
                    if mode == TlsMode::Prefer && !retried =>
                {
                    None
                }
                _ if mode == TlsMode::VerifyCa && !retried && tls::is_wrong_name(&error) => {
                    encryption.map(tls::for_any_name)
                }
                _ => return Err(understood(error, &self.location())),
            };
            retried = true;
        }
    }

    fn options(&self) -> Result<OptsBuilder> {
        let password = self.password.as_ref().map(|password| password.expose().to_owned());
        let options = OptsBuilder::default()
            .user(Some(self.username.as_str()))
            .pass(password)
            .tcp_keepalive(Some(Duration::from_secs(30)))
            .connect_attribute("program_name", "tidelake")
            // It would change to a socket of its own accord.
            .prefer_socket(false);
        Ok(if self.is_socket() {
            options.socket(Some(self.server.as_str()))
        } else {
            options.ip_or_hostname(self.server.as_str()).tcp_port(self.port.unwrap_or(3306))
        })
    }
}
