//! What an error of the server or the driver means for the caller.

use std::error::Error as _;
use std::fmt;
use std::io;

use tidelake_model::{Again, Error, ErrorKind};
use tokio_postgres::error::DbError;

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the server says: {} ({})", self.message, self.code)
    }
}

impl std::error::Error for ServerError {}

impl From<&DbError> for ServerError {
    fn from(error: &DbError) -> Self {
        // Detail and context are left out: they may quote rows and statements.
        Self { code: error.code().code().to_owned(), message: error.message().to_owned() }
    }
}

impl ServerError {
    /// Reads the body of an `ErrorResponse`.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut found = Self { code: "XX000".to_owned(), message: "an unknown error".to_owned() };
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'C' => found.code = text,
                b'M' => found.message = text,
                _ => {}
            }
        }
        found
    }

    fn kind(&self) -> ErrorKind {
        let class = self.code.get(..2).unwrap_or("");
        match (class, self.code.as_str()) {
            (_, "28P01" | "28000" | "42501") => ErrorKind::Denied,
            // The last one: the database was dropped under a session.
            (_, "3D000" | "42P01" | "3F000" | "57P04") => ErrorKind::NotFound,
            // A cancelled, conflicting or locked-out statement may succeed later.
            ("08" | "53" | "40" | "57" | "58", _) | (_, "55P03" | "25P03" | "25P04") => {
                ErrorKind::Unavailable
            }
            ("22" | "23", _) | (_, "42703" | "42804") => ErrorKind::Data,
            ("0A", _) => ErrorKind::Unsupported,
            _ => ErrorKind::Internal,
        }
    }

    /// What may be tried again, where the kind does not say it.
    fn again(&self) -> Option<Again> {
        match self.code.as_str() {
            // A standby gave up what stood in the way of its replay: the snapshots
            // of all our sessions, or soon will be.
            "40001" | "40P01" => Some(Again::Afresh),
            // A limit or a person ended it, a lock was waited for long enough, or
            // the server's disk is full or broken: all as before at the next try.
            "57014" | "55P03" | "25P03" | "25P04" | "57P05" => Some(Again::Never),
            "53100" | "53400" | "58030" | "58P01" => Some(Again::Never),
            _ => None,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        Some(match self.code.as_str() {
            "28P01" | "28000" => "check username and password, or set them with $env{NAME}",
            "42501" if self.message.contains("row-level security") => {
                "give the user BYPASSRLS, or read a view that applies the policy"
            }
            "42501" => "grant the user the privilege, SELECT on a table that is read for example",
            "3D000" => "check the database's name",
            "53300" => "raise max_connections, or lower --n-jobs and --parallel",
            "53100" | "53400" | "58030" | "58P01" => "look at the server's disks and its log",
            "55P03" => "another session holds a lock on the table; try again when it has ended",
            "57014" if self.message.contains("statement timeout") => {
                "raise statement_timeout in the credential, or leave it out: without it nothing \
                 is cut off"
            }
            "57014" => "somebody cancelled the statement on the server; ask who, and run it again",
            "25P03" | "25P04" | "57P05" => {
                "a time-out of the server or of a pooler ended the session; connect to the server \
                 itself, whose time-outs are switched off for the session"
            }
            "40001" => "on a standby, raise max_standby_streaming_delay or read from the primary",
            _ => return None,
        })
    }

    /// The error that the caller gets.
    pub(crate) fn into_error(self, doing: &str) -> Error {
        let error = Error::new(self.kind(), doing);
        let error = match self.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
        let error = match self.again() {
            Some(again) => error.with_again(again),
            None => error,
        };
        error.with_source(self)
    }
}

/// The error that the caller gets for one of the driver; `doing` says what did
/// not work, such as "the catalogue cannot be read".
pub(crate) fn failure(error: tokio_postgres::Error, doing: &str) -> Error {
    if let Some(server) = error.as_db_error() {
        return ServerError::from(server).into_error(doing);
    }
    let text = error.to_string();
    let cause = io_cause(&error);
    let is_tls = text.starts_with("error performing TLS");
    // What is wrong with a certificate comes as an error of input as well.
    let unavailable = error.is_closed() || cause.is_some_and(|cause| !is_tls || was_cut(cause));
    if is_tls && !unavailable {
        return Error::new(ErrorKind::Configuration, format!("{doing}: tls failed"))
            .with_hint("check sslmode and sslrootcert, and that the certificate names the server")
            .with_source(error);
    }
    if text.starts_with("authentication") || text.starts_with("invalid configuration") {
        return Error::new(ErrorKind::Denied, doing)
            .with_hint("check username and password, or set them with $env{NAME}")
            .with_source(error);
    }
    let kind = if unavailable { ErrorKind::Unavailable } else { ErrorKind::Internal };
    Error::new(kind, doing).with_source(error)
}

/// The first error of input or output among the causes.
fn io_cause(error: &tokio_postgres::Error) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn was_cut(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::TimedOut
            | io::ErrorKind::UnexpectedEof
    )
}

/// The error for a connection that broke.
pub(crate) fn broken(error: io::Error, doing: &str) -> Error {
    let broken = Error::new(ErrorKind::Unavailable, doing);
    match error.kind() {
        // Encryption calls it a breach of its rules, at length.
        io::ErrorKind::UnexpectedEof => broken.with_source("the server closed the connection"),
        _ => broken.with_source(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_what_the_caller_can_do() {
        use Again::{Afresh, Never, Same};
        for (code, kind, again) in [
            ("28P01", ErrorKind::Denied, Never),
            ("28000", ErrorKind::Denied, Never),
            ("42501", ErrorKind::Denied, Never),
            ("3D000", ErrorKind::NotFound, Never),
            ("57P04", ErrorKind::NotFound, Never),
            ("08006", ErrorKind::Unavailable, Same),
            ("08P01", ErrorKind::Unavailable, Same),
            ("57P01", ErrorKind::Unavailable, Same),
            ("57P02", ErrorKind::Unavailable, Same),
            ("57P03", ErrorKind::Unavailable, Same),
            ("53300", ErrorKind::Unavailable, Same),
            ("53100", ErrorKind::Unavailable, Never),
            ("40001", ErrorKind::Unavailable, Afresh),
            ("40P01", ErrorKind::Unavailable, Afresh),
            ("57014", ErrorKind::Unavailable, Never),
            ("55P03", ErrorKind::Unavailable, Never),
            ("22003", ErrorKind::Data, Never),
            ("42703", ErrorKind::Data, Never),
            ("42601", ErrorKind::Internal, Never),
            ("", ErrorKind::Internal, Never),
        ] {
            let error = ServerError { code: code.into(), message: String::new() };
            let error = error.into_error("x");
            assert_eq!((error.kind(), error.again()), (kind, again), "{code}");
        }
    }

    #[test]
    fn an_error_response_is_read_and_garbage_is_survived() {
        let error = ServerError::parse(b"SERROR\0C42501\0Mpermission denied for table t\0\0");
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("42501", "permission denied for table t")
        );
        assert_eq!(ServerError::parse(b"\xff\0\0\0").code, "XX000");
    }
}
