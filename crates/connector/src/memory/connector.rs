//! The memory system as a connector.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tidelake_model::{CredentialInfo, Result};

use super::{MemoryDatabase, MemoryPublisher, MemorySource};
use crate::publish::Publisher;
use crate::source::{Connector, Source};

/// Connects to one database and one publish target.
#[derive(Clone, Default)]
pub struct MemoryConnector {
    /// What is read from.
    pub database: MemoryDatabase,
    /// What is published to.
    pub publisher: MemoryPublisher,
}

/// A memory database has nothing to say about a connection.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {}

#[async_trait]
impl Connector for MemoryConnector {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn config_schema(&self) -> serde_json::Value {
        serde_json::json!({ "type": "object", "properties": {}, "additionalProperties": false })
    }

    async fn source(&self, info: &CredentialInfo) -> Result<Arc<dyn Source>> {
        info.parse::<Config>()?;
        Ok(Arc::new(MemorySource::new(self.database.clone())))
    }

    async fn publisher(&self, info: &CredentialInfo) -> Result<Option<Arc<dyn Publisher>>> {
        info.parse::<Config>()?;
        Ok(Some(Arc::new(self.publisher.clone())))
    }
}
