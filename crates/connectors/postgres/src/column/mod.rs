//! One column of a batch that is being filled.

mod cells;
mod values;

use std::sync::Arc;

use arrow::array::{ArrayRef, NullBufferBuilder};
use arrow::datatypes::{DataType, Field};
use tidelake_model::{Error, ErrorKind, InfiniteTime, Policies, Result, SpecialNumber};

use crate::internal;
use crate::numeric;
use crate::types::Wire;
use values::{Odd, Values};

/// Digits of a number that an error names.
const MOST_DIGITS: usize = 100;

/// Values that followed a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) special_numbers: u64,
    pub(crate) infinite_times: u64,
}

/// A column that is being filled.
pub(crate) struct Column {
    field: Arc<Field>,
    values: Values,
    nulls: NullBufferBuilder,
    policies: Policies,
    /// Rows of the batches before this one.
    done: usize,
    changed: Changed,
    /// Whether windows are cut by this column: its values may not get lost.
    is_cursor: bool,
}

impl Column {
    /// A column whose values are sent in a form and kept as the field says.
    pub(crate) fn new(field: Arc<Field>, wire: Wire, policies: Policies) -> Result<Self> {
        let values = Values::new(wire, field.data_type()).ok_or_else(|| {
            let (name, data_type) = (field.name(), field.data_type());
            internal(format!("column {name:?}: {wire:?} cannot become {data_type}"))
        })?;
        Ok(Self {
            field,
            values,
            nulls: NullBufferBuilder::new(0),
            policies,
            done: 0,
            changed: Changed::default(),
            is_cursor: false,
        })
    }

    /// Makes this a column that windows are cut by. A row whose cursor became NULL
    /// lies in a window at the source and in none in the lake: it could never be
    /// replaced, and would be doubled by the next read of its range.
    pub(crate) fn be_cursor(&mut self) {
        self.is_cursor = true;
    }

    /// The column's name.
    pub(crate) fn name(&self) -> &str {
        self.field.name()
    }

    /// What followed a policy since this was asked last.
    pub(crate) fn take_changed(&mut self) -> Changed {
        std::mem::take(&mut self.changed)
    }

    /// Bytes of a row that do not depend on its value.
    pub(crate) fn fixed_width(&self) -> usize {
        self.values.fixed_width()
    }

    /// Whether cells take bytes beyond the fixed width.
    pub(crate) fn is_variable(&self) -> bool {
        self.values.is_variable()
    }

