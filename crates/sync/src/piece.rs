//! One fixed range of cursor values below the watermark, read again: what a
//! backfill is made of, and how a difference that `verify` found is mended.
//!
//! The order of things is that of every run. The rows that the lake holds of the
//! range leave it in the commit that adds the new ones, so nothing is doubled,
//! and the watermark stays where it is.

use std::cmp::Ordering;

use tidelake_model::{
    Error, ErrorKind, Notice, NoticeCode, Purpose, Result, TableRunStatus, WindowRecord,
};
use tidelake_watermark::{Bound, CompareError, Direction, Kind, Position, Progress, Range};

use crate::application::Application;
use crate::edit::rows_in_range;
use crate::one_table::{OneTable, TableRequest};
use crate::run::RunReport;
use crate::table_run::{TableWork, Task};
use crate::window::{describe_range, whole};

/// A range that is read again.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The cursor values. An end that is open below is the table's first row, one
    /// that is open above the watermark.
    pub range: Range,
    /// Why: [`Purpose::Backfill`] or [`Purpose::Repair`].
    pub purpose: Purpose,
}

/// Reads one range of one table again, in a run of its own. A run of the table
/// that was left unfinished is finished first; if that was this very piece, it is
/// not read twice.
///
/// Errors as those of [`run`](crate::run::run()): what goes wrong with the table
/// stands in the report. `Configuration` where the range reaches above the
/// watermark or the table has no cursor, `Mismatch` where rows of it are
/// published already and the target only appends.
pub async fn run_piece(
    app: &Application,
    request: TableRequest,
    piece: Piece,
) -> Result<RunReport> {
    OneTable::open(app, request).await?.run(&Task::Piece(Box::new(piece))).await
}

impl TableWork<'_> {
    /// Reads the piece, unless an earlier run that was just finished did.
    pub(crate) async fn piece(&mut self, piece: &Piece) -> Result<()> {
        let (window, notices) = self.piece_window(piece)?;
        if self.finished_earlier.as_ref().is_some_and(|done| is_same(done, &window)) {
            self.report.status = Some(TableRunStatus::Completed);
            return Ok(());
        }
        self.refuse_published(&window).await?;
        self.pass(self.run.run_id, window, notices, vec![], false, true).await
    }

    fn piece_window(&self, piece: &Piece) -> Result<(WindowRecord, Vec<Notice>)> {
        let Some(cursor) = &self.selected.cursor else {
            return Err(Error::new(
                ErrorKind::Configuration,
                "the table is exported whole, and has no cursor of which a range could be read",
            )
            .with_hint("the next sync reads all of it anew"));
        };
        check_kinds(&cursor.read.kinds)?;
        window(&self.progress()?, self.version(), piece)
    }

    /// A target that appends cannot take rows back. Counted before anything is
    /// read from the source.
    async fn refuse_published(&self, window: &WindowRecord) -> Result<()> {
        let (true, Some(latest), Some(head)) = (self.publishes(), &self.latest, &self.head) else {
            return Ok(());
        };
        let (Some(range), Some(cursor)) = (&window.range, &self.selected.cursor) else {
            return Ok(());
        };
        let rows = rows_in_range(&self.lake, latest, head, range, &cursor.read).await?;
        if rows == 0 {
            return Ok(());
        }
        Err(published(range, rows))
    }
}

/// The refusal of a range whose rows a target has already.
pub(crate) fn published(range: &Range, rows: u64) -> Error {
    Error::new(
        ErrorKind::Mismatch,
        format!(
            "{rows} rows of {} were published before, and the target only appends",
            describe_range(range)
        ),
    )
    .with_hint(
        "choose a range that was never exported, or reset the watermark (tidelake watermarks \
         reset), so that the next sync reads the table anew and replaces the target's rows",
    )
}

