//! MySQL and MariaDB as a source.
//!
//! Rows are read over the binary protocol, on a connection of our own, and decoded
//! from the socket's buffer straight into Arrow columns; small statements go
//! through the driver. See the folder's README for types, privileges and the fence.

mod config;

use tidelake_model::{Error, ErrorKind};

pub use config::{MysqlConfig, TlsMode};

/// The connector; `ds_type` is `mysql` or `mariadb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mysql {
    /// A server of the MySQL family proper.
    MySql,
    /// A MariaDB server.
    MariaDb,
}

#[allow(dead_code, reason = "the rest of the crate uses it")]
fn internal(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Internal, message)
}
