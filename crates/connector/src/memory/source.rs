//! Reading from a memory database.

use std::cmp::Ordering;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tidelake_model::{
    Error, ErrorKind, FenceMode, Notice, NoticeCode, ReadMethod, Result, Slice, Table, TableRead,
    instant_text,
};
use tidelake_watermark::{Fence, Position, Value};
use tokio::time::{Duration, Instant, sleep};

use super::arrow_rows::{batch, size};
use super::cursor::{Located, compare, contains, place};
use super::database::{MemoryDatabase, Row, Stored};
use super::diagnose::diagnose;
use super::find::wanted;
use crate::capabilities::Capabilities;
use crate::reading::{Counters, Reading};
use crate::source::{
    ClockReading, ClockRequest, DiagnosedTable, Effort, FencePurpose, FindRequest, Finding,
    Highest, HighestRequest, Hold, Slices, Source, SplitRequest, TableFilter,
};
use crate::sql;

/// How often open transactions are looked at again.
const POLL: Duration = Duration::from_millis(10);

/// A [`MemoryDatabase`] as a source. It can do everything.
pub struct MemorySource {
    database: MemoryDatabase,
}

/// Which rows of a kept snapshot a slice reads.
#[derive(Serialize, Deserialize)]
struct Part {
    snapshot: u64,
    start: usize,
    end: usize,
}

/// Ends the snapshot when it is dropped.
struct SnapshotHold {
    database: MemoryDatabase,
    snapshot: u64,
}

impl Drop for SnapshotHold {
    fn drop(&mut self) {
        self.database.lock().snapshots.remove(&self.snapshot);
    }
}

impl MemorySource {
    /// Reads from that database.
    pub fn new(database: MemoryDatabase) -> Self {
        Self { database }
    }

    /// The start of the oldest open transaction of a user who counts.
    fn time_fence(&self, request: &ClockRequest) -> (Fence, Vec<Notice>) {
        let state = self.database.lock();
        let counts = state.open.values().filter(|open| !request.ignore_users.contains(&open.user));
        match counts.min_by_key(|open| open.started) {
            None => (Fence::Open, vec![]),
            Some(oldest) => {
                let since = instant_text(oldest.started);
                let message = format!("a transaction of {} is open since {since}", oldest.user);
                let notice = Notice::new(NoticeCode::FenceLowered, message);
                (Fence::Before(oldest.started), vec![notice])
            }
        }
    }

    /// Waits until no open transaction has written into the table.
    async fn identifier_fence(&self, request: &ClockRequest) -> (Fence, Vec<Notice>) {
        let until = Instant::now() + request.wait;
        loop {
            let Some(user) = self.writer(request) else { return (Fence::Open, vec![]) };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let message = format!("an open transaction of {user} has written into the table");
                return (Fence::Closed, vec![Notice::new(NoticeCode::FenceClosed, message)]);
            }
            sleep(left.min(POLL)).await;
        }
    }

    fn writer(&self, request: &ClockRequest) -> Option<String> {
        let state = self.database.lock();
        let holder = state.open.values().find(|open| {
            !request.ignore_users.contains(&open.user)
                && open.writes.iter().any(|(table, _)| *table == request.table)
        });
        holder.map(|open| open.user.clone())
    }

    fn stored(&self, table: &tidelake_model::TableName) -> Result<Stored> {
        self.database.lock().table(table).cloned()
    }
}

/// Refuses a read whose columns are not as the catalogue has them now.
fn check_columns(table: &Table, read: &TableRead) -> Result<()> {
    for column in &read.columns {
        let found = place(table, column.name()).map(|place| table.columns.get(place))?;
        let now = found.map(|found| found.field.data_type());
        if now != Some(column.field.data_type()) {
            let message = format!(
                "column {:?} changed its type from {}",
                column.name(),
                column.field.data_type()
            );
            return Err(Error::new(ErrorKind::Data, message)
                .in_table(&table.name)
                .with_hint("run the sync again, which looks at the columns afresh"));
        }
    }
    Ok(())
}

