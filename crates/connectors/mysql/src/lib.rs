//! MySQL and MariaDB as a source.
//!
//! Rows are read over the binary protocol, on a connection of our own, and decoded
//! from the socket's buffer straight into Arrow columns; see the folder's README for
//! types, privileges and the fence.

mod activity;
mod catalogue;
mod clock;
mod config;
mod cut;
mod decode;
mod diagnose;
mod dialect;
mod failure;
mod fence;
mod find;
#[doc(hidden)]
pub mod fuzzing;
mod highest;
mod pool;
mod replica;
mod snapshot;
mod source;
mod split;
mod tls;
mod types;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use tidelake_connector::{Connector, Publisher, Source};
use tidelake_model::{CredentialInfo, Error, ErrorKind, Result};

pub use config::{MysqlConfig, TlsMode};

use pool::Pool;
use source::MysqlSource;

/// The connector; `ds_type` is `mysql` or `mariadb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mysql {
    /// A server of the MySQL family proper.
    MySql,
    /// A MariaDB server.
    MariaDb,
}

impl Mysql {
    /// What credentials call it.
    fn ds_type(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::MariaDb => "mariadb",
        }
    }

    /// What people call it.
    fn title(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
        }
    }
}

#[async_trait]
impl Connector for Mysql {
    fn name(&self) -> &'static str {
        self.ds_type()
    }

    fn config_schema(&self) -> serde_json::Value {
        schemars::schema_for!(MysqlConfig).to_value()
    }

    async fn source(&self, info: &CredentialInfo) -> Result<Arc<dyn Source>> {
        let config: MysqlConfig = info.parse()?;
        let pool = Arc::new(Pool::new(config, *self)?);
        // A wrong password is told now.
        let session = pool.get().await?;
        pool.put(session);
        Ok(Arc::new(MysqlSource::new(pool)))
    }

    async fn publisher(&self, _: &CredentialInfo) -> Result<Option<Arc<dyn Publisher>>> {
        Ok(None)
    }
}

fn internal(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Internal, message)
}