    /// Adds the cells of some rows.
    pub(crate) fn store<'a>(
        &mut self,
        cells: impl ExactSizeIterator<Item = Option<&'a [u8]>> + Clone,
    ) -> Result<()> {
        let rows = self.nulls.len();
        match self.values.store(cells.clone()) {
            Ok(false) => self.nulls.append_n_non_nulls(cells.len()),
            Ok(true) => cells.for_each(|cell| self.nulls.append(cell.is_some())),
            Err(_) => {
                self.values.truncate(rows);
                return self.store_each(cells);
            }
        }
        Ok(())
    }

    /// The same where one of them needs a decision.
    #[cold]
    fn store_each<'a>(&mut self, cells: impl Iterator<Item = Option<&'a [u8]>>) -> Result<()> {
        cells.into_iter().try_for_each(|cell| self.push(cell))
    }

    /// Adds a cell; `None` is NULL.
    pub(crate) fn push(&mut self, cell: Option<&[u8]>) -> Result<()> {
        match (self.values.store(std::iter::once(cell)), cell) {
            (Ok(is_null), _) => {
                self.nulls.append(!is_null);
                Ok(())
            }
            (Err(odd), Some(cell)) => self.push_odd(odd, cell),
            (Err(_), None) => Err(internal("a NULL was refused")),
        }
    }

    fn push_odd(&mut self, odd: Odd, cell: &[u8]) -> Result<()> {
        match odd {
            Odd::Malformed => Err(self.refused("the server sent a value of another type")),
            Odd::DoesNotFit => {
                let data_type = self.field.data_type();
                let message = format!("{} does not fit {data_type}", shown(cell));
                let hint = "read the column as text, or with more digits (--decimal)";
                Err(self.refused(&message).with_hint(hint))
            }
            Odd::SpecialNumber => self.push_special(cell),
            Odd::InfiniteTime { high } => self.push_infinite(high),
        }
    }

    fn push_special(&mut self, cell: &[u8]) -> Result<()> {
        if self.is_cursor {
            let message = "a number is NaN or infinite, which is no value of a cursor";
            return Err(self
                .refused(message)
                .with_hint("mend the value, or choose another cursor"));
        }
        match self.policies.special_number {
            SpecialNumber::Fail => {
                let hint = "choose --on-special-number null, or text";
                Err(self.refused("a number is NaN or infinite").with_hint(hint))
            }
            SpecialNumber::Nan | SpecialNumber::Text if self.values.store_special(cell) => {
                self.nulls.append_non_null();
                Ok(())
            }
            _ if !self.field.is_nullable() => {
                let message = "a number is NaN or infinite, and the column cannot be NULL";
                let hint = "choose --on-special-number text, or read the column as text";
                Err(self.refused(message).with_hint(hint))
            }
            _ => {
                self.changed.special_numbers += 1;
                self.push(None)
            }
        }
    }

    fn push_infinite(&mut self, high: bool) -> Result<()> {
        let message = "a time is infinite or beyond the range";
        match self.policies.infinite_time {
            InfiniteTime::Fail => {
                let hint = "choose --on-infinite-time null, clamp or text";
                return Err(self.refused(message).with_hint(hint));
            }
            InfiniteTime::Null | InfiniteTime::Text if self.is_cursor => {
                let message = format!("{message}, and a cursor cannot become NULL");
                let hint = "choose --on-infinite-time clamp, or mend the value";
                return Err(self.refused(&message).with_hint(hint));
            }
            InfiniteTime::Null | InfiniteTime::Text if !self.field.is_nullable() => {
                let message = format!("{message}, and the column cannot be NULL");
                let hint = "choose --on-infinite-time clamp, or read the column as text";
                return Err(self.refused(&message).with_hint(hint));
            }
            InfiniteTime::Null | InfiniteTime::Text => self.push(None)?,
            InfiniteTime::Clamp => {
                self.values.store_end(high);
                self.nulls.append_non_null();
            }
        }
        self.changed.infinite_times += 1;
        Ok(())
    }

    /// The error for the cell that comes next.
    fn refused(&self, what: &str) -> Error {
        let row = self.done.saturating_add(self.nulls.len()).saturating_add(1);
        let message = format!("column {:?}: {what} (row {row} of the slice)", self.name());
        Error::new(ErrorKind::Data, message)
    }

    /// Takes the last cells back, so that `rows` remain.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.nulls.truncate(rows);
        self.values.truncate(rows);
    }

    /// The array of all cells, and an empty column again.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        self.done = self.done.saturating_add(self.nulls.len());
        let nulls = self.nulls.finish();
        let name = self.field.name();
        self.values.finish(nulls, self.field.data_type()).map_err(|error| {
            let message = format!(
                "column {name:?}: the server sent a value that is no {}",
                match self.field.data_type() {
                    DataType::Utf8 => "UTF-8 text",
                    _ => "value of its type",
                }
            );
            Error::new(ErrorKind::Data, message)
                .with_hint("a database in SQL_ASCII may hold any bytes; leave the column out")
                .with_source(error)
        })
    }
}

/// A numeric for people: one of thousands of digits is cut off.
fn shown(cell: &[u8]) -> String {
    let text = numeric::text(cell).unwrap_or_default();
    match text.split_at_checked(MOST_DIGITS) {
        Some((head, rest)) if !rest.is_empty() => format!("{head}…"),
        _ => text,
    }
}
