//! The source: one database file.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::DataType;
use async_trait::async_trait;
use tidelake_connector::sql::check;
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, DiagnosedTable, FindRequest, Finding, Highest,
    HighestRequest, Reading, Slices, Source, SplitRequest, TableFilter,
};
use tidelake_model::{Column, Error, ErrorKind, Result, Slice, Table};
use tidelake_watermark::{Fence, Kind, Value};

use crate::catalogue::{check_columns, describe, tables};
use crate::connection::{failure, open};
use crate::diagnose::diagnose;
use crate::find::find;
use crate::forms::{cursor_forms, units};
use crate::reader::{Shared, read};
use crate::statement::{Part, select};
use crate::{blocking, highest};

/// The snapshots that are held, by their number.
#[derive(Default)]
struct Snapshots {
    held: Mutex<HashMap<u64, Shared>>,
    last: AtomicU64,
}

/// Keeps a snapshot in its place until it is dropped.
struct SnapshotHold {
    snapshots: Arc<Snapshots>,
    number: u64,
}

impl Drop for SnapshotHold {
    fn drop(&mut self) {
        let connection = {
            let mut held = self.snapshots.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.remove(&self.number)
        };
        // Closing may wait for the disk, which nobody else should have to.
        drop(connection);
    }
}

impl Snapshots {
    fn keep(self: &Arc<Self>, connection: Shared) -> SnapshotHold {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(number, connection);
        SnapshotHold { snapshots: self.clone(), number }
    }

    fn get(&self, number: u64) -> Option<Shared> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }
}

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

#[async_trait]
impl Source for SqliteSource {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rows_commit_out_of_order: false,
            has_fence: false,
            parallel_slices: false,
            composite_cursor: true,
            fallback_cursor: true,
            schemas: false,
            open_time_digits: true,
            decimals_of_floats: true,
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
        let (path, read) = (self.path.clone(), request.read.clone());
        check(&read)?;
        let snapshots = self.snapshots.clone();
        blocking(move || {
            let connection = open(&path)?;
            let failed = |error| failure(error, "cannot take a snapshot").in_table(&read.table);
            // The transaction sees what is committed at its first look.
            connection.execute_batch("BEGIN").map_err(failed)?;
            let described = describe(&connection, &read.table)?;
            check_columns(&described.table, &read.columns)?;
            let mut part =
                Part { row_number: described.row_number.map(str::to_owned), ..Part::default() };
            let mut in_cursor = BTreeSet::new();
            if let Some(cursor) = &read.cursor {
                in_cursor.extend(cursor.cursor.columns().iter().map(String::as_str));
                part.cursor_forms = cursor_forms(&connection, &described.table, cursor)?;
            }
            let times = time_columns(&read.columns, &in_cursor);
            part.units = units(&connection, &described, &times)?;

            let hold = snapshots.keep(Arc::new(Mutex::new(connection)));
            part.snapshot = hold.number;
            let part = serde_json::to_value(&part).map_err(|error| {
                Error::new(ErrorKind::Internal, "the slice cannot be written").with_source(error)
            })?;
            drop(in_cursor);
            let slice = Slice { number: 0, read, part };
            let columns = described.table.columns.iter().map(|it| it.name().to_owned()).collect();
            Ok(Slices { slices: vec![slice], columns, hold: Box::new(hold) })
        })
        .await
    }

    async fn read(&self, slice: &Slice) -> Result<Reading> {
        check(&slice.read)?;
        let part = part_of(slice)?;
        let Some(connection) = self.snapshots.get(part.snapshot) else {
            let message = "the snapshot of this slice is gone";
            return Err(Error::new(ErrorKind::Unavailable, message)
                .with_hint("read the window again from the start")
                .in_table(&slice.read.table)
                .in_slice(slice.number));
        };
        Ok(read(connection, slice.clone(), part))
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
