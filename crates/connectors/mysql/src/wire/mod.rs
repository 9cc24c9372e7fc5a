//! The connection on which rows are read.

mod answer;
mod line;
mod login;
mod named;
mod packets;
mod pins;
mod rows;
mod rsa;
mod stall;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use mysql_common::constants::CapabilityFlags;
use tidelake_connector::BatchStream;
use tidelake_model::{Error, ErrorKind, Result};

use crate::config::MysqlConfig;
use crate::decode::DecodePlan;
use crate::failure::ServerError;
use crate::internal;
use answer::{FAILED, OK};
use line::Line;
use login::{LoggedIn, capabilities, log_in};
use stall::still_works;

pub(crate) use answer::{End, Greeting, Prepared, Switch, column, text_row};
pub(crate) use named::NamedRow;
pub(crate) use packets::PacketBuffer;

const QUERY: u8 = 0x03;
/// A server that wants to read one of our files.
const GIVE_FILE: u8 = 0xFB;
const DOING: &str = "the statement failed";

/// Takes a connection back after its rows were read to the end without an error.
pub(crate) type GiveBack = Box<dyn FnOnce(RowConnection) + Send>;

/// A connection that is logged in and has everything pinned that could change what
/// values mean.
pub(crate) struct RowConnection {
    config: Arc<MysqlConfig>,
    line: Line,
    greeting: Greeting,
    ends_with_ok: bool,
    /// Whether silence is looked into; not before the connection is ready.
    is_watched: bool,
}

impl RowConnection {
    /// Connects, logs in and pins the settings.
    pub(crate) async fn connect(config: &Arc<MysqlConfig>) -> Result<Self> {
        Self::connect_with(config, capabilities()).await
    }

    async fn connect_with(config: &Arc<MysqlConfig>, wanted: CapabilityFlags) -> Result<Self> {
        let limit = config.connect_limit();
        let opened = tokio::time::timeout(limit, Self::open(config, wanted)).await;
        opened.map_err(|_| {
            let message = format!("{} did not answer within {} s", config.place(), limit.as_secs());
            Error::new(ErrorKind::Unavailable, message)
                .with_hint("check server and port, and that the server runs and can be reached")
        })?
    }

    async fn open(config: &Arc<MysqlConfig>, wanted: CapabilityFlags) -> Result<Self> {
        let LoggedIn { line, greeting, ends_with_ok } = log_in(config, wanted).await?;
        let config = Arc::clone(config);
        let mut connection = Self { config, line, greeting, ends_with_ok, is_watched: false };
        for statement in pins::statements(&connection.config, connection.is_mariadb()) {
            connection.run(&statement).await?;
        }
        let rows = connection.ask("SELECT CONNECTION_ID()").await?;
        let seen = rows.first().and_then(|row| row.first()).cloned().flatten();
        let seen = seen.and_then(|id| id.parse::<u64>().ok());
        if seen.map(|id| id & 0xFFFF_FFFF) != Some(connection.id().into()) {
            return Err(proxied());
        }
        connection.is_watched = true;
        Ok(connection)
    }

    /// The server's number for this connection, for KILL and the fence.
    pub(crate) fn id(&self) -> u32 {
        self.greeting.id
    }

    /// The server's version as it says it, such as `10.11.19-MariaDB-0+deb12u1`.
    pub(crate) fn version(&self) -> &str {
        &self.greeting.version
    }

    /// Whether the server is of the MariaDB family.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.greeting.version.to_ascii_lowercase().contains("mariadb")
    }

    /// Whether the server ended the connection while nothing was asked.
    pub(crate) fn is_closed(&mut self) -> bool {
        !self.line.packets.is_empty() || self.line.is_closed()
    }

    /// Runs a statement without a result.
    pub(crate) async fn run(&mut self, statement: &str) -> Result<()> {
        let rows = self.ask(statement).await?;
        if rows.is_empty() { Ok(()) } else { Err(internal("a statement has a result")) }
    }

    /// Runs a statement and takes its whole, small result as text; NULL is `None`.
    pub(crate) async fn ask(&mut self, statement: &str) -> Result<Vec<Vec<Option<String>>>> {
        let mut command = vec![QUERY];
        command.extend(statement.as_bytes());
        self.line.command(&command, DOING).await?;
        let columns = match self.answer(DOING).await?.as_slice() {
            [OK, ..] => return Ok(vec![]),
            [GIVE_FILE, ..] => return Err(internal("the server asks for a file")),
            body => crate::decode::length(body).map_or(0, |(count, _)| count),
        };
        self.skip_columns(columns, DOING).await?;
        let mut rows = vec![];
        loop {
            let body = self.answer(DOING).await?;
            if End::is_one(&body, self.ends_with_ok) {
                return Ok(rows);
            }
            rows.push(text_row(&body).ok_or_else(not_understood)?);
        }
    }

    /// The next packet's body; what the server refuses is an error.
    async fn answer(&mut self, doing: &str) -> Result<Vec<u8>> {
        let packet = loop {
            match self.line.packets.next()? {
                Some(packet) => break packet,
                None => self.fill(doing).await?,
            }
        };
        let body = self.line.body(packet);
        if body.first() == Some(&FAILED) {
            return Err(ServerError::parse(body).into_error(doing));
        }
        Ok(body.to_vec())
    }

    /// Reads more bytes, for as long as the server works on the statement.
    async fn fill(&mut self, doing: &str) -> Result<()> {
        let Some(limit) = self.config.stall_limit().filter(|_| self.is_watched) else {
            return self.line.fill(doing).await;
        };
        loop {
            match tokio::time::timeout(limit, self.line.fill(doing)).await {
                Ok(filled) => return filled,
                Err(_) => Box::pin(still_works(&self.config, self.id())).await?,
            }
        }
    }

    /// Passes over descriptions of columns or parameters, and the packet that ends
    /// them.
    async fn skip_columns(&mut self, count: usize, doing: &str) -> Result<()> {
        let ends = usize::from(count > 0 && !self.ends_with_ok);
        for _ in 0..count + ends {
            self.answer(doing).await?;
        }
        Ok(())
    }

    /// Prepares and executes a statement and streams its rows. At their end the
    /// connection is given back; a stream that is dropped earlier stops the
    /// statement at the server and closes the connection.
    pub(crate) async fn read(
        self,
        statement: &str,
        plan: DecodePlan,
        give_back: GiveBack,
    ) -> Result<BatchStream> {
        let reader = rows::RowReader::start(self, statement, &plan, give_back).await?;
        Ok(reader.into_stream())
    }
}

/// Stops what a connection does; the answer does not matter.
async fn kill(config: &Arc<MysqlConfig>, id: u32) {
    let killed = tokio::time::timeout(Duration::from_secs(5), async {
        let mut connection = RowConnection::connect(config).await?;
        connection.run(&format!("KILL QUERY {id}")).await
    });
    if let Ok(Err(error)) = killed.await {
        tracing::debug!(%error, "a statement could not be stopped");
    }
}

fn not_understood() -> Error {
    Error::new(ErrorKind::Unavailable, DOING)
        .with_source("the server answered in a way that is not understood")
}

/// The server's own number for the connection is not the one of the login.
fn proxied() -> Error {
    let message = "the server is reached through a proxy that lends connections for one statement \
                   or transaction only, so that settings and snapshots get lost";
    Error::new(ErrorKind::Unsupported, message).with_hint("connect to the server itself")
}
