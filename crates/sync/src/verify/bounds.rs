//! What is compared: what the lake should hold by now, and no later run reads
//! again.

use std::cmp::Ordering;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{not, or};
use tidelake_connector::rows_outside;
use tidelake_model::{
    CursorRead, DataFile, Error, ErrorKind, HistoryRow, NullCursor, Result, SyncConfig,
};
use tidelake_watermark::{Bound, CompareError, Direction, Kind, Progress, Range, Window};

use crate::cursor::TableCursor;
use crate::window::{describe_range, mixed, parse_lookback};

/// What is compared of one table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounds {
    cursor: Option<CursorRead>,
    /// Ranges of cursor values that do not touch, in order; empty where every row
    /// is compared.
    ranges: Vec<Range>,
    /// Whether rows without a cursor value are compared.
    pub(super) nulls: bool,
    /// Values that only the source can compare: the lake's rows are not cut.
    is_text: bool,
    /// The upper end: what lies above is for the next run.
    pub(super) through: Option<Bound>,
    /// Ranges below it that nobody read by the user's own wish.
    pub(super) skipped: Vec<Range>,
}

impl Bounds {
    /// Every row.
    pub(super) fn whole() -> Self {
        Self {
            cursor: None,
            ranges: vec![],
            nulls: true,
            is_text: false,
            through: None,
            skipped: vec![],
        }
    }

    /// The rows that the runs so far read; `None` where they read nothing. `history`
    /// is that of the watermark, newest first, `extra` what was read beside it.
    ///
    /// The upper end is where the next run begins to read, so that the two tile:
    /// what came late into the gap above `max_seen`, or is read again for a
    /// lookback, is not missing, since the next run reads it.
    pub(super) fn of(
        sync: &SyncConfig,
        cursor: &TableCursor,
        progress: &Progress,
        history: &[HistoryRow],
        extra: &[Range],
    ) -> Result<Option<Self>> {
        let Some(through) = read_through(sync, cursor, progress)? else { return Ok(None) };
        let is_text = cursor.read.kinds.contains(&Kind::Text);
        let upper = Range { low: None, high: Some(through.clone()) };
        let from = |low: Option<Bound>| Range { low, ..upper.clone() };
        let (mut ranges, mut skipped) = (vec![], vec![]);
        if is_text {
            ranges.push(from(first_bound(progress)));
        } else {
            let Read { read, passed_over } = read_so_far(progress, history)?;
            for range in read.iter().chain(extra) {
                add(&mut ranges, cut(range, &upper)?)?;
            }
            for range in passed_over {
                for left in without(cut(&range, &upper)?, &ranges)? {
                    skipped.push(left);
                }
            }
        }
        let nulls = cursor.nullable && sync.null_cursor == NullCursor::First;
        let cursor = Some(cursor.read.clone());
        Ok(Some(Self { cursor, ranges, nulls, is_text, through: Some(through), skipped }))
    }

    /// The one range that the source is asked for.
    pub(super) fn hull(&self) -> Option<Range> {
        let (first, last) = (self.ranges.first()?, self.ranges.last()?);
        Some(Range { low: first.low.clone(), high: last.high.clone() })
    }

    /// Whether no row with a value is compared.
    pub(super) fn is_empty(&self) -> bool {
        self.cursor.is_some() && self.ranges.is_empty()
    }

    /// In words.
    pub(super) fn describe(&self) -> String {
        if self.cursor.is_none() {
            return "every row".to_owned();
        }
        let mut ranges: Vec<_> = self.ranges.iter().map(describe_range).collect();
        if self.nulls {
            ranges.push("rows without a value".to_owned());
        }
        if ranges.is_empty() { "nothing".to_owned() } else { ranges.join(" and ") }
    }

    /// Which rows of the source count; `None` where all that were asked for do.
    pub(super) fn source_mask(&self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        if self.ranges.len() < 2 { Ok(None) } else { self.lake_mask(batch).map(Some) }
    }

    /// Whether a file may hold rows that do not count.
    pub(super) fn needs_mask(&self, file: &DataFile) -> Result<bool> {
        if self.cursor.is_none() {
            return Ok(false);
        }
        if file.cursor_nulls > 0 && !self.nulls {
            return Ok(true);
        }
        if self.is_text {
            return Ok(false);
        }
        self.holds(file).map(|holds| !holds)
    }

