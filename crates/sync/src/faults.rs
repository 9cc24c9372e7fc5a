//! Stopping a run on purpose.

use async_trait::async_trait;
use tidelake_model::{Result, Step, TableName};

/// Called after each step of a run. A test double may fail here, never return
/// (a crash), or wait (a holder that sleeps while its lease goes to another).
#[async_trait]
pub trait Faults: Send + Sync {
    /// `step` was just done, for a table or for the whole run.
    async fn after(&self, step: Step, table: Option<&TableName>) -> Result<()>;
}

/// No faults: what every real run uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

#[async_trait]
impl Faults for NoFaults {
    async fn after(&self, _: Step, _: Option<&TableName>) -> Result<()> {
        Ok(())
    }
}
