//! Reads the answer to a COPY off a borrowed connection.

use std::sync::Arc;

use arrow::array::RecordBatch;
use tidelake_connector::BatchStream;
use tidelake_model::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::copy::CopyDecoder;
use crate::failure::{ServerError, broken};
use crate::internal;
use crate::pool::Pool;
use crate::session::{Session, cancel};
use crate::stall::still_works;
use crate::tap::Borrowed;

const BUFFER: usize = 256 << 10;
/// Type byte and length of a message.
const HEAD: usize = 5;
const DOING: &str = "the rows cannot be read";

/// One message of the server; its body lies in the buffer.
#[derive(Clone, Copy)]
struct Message {
    tag: u8,
    start: usize,
    end: usize,
}

/// The connection's bytes, cut into messages.
struct Messages {
    line: Borrowed,
    pool: Arc<Pool>,
    /// The server's process at the other end.
    pid: i32,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Messages {
    fn new(line: Borrowed, pool: Arc<Pool>, pid: i32) -> Self {
        Self { line, pool, pid, buffer: vec![0; BUFFER], start: 0, end: 0 }
    }

    /// The next message that is complete in the buffer.
    #[inline]
    fn buffered(&mut self) -> Result<Option<Message>> {
        let Some(([tag, length @ ..], body)) = self.unread().split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        // The length counts itself.
        let length = i32::from_be_bytes(*length).checked_sub(4);
        let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
            return Err(Error::new(ErrorKind::Unavailable, DOING)
                .with_source("the server sent a message of negative length"));
        };
        if body.len() < length {
            return Ok(None);
        }
        let start = self.start + HEAD;
        let message = Message { tag: *tag, start, end: start + length };
        self.start = message.end;
        Ok(Some(message))
    }

    /// What is in the buffer and was not looked at yet.
    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    fn body(&self, message: Message) -> &[u8] {
        self.buffer.get(message.start..message.end).unwrap_or(&[])
    }

    /// Reads more bytes behind those that are there.
    async fn fill(&mut self) -> Result<()> {
        let wanted = self.wanted();
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // One large cell must not keep its space for the rest of the table.
        if wanted > self.buffer.len() || self.buffer.len() > 4 * BUFFER.max(wanted) {
            self.buffer.resize(wanted.max(BUFFER).max(self.end), 0);
            self.buffer.shrink_to(wanted.max(BUFFER).max(self.end));
        }
        let space = self.buffer.get_mut(self.end..).unwrap_or(&mut []);
        let read = match self.pool.config.stall_limit() {
            None => self.line.read(space).await,
            Some(limit) => loop {
                match tokio::time::timeout(limit, self.line.read(space)).await {
                    Ok(read) => break read,
                    Err(_) => still_works(&self.pool, &[self.pid]).await?,
                }
            },
        };
        let read = read.map_err(|error| broken(error, DOING))?;
        if read == 0 {
            return Err(Error::new(ErrorKind::Unavailable, DOING)
                .with_source("the server closed the connection"));
        }
        self.end += read;
        Ok(())
    }

    /// How large the buffer has to be for the message that has begun.
    fn wanted(&self) -> usize {
        let length =
            self.unread().split_first_chunk::<HEAD>().map_or(0, |([_, length @ ..], _)| {
                usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0)
            });
        length.saturating_add(1).max(BUFFER)
    }

    async fn next(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(message);
            }
            self.fill().await?;
        }
    }

    /// Sends a statement by the simple protocol.
    async fn send(&mut self, statement: &str) -> Result<()> {
        if statement.contains('\0') {
            return Err(internal("a statement holds a NUL"));
        }
        let length = i32::try_from(statement.len().saturating_add(5))
            .map_err(|_| internal("a statement is too long"))?;
        let mut message = vec![b'Q'];
        message.extend(length.to_be_bytes());
        message.extend(statement.as_bytes());
        message.push(0);
        self.line.write_all(&message).await.map_err(|error| broken(error, DOING))?;
        self.line.flush().await.map_err(|error| broken(error, DOING))
    }
}

