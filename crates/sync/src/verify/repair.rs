//! Mending what differs, through the ordinary commit path.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use serde::Serialize;
use tidelake_connector::cursor_extent;
use tidelake_model::{CursorRead, DataFile, Error, ErrorKind, Purpose, Result, RunId};
use tidelake_watermark::{Bound, Position, Range};

use super::Context;
use super::matching::Counts;
use super::rows::{RowHasher, RowHashes};
use super::sides::{Scope, Side, Sides, Visitor};
use crate::one_table::{OneTable, TableRequest};
use crate::piece::{Piece, check_kinds, run_piece};
use crate::run::RunReport;
use crate::table_run::Task;
use crate::tables::SelectedTable;
use crate::window::describe_range;

/// Ranges that are read again at most; differences that lie apart are taken
/// together beyond that.
const MOST_RANGES: usize = 16;

/// What has to be read again.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) ranges: Vec<Range>,
    /// Wrong rows without a cursor value, which no range holds.
    pub(super) without_cursor: u64,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repair {
    /// What was read again, each in a run of its own.
    pub pieces: Vec<RepairedPiece>,
    /// Differences before it.
    pub before: Counts,
}

/// One range that was read again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepairedPiece {
    /// The range, in words.
    pub range: String,
    /// The run.
    pub run_id: RunId,
    /// Rows that it read.
    pub rows: u64,
}

/// Notes where the wrong rows stand.
struct Places {
    hasher: RowHasher,
    wrong: HashSet<u64>,
    cursor: CursorRead,
    found: Mutex<(Vec<Position>, u64)>,
}

impl Visitor for Places {
    fn visit(&self, _: Side, batch: &RecordBatch) -> Result<()> {
        let RowHashes { identities, .. } = self.hasher.hashes(batch)?;
        for (row, identity) in identities.iter().enumerate() {
            if !self.wrong.contains(identity) {
                continue;
            }
            let at = cursor_extent(&batch.slice(row, 1), &self.cursor)?.lowest;
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            match at {
                Some(at) => found.0.push(at),
                None => found.1 = found.1.saturating_add(1),
            }
        }
        Ok(())
    }
}

/// Finds the ranges that hold all that differs.
pub(super) async fn plan(
    sides: &Sides,
    hasher: &RowHasher,
    wrong: Vec<u64>,
    is_cut: bool,
    damaged: impl Iterator<Item = &DataFile>,
    scope: &Scope,
) -> Result<Plan> {
    let Some(cursor) = hasher.cursor() else { return Ok(Plan::default()) };
    check_kinds(&cursor.kinds)?;
    if is_cut {
        // Too many to be told apart: all that was compared is read again.
        return Ok(Plan { ranges: sides.bounds.hull().into_iter().collect(), without_cursor: 0 });
    }
    let places = Arc::new(Places {
        hasher: hasher.clone(),
        wrong: wrong.into_iter().collect(),
        cursor: cursor.clone(),
        found: Mutex::default(),
    });
    sides.scan(Arc::clone(&places) as Arc<dyn Visitor>, scope).await?;
    let (positions, without_cursor) =
        std::mem::take(&mut *places.found.lock().unwrap_or_else(PoisonError::into_inner));
    let mut ranges: Vec<(Position, Position)> =
        positions.into_iter().map(|at| (at.clone(), at)).collect();
    // What a damaged file holds is dropped with it, and read again.
    ranges.extend(
        damaged.filter_map(|file| Some((file.cursor_min.clone()?, file.cursor_max.clone()?))),
    );
    let ranges = joined(ranges, MOST_RANGES)?;
    Ok(Plan { ranges, without_cursor })
}

/// Ranges in order that do not meet, at most so many.
fn joined(mut ranges: Vec<(Position, Position)>, most: usize) -> Result<Vec<Range>> {
    let mut error = None;
    ranges.sort_by(|left, right| {
        left.0.compare(&right.0).unwrap_or_else(|found| {
            error = Some(found);
            Ordering::Equal
        })
    });
    if let Some(error) = error {
        return Err(
            Error::new(ErrorKind::Data, "cursor values cannot be compared").with_source(error)
        );
    }
    let mut apart: Vec<(Position, Position)> = vec![];
    for (low, high) in ranges {
        match apart.last_mut() {
            Some(last) if !matches!(low.compare(&last.1), Ok(Ordering::Greater)) => {
                if matches!(high.compare(&last.1), Ok(Ordering::Greater)) {
                    last.1 = high;
                }
            }
            _ => apart.push((low, high)),
        }
    }
    let size = apart.len().div_ceil(most.max(1)).max(1);
    let range = |part: &[(Position, Position)]| {
        let (first, last) = (part.first()?, part.last()?);
        let bound = |at: &Position| Some(Bound { at: at.clone(), inclusive: true });
        Some(Range { low: bound(&first.0), high: bound(&last.1) })
    };
    Ok(apart.chunks(size).filter_map(range).collect())
}

/// Reads again what differs.
pub(super) async fn repair(
    context: &Context<'_>,
    selected: &SelectedTable,
    plan: &Plan,
    before: Counts,
) -> Result<Repair> {
    let request = TableRequest {
        env: context.sync.env.clone(),
        sync_id: context.sync.sync_id.clone(),
        table: selected.table.name.to_string(),
        cores: context.request.cores,
        cancel: context.request.cancel.clone(),
        events: Arc::clone(&context.request.events),
    };
    let mut pieces = vec![];
    if selected.cursor.is_none() {
        let table = OneTable::open(context.app, request).await?;
        let report = Box::pin(table.run(&Task::Window)).await?;
        pieces.push(done("every row".to_owned(), &report)?);
        return Ok(Repair { pieces, before });
    }
    for range in &plan.ranges {
        let piece = Piece { range: range.clone(), purpose: Purpose::Repair };
        let report = Box::pin(run_piece(context.app, request.clone(), piece)).await?;
        pieces.push(done(describe_range(range), &report)?);
    }
    Ok(Repair { pieces, before })
}

/// A run that failed is an error of the repair.
fn done(range: String, report: &RunReport) -> Result<RepairedPiece> {
    let error = report.tables.iter().find_map(|table| table.error.as_ref());
    if let Some(error) = error {
        let message = format!("the repair of {range} failed: {}", error.message);
        let failed = Error::new(error.error_kind, message).in_run(report.run_id);
        return Err(match &error.hint {
            Some(hint) => failed.with_hint(hint.clone()),
            None => failed,
        });
    }
    let rows = report.tables.iter().map(|table| table.rows).sum();
    Ok(RepairedPiece { range, run_id: report.run_id, rows })
}

#[cfg(test)]
mod tests {
    use tidelake_watermark::Value;

    use super::*;

    fn ranges(pairs: &[(i128, i128)], most: usize) -> Vec<String> {
        let at = |number: i128| Position::from(Value::Integer(number));
        let pairs = pairs.iter().map(|(low, high)| (at(*low), at(*high))).collect();
        joined(pairs, most).unwrap().iter().map(describe_range).collect()
    }

    #[test]
    fn few_places_stay_apart_and_many_are_taken_together() {
        assert_eq!(ranges(&[(7, 7), (3, 3), (7, 7)], 16), ["[3, 3]", "[7, 7]"]);
        assert_eq!(ranges(&[(1, 5), (4, 9), (2, 3)], 16), ["[1, 9]"]);
        assert_eq!(ranges(&[(1, 1), (2, 2), (8, 8), (9, 9)], 2), ["[1, 2]", "[8, 9]"]);
        assert!(ranges(&[], 2).is_empty());
    }
}
