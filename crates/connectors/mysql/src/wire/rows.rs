//! Reads the rows of a prepared statement.

use std::sync::Arc;

use arrow::array::RecordBatch;
use tidelake_connector::BatchStream;
use tidelake_model::Result;

use super::answer::{END, End, FAILED, OK, Prepared, column};
use super::{GiveBack, RowConnection, kill, not_understood};
use crate::decode::{DecodePlan, RowDecoder, Sent, length};
use crate::failure::ServerError;
use crate::internal;

const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;
const DOING: &str = "the rows cannot be read";

/// Warnings that tell of a value which is not sent as it is stored: text without a
/// counterpart, and cells that are too large for a function.
const LOSSES: [u16; 4] = [1300, 1301, 1977, 3854];

/// Rows under way. Dropping it before their end stops the statement at the server
/// and closes the connection.
pub(super) struct RowReader {
    /// `None` once all rows were read.
    connection: Option<RowConnection>,
    give_back: Option<GiveBack>,
    statement: u32,
    decoder: RowDecoder,
}

impl RowReader {
    /// Prepares and executes the statement, and waits until the server begins to
    /// answer.
    pub(super) async fn start(
        mut connection: RowConnection,
        statement: &str,
        plan: &DecodePlan,
        give_back: GiveBack,
    ) -> Result<Self> {
        let decoder = RowDecoder::new(plan)?;
        let mut command = vec![PREPARE];
        command.extend(statement.as_bytes());
        connection.line.command(&command, DOING).await?;
        let prepared = Prepared::parse(&connection.answer(DOING).await?);
        let prepared = prepared.ok_or_else(not_understood)?;
        if prepared.parameters != 0 {
            return Err(internal("a statement has parameters"));
        }
        connection.skip_columns(prepared.columns.into(), DOING).await?;
        connection.line.command(&execute(prepared.id), DOING).await?;
        let mut reader = Self {
            connection: Some(connection),
            give_back: Some(give_back),
            statement: prepared.id,
            decoder,
        };
        let begun = reader.begin().await;
        if begun.is_err() {
            // Nothing is under way that would have to be stopped.
            reader.connection = None;
        }
        begun.map(|()| reader)
    }

    /// Reads what the server says of the columns.
    async fn begin(&mut self) -> Result<()> {
        let decoder = &self.decoder;
        let connection = self.connection.as_mut().ok_or_else(|| internal(DOING))?;
        let body = connection.answer(DOING).await?;
        let (count, _) = match body.split_first() {
            Some((&OK, _)) | None => return Err(internal("a statement has no result")),
            Some(_) => length(&body).ok_or_else(not_understood)?,
        };
        let mut sent: Vec<Sent> = vec![];
        for _ in 0..count {
            sent.push(column(&connection.answer(DOING).await?).ok_or_else(not_understood)?);
        }
        if !connection.ends_with_ok {
            connection.answer(DOING).await?;
        }
        decoder.check(&sent)
    }

    /// The next batch; `None` after the last one.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(connection) = self.connection.as_mut() else {
                return self.decoder.last_batch();
            };
            while let Some(packet) = connection.line.packets.next()? {
                let body = connection.line.packets.body(packet);
                match body.first() {
                    Some(&OK) => {
                        self.decoder.row(body)?;
                        if let Some(batch) = self.decoder.full_batch()? {
                            return Ok(Some(batch));
                        }
                    }
                    Some(&END) => {
                        let end = End::parse(body, connection.ends_with_ok);
                        // What is found in the rows names its row; a warning does not.
                        let last = self.decoder.last_batch()?;
                        self.end(end.ok_or_else(not_understood)?).await?;
                        return Ok(last);
                    }
                    Some(&FAILED) => {
                        let error = ServerError::parse(body);
                        self.connection = None;
                        return Err(error.into_error(DOING));
                    }
                    _ => return Err(not_understood()),
                }
            }
            connection.fill(DOING).await?;
        }
    }

    /// After the last row: looks at what the server warned of, and gives the
    /// connection back.
    async fn end(&mut self, end: End) -> Result<()> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        if end.more {
            return Err(internal("a statement has more than one result"));
        }
        if end.warnings > 0 {
            check_warnings(connection.ask("SHOW WARNINGS").await?)?;
        }
        let mut close = vec![CLOSE];
        close.extend(self.statement.to_le_bytes());
        connection.line.command(&close, DOING).await?;
        if let Some(give_back) = self.give_back.take() {
            give_back(connection);
        }
        Ok(())
    }

    /// The batches as a stream.
    pub(super) fn into_stream(self) -> BatchStream {
        Box::pin(futures::stream::try_unfold(self, |mut reader| async move {
            Ok(reader.next().await?.map(|batch| (batch, reader)))
        }))
    }
}

/// The message that executes a prepared statement: no cursor at the server, once.
fn execute(statement: u32) -> Vec<u8> {
    let mut message = vec![EXECUTE];
    message.extend(statement.to_le_bytes());
    message.push(0);
    message.extend(1u32.to_le_bytes());
    message
}

/// An error for the first warning that tells of a lost value: level, code and
/// message each.
fn check_warnings(warnings: Vec<Vec<Option<String>>>) -> Result<()> {
    for warning in warnings {
        let text = |index: usize| warning.get(index).and_then(Option::as_deref).unwrap_or("");
        let code = text(1).parse().unwrap_or(0);
        if LOSSES.contains(&code) {
            let cause = ServerError { code, state: String::new(), message: text(2).to_owned() };
            let error = cause.into_error("the server cannot send a value as it is stored");
            return Err(error);
        }
        tracing::debug!(code, message = text(2), "the server warns");
    }
    Ok(())
}

impl Drop for RowReader {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // A scan that sends nothing would not notice that nobody listens.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                kill(&Arc::clone(&connection.config), connection.id()).await;
                drop(connection);
            });
        }
    }
}