/// Texts have the order of the source, in which the lake's rows cannot be found.
pub(crate) fn check_kinds(kinds: &[Kind]) -> Result<()> {
    if !kinds.contains(&Kind::Text) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        "a range of text cannot be read again: only the source can compare its values",
    )
    .with_hint(
        "reset the watermark (tidelake watermarks reset), so that the next sync reads the table \
         anew and replaces the lake's rows",
    ))
}

/// Whether an earlier window was this piece. Its lower end may have been lowered
/// further, when less was exported.
fn is_same(earlier: &WindowRecord, window: &WindowRecord) -> bool {
    match &window.purpose {
        Purpose::Backfill(_) => earlier.purpose == window.purpose,
        purpose => earlier.purpose == *purpose && earlier.range == window.range,
    }
}

/// The window of a piece.
///
/// `max_seen` promises that nothing above it was exported, so that a later run
/// may read all of `(max_seen, …` without doubling a row. A piece that lies
/// wholly above it would raise it over a range that nobody read: such a piece
/// begins at `max_seen` instead, above which the lake holds nothing.
pub(crate) fn window(
    progress: &Progress,
    version: Option<u64>,
    piece: &Piece,
) -> Result<(WindowRecord, Vec<Notice>)> {
    let Piece { range, purpose } = piece;
    let high = below_watermark(progress, range)?;
    let mut low = range.low.clone();
    let mut notices = vec![];
    if let Some(floor) = unread_above(progress, &high.at)?
        && starts_above(low.as_ref(), floor.as_ref())?
    {
        low = floor;
        let reason = "since no row was exported from there on so far";
        let lowered = Range { low: low.clone(), high: Some(high.clone()) };
        notices.push(Notice::new(
            NoticeCode::Setting,
            format!("{} is read, {reason}", describe_range(&lowered)),
        ));
    }
    let window = WindowRecord {
        high: Some(high.at.clone()),
        range: Some(Range { low, high: Some(high) }),
        gap: None,
        stays: true,
        replaces: false,
        null_cursors: false,
        version,
        progress: progress.clone(),
        purpose: purpose.clone(),
        ..whole()
    };
    Ok((window, notices))
}

/// The upper end, which may not lie above the watermark. Under `[low, high)` the
/// watermark itself is still to be read.
fn below_watermark(progress: &Progress, range: &Range) -> Result<Bound> {
    let Some(watermark) = &progress.watermark else {
        return Err(Error::new(
            ErrorKind::Configuration,
            "the table has no watermark yet, and nothing lies below it",
        )
        .with_hint("run tidelake sync first; it reads the table from its first bound on"));
    };
    let includes = progress.direction == Direction::Inclusive;
    let Some(high) = &range.high else {
        return Ok(Bound { at: watermark.clone(), inclusive: includes });
    };
    match high.at.compare(watermark).map_err(mixed)? {
        Ordering::Less => Ok(high.clone()),
        Ordering::Equal => Ok(Bound { at: high.at.clone(), inclusive: high.inclusive && includes }),
        Ordering::Greater => Err(Error::new(
            ErrorKind::Configuration,
            format!("the range reaches up to {}, above the watermark {watermark}", high.at),
        )
        .with_hint(format!(
            "end it at {watermark} or below; what lies above is read by the next tidelake sync"
        ))),
    }
}

/// Where the range begins in which no row was exported, if `high` lies in it:
/// `Some(None)` is the table's first row.
fn unread_above(progress: &Progress, high: &Position) -> Result<Option<Option<Bound>>> {
    let inclusive = progress.direction == Direction::Exclusive;
    let Some(seen) = &progress.max_seen else {
        let Some(first) = &progress.first else { return Ok(Some(None)) };
        let reaches = high.compare(first).map_err(mixed)? == Ordering::Greater;
        return Ok(reaches.then(|| Some(Bound { at: first.clone(), inclusive })));
    };
    let reaches = high.compare(seen).map_err(mixed)? == Ordering::Greater;
    Ok(reaches.then(|| Some(Bound { at: seen.clone(), inclusive: false })))
}

