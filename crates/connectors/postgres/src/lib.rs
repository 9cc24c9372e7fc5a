//! PostgreSQL as a source and as a publish target.
//!
//! Rows are read with `COPY (SELECT …) TO STDOUT (FORMAT binary)` inside one
//! exported snapshot and decoded from the socket's buffer straight into Arrow
//! columns; see the folder's README for types, privileges and the fence.

mod catalogue;
mod clock;
mod column;
mod config;
mod copy;
mod ddl;
mod diagnose;
mod encode;
mod failure;
mod fence;
mod find;
#[doc(hidden)]
pub mod fuzzing;
mod highest;
mod literal;
mod numeric;
mod pool;
mod pooler;
mod publish;
mod reader;
mod round_trips;
mod rows;
mod session;
mod source;
mod split;
mod stall;
mod standby;
mod tap;
mod tls;
mod types;

use std::sync::Arc;

use async_trait::async_trait;
use tidelake_connector::{Connector, Publisher, Source};
use tidelake_model::{CredentialInfo, Error, ErrorKind, Result};

pub use config::{PostgresConfig, TlsMode};
pub use copy::CopyDecoder;
pub use types::Wire;

use pool::Pool;
use publish::PostgresPublisher;
use session::Role;
use source::PostgresSource;

/// The connector; `ds_type` is `postgres`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Postgres;

#[async_trait]
impl Connector for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn config_schema(&self) -> serde_json::Value {
        schemars::schema_for!(PostgresConfig).to_value()
    }

    async fn source(&self, info: &CredentialInfo) -> Result<Arc<dyn Source>> {
        let pool = connected(info, Role::Reader).await?;
        Ok(Arc::new(PostgresSource::new(pool)))
    }

    async fn publisher(&self, info: &CredentialInfo) -> Result<Option<Arc<dyn Publisher>>> {
        let pool = connected(info, Role::Publisher).await?;
        Ok(Some(Arc::new(PostgresPublisher::new(pool))))
    }
}

/// A pool that holds one session, so that a wrong password is told now.
async fn connected(info: &CredentialInfo, role: Role) -> Result<Arc<Pool>> {
    let config: PostgresConfig = info.parse()?;
    let pool = Arc::new(Pool::new(config, role)?);
    let session = pool.get().await?;
    pooler::check(&pool, &session).await?;
    pool.put(session);
    Ok(pool)
}

fn internal(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Internal, message)
}
