//! Cursor values of rows, in the order of the memory database.

use std::cmp::Ordering;

use tidelake_model::{CursorRead, Error, ErrorKind, Result, Table, TableRead};
use tidelake_watermark::{Cursor, Position, Range, Value};

use super::Row;

/// A cursor with the places of its columns in the rows of a table.
pub(super) struct Located<'a> {
    cursor: &'a Cursor,
    places: Vec<usize>,
}

impl<'a> Located<'a> {
    pub(super) fn new(table: &Table, cursor: &'a CursorRead) -> Result<Self> {
        let place = |name: &String| place(table, name);
        let places: Result<Vec<_>> = cursor.cursor.columns().iter().map(place).collect();
        Ok(Self { cursor: &cursor.cursor, places: places? })
    }

    /// The position of a row; `None` where the cursor is NULL.
    pub(super) fn position(&self, row: &Row) -> Option<Position> {
        let mut values = self.places.iter().map(|place| row.get(*place).cloned().flatten());
        match self.cursor {
            Cursor::Fallback(_) => values.flatten().next().map(Position::from),
            _ => values.by_ref().collect::<Option<Vec<_>>>().and_then(Position::tuple),
        }
    }

    /// Whether a read takes the row.
    pub(super) fn wants(&self, read: &TableRead, row: &Row) -> Result<bool> {
        match (self.position(row), &read.range) {
            (None, _) => Ok(read.null_cursors),
            (Some(_), None) => Ok(true),
            (Some(at), Some(range)) => contains(range, &at),
        }
    }
}

/// The place of a column in the rows of a table.
pub(super) fn place(table: &Table, name: &str) -> Result<usize> {
    table.columns.iter().position(|column| column.name() == name).ok_or_else(|| {
        let message = format!("column {name:?} does not exist any more");
        Error::new(ErrorKind::Data, message).in_table(&table.name)
    })
}

pub(super) fn contains(range: &Range, at: &Position) -> Result<bool> {
    let above = match &range.low {
        None => true,
        Some(low) => match compare(at, &low.at)? {
            Ordering::Less => false,
            Ordering::Equal => low.inclusive,
            Ordering::Greater => true,
        },
    };
    let below = match &range.high {
        None => true,
        Some(high) => match compare(at, &high.at)? {
            Ordering::Less => true,
            Ordering::Equal => high.inclusive,
            Ordering::Greater => false,
        },
    };
    Ok(above && below)
}

/// Compares positions, text among them by this database's own order.
pub(super) fn compare(left: &Position, right: &Position) -> Result<Ordering> {
    for (left, right) in left.values().zip(right.values()) {
        let order = match (left, right) {
            (Value::Text(left), Value::Text(right)) => collate(left, right),
            _ => left.compare(right).map_err(|error| {
                Error::new(ErrorKind::Data, "cursor values cannot be compared").with_source(error)
            })?,
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// Letters before case, as most collations have it: whoever compares text on
/// the client's side by its bytes gets another order, and a failing test.
fn collate(left: &str, right: &str) -> Ordering {
    let lower = |text: &str| text.to_lowercase();
    lower(left).cmp(&lower(right)).then_with(|| left.cmp(right))
}
