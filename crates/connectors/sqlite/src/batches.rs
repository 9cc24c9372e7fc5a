//! Rows on their way into record batches.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use tidelake_connector::Counters;
use tidelake_model::{Error, ErrorKind, Result, TableName, TableRead};

use crate::cells::CellReader;
use crate::connection::failure;
use crate::misfit::Misfit;
use crate::statement::Part;
use crate::texts::spelled;

/// Rows in the largest batch.
const MOST_ROWS: usize = 65_536;
/// A text column of one batch stays below the 2 GiB that its offsets can name,
/// even when a row of SQLite's own limit of 1 GB comes on top.
const MOST_BYTES: u64 = 512 << 20;
/// What a number takes as text, at the most of what is usual.
const NUMBER_BYTES: u64 = 24;

/// Collects rows until a batch is full.
pub(crate) struct Batcher {
    table: TableName,
    schema: SchemaRef,
    names: Vec<String>,
    readers: Vec<CellReader>,
    /// Columns whose cells differ in length.
    variable: Vec<usize>,
    fixed_bytes: u64,
    most_bytes: u64,
    rows: usize,
    bytes: u64,
    rows_before: u64,
    has_row_number: bool,
}

impl Batcher {
    pub(crate) fn new(read: &TableRead, part: &Part, counters: &Counters) -> Result<Self> {
        let mut readers = Vec::with_capacity(read.columns.len());
        for column in &read.columns {
            let unit = part.units.get(column.name()).copied();
            let only = part.cursor_forms.get(column.name()).copied();
            let reader = CellReader::new(column, unit, only, read.policies, counters.clone())?;
            let cursor = read.cursor.as_ref().map(|cursor| cursor.cursor.columns());
            let is_cursor = cursor.unwrap_or_default().iter().any(|name| name == column.name());
            readers.push(reader.for_cursor(is_cursor));
        }
        let fixed = readers.iter().map(CellReader::fixed_bytes);
        let variable = fixed.clone().enumerate().filter(|(_, bytes)| *bytes == 0);
        Ok(Self {
            table: read.table.clone(),
            schema: read.schema(),
            names: read.columns.iter().map(|column| column.name().to_owned()).collect(),
            variable: variable.map(|(place, _)| place).collect(),
            fixed_bytes: fixed.sum(),
            most_bytes: read.batch_bytes.min(MOST_BYTES),
            readers,
            rows: 0,
            bytes: 0,
            rows_before: 0,
            has_row_number: part.row_number.is_some(),
        })
    }

    /// Adds a row, and gives the batch before it where both would be too large.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> Result<Option<RecordBatch>> {
        let row_bytes = self.row_bytes(row).map_err(unreadable)?;
        let too_large = self.bytes.saturating_add(row_bytes) > self.most_bytes;
        let full = self.rows > 0 && (too_large || self.rows >= MOST_ROWS);
        let batch = if full { self.finish()? } else { None };
        for (place, (reader, name)) in self.readers.iter_mut().zip(&self.names).enumerate() {
            let cell = row.get_ref(place).map_err(unreadable)?;
            if let Err(misfit) = reader.append(cell) {
                return Err(self.misfit(name, &misfit, row));
            }
        }
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(row_bytes);
        Ok(batch)
    }

    fn row_bytes(&self, row: &Row<'_>) -> rusqlite::Result<u64> {
        let mut bytes = self.fixed_bytes;
        for place in &self.variable {
            bytes += 4 + match row.get_ref(*place)? {
                ValueRef::Text(cell) | ValueRef::Blob(cell) => {
                    u64::try_from(cell.len()).unwrap_or(u64::MAX / 4)
                }
                ValueRef::Null => 0,
                _ => NUMBER_BYTES,
            };
        }
        Ok(bytes)
    }

    fn misfit(&self, name: &str, misfit: &Misfit, row: &Row<'_>) -> Error {
        let row_number = row.get_ref(self.readers.len());
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

    /// The rows so far; `None` where there are none.
    pub(crate) fn finish(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows == 0 {
            return Ok(None);
        }
        let arrays = self.readers.iter_mut().map(CellReader::finish).collect();
        let rows = u64::try_from(self.rows).unwrap_or(u64::MAX);
        self.rows_before = self.rows_before.saturating_add(rows);
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new(self.schema.clone(), arrays).map(Some).map_err(|error| {
            Error::new(ErrorKind::Data, "the rows do not fit the table's declaration")
                .with_hint("a column that is declared NOT NULL may hold NULL")
                .with_source(error)
        })
    }
}

fn unreadable(error: rusqlite::Error) -> Error {
    failure(error, "cannot read a row")
}