    /// Whether all values of the file lie in one of the ranges.
    pub(super) fn holds(&self, file: &DataFile) -> Result<bool> {
        let (Some(lowest), Some(highest)) = (&file.cursor_min, &file.cursor_max) else {
            return Ok(file.cursor_nulls == file.rows);
        };
        for range in &self.ranges {
            if range.contains(lowest).map_err(mixed)? && range.contains(highest).map_err(mixed)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Which rows of the lake count.
    pub(super) fn lake_mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let Some(cursor) = &self.cursor else {
            return Ok(BooleanArray::from(vec![true; batch.num_rows()]));
        };
        let everything = [Range::default()];
        let ranges = if self.is_text { everything.as_slice() } else { &self.ranges };
        let mut mask = BooleanArray::from(vec![false; batch.num_rows()]);
        for range in ranges {
            let inside = not(&rows_outside(batch, cursor, range)?).map_err(compute)?;
            mask = or(&mask, &inside).map_err(compute)?;
        }
        if self.nulls {
            // Only a row without a value lies outside of a range that is open.
            let nulls = rows_outside(batch, cursor, &Range::default())?;
            mask = or(&mask, &nulls).map_err(compute)?;
        }
        Ok(mask)
    }
}

/// The upper end of what no later run reads again; `None` where nothing was read.
fn read_through(
    sync: &SyncConfig,
    cursor: &TableCursor,
    progress: &Progress,
) -> Result<Option<Bound>> {
    let Some(seen) = &progress.max_seen else { return Ok(None) };
    let lookback =
        sync.lookback.as_deref().map(|text| parse_lookback(text, cursor.kind())).transpose()?;
    let high = progress.watermark.as_ref().unwrap_or(seen);
    let next = match Window::plan(progress, high, lookback.as_ref()) {
        Ok(next) => next.range.low,
        Err(CompareError::Text) => Some(Bound { at: seen.clone(), inclusive: false }),
        Err(error) => return Err(mixed(error)),
    };
    Ok(next.map(|low| Bound { at: low.at, inclusive: !low.inclusive }))
}

fn first_bound(progress: &Progress) -> Option<Bound> {
    let inclusive = progress.direction == Direction::Exclusive;
    progress.first.clone().map(|at| Bound { at, inclusive })
}

struct Read {
    read: Vec<Range>,
    passed_over: Vec<Range>,
}

/// What the runs read, and what an edit upwards passed over.
fn read_so_far(progress: &Progress, history: &[HistoryRow]) -> Result<Read> {
    let mut read = vec![];
    let mut passed_over = vec![];
    for row in history.iter().rev() {
        match row.change.as_str() {
            // All is read anew.
            "reset" => {
                read.clear();
                passed_over.clear();
            }
            "create" | "edit" | "undo" => {
                if let Some(range) = above(row)? {
                    passed_over.push(range);
                }
            }
            _ => {
                if let Some(range) = above(row)? {
                    add(&mut read, Some(range))?;
                }
            }
        }
    }
    if history.is_empty() {
        let high = progress.max_seen.clone().map(|at| Bound { at, inclusive: true });
        add(&mut read, Some(Range { low: first_bound(progress), high }))?;
    }
    Ok(Read { read, passed_over })
}

/// What lies between the values before a change and those after it, where it went
/// upwards.
fn above(row: &HistoryRow) -> Result<Option<Range>> {
    let Some(after) = &row.after.max_seen else { return Ok(None) };
    let low = match &row.before.max_seen {
        Some(before) if after.compare(before).map_err(mixed)? != Ordering::Greater => {
            return Ok(None);
        }
        Some(before) => Some(Bound { at: before.clone(), inclusive: false }),
        None => first_bound(&row.after),
    };
    Ok(Some(Range { low, high: Some(Bound { at: after.clone(), inclusive: true }) }))
}

/// How two lower ends stand to each other; an absent one is the lowest.
fn compare_low(left: Option<&Bound>, right: Option<&Bound>) -> Result<Ordering> {
    Ok(match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(left), Some(right)) => {
            left.at.compare(&right.at).map_err(mixed)?.then(right.inclusive.cmp(&left.inclusive))
        }
    })
}

/// How two upper ends stand to each other; an absent one is the highest.
fn compare_high(left: Option<&Bound>, right: Option<&Bound>) -> Result<Ordering> {
    Ok(match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(left), Some(right)) => {
            left.at.compare(&right.at).map_err(mixed)?.then(left.inclusive.cmp(&right.inclusive))
        }
    })
}

/// What two ranges have in common.
fn cut(left: &Range, right: &Range) -> Result<Option<Range>> {
    let low = match compare_low(left.low.as_ref(), right.low.as_ref())? {
        Ordering::Less => right.low.clone(),
        _ => left.low.clone(),
    };
    let high = match compare_high(left.high.as_ref(), right.high.as_ref())? {
        Ordering::Greater => right.high.clone(),
        _ => left.high.clone(),
    };
    let range = Range { low, high };
    Ok((!range.is_empty().map_err(mixed)?).then_some(range))
}

/// Whether nothing lies between the end of one range and the begin of another.
fn touch(high: Option<&Bound>, low: Option<&Bound>) -> Result<bool> {
    let (Some(high), Some(low)) = (high, low) else { return Ok(true) };
    Ok(match low.at.compare(&high.at).map_err(mixed)? {
        Ordering::Less => true,
        Ordering::Equal => low.inclusive || high.inclusive,
        Ordering::Greater => false,
    })
}

