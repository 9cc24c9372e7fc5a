//! What a credential says about a server.

use std::fmt;
use std::time::Duration;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use tidelake_model::{Error, ErrorKind, Result, Secret};

/// The name of the program in the server's list of connections, where the server
/// keeps attributes of connections.
pub(crate) const PROGRAM_NAME: &str = "tidelake";

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never.
    Disable,
    /// Where the server offers it; any certificate is accepted.
    #[default]
    Prefer,
    /// Always; any certificate is accepted.
    Require,
    /// Always; the certificate must come from a trusted authority.
    VerifyCa,
    /// Always; it must also name the server.
    VerifyFull,
}

/// The `info` of a credential for MySQL or MariaDB.
#[derive(Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MysqlConfig {
    /// User.
    pub username: String,
    /// Password; absent where the server asks for none.
    #[serde(default)]
    pub password: Option<Secret>,
    /// Host name or address, or the path of a Unix socket.
    pub server: String,
    /// Port.
    #[serde(default = "default_port", deserialize_with = "port")]
    #[schemars(with = "u16", range(min = 1))]
    pub port: u16,
    /// Database, which is what a schema is here. Where it is given, only its tables
    /// are meant unless a schema is named.
    #[serde(default)]
    pub database: Option<String>,
    /// Encryption; `prefer` when absent.
    #[serde(default)]
    pub sslmode: Option<TlsMode>,
    /// Encrypt and accept any certificate, as `sslmode` `require` does.
    #[serde(default)]
    pub trust_server_certificate: Option<bool>,
    /// File with the certificates of trusted authorities, in PEM form; those of
    /// the operating system when absent.
    #[serde(default)]
    pub sslrootcert: Option<String>,
    /// Seconds to wait for a connection.
    #[serde(default = "default_connect_timeout")]
    pub connect_timeout: u64,
    /// Seconds that one statement may take, the reading of a slice included; 0 for
    /// no limit, also where the user or the server has one.
    #[serde(default)]
    pub statement_timeout: u64,
    /// Seconds without a byte after which the server is asked on another
    /// connection whether it still works on the statement; 0 to wait for ever.
    #[serde(default = "default_stall_timeout")]
    pub stall_timeout: u64,
    /// Seconds of silence after which the operating system checks that the other
    /// end is still there; a connection whose other end is gone is given up after
    /// about twice that time.
    #[serde(default = "default_keepalive")]
    pub keepalive: u64,
}

fn default_port() -> u16 {
    3306
}

fn default_connect_timeout() -> u64 {
    15
}

fn default_stall_timeout() -> u64 {
    60
}

fn default_keepalive() -> u64 {
    60
}

impl MysqlConfig {
    /// How long to wait for a byte before the server is asked.
    pub(crate) fn stall_limit(&self) -> Option<Duration> {
        (self.stall_timeout > 0).then(|| Duration::from_secs(self.stall_timeout))
    }

    /// How long to wait for a connection.
    pub(crate) fn connect_limit(&self) -> Duration {
        Duration::from_secs(self.connect_timeout.max(1))
    }

    /// The encryption that is meant; a contradiction is an error.
    pub(crate) fn tls_mode(&self) -> Result<TlsMode> {
        match (self.sslmode, self.trust_server_certificate) {
            (Some(TlsMode::VerifyCa | TlsMode::VerifyFull), Some(true)) => Err(Error::new(
                ErrorKind::Configuration,
                "sslmode asks for a verified certificate, but trust_server_certificate accepts any",
            )
            .with_hint("leave out one of the two")),
            (Some(mode), _) => Ok(mode),
            (None, Some(true)) => Ok(TlsMode::Require),
            (None, _) => Ok(TlsMode::default()),
        }
    }

    /// Whether the server is reached through a Unix socket.
    pub(crate) fn is_socket(&self) -> bool {
        self.server.starts_with('/')
    }

    /// The server as people know it: no user, no password.
    pub(crate) fn place(&self) -> String {
        if self.is_socket() {
            format!("the server at {}", self.server)
        } else {
            format!("the server at {} port {}", self.server, self.port)
        }
    }
}

/// A port as a number or as the text of one.
fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    struct Port;

    impl Visitor<'_> for Port {
        type Value = u16;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a port number from 1 to 65535")
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<u16, E> {
            match u16::try_from(number) {
                Ok(port) if port > 0 => Ok(port),
                _ => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
            }
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u16, E> {
            match text.trim().parse() {
                Ok(port) if port > 0 => Ok(port),
                _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
            }
        }
    }

    deserializer.deserialize_any(Port)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidelake_model::CredentialInfo;

    use super::*;

    fn parse(mut info: serde_json::Value) -> Result<MysqlConfig> {
        for (key, text) in [("username", "u"), ("server", "db.example")] {
            info.as_object_mut().unwrap().entry(key).or_insert_with(|| text.into());
        }
        CredentialInfo::new(info).parse()
    }

    #[test]
    fn a_port_may_be_a_number_or_a_text() {
        assert_eq!(parse(json!({})).unwrap().port, 3306);
        assert_eq!(parse(json!({"port": "3307"})).unwrap().port, 3307);
        for bad in [json!(0), json!(70_000), json!("x"), json!(-1), json!(true)] {
            let error = parse(json!({ "port": bad })).err().unwrap();
            assert!(error.to_string().contains("a port number"), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_and_no_value_is_shown() {
        let error = parse(json!({"pasword": "hunter2"})).err().unwrap();
        assert!(error.to_string().contains("pasword") && !error.to_string().contains("hunter2"));
        let error = parse(json!({"password": ["hunter2"]})).err().unwrap();
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn modes_that_contradict_each_other_are_refused() {
        let mode = |info| parse(info).unwrap().tls_mode();
        assert_eq!(mode(json!({})).unwrap(), TlsMode::Prefer);
        assert_eq!(mode(json!({"trust_server_certificate": true})).unwrap(), TlsMode::Require);
        assert_eq!(mode(json!({"sslmode": "verify-full"})).unwrap(), TlsMode::VerifyFull);
        assert!(mode(json!({"sslmode": "verify-ca", "trust_server_certificate": true})).is_err());
    }
}