fn part_of(slice: &Slice) -> Result<Part> {
    Part::deserialize(&slice.part).map_err(|error| {
        let message = "a slice that this source did not cut";
        Error::new(ErrorKind::Internal, message).in_slice(slice.number).with_source(error)
    })
}

#[async_trait]
impl Source for MemorySource {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rows_commit_out_of_order: true,
            has_fence: true,
            parallel_slices: true,
            composite_cursor: true,
            fallback_cursor: true,
            schemas: true,
            open_time_digits: false,
            decimals_of_floats: false,
            bytes_of_texts: false,
        }
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>> {
        let state = self.database.lock();
        let found = state.tables.values().filter(|stored| filter.matches(&stored.table.name));
        Ok(found
            .map(|stored| Table {
                estimated_rows: u64::try_from(stored.rows.len()).ok(),
                ..stored.table.clone()
            })
            .collect())
    }

    async fn clock(&self, request: &ClockRequest) -> Result<ClockReading> {
        let (now, zone) = {
            let state = self.database.lock();
            state.table(&request.table)?;
            (state.now, state.zone.clone().unwrap_or_else(|| "UTC".to_owned()))
        };
        let (fence, notices) = match (request.mode, &request.purpose) {
            (FenceMode::Off, _) | (_, FencePurpose::None) => (Fence::Open, vec![]),
            (_, FencePurpose::Time) => self.time_fence(request),
            (_, FencePurpose::Identifier) => self.identifier_fence(request).await,
        };
        let fenced = request.mode != FenceMode::Off && request.purpose != FencePurpose::None;
        let fence_note = fenced.then(|| "the transactions of the memory database".to_owned());
        Ok(ClockReading { now, zone, fence, fence_note, notices, log_position: None })
    }

    async fn highest(&self, request: &HighestRequest) -> Result<Highest> {
        let stored = self.stored(&request.table)?;
        let cursor = Located::new(&stored.table, &request.cursor)?;
        let names = request.cursor.cursor.columns();
        let indexed = |name: &String| stored.table.column(name).is_some_and(|it| it.indexed);
        let cheap = names.iter().all(indexed);
        let (mut highest, mut rows, mut nulls) = (None::<Position>, 0u64, 0u64);
        for row in stored.rows.iter() {
            let Some(at) = cursor.position(row) else {
                nulls += 1;
                continue;
            };
            if let Some(range) = &request.count {
                rows += u64::from(contains(range, &at)?);
            }
            let rises = match &highest {
                Some(highest) => compare(&at, highest)? == Ordering::Greater,
                None => true,
            };
            if rises {
                highest = Some(at);
            }
        }
        Ok(Highest {
            value: (cheap || request.effort == Effort::Scan).then_some(highest),
            rows: (cheap && request.count.is_some()).then_some(rows),
            nulls: (cheap && request.count_nulls).then_some(nulls),
            unreachable: Some(0),
        })
    }

    /// Cuts by the place of the rows in the snapshot, whatever the method.
    async fn split(&self, request: &SplitRequest) -> Result<Slices> {
        let read = &request.read;
        sql::check(read)?;
        let stored = self.stored(&read.table)?;
        check_columns(&stored.table, read)?;
        if let Some(key) = &request.key
            && stored.table.column(key).is_none()
        {
            let message = format!("there is no column {key:?} to cut by");
            return Err(Error::new(ErrorKind::Configuration, message).in_table(&read.table));
        }
        let rows = stored.rows.len();
        let degree = if request.method == ReadMethod::None { 1 } else { request.degree.max(1) };
        let pieces = usize::try_from(degree).unwrap_or(usize::MAX).min(rows);
        let columns = stored.table.columns.iter().map(|it| it.name().to_owned()).collect();
        let snapshot = self.database.lock().keep_snapshot(stored);
        let hold: Hold = Box::new(SnapshotHold { database: self.database.clone(), snapshot });
        let cut = |piece: usize| {
            let start = rows.checked_div(pieces).unwrap_or(0) * piece;
            let end = if piece + 1 == pieces { rows } else { start + rows / pieces.max(1) };
            let part = serde_json::to_value(Part { snapshot, start, end }).map_err(|error| {
                Error::new(ErrorKind::Internal, "a slice's part").with_source(error)
            })?;
            let number = u32::try_from(piece).unwrap_or(u32::MAX);
            Ok(Slice { number, read: read.clone(), part })
        };
        let slices: Result<Vec<_>> = (0..pieces).map(cut).collect();
        Ok(Slices { slices: slices?, columns, hold })
    }

    async fn read(&self, slice: &Slice) -> Result<Reading> {
        let read = &slice.read;
        sql::check(read)?;
        let part = part_of(slice)?;
        let stored = self.database.lock().snapshots.get(&part.snapshot).cloned();
        let stored = stored.ok_or_else(|| {
            let message = "the snapshot of this slice has ended";
            Error::new(ErrorKind::Unavailable, message).in_table(&read.table).in_slice(slice.number)
        })?;
        let cursor = match &read.cursor {
            Some(cursor) => Some(Located::new(&stored.table, cursor)?),
            None => None,
        };
        let mut rows = vec![];
        for row in stored.rows.get(part.start..part.end).unwrap_or_default() {
            let wanted = match &cursor {
                Some(cursor) => cursor.wants(read, row)?,
                None => true,
            };
            if wanted {
                rows.push(Arc::clone(row));
            }
        }
        reading(read, &stored, rows)
    }

    async fn find(&self, request: &FindRequest) -> Result<Reading> {
        let read = &request.read;
        let stored = self.stored(&read.table)?;
        check_columns(&stored.table, read)?;
        let wanted = wanted(&stored, request)?;
        let rows = stored.rows.iter().filter(|row| wanted(row)).map(Arc::clone).collect();
        reading(read, &stored, rows)
    }

    async fn diagnose(&self, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
        diagnose(&self.database, tables)
    }

    fn statement(&self, slice: &Slice) -> String {
        let table = &slice.read.table;
        let Ok(part) = part_of(slice) else { return format!("unknown rows of {table}") };
        let Part { snapshot, start, end } = part;
        format!("rows {start} to {end} of {table} in snapshot {snapshot}")
    }

    fn round_trips(&self) -> u64 {
        0
    }
}

