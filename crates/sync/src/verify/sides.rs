//! Reading both sides, as often as needed: the source in one snapshot, the lake by
//! its list of files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::TryStreamExt;
use tidelake_connector::{Slices, Source};
use tidelake_lake::TableLake;
use tidelake_model::{DataFile, Error, ErrorKind, Result, Slice, TableName};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::rows::kept;
use crate::events::{Event, Events};
use crate::exact::in_schema;

/// Where a row is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Side {
    /// The source.
    Source,
    /// The lake's file of that number.
    Lake(u32),
}

/// Sees every row that is compared, batch by batch, from several threads.
pub(super) trait Visitor: Send + Sync {
    fn visit(&self, side: Side, batch: &RecordBatch) -> Result<()>;
}

/// Both sides of one table.
pub(super) struct Sides {
    pub(super) table: TableName,
    pub(super) source: Arc<dyn Source>,
    /// The snapshot lives as long as this.
    pub(super) slices: Slices,
    pub(super) lake: TableLake,
    pub(super) files: Arc<Vec<DataFile>>,
    /// Schema in which the lake is read.
    pub(super) schema: SchemaRef,
    pub(super) bounds: Arc<Bounds>,
    /// Readers of each side at once.
    pub(super) degree: u32,
    pub(super) events: Arc<dyn Events>,
    pub(super) stop: CancellationToken,
}

/// What of both sides a pass reads.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) source: bool,
    /// Files of the lake that are passed over.
    pub(super) without: BTreeSet<u32>,
}

/// What a pass over both sides came to.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files that cannot be read, with the reason.
    pub(super) unreadable: BTreeMap<u32, Error>,
    /// Rows of the lake that are not compared.
    pub(super) beyond: u64,
}

enum Done {
    Source(Result<()>),
    Lake(Result<Scan>),
}

impl Sides {
    /// Shows every row in the scope to the visitor.
    pub(super) async fn scan(&self, visitor: Arc<dyn Visitor>, scope: &Scope) -> Result<Scan> {
        let stop = self.stop.child_token();
        let mut tasks = JoinSet::new();
        let pool = Arc::new(Semaphore::new(usize::try_from(self.degree.max(1)).unwrap_or(1)));
        for slice in self.slices.slices.iter().filter(|_| scope.source) {
            let (visitor, stop, slice) = (Arc::clone(&visitor), stop.clone(), slice.clone());
            let reader = SourceReader {
                source: Arc::clone(&self.source),
                bounds: Arc::clone(&self.bounds),
                pool: Arc::clone(&pool),
                schema: Arc::clone(&self.schema),
                events: Arc::clone(&self.events),
            };
            tasks.spawn(async move {
                Done::Source(unless_stopped(&stop, reader.read(&slice, visitor.as_ref())).await)
            });
        }
        let files: Vec<u32> =
            (0..).take(self.files.len()).filter(|number| !scope.without.contains(number)).collect();
        let reader = Arc::new(LakeReader {
            table: self.table.clone(),
            lake: self.lake.clone(),
            files: Arc::clone(&self.files),
            numbers: files,
            next: AtomicUsize::new(0),
            schema: Arc::clone(&self.schema),
            bounds: Arc::clone(&self.bounds),
            beyond: AtomicU64::new(0),
            events: Arc::clone(&self.events),
        });
        for _ in 0..self.degree.max(1) {
            let (visitor, stop) = (Arc::clone(&visitor), stop.clone());
            let reader = Arc::clone(&reader);
            tasks.spawn(async move {
                Done::Lake(unless_stopped(&stop, reader.read(visitor.as_ref())).await)
            });
        }
        let scan = joined(tasks, &stop).await?;
        Ok(Scan { beyond: reader.beyond.load(Ordering::Relaxed), ..scan })
    }
}