/// Whether a range with the lower end `low` leaves out what one with `floor` has.
fn starts_above(low: Option<&Bound>, floor: Option<&Bound>) -> Result<bool> {
    let (Some(low), Some(floor)) = (low, floor) else { return Ok(low.is_some()) };
    Ok(match low.at.compare(&floor.at).map_err(mixed)? {
        Ordering::Less => false,
        Ordering::Equal => floor.inclusive && !low.inclusive,
        Ordering::Greater => true,
    })
}

fn mixed(error: CompareError) -> Error {
    Error::new(ErrorKind::Configuration, "the range does not fit the cursor").with_source(error)
}

#[cfg(test)]
mod tests {
    use tidelake_watermark::{Outcome, Value, Window};

    use super::*;

    fn at(number: i128) -> Position {
        Value::Integer(number).into()
    }

    fn range(low: Option<i128>, high: i128) -> Range {
        let bound = |number, inclusive| Bound { at: at(number), inclusive };
        Range { low: low.map(|low| bound(low, false)), high: Some(bound(high, true)) }
    }

    fn progress(watermark: i128, max_seen: Option<i128>) -> Progress {
        Progress {
            watermark: Some(at(watermark)),
            max_seen: max_seen.map(at),
            ..Progress::default()
        }
    }

    fn read(progress: &Progress, range: Range) -> Result<Range> {
        let piece = Piece { range, purpose: Purpose::Repair };
        window(progress, Some(1), &piece).map(|(window, _)| window.range.unwrap())
    }

    #[test]
    fn a_piece_below_what_was_exported_is_read_as_it_is() {
        let progress = progress(100, Some(90));
        for piece in [range(Some(10), 20), range(None, 20), range(Some(10), 95)] {
            assert_eq!(read(&progress, piece.clone()).unwrap(), piece);
        }
    }

    #[test]
    fn a_piece_above_what_was_exported_begins_there() {
        assert_eq!(
            read(&progress(100, Some(50)), range(Some(60), 80)).unwrap(),
            range(Some(50), 80)
        );
        assert_eq!(read(&progress(100, None), range(Some(60), 80)).unwrap(), range(None, 80));
        let first = Progress { first: Some(at(30)), ..progress(100, None) };
        assert_eq!(read(&first, range(Some(60), 80)).unwrap(), range(Some(30), 80));
        // Below the first bound no ordinary run ever reads.
        assert_eq!(read(&first, range(Some(10), 20)).unwrap(), range(Some(10), 20));
    }

    #[test]
    fn a_piece_above_the_watermark_is_refused() {
        let error = read(&progress(100, Some(90)), range(Some(10), 101)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.hint().unwrap().contains("100"), "{error:?}");
        let none = Progress::default();
        assert_eq!(read(&none, range(None, 1)).unwrap_err().kind(), ErrorKind::Configuration);
    }

    #[test]
    fn the_watermark_of_an_open_upper_side_is_left_to_the_next_run() {
        let progress = Progress { direction: Direction::Exclusive, ..progress(100, Some(90)) };
        let read = read(&progress, range(Some(10), 100)).unwrap();
        assert!(!read.high.as_ref().unwrap().inclusive);
        // The highest row that can have been read is 99, so 100 is not taken for
        // the value of an edit, and is read by the next run.
        let plan = Window { range: read, gap: None, high: at(100), stays: true };
        let outcome = Outcome { rows: 1, highest: Some(at(99)) };
        let after = progress.after(&plan, &outcome, tidelake_watermark::Ceiling::Observed).unwrap();
        assert_eq!(after.watermark, Some(at(100)));
        let next = Window::plan(&after, &at(110), None).unwrap();
        assert!(next.range.contains(&at(100)).unwrap());
        assert!(!next.range.contains(&at(99)).unwrap());
    }
}