/// The columns of a read, of these rows.
fn reading(read: &TableRead, stored: &Stored, rows: Vec<Arc<Row>>) -> Result<Reading> {
    let place = |column: &tidelake_model::Column| place(&stored.table, column.name());
    let places = read.columns.iter().map(place).collect::<Result<Vec<_>>>()?;
    let batches = batches(read.clone(), places, rows);
    Ok(Reading { schema: read.schema(), batches: batches.boxed(), counters: Counters::default() })
}

/// Hands the rows on in batches of about as many bytes as the read allows.
fn batches(
    read: TableRead,
    places: Vec<usize>,
    rows: Vec<Arc<Row>>,
) -> impl futures::Stream<Item = Result<arrow::array::RecordBatch>> + Send {
    futures::stream::iter(cut_by_bytes(&rows, read.batch_bytes)).map(move |(start, end)| {
        let rows = rows.get(start..end).unwrap_or_default();
        batch(&read, rows.len(), |column| {
            let place = places.get(column).copied();
            rows.iter().map(|row| cell_of(row, place)).collect()
        })
    })
}

fn cell_of(row: &Row, place: Option<usize>) -> Option<&Value> {
    row.get(place?)?.as_ref()
}

fn cut_by_bytes(rows: &[Arc<Row>], limit: u64) -> Vec<(usize, usize)> {
    let mut cuts = vec![];
    let (mut start, mut bytes) = (0, 0u64);
    for (at, row) in rows.iter().enumerate() {
        let more = row.iter().map(|cell| size(cell.as_ref())).fold(0, u64::saturating_add);
        if at > start && bytes.saturating_add(more) > limit {
            cuts.push((start, at));
            (start, bytes) = (at, 0);
        }
        bytes = bytes.saturating_add(more);
    }
    if start < rows.len() {
        cuts.push((start, rows.len()));
    }
    cuts
}
