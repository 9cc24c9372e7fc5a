//! What an error of the server means for the caller.

use std::fmt;
use std::io;

use tidelake_model::{Again, Error, ErrorKind};

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) code: u16,
    /// `SQLSTATE`; empty where the server gives none.
    pub(crate) state: String,
    pub(crate) message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the server says: {} ({})", self.message, self.code)
    }
}

impl std::error::Error for ServerError {}

impl ServerError {
    /// Reads the body of an ERR packet.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let rest = body.split_first().map_or(body, |(_, rest)| rest);
        let (code, rest) = rest.split_first_chunk().unwrap_or((&[0, 0], &[]));
        let (state, message) = match rest.split_first_chunk::<6>() {
            Some(([b'#', state @ ..], message)) => (&state[..], message),
            // Before a login has begun there is no state.
            _ => (&[][..], rest),
        };
        Self {
            code: u16::from_le_bytes(*code),
            state: String::from_utf8_lossy(state).into_owned(),
            message: String::from_utf8_lossy(message).into_owned(),
        }
    }

    fn kind(&self) -> ErrorKind {
        match self.code {
            // Logins, accounts that are locked or expired, and privileges.
            1044 | 1045 | 1129 | 1130 | 1142 | 1143 | 1227 | 1370 | 1698 | 1820 | 1862 | 3118
            | 4151 => ErrorKind::Denied,
            1049 | 1051 | 1109 | 1146 => ErrorKind::NotFound,
            // Too many connections, a server that ends or is read only for now, a
            // statement or a connection that was killed.
            1040
            | 1053
            | 1077..=1079
            | 1152
            | 1158..=1161
            | 1184
            | 1203
            | 1226
            | 1317
            | 1615
            | 1836
            | 1927
            | 1969
            | 2006
            | 2013
            | 3024
            | 3168
            | 3169 => ErrorKind::Unavailable,
            // Locks, and tables that were changed inside a snapshot.
            1099 | 1205 | 1213 | 1412 | 1614 => ErrorKind::Unavailable,
            // Disks, files and memory.
            3 | 5 | 23 | 28 | 126 | 127 | 1021 | 1024 | 1026 | 1030 | 1034 | 1037 | 1038 | 1041
            | 1114 | 1135 | 1194 | 1195 => ErrorKind::Unavailable,
            // Unknown columns, values that fit no type, text that cannot be converted.
            1054 | 1153 | 1260 | 1264 | 1292 | 1300 | 1301 | 1365 | 1366 | 1690 | 1977 | 3854 => {
                ErrorKind::Data
            }
            1235 | 1251 | 1289 | 1295 | 1524 | 2059 => ErrorKind::Unsupported,
            _ => self.kind_by_state(),
        }
    }

    fn kind_by_state(&self) -> ErrorKind {
        match self.state.get(..2).unwrap_or("") {
            "08" | "40" | "70" => ErrorKind::Unavailable,
            "22" | "23" => ErrorKind::Data,
            "28" => ErrorKind::Denied,
            "0A" => ErrorKind::Unsupported,
            _ => ErrorKind::Internal,
        }
    }

    /// What may be tried again, where the kind does not say it.
    fn again(&self) -> Option<Again> {
        match self.code {
            // The transaction was rolled back, or sees another table than the one
            // that is there now.
            1213 | 1412 | 1614 => Some(Again::Afresh),
            // A limit or a person ended it, a lock was waited for long enough, or
            // the server's disk is full or broken: all as before at the next try.
            1205 | 1226 | 1317 | 1836 | 1969 | 3024 => Some(Again::Never),
            3 | 5 | 23 | 28 | 126 | 127 | 1021 | 1024 | 1026 | 1030 | 1034 | 1037 | 1038 | 1041
            | 1114 | 1194 | 1195 => Some(Again::Never),
            _ => None,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        Some(match self.code {
            1045 | 1698 => "check username and password, or set them with $env{NAME}",
            1044 | 1142 | 1143 | 1227 | 1370 => {
                "grant the user the privilege, SELECT on a table that is read for example"
            }
            1129 => "somebody failed to log in from here too often; run FLUSH HOSTS on the server",
            1130 => "the server does not let this machine in; create the user for it",
            1820 | 1862 => "the user's password has expired; set a new one",
            3118 | 4151 => "the account is locked; unlock it on the server",
            1049 => "check the database's name",
            1040 => "raise max_connections, or lower --n-jobs and --parallel",
            1203 | 1226 => {
                "raise the user's limit of connections, or lower --n-jobs and --parallel"
            }
            1205 => "another session holds a lock on the table; try again when it has ended",
            1317 => "somebody ended the statement on the server; ask who, and run it again",
            1969 | 3024 => {
                "raise statement_timeout in the credential, or leave it out: without it nothing \
                 is cut off"
            }
            1153 | 1301 => "raise max_allowed_packet on the server above the largest cell",
            1300 | 1977 | 3854 => "read the column as binary, or mend the value",
            1251 | 1524 | 2059 => {
                "create the user with caching_sha2_password, mysql_native_password or ed25519"
            }
            3 | 5 | 23 | 28 | 126 | 127 | 1021 | 1024 | 1026 | 1030 | 1034 | 1037 | 1038 | 1041
            | 1114 | 1194 | 1195 => "look at the server's disks and its log",
            _ => return None,
        })
    }

    /// The error that the caller gets; `doing` says what did not work, such as "the
    /// rows cannot be read".
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_say_what_the_caller_can_do() {
        use Again::{Afresh, Never, Same};
        for (code, state, kind, again) in [
            (1045, "28000", ErrorKind::Denied, Never),
            (1142, "42000", ErrorKind::Denied, Never),
            (1049, "42000", ErrorKind::NotFound, Never),
            (1146, "42S02", ErrorKind::NotFound, Never),
            (1040, "08004", ErrorKind::Unavailable, Same),
            (1053, "08S01", ErrorKind::Unavailable, Same),
            (1927, "70100", ErrorKind::Unavailable, Same),
            (1317, "70100", ErrorKind::Unavailable, Never),
            (1205, "HY000", ErrorKind::Unavailable, Never),
            (1213, "40001", ErrorKind::Unavailable, Afresh),
            (1412, "HY000", ErrorKind::Unavailable, Afresh),
            (1969, "70100", ErrorKind::Unavailable, Never),
            (3024, "HY000", ErrorKind::Unavailable, Never),
            (1114, "HY000", ErrorKind::Unavailable, Never),
            (1054, "42S22", ErrorKind::Data, Never),
            (1153, "08S01", ErrorKind::Data, Never),
            (1690, "22003", ErrorKind::Data, Never),
            (1064, "42000", ErrorKind::Internal, Never),
            (9999, "22012", ErrorKind::Data, Never),
            (9999, "28000", ErrorKind::Denied, Never),
            (9999, "", ErrorKind::Internal, Never),
        ] {
            let error = ServerError { code, state: state.into(), message: String::new() };
            let error = error.into_error("x");
            assert_eq!((error.kind(), error.again()), (kind, again), "{code}");
        }
    }

    #[test]
    fn an_error_packet_is_read() {
        let error = ServerError::parse(b"\xff\x15\x04#28000Access denied");
        let wanted = (1045, "28000", "Access denied");
        assert_eq!((error.code, error.state.as_str(), error.message.as_str()), wanted);
        let error = ServerError::parse(b"\xff\x10\x04Too many connections");
        let wanted = (1040, "", "Too many connections");
        assert_eq!((error.code, error.state.as_str(), error.message.as_str()), wanted);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(body in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = ServerError::parse(&body).into_error("x");
        }
    }
}
