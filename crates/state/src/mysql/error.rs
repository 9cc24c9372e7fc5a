//! What the server's errors mean to a caller.

use mysql_async::{DriverError, Error as DriverFailure};
use tidelake_model::{Error, ErrorKind};

/// What a failure means for the transaction in which it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server could not keep it apart from another; it may be run again.
    Apart,
    /// A lock was not given in time; it may be run again, a few times.
    Waited,
    /// The connection is gone.
    Cut,
    /// Anything else.
    Other,
}

pub(super) fn failure(error: &DriverFailure) -> Failure {
    match error {
        DriverFailure::Server(server) => match server.code {
            // A deadlock, a row that changed meanwhile, a group that disagreed.
            1213 | 1020 | 3101 => Failure::Apart,
            1205 => Failure::Waited,
            // Shutting down, killed, or silent for too long.
            1053 | 1077 | 1079 | 1080 | 1927 | 3169 | 4031 => Failure::Cut,
            _ => Failure::Other,
        },
        DriverFailure::Io(_) => Failure::Cut,
        DriverFailure::Driver(
            DriverError::ConnectionClosed
            | DriverError::PacketOutOfOrder
            | DriverError::UnexpectedPacket { .. },
        ) => Failure::Cut,
        _ => Failure::Other,
    }
}

/// Whether the database that was named does not exist.
pub(super) fn is_no_database(error: &DriverFailure) -> bool {
    matches!(error, DriverFailure::Server(server) if server.code == 1049)
}

/// The same error in the words of this program. The server's own messages name
/// tables and columns of the store, never a password.
pub(super) fn understood(error: DriverFailure, location: &str) -> Error {
    let (kind, message, hint) = match &error {
        DriverFailure::Server(server) => of_server(server.code),
        DriverFailure::Driver(DriverError::NoClientSslFlagFromServer) => (
            ErrorKind::Configuration,
            "the server does not offer encryption",
            "turn it on in the server, or set sslmode to prefer",
        ),
        DriverFailure::Driver(
            DriverError::UnknownAuthPlugin { .. }
            | DriverError::MysqlOldPasswordDisabled
            | DriverError::CleartextPluginDisabled,
        ) => (
            ErrorKind::Denied,
            "the server wants a kind of login that is not supported",
            "give the user caching_sha2_password or mysql_native_password",
        ),
        _ if failure(&error) == Failure::Cut => CUT,
        _ => (
            ErrorKind::Unavailable,
            "the server could not be talked to",
            "check server, port and sslmode",
        ),
    };
    let message = format!("the state store {location}: {message}");
    Error::new(kind, message).with_hint(hint).with_source(error)
}

type Understood = (ErrorKind, &'static str, &'static str);

const CUT: Understood = (
    ErrorKind::Unavailable,
    "the connection could not be made or was cut",
    "check that the server is up and that server and port are right",
);

fn of_server(code: u16) -> Understood {
    match code {
        1045 | 1698 | 1251 | 1820 | 1862 => (
            ErrorKind::Denied,
            "the server refused user or password",
            "check the password, or set it with $env{NAME}",
        ),
        1044 | 1142 | 1143 | 1227 | 1370 => (
            ErrorKind::Denied,
            "a right is missing",
            "grant the user all rights on the store's database: it reads, writes, makes and drops tables there",
        ),
        1049 => (
            ErrorKind::Configuration,
            "the database does not exist",
            "make it with: tidelake lxdb init",
        ),
        1146 => (
            ErrorKind::Configuration,
            "a table of it is missing",
            "drop what is left of it, and make it anew with: tidelake lxdb init",
        ),
        1205 => (
            ErrorKind::Unavailable,
            "another process kept rows locked for too long",
            "try again, and look for a process that hangs",
        ),
        1290 | 1792 | 1836 => (
            ErrorKind::Configuration,
            "the server is read-only",
            "name the primary server, not a replica",
        ),
        1040 | 1203 | 1226 => (
            ErrorKind::Unavailable,
            "the server has too many connections",
            "try again later, or raise its max_connections",
        ),
        1047 => (
            ErrorKind::Unavailable,
            "the server is not ready",
            "try again when its cluster is whole",
        ),
        1273 | 1115 => (
            ErrorKind::Configuration,
            "the server is too old",
            "use MySQL 8.0.17 or MariaDB 10.3 at least",
        ),
        1406 | 1366 | 1292 => (
            ErrorKind::Data,
            "a text cannot be stored",
            "a schema may have 128 characters there, a table 255, the key of a source 192",
        ),
        1153 => (
            ErrorKind::Data,
            "a record is larger than the server takes",
            "raise its max_allowed_packet",
        ),
        1665 => (
            ErrorKind::Configuration,
            "the server's log of statements does not allow what keeps transactions apart",
            "set its binlog_format to ROW or MIXED",
        ),
        1213 | 1020 | 3101 => (
            ErrorKind::Unavailable,
            "other processes stood in the way again and again",
            "try again",
        ),
        1053 | 1077 | 1079 | 1080 | 1927 | 3169 | 4031 => CUT,
        _ => (ErrorKind::Internal, "a statement failed", "report it with the cause"),
    }
}
