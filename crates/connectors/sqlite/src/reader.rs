//! Reading a slice: a thread that steps the statement, and the stream that it
//! feeds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use futures::{StreamExt, stream};
use rusqlite::Connection;
use tidelake_connector::{BatchStream, Counters, Reading};
use tidelake_model::{Error, ErrorKind, Result, Slice};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::batches::Batcher;
use crate::connection::failure;
use crate::forms::Units;
use crate::rows::Rows;
use crate::statement::{Part, select};

/// Batches that wait for their reader.
const QUEUE: usize = 1;
/// Steps of SQLite's machine between two looks at whether to stop.
const STEPS: i32 = 10_000;

/// A connection whose read transaction several readers use in turn.
pub(crate) type Shared = Arc<Mutex<Connection>>;

/// Tells the thread to stop when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Feed {
    batches: mpsc::Receiver<Result<RecordBatch>>,
    thread: Option<JoinHandle<()>>,
    _stop: Stop,
}

/// Starts to read the slice in the connection's transaction.
pub(crate) fn read(snapshot: (Shared, Units), slice: Slice, part: Part) -> Reading {
    let statement = select(&slice, &part);
    read_by(snapshot, slice, part, statement)
}

/// The same by a statement of the caller's, which selects what that of the slice
/// would.
pub(crate) fn read_by(
    (connection, units): (Shared, Units),
    slice: Slice,
    part: Part,
    statement: String,
) -> Reading {
    let schema = slice.read.schema();
    let counters = Counters::default();
    let (sender, batches) = mpsc::channel(QUEUE);
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Stop(stopped.clone());
    let counted = counters.clone();
    let thread = tokio::task::spawn_blocking(move || {
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let batcher = Batcher::new(&slice.read, &part, &units, &counted);
        let read = batcher.and_then(|batcher| {
            produce(&connection, &slice, batcher, &statement, &sender, stopped)
        });
        if let Err(error) = read {
            let error = error.in_table(&slice.read.table).in_slice(slice.number);
            // Nobody listens where the stream was dropped.
            let _ = sender.blocking_send(Err(error));
        }
    });
    let feed = Feed { batches, thread: Some(thread), _stop: stop };
    Reading { schema, batches: stream_of(feed), counters }
}

fn stream_of(feed: Feed) -> BatchStream {
    stream::unfold(feed, |mut feed| async move {
        if let Some(batch) = feed.batches.recv().await {
            return Some((batch, feed));
        }
        // A thread that ended without a word must not look like the last row.
        let error = feed.thread.take()?.await.err()?;
        let error = Error::new(ErrorKind::Internal, "the thread that read the rows ended early")
            .with_source(error);
        Some((Err(error), feed))
    })
    .boxed()
}

fn produce(
    connection: &Connection,
    slice: &Slice,
    batcher: Batcher,
    statement: &str,
    sender: &mpsc::Sender<Result<RecordBatch>>,
    stopped: Arc<AtomicBool>,
) -> Result<()> {
    let stop = move || stopped.load(Ordering::Relaxed);
    connection.progress_handler(STEPS, Some(stop)).map_err(failed)?;
    let read = step(connection, slice, batcher, statement, sender);
    connection.progress_handler(0, None::<fn() -> bool>).map_err(failed)?;
    read
}

fn step(
    connection: &Connection,
    slice: &Slice,
    mut batcher: Batcher,
    statement: &str,
    sender: &mpsc::Sender<Result<RecordBatch>>,
) -> Result<()> {
    tracing::debug!(table = %slice.read.table, slice = slice.number, statement, "reading");
    let mut rows = Rows::of(connection, statement).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if !batcher.push(&row)? {
            continue;
        }
        for batch in batcher.finish()? {
            if sender.blocking_send(Ok(batch)).is_err() {
                return Ok(());
            }
        }
    }
    for batch in batcher.finish()? {
        let _ = sender.blocking_send(Ok(batch));
    }
    Ok(())
}

fn failed(error: rusqlite::Error) -> Error {
    failure(error, "cannot read the rows")
}
