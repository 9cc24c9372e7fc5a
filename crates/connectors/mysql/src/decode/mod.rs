//! Rows of the binary protocol to record batches.

mod bytes;
mod calendar;
mod cells;
mod column;
mod decimal;
#[cfg(test)]
mod tests;
mod values;
mod wires;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tidelake_connector::Counters;
use tidelake_model::{Error, ErrorKind, Policies, Result};

use column::Column;

pub(crate) use bytes::{cell, length};
pub(crate) use wires::Sent;
pub use wires::Wire;

const MOST_ROWS: usize = 65_536;
/// One more cell of the largest size (1 GiB) still fits 32-bit offsets.
const MOST_BYTES: usize = 512 << 20;
/// Bits of a row's map of NULLs that belong to no column.
const RESERVED_BITS: usize = 2;

/// How the rows of a statement become batches.
#[derive(Debug, Clone)]
pub struct DecodePlan {
    /// The schema of the batches, a field for each column of the statement.
    pub schema: SchemaRef,
    /// The forms in which the columns are sent, in the same order.
    pub wires: Vec<Wire>,
    /// What becomes of values that have no place in their type.
    pub policies: Policies,
    /// A batch ends at that many bytes, or at 65,536 rows.
    pub batch_bytes: u64,
    /// Columns by which windows are cut: no policy may turn their values into
    /// NULL.
    pub cursor: Vec<String>,
    /// Where values that followed a policy are counted.
    pub counters: Counters,
}

/// Turns rows of the binary protocol into record batches.
///
/// Each row is decoded where the socket put it. Malformed input is an error of kind
/// `Data`, after which the decoder is of no more use.
pub struct RowDecoder {
    schema: SchemaRef,
    columns: Vec<Column>,
    map_bytes: usize,
    rows: usize,
    total_rows: u64,
    row_width: usize,
    batch_bytes: usize,
    /// Bytes that still fit the batch for certain; the batch is measured when they
    /// are used up.
    spare: usize,
    is_full: bool,
    counters: Counters,
}

impl RowDecoder {
    /// A decoder for rows of that plan.
    pub fn new(plan: &DecodePlan) -> Result<Self> {
        let fields = plan.schema.fields();
        if fields.len() != plan.wires.len() {
            return Err(crate::internal("a schema and its wire forms differ in length"));
        }
        let columns = fields.iter().zip(&plan.wires).map(|(field, wire)| {
            let is_cursor = plan.cursor.iter().any(|name| name == field.name());
            Column::new(Arc::clone(field), *wire, plan.policies, is_cursor)
        });
        let columns: Vec<_> = columns.collect::<Result<_>>()?;
        let batch_bytes =
            usize::try_from(plan.batch_bytes).unwrap_or(MOST_BYTES).clamp(1, MOST_BYTES);
        Ok(Self {
            schema: Arc::clone(&plan.schema),
            map_bytes: (columns.len() + RESERVED_BITS).div_ceil(8),
            row_width: columns.iter().map(Column::fixed_width).sum(),
            columns,
            rows: 0,
            total_rows: 0,
            batch_bytes,
            spare: batch_bytes,
            is_full: false,
            counters: plan.counters.clone(),
        })
    }

    /// Whether the columns are sent in the forms that the plan says; an error names
    /// the first that is not.
    pub(crate) fn check(&self, sent: &[Sent]) -> Result<()> {
        if sent.len() != self.columns.len() {
            let (sent, wanted) = (sent.len(), self.columns.len());
            return Err(crate::internal(format!("the server sends {sent} columns, not {wanted}")));
        }
        for (column, sent) in self.columns.iter().zip(sent) {
            if !column.wire().takes(sent) {
                let message = format!(
                    "column {:?}: the server sends another type than its catalogue says ({sent:?} \
                     for {:?})",
                    column.name(),
                    column.wire()
                );
                return Err(Error::new(ErrorKind::Data, message)
                    .with_hint("run again; the column was changed meanwhile, perhaps"));
            }
        }
        Ok(())
    }

    /// Takes a row, without the packet's header.
    #[inline]
    pub fn row(&mut self, packet: &[u8]) -> Result<()> {
        let Some((0, bytes)) = packet.split_first() else {
            return Err(malformed("a row does not begin as one"));
        };
        let Some((map, mut bytes)) = bytes.split_at_checked(self.map_bytes) else {
            return Err(malformed("a row is too short"));
        };
        let row = self.rows;
        if map.iter().all(|byte| *byte == 0) {
            for column in &mut self.columns {
                bytes = column.push(bytes, row)?;
            }
        } else {
            let mut nulls = Nulls::new(map);
            for column in &mut self.columns {
                if nulls.next_is_null() {
                    column.push_null(row);
                } else {
                    bytes = column.push(bytes, row)?;
                }
            }
        }
        if !bytes.is_empty() {
            return Err(malformed("something follows a row's last column"));
        }
        self.rows += 1;
        // At most that much was added: text is never longer than its packet.
        let added = self.row_width + packet.len();
        match self.spare.checked_sub(added) {
            Some(spare) if self.rows < MOST_ROWS => self.spare = spare,
            _ => self.measure(),
        }
        Ok(())
    }

    #[cold]
    fn measure(&mut self) {
        let variable: usize = self.columns.iter().map(Column::variable_size).sum();
        let size = variable + self.rows * self.row_width;
        self.spare = self.batch_bytes.saturating_sub(size);
        self.is_full = self.spare == 0 || self.rows >= MOST_ROWS;
    }

    /// The batch, once it is full.
    pub fn full_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.is_full { self.take_batch() } else { Ok(None) }
    }

    /// What there is of the last batch.
    pub fn last_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows == 0 { Ok(None) } else { self.take_batch() }
    }

    /// Rows decoded so far.
    pub fn rows(&self) -> u64 {
        self.total_rows + u64::try_from(self.rows).unwrap_or(u64::MAX)
    }

    fn take_batch(&mut self) -> Result<Option<RecordBatch>> {
        for column in &mut self.columns {
            let count = column.take_zero_dates();
            if count > 0 {
                self.counters.add(&format!("zero_date:{}", column.name()), count);
            }
        }
        self.total_rows = self.rows();
        let rows = std::mem::take(&mut self.rows);
        self.spare = self.batch_bytes;
        self.is_full = false;
        let arrays: Result<Vec<_>> =
            self.columns.iter_mut().map(|column| column.finish(rows)).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays?).map_err(|error| {
            Error::new(ErrorKind::Data, "the rows do not fit the schema").with_source(error)
        })?;
        Ok(Some(batch))
    }
}

/// A row's map of NULLs, read from its lowest bit.
struct Nulls<'a> {
    rest: &'a [u8],
    byte: u8,
    left: usize,
}

impl<'a> Nulls<'a> {
    fn new(map: &'a [u8]) -> Self {
        let (first, rest) = map.split_first().unwrap_or((&0, &[]));
        Self { rest, byte: first >> RESERVED_BITS, left: 8 - RESERVED_BITS }
    }

    fn next_is_null(&mut self) -> bool {
        if self.left == 0 {
            let (next, rest) = self.rest.split_first().unwrap_or((&0, &[]));
            (self.byte, self.rest, self.left) = (*next, rest, 8);
        }
        let is_null = self.byte & 1 == 1;
        self.byte >>= 1;
        self.left -= 1;
        is_null
    }
}

fn malformed(why: &str) -> Error {
    Error::new(ErrorKind::Data, format!("the server's rows cannot be read: {why}"))
}
