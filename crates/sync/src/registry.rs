//! The systems that can be reached: a value, built where everything meets.

use std::sync::Arc;

use tidelake_connector::Connector;
use tidelake_model::{Error, ErrorKind, Result};

/// The connectors of this program.
#[derive(Clone, Default)]
pub struct Registry {
    connectors: Vec<Arc<dyn Connector>>,
    planned: Vec<&'static str>,
}

impl Registry {
    /// A registry of these connectors; `planned` are names of systems that are
    /// known but not built.
    pub fn new(connectors: Vec<Arc<dyn Connector>>, planned: Vec<&'static str>) -> Self {
        Self { connectors, planned }
    }

    /// The connector of that name.
    pub fn connector(&self, name: &str) -> Result<&Arc<dyn Connector>> {
        if let Some(found) = self.connectors.iter().find(|connector| connector.name() == name) {
            return Ok(found);
        }
        let names = self.names().join(", ");
        if self.planned.contains(&name) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("the connector {name:?} is not available yet"),
            )
            .with_hint(format!("this build can reach: {names}")));
        }
        Err(Error::new(ErrorKind::Configuration, format!("there is no connector {name:?}"))
            .with_hint(format!("this build can reach: {names}")))
    }

    /// Names of the connectors.
    pub fn names(&self) -> Vec<&'static str> {
        self.connectors.iter().map(|connector| connector.name()).collect()
    }

    /// Names of systems that are known but not built.
    pub fn planned(&self) -> &[&'static str] {
        &self.planned
    }
}
