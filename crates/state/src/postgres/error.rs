//! What the server's errors mean to a caller.

use tidelake_model::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

/// What a failure means for the transaction in which it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server could not keep it apart from another; it may be run again.
    Apart,
    /// The connection is gone.
    Cut,
    /// Anything else.
    Other,
}

pub(super) fn failure(error: &tokio_postgres::Error) -> Failure {
    let Some(state) = error.code() else {
        // Only what came over the wire has a code; a value that could not be
        // converted has none either, but leaves the connection as it was.
        return if error.is_closed() || is_io(error) { Failure::Cut } else { Failure::Other };
    };
    match *state {
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => Failure::Apart,
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Failure::Cut,
        _ => Failure::Other,
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
}

/// The same error in the words of this program. The server's own messages name
/// tables and columns of the store, never a password.
pub(super) fn understood(error: tokio_postgres::Error, location: &str) -> Error {
    let cut = (
        ErrorKind::Unavailable,
        "the connection could not be made or was cut",
        "check that the server is up and that server and port are right",
    );
    let (kind, message, hint) = match error.code() {
        None if failure(&error) == Failure::Cut => cut,
        None => (
            ErrorKind::Unavailable,
            "the server could not be talked to",
            "check server, port and sslmode",
        ),
        Some(state) => match *state {
            SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => (
                ErrorKind::Denied,
                "the server refused user or password",
                "check the password, or set it with $env{NAME}",
            ),
            SqlState::INSUFFICIENT_PRIVILEGE => (
                ErrorKind::Denied,
                "a right is missing",
                "grant the user CREATE on the database, or make the schema and let the user own it",
            ),
            SqlState::INVALID_CATALOG_NAME => (
                ErrorKind::Configuration,
                "the database does not exist",
                "make it, or name another",
            ),
            SqlState::UNDEFINED_TABLE => {
                (ErrorKind::Configuration, "it has no tables", "make them with: tidelake lxdb init")
            }
            SqlState::LOCK_NOT_AVAILABLE => (
                ErrorKind::Unavailable,
                "another process kept rows locked for too long",
                "try again, and look for a process that hangs",
            ),
            SqlState::READ_ONLY_SQL_TRANSACTION => (
                ErrorKind::Configuration,
                "the server is read-only",
                "name the primary server, not a standby",
            ),
            SqlState::TOO_MANY_CONNECTIONS => (
                ErrorKind::Unavailable,
                "the server has too many connections",
                "try again later, or raise its max_connections",
            ),
            SqlState::CHARACTER_NOT_IN_REPERTOIRE | SqlState::UNTRANSLATABLE_CHARACTER => (
                ErrorKind::Data,
                "a text cannot be stored",
                "use a database whose encoding is UTF8; a zero character is never possible",
            ),
            _ if failure(&error) != Failure::Other => cut,
            _ => (ErrorKind::Internal, "a statement failed", "report it with the cause"),
        },
    };
    let message = format!("the state store {location}: {message}");
    Error::new(kind, message).with_hint(hint).with_source(error)
}
