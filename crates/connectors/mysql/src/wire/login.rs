//! From a socket to a connection that is logged in.

use mysql_common::constants::CapabilityFlags;
use mysql_common::packets::{AuthPlugin, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;
use mysql_common::scramble::{create_response_for_ed25519, scramble_native, scramble_sha256};
use tidelake_model::{Error, ErrorKind, Result};

use super::answer::{END, FAILED, Greeting, MORE, OK, Switch, attributes};
use super::line::Line;
use super::rsa;
use crate::config::{MysqlConfig, TlsMode};
use crate::failure::ServerError;
use crate::tls::client_config;

/// The largest packet that we take.
const LARGEST: u32 = 1 << 30;
const COLLATION: u8 = 45;
/// The server's answers within `caching_sha2_password`.
const KNOWN: u8 = 3;
const PROVE_IN_FULL: u8 = 4;
const GIVE_KEY: u8 = 2;

/// A connection that is logged in.
pub(super) struct LoggedIn {
    pub(super) line: Line,
    pub(super) greeting: Greeting,
    /// Whether rows end with an OK packet.
    pub(super) ends_with_ok: bool,
}

/// How a password is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    Native,
    CachingSha2,
    Ed25519,
    Clear,
}

impl Proof {
    fn named(plugin: &[u8]) -> Option<Self> {
        Some(match plugin {
            b"mysql_native_password" => Self::Native,
            b"caching_sha2_password" => Self::CachingSha2,
            b"client_ed25519" => Self::Ed25519,
            b"mysql_clear_password" => Self::Clear,
            _ => return None,
        })
    }

    fn plugin(self) -> AuthPlugin<'static> {
        match self {
            Self::Native => AuthPlugin::MysqlNativePassword,
            Self::CachingSha2 => AuthPlugin::CachingSha2Password,
            Self::Ed25519 => AuthPlugin::Ed25519,
            Self::Clear => AuthPlugin::MysqlClearPassword,
        }
    }

    /// The proof, or nothing where there is no password to prove.
    fn of(self, password: &str, nonce: &[u8]) -> Vec<u8> {
        // Others may end it with a NUL.
        let short = nonce.get(..20).unwrap_or(nonce);
        let password = password.as_bytes();
        match self {
            _ if password.is_empty() && self != Self::Clear => vec![],
            Self::Native => scramble_native(short, password).map_or(vec![], Vec::from),
            Self::CachingSha2 => scramble_sha256(short, password).map_or(vec![], Vec::from),
            Self::Ed25519 => {
                let nonce = nonce.get(..32).unwrap_or(nonce);
                create_response_for_ed25519(password, nonce).to_vec()
            }
            Self::Clear => with_nul(password),
        }
    }
}

fn with_nul(password: &[u8]) -> Vec<u8> {
    [password, b"\0"].concat()
}

/// Which of the protocol's options are asked for.
pub(super) fn capabilities() -> CapabilityFlags {
    CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_LONG_FLAG
        | CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | CapabilityFlags::CLIENT_CONNECT_ATTRS
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
}

/// Connects and logs in. A server that offers encryption which then fails is asked
/// without it, where the mode allows that.
pub(super) async fn log_in(config: &MysqlConfig, wanted: CapabilityFlags) -> Result<LoggedIn> {
    let mode = config.tls_mode()?;
    match attempt(config, mode, wanted).await {
        Err(Failed::Encryption(_)) if mode == TlsMode::Prefer => {
            attempt(config, TlsMode::Disable, wanted).await.map_err(Failed::into_error)
        }
        other => other.map_err(Failed::into_error),
    }
}

/// Where a login failed.
enum Failed {
    Encryption(Error),
    Otherwise(Error),
}

