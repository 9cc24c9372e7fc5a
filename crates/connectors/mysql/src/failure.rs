//! What an error of the server or the driver means for the caller.

use std::io;

use tidelake_model::{Error, ErrorKind};

/// The error that the caller gets for one of the driver; `doing` says what did
/// not work, such as "the catalogue cannot be read".
pub(crate) fn failure(error: mysql_async::Error, doing: &str) -> Error {
    Error::new(ErrorKind::Internal, doing).with_source(error)
}

/// The error for a connection that broke.
pub(crate) fn broken(error: io::Error, doing: &str) -> Error {
    Error::new(ErrorKind::Unavailable, doing).with_source(error)
}