/// Adds a range to others that do not touch, which are in order and stay so.
fn add(ranges: &mut Vec<Range>, range: Option<Range>) -> Result<()> {
    let Some(mut range) = range else { return Ok(()) };
    let mut kept = vec![];
    for other in ranges.drain(..) {
        let meets = touch(other.high.as_ref(), range.low.as_ref())?
            && touch(range.high.as_ref(), other.low.as_ref())?;
        if !meets {
            kept.push(other);
            continue;
        }
        if compare_low(other.low.as_ref(), range.low.as_ref())? == Ordering::Less {
            range.low = other.low;
        }
        if compare_high(other.high.as_ref(), range.high.as_ref())? == Ordering::Greater {
            range.high = other.high;
        }
    }
    let mut place = 0;
    for other in &kept {
        if compare_low(other.low.as_ref(), range.low.as_ref())? == Ordering::Less {
            place += 1;
        }
    }
    kept.insert(place, range);
    *ranges = kept;
    Ok(())
}

/// A range less others.
fn without(range: Option<Range>, others: &[Range]) -> Result<Vec<Range>> {
    let mut left: Vec<Range> = range.into_iter().collect();
    for other in others {
        let mut rest = vec![];
        for range in left {
            let below = other.low.clone().map(|low| Range {
                low: range.low.clone(),
                high: Some(Bound { at: low.at, inclusive: !low.inclusive }),
            });
            let above = other.high.clone().map(|high| Range {
                low: Some(Bound { at: high.at, inclusive: !high.inclusive }),
                high: range.high.clone(),
            });
            for piece in [below, above].into_iter().flatten() {
                rest.extend(cut(&range, &piece)?);
            }
        }
        left = rest;
    }
    Ok(left)
}

fn compute(error: arrow::error::ArrowError) -> Error {
    Error::new(ErrorKind::Internal, "rows could not be filtered").with_source(error)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidelake_model::Actor;
    use tidelake_watermark::{Position, Value};

    use super::*;

    fn at(number: i128) -> Position {
        Value::Integer(number).into()
    }

    fn range(low: i128, high: i128) -> Range {
        Range {
            low: Some(Bound { at: at(low), inclusive: false }),
            high: Some(Bound { at: at(high), inclusive: true }),
        }
    }

    fn progress(value: Option<i128>) -> Progress {
        Progress {
            watermark: value.map(at),
            max_seen: value.map(at),
            first: Some(at(0)),
            direction: Direction::Inclusive,
        }
    }

    fn history(changes: &[(&str, Option<i128>)]) -> Vec<HistoryRow> {
        let mut before = progress(None);
        let mut rows = vec![];
        for (version, (change, value)) in (1..).zip(changes) {
            let after = progress(*value);
            rows.push(HistoryRow {
                version,
                change: (*change).to_owned(),
                before: std::mem::replace(&mut before, after.clone()),
                after,
                actor: Actor { kind: "run".into(), name: "x".into() },
                reason: None,
                at: String::new(),
            });
        }
        rows.reverse();
        rows
    }

    #[test]
    fn what_was_read_follows_the_history() {
        let read = |changes: &[_], now| {
            let Read { read, passed_over } =
                read_so_far(&progress(Some(now)), &history(changes)).unwrap();
            (read, passed_over)
        };
        let runs = [("create", None), ("advance", Some(10)), ("advance", Some(20))];
        assert_eq!(read(&runs, 20), (vec![range(0, 20)], vec![]));
        assert_eq!(read(&[], 20), (vec![range(0, 20)], vec![]));
        let skipped = [("advance", Some(10)), ("edit", Some(15)), ("advance", Some(20))];
        assert_eq!(read(&skipped, 20), (vec![range(0, 10), range(15, 20)], vec![range(10, 15)]));
        let lowered = [("advance", Some(10)), ("edit", Some(5)), ("advance", Some(20))];
        assert_eq!(read(&lowered, 20).0, [range(0, 20)]);
        let by_hand = [("create", Some(7)), ("advance", Some(20))];
        assert_eq!(read(&by_hand, 20), (vec![range(7, 20)], vec![range(0, 7)]));
        let reset = [("create", Some(7)), ("reset", None), ("advance", Some(20))];
        assert_eq!(read(&reset, 20), (vec![range(0, 20)], vec![]));
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_numbers(
            parts in proptest::collection::vec((0i128..30, 1i128..10), 0..8),
            window in (0i128..30, 1i128..10),
        ) {
            let mut ranges = vec![];
            for (low, length) in &parts {
                add(&mut ranges, Some(range(*low, low + length))).unwrap();
            }
            let window = range(window.0, window.0 + window.1);
            let left = without(Some(window.clone()), &ranges).unwrap();
            for number in -1..45 {
                let here = at(number);
                let inside = parts.iter().any(|(low, length)| *low < number && number <= low + length);
                let count = ranges.iter().filter(|range| range.contains(&here).unwrap()).count();
                prop_assert_eq!(count, usize::from(inside));
                let of_window = window.contains(&here).unwrap();
                let count = left.iter().filter(|range| range.contains(&here).unwrap()).count();
                prop_assert_eq!(count, usize::from(of_window && !inside));
                let common = ranges.iter().filter_map(|range| cut(range, &window).unwrap());
                let count = common.filter(|range| range.contains(&here).unwrap()).count();
                prop_assert_eq!(count, usize::from(of_window && inside));
            }
            for pair in ranges.windows(2) {
                prop_assert!(!touch(pair[0].high.as_ref(), pair[1].low.as_ref()).unwrap());
            }
        }
    }
}
