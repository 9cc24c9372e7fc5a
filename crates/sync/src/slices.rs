//! Reading the slices of a table run into data objects.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tidelake_connector::{CursorExtent, Source, cursor_extent};
use tidelake_lake::{
    FILE_BYTES, FileExtent, TableLake, TableWriter, UploadRecorder, WriterSettings,
};
use tidelake_model::{
    Again, Compression, CursorRead, DataFile, Error, ErrorKind, Result, RunId, Slice, StagedObject,
    Step, TableName, UploadRef,
};
use tidelake_watermark::Outcome;
use tokio::sync::{AcquireError, OnceCell, Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::columns::Shares;
use crate::events::{Event, Events};
use crate::exact::in_schema;
use crate::faults::Faults;
use crate::retry::Retry;
use crate::window::no_cursor_value;

/// Called once, before the first object of a table run is begun.
#[async_trait::async_trait]
pub(crate) trait WindowRecorder: Send + Sync {
    /// Records the window.
    async fn record_window(&self) -> Result<()>;
}

/// What all slices of a table run share.
pub(crate) struct Readers {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) lake: TableLake,
    pub(crate) table: TableName,
    pub(crate) run_id: RunId,
    pub(crate) attempt: u64,
    pub(crate) cursor: Option<CursorRead>,
    pub(crate) nulls_fail: bool,
    pub(crate) schema: SchemaRef,
    pub(crate) compression: Compression,
    pub(crate) shares: Shares,
    pub(crate) places: Places,
    pub(crate) recorder: Arc<dyn WindowRecorder>,
    pub(crate) uploads: Arc<dyn UploadRecorder>,
    pub(crate) recorded: OnceCell<()>,
    pub(crate) events: Arc<dyn Events>,
    pub(crate) faults: Arc<dyn Faults>,
    pub(crate) retry: Arc<Retry>,
    /// The next number of a slice: what is read again writes to objects of
    /// another name.
    pub(crate) next_number: AtomicU32,
    /// Ends the reading: the user interrupted, or the lease is lost.
    pub(crate) stop: CancellationToken,
}

/// How many slices are read at once: of one table, which may be cut into more, and
/// of all tables together.
pub(crate) struct Places {
    own: Semaphore,
    pool: Arc<Semaphore>,
}

impl Places {
    /// So many readers of a table, out of a pool.
    pub(crate) fn new(degree: u32, pool: &Arc<Semaphore>) -> Self {
        let own = Semaphore::new(usize::try_from(degree.max(1)).unwrap_or(1));
        Self { own, pool: Arc::clone(pool) }
    }

    /// Always in this order, so that no table holds what another could use.
    async fn take(&self) -> Result<(SemaphorePermit<'_>, SemaphorePermit<'_>), AcquireError> {
        Ok((self.own.acquire().await?, self.pool.acquire().await?))
    }
}

/// The reading of some slices of one snapshot.
pub(crate) struct Attempt {
    /// Ends the reading of all when one failed.
    stop: CancellationToken,
    rows: AtomicU64,
    seen: Mutex<CursorExtent>,
}

impl Attempt {
    /// Whether a row arrived, also one that was given up.
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.load(Ordering::Relaxed) > 0
    }

    /// The cursor values of all rows that arrived.
    pub(crate) fn seen(&self) -> CursorExtent {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn arrived(&self, rows: u64, extent: &CursorExtent) -> Result<()> {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = std::mem::take(&mut *seen).join(extent.clone())?;
        Ok(())
    }
}

/// What one slice, or all of them together, wrote.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) files: Vec<(DataFile, StagedObject)>,
    pub(crate) rows: u64,
    pub(crate) extent: CursorExtent,
    pub(crate) counters: BTreeMap<String, u64>,
}

impl Written {
    pub(crate) fn join(mut self, other: Self) -> Result<Self> {
        self.files.extend(other.files);
        self.rows = self.rows.saturating_add(other.rows);
        self.extent = self.extent.join(other.extent)?;
        for (name, count) in other.counters {
            let total = self.counters.entry(name).or_default();
            *total = total.saturating_add(count);
        }
        Ok(self)
    }