impl Failed {
    fn into_error(self) -> Error {
        match self {
            Self::Encryption(error) | Self::Otherwise(error) => error,
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Otherwise(error)
    }
}

async fn attempt(
    config: &MysqlConfig,
    mode: TlsMode,
    wanted: CapabilityFlags,
) -> Result<LoggedIn, Failed> {
    let doing = format!("logging in to {} as {:?} failed", config.place(), config.username);
    let mut line = Line::open(config).await?;
    let greeting = greeted(&mut line, config, &doing).await?;
    let offered = CapabilityFlags::from_bits_truncate(greeting.capabilities);
    let needed = CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH;
    if !offered.contains(needed) {
        let message = format!("{} speaks too old a protocol", config.place());
        return Err(Error::new(ErrorKind::Unsupported, message).into());
    }
    let mut capabilities = wanted & offered;
    let tls = if mode == TlsMode::Disable { None } else { client_config(config)? };
    if let Some(tls) = tls {
        if offered.contains(CapabilityFlags::CLIENT_SSL) {
            capabilities |= CapabilityFlags::CLIENT_SSL;
            let mut request = vec![];
            SslRequest::new(capabilities, LARGEST, COLLATION).serialize(&mut request);
            line.send(&request, &doing).await?;
            line = line.encrypt(tls, config).await.map_err(Failed::Encryption)?;
        } else if mode != TlsMode::Prefer {
            let message = format!("{} offers no encryption", config.place());
            return Err(Error::new(ErrorKind::Configuration, message)
                .with_hint("set up tls on the server, or choose another sslmode")
                .into());
        }
    }
    prove(&mut line, config, &greeting, capabilities, &doing).await?;
    let ends_with_ok = capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
    Ok(LoggedIn { line, greeting, ends_with_ok })
}

async fn greeted(line: &mut Line, config: &MysqlConfig, doing: &str) -> Result<Greeting> {
    let packet = line.receive(doing).await?;
    let body = line.body(packet);
    if body.first() == Some(&FAILED) {
        return Err(ServerError::parse(body).into_error(doing));
    }
    let Some(mut greeting) = Greeting::parse(body) else {
        let message = format!("{} does not speak this protocol", config.place());
        return Err(Error::new(ErrorKind::Configuration, message)
            .with_hint("check server and port: something else may listen there"));
    };
    // Put in front for clients that know no version above 9.
    if let Some(version) = greeting.version.strip_prefix("5.5.5-") {
        greeting.version = version.to_owned();
    }
    Ok(greeting)
}

/// Names the user and proves the password, in the way that the server wants.
async fn prove(
    line: &mut Line,
    config: &MysqlConfig,
    greeting: &Greeting,
    capabilities: CapabilityFlags,
    doing: &str,
) -> Result<()> {
    let password = config.password.as_ref().map_or("", |password| password.expose());
    let mut nonce = greeting.nonce.clone();
    // The server tells when it wants another than its first choice.
    let mut proof = match Proof::named(&greeting.plugin) {
        Some(proof @ (Proof::Native | Proof::CachingSha2)) => proof,
        _ => Proof::Native,
    };
    let mut response = vec![];
    HandshakeResponse::new(
        Some(proof.of(password, &nonce)),
        (8, 0, 0),
        Some(config.username.as_bytes()),
        None::<Vec<u8>>,
        Some(proof.plugin()),
        capabilities,
        capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS).then(attributes),
        LARGEST,
    )
    .serialize(&mut response);
    line.send(&response, doing).await?;
    // Servers switch once; none may keep us here for ever.
    for _ in 0..8 {
        let packet = line.receive(doing).await?;
        let body = line.body(packet).to_vec();
        match body.as_slice() {
            [OK, ..] => return Ok(()),
            [FAILED, ..] => return Err(ServerError::parse(&body).into_error(doing)),
            [END, ..] => {
                let switch = Switch::parse(&body);
                let plugin = switch.as_ref().map_or(&b"mysql_old_password"[..], |to| &to.plugin);
                proof = Proof::named(plugin).ok_or_else(|| unknown_proof(plugin, doing))?;
                nonce = switch.map(|to| to.nonce).unwrap_or_default();
                if proof == Proof::Clear && !line.is_private {
                    return Err(in_the_clear(doing));
                }
                line.send(&proof.of(password, &nonce), doing).await?;
            }
            [MORE, KNOWN] => {}
            [MORE, PROVE_IN_FULL] if proof == Proof::CachingSha2 => {
                let whole = whole_password(line, password, &nonce, doing).await?;
                line.send(&whole, doing).await?;
            }
            _ => break,
        }
    }
    Err(Error::new(ErrorKind::Unavailable, doing)
        .with_source("the server answered the login in a way that is not understood"))
}

/// The password for a server that does not have its hash in memory.
async fn whole_password(
    line: &mut Line,
    password: &str,
    nonce: &[u8],
    doing: &str,
) -> Result<Vec<u8>> {
    let mut password = with_nul(password.as_bytes());
    if line.is_private {
        return Ok(password);
    }
    line.send(&[GIVE_KEY], doing).await?;
    let packet = line.receive(doing).await?;
    let body = line.body(packet);
    if body.first() == Some(&FAILED) {
        return Err(ServerError::parse(body).into_error(doing));
    }
    let short = nonce.get(..20).unwrap_or(nonce);
    password.iter_mut().zip(short.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
    let key = body.split_first().map_or(body, |(_, key)| key);
    rsa::encrypt(&password, key).ok_or_else(|| {
        Error::new(ErrorKind::Configuration, doing)
            .with_hint("encrypt the connection: set sslmode to require, or to prefer")
            .with_source("the server gave no key that can encrypt the password")
    })
}

fn unknown_proof(plugin: &[u8], doing: &str) -> Error {
    let plugin = String::from_utf8_lossy(plugin);
    Error::new(ErrorKind::Unsupported, format!("{doing}: it asks for {plugin}"))
        .with_hint("create the user with caching_sha2_password, mysql_native_password or ed25519")
}

fn in_the_clear(doing: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("{doing}: it asks for the password in clear text"))
        .with_hint("encrypt the connection: set sslmode to verify-full")
}
