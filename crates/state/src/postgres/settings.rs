//! Where the store is and how it is reached.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use tidelake_model::{Error, ErrorKind, Result, Secret};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::understood;
use super::tls;

/// How a connection is encrypted; the names and meanings are PostgreSQL's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never.
    Disable,
    /// If the server offers it; nobody is checked.
    #[default]
    #[serde(alias = "allow")]
    Prefer,
    /// Always; the server is checked only where `sslrootcert` is given.
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
pub struct PostgresSettings {
    /// Host name, address, or the folder of a socket.
    pub server: String,
    /// Port; 5432 when absent.
    #[serde(default, deserialize_with = "port")]
    pub port: Option<u16>,
    /// User.
    pub username: String,
    /// Password, where the server asks for one.
    pub password: Option<Secret>,
    /// Database.
    pub database: String,
    /// Encryption.
    #[serde(default)]
    pub sslmode: SslMode,
    /// File with the certificates of trusted authorities; the system's when absent.
    pub sslrootcert: Option<PathBuf>,
    /// Schema of the store's tables; `tidelake` when absent.
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

impl PostgresSettings {
    pub(super) fn schema_name(&self) -> &str {
        self.schema.as_deref().unwrap_or("tidelake")
    }

    pub(super) fn quoted_schema(&self) -> String {
        format!("\"{}\"", self.schema_name().replace('"', "\"\""))
    }

    pub(super) fn location(&self) -> String {
        let port = self.port.unwrap_or(5432);
        format!("{}:{port}/{}, schema {}", self.server, self.database, self.schema_name())
    }

    /// Begins a transaction. Settings last as long as it does, so that nothing
    /// depends on which connection of a pooler it gets.
    pub(super) fn begin(&self, read_only: bool) -> String {
        let mode = if read_only { ", READ ONLY" } else { "" };
        let schema = self.quoted_schema();
        // A holder whose machine vanished must not keep rows locked for ever, and
        // a watermark that was committed must not be lost with the server.
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED{mode}; SET LOCAL search_path TO {schema}; \
            SET LOCAL lock_timeout TO '30s'; \
            SET LOCAL idle_in_transaction_session_timeout TO '60s'; \
            SELECT set_config('synchronous_commit', 'on', true) \
            WHERE current_setting('synchronous_commit') = 'off'"
        )
    }

    pub(super) async fn connect(&self) -> Result<Client> {
        if self.schema_name().is_empty() || self.schema_name().contains('\0') {
            return Err(Error::new(
                ErrorKind::Configuration,
                "the schema of the state store has no name",
            )
            .with_hint("name a schema, or leave it out"));
        }
        let mut config = Config::new();
        config
            .host(&self.server)
            .port(self.port.unwrap_or(5432))
            .user(&self.username)
            .dbname(&self.database)
            .application_name("tidelake")
            .connect_timeout(Duration::from_secs(15))
            .tcp_user_timeout(Duration::from_secs(30))
            .keepalives_idle(Duration::from_secs(30))
            .ssl_mode(match self.sslmode {
                SslMode::Disable => tokio_postgres::config::SslMode::Disable,
                SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
                _ => tokio_postgres::config::SslMode::Require,
            });
        if let Some(password) = &self.password {
            config.password(password.expose());
        }
        let tls = MakeRustlsConnect::new(tls::client(self.sslmode, self.sslrootcert.as_deref())?);
        let connected = config.connect(tls).await;
        let (client, connection) =
            connected.map_err(|error| understood(error, &self.location()))?;
        tokio::spawn(async move {
            // Its end is seen by the next statement, which tells it better.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the state store ended");
            }
        });
        Ok(client)
    }
}
