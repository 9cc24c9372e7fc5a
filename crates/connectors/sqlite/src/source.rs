//! The source: one database file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use tidelake_connector::sql::check;
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, DiagnosedTable, FindRequest, Finding, Highest,
    HighestRequest, Reading, Slices, Source, SplitRequest, TableFilter,
};
use tidelake_model::{Column, Error, ErrorKind, ReadMethod, Result, Slice, Table, TableRead};
use tidelake_watermark::{Fence, Kind, Value};

use crate::catalogue::{check_columns, describe, tables};
use crate::connection::{failure, open};
use crate::cuts::cuts;
use crate::diagnose::diagnose;
use crate::find::find;
use crate::forms::{cursor_forms, units};
use crate::reader::read;
use crate::snapshot::{self, Snapshots};
use crate::statement::{Part, RowRange, select};
use crate::{blocking, highest};

/// Reads from one database file.
pub(crate) struct SqliteSource {
    path: PathBuf,
    snapshots: Arc<Snapshots>,
}

impl SqliteSource {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, snapshots: Arc::default() }
    }
}

fn part_of(slice: &Slice) -> Result<Part> {
    serde_json::from_value(slice.part.clone()).map_err(|error| {
        Error::new(ErrorKind::Internal, "the slice is not one of this source").with_source(error)
    })
}

/// Columns that hold times and do not belong to the cursor.
pub(crate) fn time_columns<'a>(columns: &'a [Column], cursor: &BTreeSet<&str>) -> Vec<&'a str> {
    let is_time = |column: &&Column| {
        matches!(column.field.data_type(), DataType::Date32 | DataType::Timestamp(..))
            && !cursor.contains(column.name())
    };
    columns.iter().filter(is_time).map(Column::name).collect()
}

/// How many slices a read may become.
fn most_slices(request: &SplitRequest) -> u32 {
    let is_open = |read: &TableRead| read.range.as_ref().is_none_or(|range| range.low.is_none());
    match request.method {
        // A window above a lower bound is read by an index, if there is one; cut by
        // the place of its rows it would be a look at the whole table.
        _ if !is_open(&request.read) => 1,
        ReadMethod::None => 1,
        ReadMethod::Auto | ReadMethod::Physical | ReadMethod::Range => request.degree.max(1),
    }
}

fn split(path: &Path, request: SplitRequest, snapshots: &Arc<Snapshots>) -> Result<Slices> {
    let wanted = most_slices(&request);
    let mut connections = snapshot::begin(path, usize::try_from(wanted).unwrap_or(usize::MAX))?;
    let Some(connection) = connections.first() else {
        return Err(Error::new(ErrorKind::Internal, "a snapshot without a connection"));
    };
    let read = request.read;
    let described = describe(connection, &read.table)?;
    check_columns(&described.table, &read.columns)?;
    let mut part = Part { row_number: described.row_number.map(str::to_owned), ..Part::default() };
    let mut in_cursor = BTreeSet::new();
    if let Some(cursor) = &read.cursor {
        in_cursor.extend(cursor.cursor.columns().iter().map(String::as_str));
        part.cursor_forms = cursor_forms(connection, &described.table, cursor)?;
    }
    let times = time_columns(&read.columns, &in_cursor);
    part.units = units(connection, &described, &times)?;
    drop(in_cursor);
    let cut = match described.row_number {
        Some(row_number) if connections.len() > 1 => {
            cuts(connection, &read.table, row_number, wanted)
                .map_err(|error| failure(error, "cannot see how the table's rows are numbered"))?
        }
        _ => vec![],
    };
    let ranges = RowRange::between(&cut);
    connections.truncate(ranges.len());

    let hold = snapshots.keep(connections);
    part.snapshot = hold.number;
    let mut slices = Vec::with_capacity(ranges.len());
    for (number, (reader, rows)) in (0..).zip(ranges.into_iter().enumerate()) {
        let part =
            serde_json::to_value(Part { reader, rows, ..part.clone() }).map_err(|error| {
                Error::new(ErrorKind::Internal, "the slice cannot be written").with_source(error)
            })?;
        slices.push(Slice { number, read: read.clone(), part });
    }
    let columns = described.table.columns.iter().map(|it| it.name().to_owned()).collect();
    Ok(Slices { slices, columns, hold: Box::new(hold) })
}

#[async_trait]
impl Source for SqliteSource {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rows_commit_out_of_order: false,
            has_fence: false,
            parallel_slices: true,
            composite_cursor: true,
            fallback_cursor: true,
            schemas: false,
            open_time_digits: true,
            decimals_of_floats: true,
            bytes_of_texts: false,
        }
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>> {
        let (path, filter) = (self.path.clone(), filter.clone());
        blocking(move || tables(&open(&path)?, &filter)).await
    }

    async fn clock(&self, _request: &ClockRequest) -> Result<ClockReading> {
        let path = self.path.clone();
        blocking(move || {
            let connection = open(&path)?;
            let statement = "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
            let text: String = connection
                .query_row(statement, [], |row| row.get(0))
                .map_err(|error| failure(error, "cannot read the clock"))?;
            let Ok(Value::Timestamp(now)) = Value::parse(Kind::Timestamp, &text) else {
                return Err(Error::new(ErrorKind::Internal, "the clock shows no time"));
            };
            Ok(ClockReading {
                now,
                zone: "UTC".to_owned(),
                fence: Fence::Open,
                fence_note: Some("writers are serialised, none commits behind another".to_owned()),
                notices: vec![],
                log_position: None,
            })
        })
        .await
    }

    async fn highest(&self, request: &HighestRequest) -> Result<Highest> {
        let (path, request) = (self.path.clone(), request.clone());
        blocking(move || highest::highest(&open(&path)?, &request)).await
    }

    async fn split(&self, request: &SplitRequest) -> Result<Slices> {
        check(&request.read)?;
        let (path, request) = (self.path.clone(), request.clone());
        let snapshots = self.snapshots.clone();
        blocking(move || {
            let table = request.read.table.clone();
            split(&path, request, &snapshots).map_err(|error| error.in_table(&table))
        })
        .await
    }

    async fn read(&self, slice: &Slice) -> Result<Reading> {
        check(&slice.read)?;
        let part = part_of(slice)?;
        let Some(snapshot) = self.snapshots.get(part.snapshot, part.reader) else {
            let message = "the snapshot of this slice is gone";
            return Err(Error::new(ErrorKind::Unavailable, message)
                .with_hint("read the window again from the start")
                .in_table(&slice.read.table)
                .in_slice(slice.number));
        };
        Ok(read(snapshot, slice.clone(), part))
    }

    async fn find(&self, request: &FindRequest) -> Result<Reading> {
        let (path, request) = (self.path.clone(), request.clone());
        blocking(move || find(&path, &request).map_err(|error| error.in_table(&request.read.table)))
            .await
    }

    async fn diagnose(&self, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
        let (path, tables) = (self.path.clone(), tables.to_vec());
        blocking(move || diagnose(&path, &tables)).await
    }

    fn statement(&self, slice: &Slice) -> String {
        select(slice, &part_of(slice).unwrap_or_default())
    }

    fn round_trips(&self) -> u64 {
        0
    }
}