/// A COPY under way. Dropping it before its end stops the statement on the
/// server and closes the connection.
pub(crate) struct CopyReader {
    /// `None` once the connection was given back.
    messages: Option<Messages>,
    session: Option<Session>,
    pool: Arc<Pool>,
    decoder: CopyDecoder,
    /// Rows that the server says it sent.
    sent: Option<u64>,
    failed: Option<ServerError>,
}

impl CopyReader {
    /// Sends the statement on a session that is inside its transaction, and
    /// waits until the server begins to answer.
    pub(crate) async fn start(
        session: Session,
        pool: Arc<Pool>,
        statement: &str,
        decoder: CopyDecoder,
    ) -> Result<Self> {
        let messages = Messages::new(session.tap.borrow(), Arc::clone(&pool), session.pid);
        let mut reader = Self {
            messages: Some(messages),
            session: Some(session),
            pool,
            decoder,
            sent: None,
            failed: None,
        };
        let messages = reader.messages.as_mut().ok_or_else(|| internal(DOING))?;
        messages.send(statement).await?;
        loop {
            let message = messages.next().await?;
            match message.tag {
                // CopyOutResponse.
                b'H' => return Ok(reader),
                b'E' => reader.failed = Some(ServerError::parse(messages.body(message))),
                // ReadyForQuery.
                b'Z' => {
                    let failed = reader.failed.take();
                    reader.release().await;
                    return Err(match failed {
                        Some(error) => error.into_error(DOING),
                        None => internal("the server did not begin to copy"),
                    });
                }
                _ => {}
            }
        }
    }

    /// The next batch; `None` after the last one.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.decoder.next_batch() {
                return Ok(Some(batch));
            }
            let Some(messages) = self.messages.as_mut() else { return Ok(None) };
            let rows = self.decoder.feed_messages(messages.unread())?;
            messages.start += rows;
            if rows > 0 {
                continue;
            }
            let Some(message) = messages.buffered()? else {
                messages.fill().await?;
                continue;
            };
            match message.tag {
                // The first message begins with the header; what is no whole row may
                // still be a piece of some.
                b'd' => self.decoder.feed(messages.body(message))?,
                b'E' => self.failed = Some(ServerError::parse(messages.body(message))),
                b'C' => self.sent = rows_of(messages.body(message)),
                b'Z' => self.end().await?,
                _ => {}
            }
        }
    }

    async fn end(&mut self) -> Result<()> {
        self.release().await;
        if let Some(error) = self.failed.take() {
            return Err(error.into_error(DOING));
        }
        self.decoder.finish()?;
        let read = self.decoder.rows();
        if self.sent != Some(read) {
            let sent = self.sent.map_or("no number of".to_owned(), |sent| sent.to_string());
            return Err(internal(format!("the server says it sent {sent} rows, {read} arrived")));
        }
        Ok(())
    }

    /// Ends the transaction and gives the session back; one that cannot even do
    /// that is closed.
    async fn release(&mut self) {
        let (Some(messages), Some(session)) = (self.messages.take(), self.session.take()) else {
            return;
        };
        messages.line.give_back();
        if session.run("ROLLBACK", "the transaction cannot be ended").await.is_ok() {
            self.pool.put(session);
        }
    }

    /// The batches as a stream.
    pub(crate) fn into_stream(self) -> BatchStream {
        Box::pin(futures::stream::try_unfold(self, |mut reader| async move {
            Ok(reader.next().await?.map(|batch| (batch, reader)))
        }))
    }
}

impl Drop for CopyReader {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        // A scan that sends nothing would not notice that nobody listens.
        let token = session.client.cancel_token();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let pool = Arc::clone(&self.pool);
            runtime.spawn(async move { cancel(&pool.config, token).await });
        }
    }
}

/// The number in `COPY 42`.
fn rows_of(tag: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(tag).ok()?.trim_end_matches('\0');
    text.strip_prefix("COPY ")?.parse().ok()
}
