//! Rows on their way into record batches.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use rusqlite::types::ValueRef;
use tidelake_connector::Counters;
use tidelake_model::{Error, ErrorKind, Result, TableName, TableRead};

use crate::cells::CellReader;
use crate::connection::failure;
use crate::forms::Units;
use crate::misfit::Misfit;
use crate::rows::Row;
use crate::statement::Part;
use crate::texts::spelled;

/// Rows in the largest batch.
const MOST_ROWS: usize = 65_536;
/// A text column of one batch stays below the 2 GiB that its offsets can name,
/// even when a row of SQLite's own limit of 1 GB comes on top.
const MOST_BYTES: u64 = 512 << 20;
/// A row of at least this part of a batch is a large one.
const LARGE_ROW: u64 = 4;
/// What a number takes as text, at the most of what is usual.
const NUMBER_BYTES: u64 = 24;

struct ColumnReader {
    name: String,
    cells: CellReader,
    /// Whether its cells differ in length.
    is_variable: bool,
}

/// Collects rows until a batch is full.
pub(crate) struct Batcher {
    table: TableName,
    schema: SchemaRef,
    columns: Vec<ColumnReader>,
    fixed_bytes: u64,
    most_bytes: u64,
    rows: usize,
    bytes: u64,
    /// Bytes of the last row.
    last_bytes: u64,
    rows_before: u64,
    has_row_number: bool,
}

impl Batcher {
    pub(crate) fn new(
        read: &TableRead,
        part: &Part,
        units: &Units,
        counters: &Counters,
    ) -> Result<Self> {
        let mut columns = Vec::with_capacity(read.columns.len());
        let mut fixed_bytes = 0;
        for column in &read.columns {
            let unit = part.units.get(column.name()).copied();
            let only = part.cursor_forms.get(column.name()).copied();
            let cells = CellReader::new(column, unit, only, read.policies, counters.clone())?;
            let cursor = read.cursor.as_ref().map(|cursor| cursor.cursor.columns());
            let is_cursor = cursor.unwrap_or_default().iter().any(|name| name == column.name());
            let is_variable = cells.fixed_bytes() == 0;
            // What is variable has an offset at least.
            fixed_bytes += if is_variable { 4 } else { cells.fixed_bytes() };
            let name = column.name().to_owned();
            let cells = cells.for_cursor(is_cursor).with_units(units);
            columns.push(ColumnReader { name, cells, is_variable });
        }
        Ok(Self {
            table: read.table.clone(),
            schema: read.schema(),
            columns,
            fixed_bytes,
            most_bytes: read.batch_bytes.min(MOST_BYTES),
            rows: 0,
            bytes: 0,
            last_bytes: 0,
            rows_before: 0,
            has_row_number: part.row_number.is_some(),
        })
    }

    /// Adds a row; tells whether the batch is full with it.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> Result<bool> {
        let mut row_bytes = self.fixed_bytes;
        let mut misfit = None;
        for (place, column) in self.columns.iter_mut().enumerate() {
            let cell = row.cell(place).map_err(unreadable)?;
            if column.is_variable {
                row_bytes = row_bytes.saturating_add(cell_bytes(cell));
            }
            if let Err(found) = column.cells.append(cell) {
                misfit = Some((place, found));
                break;
            }
        }
        if let Some((place, misfit)) = misfit {
            return Err(self.misfit(place, &misfit, row));
        }
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(row_bytes);
        self.last_bytes = row_bytes;
        Ok(self.bytes >= self.most_bytes || self.rows >= MOST_ROWS)
    }

    fn misfit(&self, place: usize, misfit: &Misfit, row: &Row<'_>) -> Error {
        let name = self.columns.get(place).map_or("", |column| column.name.as_str());
        let row_number = row.cell(self.columns.len());
        let place = match row_number {
            Ok(ValueRef::Integer(number)) if self.has_row_number => format!("rowid {number}"),
            _ => {
                let rows = u64::try_from(self.rows).unwrap_or(u64::MAX);
                format!("row {} of the read", self.rows_before.saturating_add(rows) + 1)
            }
        };
        let column = [&self.table.schema, &self.table.table].map(|part| spelled(part)).join(".");
        let column = format!("{column}:{}", spelled(name));
        Error::new(ErrorKind::Data, format!("column {name:?} {} ({place})", misfit.what))
            .with_hint(misfit.hint(&column))
            .in_table(&self.table)
    }

    /// The rows so far; none where there are none. A large row that went over the
    /// limit is a batch of its own.
    pub(crate) fn finish(&mut self) -> Result<Vec<RecordBatch>> {
        if self.rows == 0 {
            return Ok(vec![]);
        }
        let is_apart = self.rows > 1
            && self.bytes > self.most_bytes
            && self.last_bytes > self.most_bytes / LARGE_ROW;
        let before_last = self.rows - 1;
        let arrays = self.columns.iter_mut().map(|column| column.cells.finish()).collect();
        let rows = u64::try_from(self.rows).unwrap_or(u64::MAX);
        self.rows_before = self.rows_before.saturating_add(rows);
        (self.rows, self.bytes) = (0, 0);
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(|error| {
            Error::new(ErrorKind::Data, "the rows do not fit the table's declaration")
                .with_hint("a column that is declared NOT NULL may hold NULL")
                .with_source(error)
        })?;
        if is_apart {
            return Ok(vec![batch.slice(0, before_last), batch.slice(before_last, 1)]);
        }
        Ok(vec![batch])
    }
}

/// What a cell of a column of texts or bytes takes.
fn cell_bytes(cell: ValueRef<'_>) -> u64 {
    match cell {
        ValueRef::Text(cell) | ValueRef::Blob(cell) => {
            u64::try_from(cell.len()).unwrap_or(u64::MAX / 4)
        }
        ValueRef::Null => 0,
        ValueRef::Integer(_) | ValueRef::Real(_) => NUMBER_BYTES,
    }
}

fn unreadable(error: rusqlite::Error) -> Error {
    failure(error, "cannot read a row")
}