async fn joined(mut tasks: JoinSet<Done>, stop: &CancellationToken) -> Result<Scan> {
    let mut scan = Scan::default();
    let mut first_error = None;
    while let Some(done) = tasks.join_next().await {
        let result = match done {
            Ok(Done::Source(result)) => result,
            Ok(Done::Lake(result)) => result.map(|part| scan.unreadable.extend(part.unreadable)),
            Err(error) => {
                Err(Error::new(ErrorKind::Internal, "a reader ended unexpectedly")
                    .with_source(error))
            }
        };
        if let Err(error) = result {
            stop.cancel();
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        None => Ok(scan),
        Some(error) => Err(error),
    }
}

async fn unless_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Error::new(ErrorKind::Interrupted, "the reading was stopped")),
        done = work => done,
    }
}

struct SourceReader {
    source: Arc<dyn Source>,
    bounds: Arc<Bounds>,
    /// The lake's schema, to which the rows come.
    schema: SchemaRef,
    pool: Arc<Semaphore>,
    events: Arc<dyn Events>,
}

impl SourceReader {
    async fn read(&self, slice: &Slice, visitor: &dyn Visitor) -> Result<()> {
        let _permit = self.pool.acquire().await.map_err(|error| {
            Error::new(ErrorKind::Internal, "the readers were closed").with_source(error)
        })?;
        let mut reading = self.source.read(slice).await?;
        while let Some(batch) = reading.batches.try_next().await? {
            read(self.events.as_ref(), &slice.read.table, &batch);
            let batch = in_schema(batch, &self.schema)?;
            match self.bounds.source_mask(&batch)? {
                None => visitor.visit(Side::Source, &batch)?,
                Some(mask) => visitor.visit(Side::Source, &kept(&batch, &mask)?)?,
            }
        }
        Ok(())
    }
}

struct LakeReader {
    table: TableName,
    lake: TableLake,
    files: Arc<Vec<DataFile>>,
    /// Of the files that are read.
    numbers: Vec<u32>,
    next: AtomicUsize,
    schema: SchemaRef,
    bounds: Arc<Bounds>,
    beyond: AtomicU64,
    events: Arc<dyn Events>,
}

impl LakeReader {
    /// Reads one file after another until none is left.
    async fn read(&self, visitor: &dyn Visitor) -> Result<Scan> {
        let mut scan = Scan::default();
        loop {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = self.numbers.get(next) else { return Ok(scan) };
            let place = usize::try_from(*number).unwrap_or(usize::MAX);
            let Some(file) = self.files.get(place) else { continue };
            match self.read_file(*number, file, visitor).await {
                Ok(()) => {}
                Err(error) if is_of_the_file(&error) => {
                    scan.unreadable.insert(*number, error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn read_file(&self, number: u32, file: &DataFile, visitor: &dyn Visitor) -> Result<()> {
        let needs_mask = self.bounds.needs_mask(file)?;
        let mut batches = self.lake.rows(vec![file.clone()], Arc::clone(&self.schema));
        while let Some(batch) = batches.try_next().await? {
            read(self.events.as_ref(), &self.table, &batch);
            if !needs_mask {
                visitor.visit(Side::Lake(number), &batch)?;
                continue;
            }
            let mask = self.bounds.lake_mask(&batch)?;
            let compared = kept(&batch, &mask)?;
            let beyond = batch.num_rows().saturating_sub(compared.num_rows());
            self.beyond.fetch_add(u64::try_from(beyond).unwrap_or(0), Ordering::Relaxed);
            visitor.visit(Side::Lake(number), &compared)?;
        }
        Ok(())
    }
}

/// Whether an error is about the content of a file, and not about the way to it.
fn is_of_the_file(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Mismatch | ErrorKind::Internal)
}

fn read(events: &dyn Events, table: &TableName, batch: &RecordBatch) {
    let rows = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
    let bytes = u64::try_from(batch.get_array_memory_size()).unwrap_or(u64::MAX);
    events.event(&Event::RowsRead { table: table.clone(), rows, bytes });
}
