//! The connection on which rows are read.

mod parameter;

use std::sync::Arc;

use tidelake_connector::BatchStream;
use tidelake_model::Result;

use crate::config::MysqlConfig;
use crate::decode::DecodePlan;
use crate::internal;

pub(crate) use parameter::Parameter;

/// Takes a connection back after its rows were read to the end without an error.
pub(crate) type GiveBack = Box<dyn FnOnce(RowConnection) + Send>;

/// A connection that is logged in and has everything pinned that could change what
/// values mean.
pub(crate) struct RowConnection {
    config: Arc<MysqlConfig>,
    id: u32,
}

impl RowConnection {
    /// Connects, logs in and pins the settings.
    pub(crate) async fn connect(_config: &Arc<MysqlConfig>) -> Result<Self> {
        Err(internal("not built"))
    }

    /// The server's number for this connection, for KILL and the fence.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The server's version as it says it, such as `10.11.19-MariaDB-0+deb12u1`.
    pub(crate) fn version(&self) -> &str {
        ""
    }

    /// Whether the server is of the MariaDB family.
    pub(crate) fn is_mariadb(&self) -> bool {
        false
    }

    /// Runs a statement without a result.
    pub(crate) async fn run(&mut self, _statement: &str) -> Result<()> {
        Err(internal("not built"))
    }

    /// Runs a statement and takes its whole, small result as text; NULL is `None`.
    pub(crate) async fn ask(&mut self, _statement: &str) -> Result<Vec<Vec<Option<String>>>> {
        Err(internal("not built"))
    }

    /// Prepares and executes a statement and streams its rows. At their end the
    /// connection is given back; a stream that is dropped earlier stops the
    /// statement at the server and closes the connection.
    pub(crate) async fn read(
        self,
        _statement: &str,
        _parameters: &[Parameter],
        _plan: DecodePlan,
        _give_back: GiveBack,
    ) -> Result<BatchStream> {
        drop(self.config);
        Err(internal("not built"))
    }
}
