//! One column of a batch that is being filled.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanBufferBuilder};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Field;
use tidelake_model::{Error, ErrorKind, Policies, Result, ZeroDate};

use super::Wire;
use super::calendar;
use super::values::{Trouble, Unfit, Values};
use crate::internal;

/// A column that is being filled.
pub(super) struct Column {
    field: Arc<Field>,
    wire: Wire,
    values: Values,
    /// Rows of this batch that are NULL; most columns have none, and then this
    /// costs nothing.
    nulls: Vec<usize>,
    policies: Policies,
    /// Rows of the batches before this one.
    done: usize,
    zero_dates: u64,
    /// Whether windows are cut by this column: its values may not get lost.
    is_cursor: bool,
}

impl Column {
    /// A column whose values are sent in a form and kept as the field says.
    pub(super) fn new(
        field: Arc<Field>,
        wire: Wire,
        policies: Policies,
        is_cursor: bool,
    ) -> Result<Self> {
        let values = Values::new(wire, field.data_type()).ok_or_else(|| {
            let (name, data_type) = (field.name(), field.data_type());
            internal(format!("column {name:?}: {wire:?} cannot become {data_type}"))
        })?;
        Ok(Self { field, wire, values, nulls: vec![], policies, done: 0, zero_dates: 0, is_cursor })
    }

    pub(super) fn name(&self) -> &str {
        self.field.name()
    }

    pub(super) fn wire(&self) -> Wire {
        self.wire
    }

    /// Zero dates that became NULL since this was asked last.
    pub(super) fn take_zero_dates(&mut self) -> u64 {
        std::mem::take(&mut self.zero_dates)
    }

    /// Bytes of a row that do not depend on its value.
    pub(super) fn fixed_width(&self) -> usize {
        self.values.fixed_width()
    }

    /// Bytes of all cells beyond the fixed width.
    pub(super) fn variable_size(&self) -> usize {
        self.values.variable_size()
    }

    /// Adds NULL at a row of the batch.
    pub(super) fn push_null(&mut self, row: usize) {
        self.nulls.push(row);
        self.values.push_null();
    }

    /// Adds the cell at the front of the bytes at a row of the batch, and returns
    /// what follows.
    #[inline]
    pub(super) fn push<'a>(&mut self, bytes: &'a [u8], row: usize) -> Result<&'a [u8]> {
        match self.values.store(bytes) {
            Some(rest) => Ok(rest),
            None => self.push_other(bytes, row),
        }
    }

    #[cold]
    fn push_other<'a>(&mut self, bytes: &'a [u8], row: usize) -> Result<&'a [u8]> {
        match self.values.trouble(bytes) {
            Trouble::NoDay(date, rest) => {
                self.push_zero_date(date, row)?;
                Ok(rest)
            }
            Trouble::DoesNotFit(text) => {
                let data_type = self.field.data_type();
                let hint = "read the column as text, or with more digits (--decimal)";
                Err(self.refused(row, &format!("{text} does not fit {data_type}")).with_hint(hint))
            }
            Trouble::TooLarge => {
                let what = "a cell is larger than a batch can be (2 GiB)";
                Err(self.refused(row, what).with_hint("leave the column out"))
            }
            Trouble::Malformed => Err(self.refused(row, "the server sent a value of another type")),
        }
    }

    fn push_zero_date(&mut self, date: &[u8], row: usize) -> Result<()> {
        let message = format!("{} is no day of any calendar", calendar::shown(date));
        match self.policies.zero_date {
            ZeroDate::Fail => {
                let hint = "choose --on-zero-date null or text, or mend the value";
                Err(self.refused(row, &message).with_hint(hint))
            }
            ZeroDate::Null | ZeroDate::Text if self.is_cursor => {
                let message = format!("{message}, and a cursor cannot become NULL");
                let hint = "mend the value, or choose another cursor";
                Err(self.refused(row, &message).with_hint(hint))
            }
            ZeroDate::Null | ZeroDate::Text if !self.field.is_nullable() => {
                let message = format!("{message}, and the column cannot be NULL");
                let hint = "choose --on-zero-date text, or mend the value";
                Err(self.refused(row, &message).with_hint(hint))
            }
            ZeroDate::Null | ZeroDate::Text => {
                self.zero_dates += 1;
                self.push_null(row);
                Ok(())
            }
        }
    }

    /// The error for the cell at a row of the batch.
    fn refused(&self, row: usize, what: &str) -> Error {
        let row = self.done.saturating_add(row).saturating_add(1);
        let message = format!("column {:?}: {what} (row {row} of the slice)", self.name());
        Error::new(ErrorKind::Data, message)
    }

    /// The array of all cells, and an empty column again.
    pub(super) fn finish(&mut self, rows: usize) -> Result<ArrayRef> {
        let nulls = std::mem::take(&mut self.nulls);
        let nulls = (!nulls.is_empty()).then(|| {
            let mut valid = BooleanBufferBuilder::new(rows);
            valid.append_n(rows, true);
            nulls.into_iter().for_each(|row| valid.set_bit(row, false));
            NullBuffer::new(valid.finish())
        });
        let array = self.values.finish(nulls, self.field.data_type());
        let array = array.map_err(|unfit| match unfit {
            Unfit::NoText(row) => self
                .refused(row, "the value is no UTF-8 text")
                .with_hint("read the column as binary, or mend the value"),
            Unfit::Array(error) => {
                let message = format!("column {:?}: its values fit no array", self.name());
                Error::new(ErrorKind::Data, message).with_source(error)
            }
        })?;
        self.done = self.done.saturating_add(rows);
        Ok(array)
    }
}