    /// What the algebra wants to know.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome { rows: self.rows, highest: self.extent.highest.clone() }
    }
}

/// Gives uploads up; one that cannot be is told, and left to the store's own rule
/// for abandoned uploads.
pub(crate) async fn abort(lake: &TableLake, uploads: impl Iterator<Item = &UploadRef>) {
    for upload in uploads {
        if let Err(error) = lake.abort(upload).await {
            tracing::warn!(key = upload.key, error = error.chain(), "upload not aborted");
        }
    }
}

impl Readers {
    /// A first or further attempt.
    pub(crate) fn attempt(&self) -> Arc<Attempt> {
        let (rows, seen) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Attempt { stop: self.stop.child_token(), rows, seen })
    }

    /// Reads all slices of a snapshot, as many at once as the pool allows. After a
    /// failure the others are stopped, their uploads aborted, and the first error
    /// is given.
    pub(crate) async fn read(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
        slices: Vec<Slice>,
    ) -> Result<Written> {
        let mut tasks = JoinSet::new();
        let count = u32::try_from(slices.len()).unwrap_or(u32::MAX);
        let first = self.next_number.fetch_add(count, Ordering::Relaxed);
        for (slice, number) in slices.into_iter().zip(first..) {
            let (readers, attempt) = (Arc::clone(self), Arc::clone(attempt));
            tasks.spawn(async move {
                let result = readers.read_slice(&attempt, &slice, number).await;
                let result = result.map_err(|error| error.in_slice(slice.number));
                result.map(|written| (number, written))
            });
        }
        let mut parts = BTreeMap::new();
        let mut first_error = None;
        while let Some(joined) = tasks.join_next().await {
            let result = joined.unwrap_or_else(|error| {
                Err(Error::new(ErrorKind::Internal, "a reader ended unexpectedly")
                    .with_source(error))
            });
            match result {
                Ok((number, written)) => {
                    parts.insert(number, written);
                }
                Err(error) => {
                    attempt.stop.cancel();
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            None => parts.into_values().try_fold(Written::default(), Written::join),
            Some(error) => {
                for written in parts.values() {
                    self.give_up(written).await;
                }
                Err(error)
            }
        }
    }

    /// What was written is not kept.
    pub(crate) async fn give_up(&self, written: &Written) {
        abort(&self.lake, written.files.iter().map(|(_, staged)| &staged.upload)).await;
        self.taken_back(written.rows);
    }

    fn taken_back(&self, rows: u64) {
        if rows > 0 {
            self.events.event(&Event::RowsTakenBack { table: self.table.clone(), rows });
        }
    }

    /// Reads one slice, alone again where its connection is lost and the snapshot
    /// is not: no row of it was kept then, and the others need not know.
    async fn read_slice(&self, attempt: &Attempt, slice: &Slice, number: u32) -> Result<Written> {
        let mut series = self.retry.series(Some(&self.table));
        let mut number = number;
        loop {
            let before = attempt.rows.load(Ordering::Relaxed);
            let error = match self.try_slice(attempt, slice, number).await {
                Err(error) if error.again() == Again::Same => error,
                other => return other,
            };
            if attempt.rows.load(Ordering::Relaxed) > before {
                series.arrived();
            }
            tokio::select! {
                biased;
                () = attempt.stop.cancelled() => return Err(stopped()),
                waited = series.wait(error) => waited?,
            }
            number = self.next_number.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn try_slice(&self, attempt: &Attempt, slice: &Slice, number: u32) -> Result<Written> {
        let _place = tokio::select! {
            biased;
            () = attempt.stop.cancelled() => return Err(stopped()),
            place = self.places.take() => place.map_err(|_| stopped())?,
        };
        let mut reading = self.source.read(slice).await?;
        let mut written = Written::default();
        let mut writer: Option<TableWriter> = None;
        let result = loop {
            let next = tokio::select! {
                biased;
                () = attempt.stop.cancelled() => break Err(stopped()),
                next = reading.batches.next() => next,
            };
            let batch = match next {
                None => break Ok(()),
                Some(Err(error)) => break Err(error),
                Some(Ok(batch)) if batch.num_rows() == 0 => continue,
                Some(Ok(batch)) => match in_schema(batch, &self.schema) {
                    Ok(batch) => batch,
                    Err(error) => break Err(error.with_again(Again::Never)),
                },
            };
            let taken = self.take(attempt, number, &batch, &mut writer, &mut written).await;
            // What the lake or the state store refuses is not mended by reading again.
            if let Err(error) = taken {
                break Err(error.with_again(Again::Never));
            }
        };
        written.counters = reading.counters.snapshot();
        match (result, writer) {
            (Ok(()), Some(writer)) => {
                let finished = writer.finish().await;
                written.files = finished.map_err(|error| error.with_again(Again::Never))?;
                let in_files: u64 = written.files.iter().map(|(file, _)| file.rows).sum();
                if in_files != written.rows {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        format!("{} rows were read and {in_files} written", written.rows),
                    ));
                }
                Ok(written)
            }
            (Ok(()), None) => Ok(written),
            (Err(error), writer) => {
                if let Some(writer) = writer {
                    writer.abort().await;
                }
                self.taken_back(written.rows);
                Err(error)
            }
        }
    }

    /// Encodes one batch.
    async fn take(
        &self,
        attempt: &Attempt,
        number: u32,
        batch: &arrow::array::RecordBatch,
        writer: &mut Option<TableWriter>,
        written: &mut Written,
    ) -> Result<()> {
        // The window is on record before anything is begun for it.
        self.recorded.get_or_try_init(|| self.recorder.record_window()).await?;
        let extent = match &self.cursor {
            Some(cursor) => cursor_extent(batch, cursor)?,
            None => CursorExtent::default(),
        };
        let rows = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        attempt.arrived(rows, &extent)?;
        if self.nulls_fail && extent.nulls > 0 {
            return Err(no_cursor_value());
        }
        let open = match writer {
            Some(open) => open,
            None => {
                let open = writer.insert(self.lake.writer(self.settings(number))?);
                self.faults.after(Step::Begin, Some(&self.table)).await?;
                open
            }
        };
        let file_extent = FileExtent {
            min: extent.lowest.clone(),
            max: extent.highest.clone(),
            nulls: extent.nulls,
        };
        open.write(batch, file_extent).await?;
        let bytes = u64::try_from(batch.get_array_memory_size()).unwrap_or(u64::MAX);
        written.rows = written.rows.saturating_add(rows);
        written.extent = std::mem::take(&mut written.extent).join(extent)?;
        self.events.event(&Event::RowsRead { table: self.table.clone(), rows, bytes });
        self.faults.after(Step::Batch, Some(&self.table)).await
    }

    /// Settings of a writer whose objects carry that slice number.
    pub(crate) fn settings(&self, slice: u32) -> WriterSettings {
        WriterSettings {
            run_id: self.run_id,
            attempt: self.attempt,
            slice,
            schema: Arc::clone(&self.schema),
            compression: self.compression,
            file_bytes: FILE_BYTES,
            memory_bytes: usize::try_from(self.shares.encoder).unwrap_or(usize::MAX),
            recorder: Some(Arc::clone(&self.uploads)),
        }
    }
}

fn stopped() -> Error {
    Error::new(ErrorKind::Interrupted, "the reading was stopped")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_table_has_its_readers_and_all_tables_have_the_pool() {
        let pool = Arc::new(Semaphore::new(3));
        let (one, two) = (Places::new(2, &pool), Places::new(2, &pool));
        let first = one.take().now_or_never().unwrap().unwrap();
        let _second = one.take().now_or_never().unwrap().unwrap();
        assert!(one.take().now_or_never().is_none(), "a third reader of one table");
        assert_eq!(pool.available_permits(), 1);
        let _third = two.take().now_or_never().unwrap().unwrap();
        assert!(two.take().now_or_never().is_none(), "a fourth reader of the pool");
        drop(first);
        assert!(two.take().now_or_never().is_some());
        assert!(one.take().now_or_never().is_some());
    }
}
