//! Reading from SQLite databases.
//!
//! One file is one source; its only schema is `main`. The file is opened
//! read-only, and what is read is one state of it: read transactions that began
//! together when the read was split and are kept until its hold is dropped.
//!
//! SQLite has no type for times: a column is read by the name it was declared
//! with, and each cell by the form it is stored in. `README.md` has the table.

#![deny(missing_docs)]

mod batches;
mod catalogue;
mod cells;
mod config;
mod connection;
mod cuts;
pub mod demo;
mod diagnose;
mod dialect;
mod find;
mod forms;
#[doc(hidden)]
pub mod fuzzing;
mod highest;
mod misfit;
mod numbers;
mod reader;
mod rows;
mod snapshot;
mod source;
mod statement;
mod texts;
mod times;
mod types;

use std::sync::Arc;

use async_trait::async_trait;
use tidelake_connector::{Connector, Publisher, Source};
use tidelake_model::{CredentialInfo, Error, ErrorKind, Result};

pub use config::SqliteConfig;

use source::SqliteSource;

/// The connector for SQLite files.
#[derive(Debug, Clone, Copy, Default)]
pub struct SqliteConnector;

#[async_trait]
impl Connector for SqliteConnector {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn config_schema(&self) -> serde_json::Value {
        schemars::schema_for!(SqliteConfig).to_value()
    }

    async fn source(&self, info: &CredentialInfo) -> Result<Arc<dyn Source>> {
        let config: SqliteConfig = info.parse()?;
        let path = config.filepath;
        blocking(move || {
            connection::open(&path)?;
            Ok(Arc::new(SqliteSource::new(path)) as Arc<dyn Source>)
        })
        .await
    }

    async fn publisher(&self, _info: &CredentialInfo) -> Result<Option<Arc<dyn Publisher>>> {
        Ok(None)
    }
}

/// Runs work that waits for files where it keeps nothing else waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::new(ErrorKind::Internal, "a thread that read the database ended early")
            .with_source(error)
    })?
}
