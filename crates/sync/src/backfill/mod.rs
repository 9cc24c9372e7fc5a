//! `backfill`: a range below the watermark is read, in pieces that are runs of
//! their own. What is done is on record, so that the same command goes on after
//! whatever stopped it; between two pieces a sync may work.

mod cut;
mod earlier;
mod stitch;

use std::cmp::Ordering;
use std::time::Duration;

use serde::Serialize;
use tidelake_connector::{Effort, HighestRequest};
use tidelake_model::{
    BackfillPiece, Error, ErrorKind, Notice, NoticeCode, Purpose, Result, RunId, RunStatus,
    TableName,
};
use tidelake_watermark::{Bound, Direction, Kind, Position, Progress, Range, Value};
use tokio::time::Instant;

use crate::application::Application;
use crate::create::watermark_settings;
use crate::cursor::TableCursor;
use crate::edit::{Touches, touches_of};
use crate::events::Event;
use crate::one_table::{OneTable, TableRequest};
use crate::piece::{self, Piece};
use crate::run::{ErrorReport, RunReport};
use crate::table_run::Task;
use crate::tables::table_key;
use crate::watermarks::stored;
use crate::window::describe_range;

pub use cut::Cut;
use earlier::{Done, Earlier, earlier, still_counts};
pub use stitch::Stitch;

/// Rows of a piece, where the range is cut automatically.
const ROWS_OF_A_PIECE: u64 = 1_000_000;
/// Most pieces of such a cut.
const AUTOMATIC_PIECES: u64 = 1_000;
/// How long a piece waits for a sync that holds the table.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a user asks of a backfill.
#[derive(Clone)]
pub struct BackfillRequest {
    /// Of which table.
    pub table: TableRequest,
    /// Where it begins; at the table's first row without one.
    pub from: Option<String>,
    /// Where it ends.
    pub to: String,
    /// How it is cut.
    pub cut: Cut,
    /// Whether one that was begun earlier is begun anew.
    pub restart: bool,
    /// Whether nothing is read or written.
    pub dry_run: bool,
}

/// What became of a backfill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Backfill {
    /// The table.
    pub table: TableName,
    /// The range in words.
    pub range: String,
    /// The run of the first piece, by which the backfill is known.
    pub backfill: Option<RunId>,
    /// Whether it was begun earlier and went on.
    pub continued: bool,
    /// What of the lake lay in the range before.
    pub touches: Touches,
    /// The pieces in order.
    pub pieces: Vec<PieceReport>,
    /// How it ended.
    pub status: RunStatus,
    /// Rows read by this command.
    pub rows: u64,
    /// What the check after the last piece found.
    pub stitch: Option<Stitch>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// What stopped it.
    pub error: Option<ErrorReport>,
}

/// One piece.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PieceReport {
    /// Its number, from 1.
    pub number: u32,
    /// Its range in words.
    pub range: String,
    /// How far it is.
    pub state: PieceState,
    /// The run that did it.
    pub run_id: Option<RunId>,
    /// Rows that it read.
    pub rows: u64,
}

/// How far a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceState {
    /// To be done.
    Pending,
    /// Done by an earlier command.
    DoneBefore,
    /// Done now.
    Done,
    /// Tried, and not done.
    Failed,
}

/// A backfill as it is to be done.
struct Plan {
    range: Range,
    text: String,
    pieces: Vec<Range>,
    /// Where the equal steps begin.
    from: Option<Position>,
    earlier: Option<Earlier>,
    notices: Vec<Notice>,
}

/// Reads a range below the watermark. `Configuration` where it reaches above, the
/// table has no cursor, or a value does not fit; `Mismatch` where rows of it were
/// published and the target only appends. What stops a piece stands in the answer.
pub async fn backfill(app: &Application, request: BackfillRequest) -> Result<Backfill> {
    let one = OneTable::open(app, request.table.clone()).await?;
    let name = one.name().clone();
    let plan = plan(&one, &request).await.map_err(|error| error.in_table(&name))?;
    let done = |number: u32| plan.earlier.as_ref().and_then(|earlier| earlier.done.get(&number));
    let pieces: Vec<_> = (1..)
        .zip(&plan.pieces)
        .map(|(number, range)| PieceReport {
            number,
            range: describe_range(range),
            state: if done(number).is_some() {
                PieceState::DoneBefore
            } else {
                PieceState::Pending
            },
            run_id: done(number).map(|done| done.run_id),
            rows: done(number).map_or(0, |done| done.rows),
        })
        .collect();
    let left = pieces.iter().zip(&plan.pieces);
    let left: Vec<_> = left
        .filter(|(piece, _)| piece.state == PieceState::Pending)
        .map(|(_, range)| range.clone())
        .collect();
    refuse_published(&one, &left).await.map_err(|error| error.in_table(&name))?;
    let lake = one.lake();
    let latest = lake.latest().await?;
    let mut report = Backfill {
        table: name,
        range: plan.text.clone(),
        backfill: plan.earlier.as_ref().map(|earlier| earlier.backfill),
        continued: plan.earlier.is_some(),
        touches: touches_of(&lake, latest.as_ref(), &left).await?,
        pieces,
        status: RunStatus::Completed,
        rows: 0,
        stitch: None,
        notices: vec![],
        error: None,
    };
    let note = |report: &mut Backfill, notice: Notice| {
        let event = Event::Noticed { table: report.table.clone(), notice: notice.clone() };
        request.table.events.event(&event);
        report.notices.push(notice);
    };
    for notice in plan.notices.iter().cloned().chain(announce(&report)) {
        note(&mut report, notice);
    }
    if request.dry_run {
        return Ok(report);
    }
    read_pieces(&one, &plan, &mut report).await?;
    let done = by_record(&one, &mut report).await?;
    if report.status == RunStatus::Completed {
        let stitch = stitch::stitch(&one, &plan.range, &plan.pieces, &done).await;
        let stitch = stitch.map_err(|error| error.in_table(&report.table))?;
        if !stitch.matches() {
            let message = format!(
                "the lake holds {} row(s) of {}, and the source {}: rows changed while they were \
                 read, or later; tidelake verify names them",
                stitch.lake_rows, report.range, stitch.source_rows
            );
            note(&mut report, Notice::new(NoticeCode::Setting, message));
        }
        report.stitch = Some(stitch);
    }
    Ok(report)
}

/// What is said before the first piece.
fn announce(report: &Backfill) -> Vec<Notice> {
    let say = |message| Notice::new(NoticeCode::Setting, message);
    let count = |state| report.pieces.iter().filter(|piece| piece.state == state).count();
    let (left, before) = (count(PieceState::Pending), count(PieceState::DoneBefore));
    let mut notices = vec![];
    if report.continued && left == 0 {
        notices.push(say(format!(
            "all {before} piece(s) were done before; --restart reads them again"
        )));
    } else if report.continued {
        notices.push(say(format!(
            "{before} of {} piece(s) were done before, {left} are left; --restart begins anew",
            before + left
        )));
    }
    if left > 0 {
        let Touches { files, rows, bytes } = report.touches;
        notices.push(say(format!(
            "{} is read in {left} piece(s); it touches {files} file(s) of the lake with {rows} \
             row(s), {bytes} bytes",
            report.range
        )));
    }
    notices
}

/// The range, its pieces, and what was done of them before.
async fn plan(one: &OneTable<'_>, request: &BackfillRequest) -> Result<Plan> {
    let Some(cursor) = &one.selected.cursor else {
        return Err(Error::new(
            ErrorKind::Configuration,
            "the table is exported whole, and has no cursor by which it could be backfilled",
        )
        .with_hint("every sync reads all of it; to read it by a cursor, make a sync with one"));
    };
    piece::check_kinds(&cursor.read.kinds)?;
    let progress = progress(one, cursor).await?;
    let range = range(request, cursor, progress.direction)?;
    // Refused here already, before anything is cut or read.
    let whole = Piece { range: range.clone(), purpose: Purpose::Repair };
    piece::window(&progress, None, &whole)?;
    let text = describe_range(&range);
    let mut notices = vec![];
    let earlier = if request.restart { None } else { continued(one, &text, &mut notices).await? };
    let (from, of) = match &earlier {
        Some(earlier) => {
            if request.cut != Cut::Automatic {
                let message = "it goes on in the pieces that it was begun in; --restart cuts anew";
                notices.push(Notice::new(NoticeCode::Setting, message));
            }
            let from = earlier.from.as_ref().map(|from| parse(cursor, from, "--from"));
            (from.transpose()?, earlier.of)
        }
        None => {
            let from = match &range.low {
                Some(low) => Some(low.at.clone()),
                None => lowest(one, range.high.as_ref()).await?,
            };
            let of = count_pieces(one, cursor, &range, from.as_ref(), &request.cut).await?;
            (from, of)
        }
    };
    let pieces = cut::pieces(&range, from.as_ref(), of, cursor.tick.nanos())?;
    Ok(Plan { range, text, pieces, from, earlier, notices })
}

/// The stored progress of the table.
async fn progress(one: &OneTable<'_>, cursor: &TableCursor) -> Result<Progress> {
    let settings = watermark_settings(&cursor.settings)?;
    let stored = stored(one.app, &one.systems.sync, one.name(), &settings.column).await?;
    Ok(stored.map_or(settings.initial, |record| record.progress))
}

fn range(request: &BackfillRequest, cursor: &TableCursor, direction: Direction) -> Result<Range> {
    let includes = direction == Direction::Inclusive;
    let low = request.from.as_ref().map(|from| parse(cursor, from, "--from")).transpose()?;
    let high = parse(cursor, &request.to, "--to")?;
    let range = Range {
        low: low.map(|at| Bound { at, inclusive: !includes }),
        high: Some(Bound { at: high, inclusive: includes }),
    };
    match range.is_empty() {
        Ok(false) => Ok(range),
        _ => Err(Error::new(
            ErrorKind::Configuration,
            format!("no value lies in {}", describe_range(&range)),
        )
        .with_hint("--from must be below --to")),
    }
}

/// A value of the cursor, strictly: no blank, no rounding, no other kind, and no
/// digit that the column cannot hold.
fn parse(cursor: &TableCursor, text: &str, option: &str) -> Result<Position> {
    let refuse = |message: String| {
        Error::new(ErrorKind::Configuration, format!("{option}: {message}")).with_hint(format!(
            "the cursor {} holds values of kind {}",
            cursor.settings.cursor,
            cursor.read.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",")
        ))
    };
    let position =
        Position::parse(&cursor.read.kinds, text).map_err(|error| refuse(error.to_string()))?;
    let is_time = matches!(cursor.kind(), Kind::Datetime | Kind::Timestamp);
    if let (true, Value::Datetime(nanos) | Value::Timestamp(nanos)) = (is_time, position.first()) {
        let tick = if cursor.settings.day_ticks { 1 } else { cursor.tick.nanos() };
        if nanos.rem_euclid(tick) != 0 {
            return Err(refuse(format!("{position} has more digits than the column can hold")));
        }
    }
    Ok(position)
}

/// A backfill of the same range that was begun and whose pieces still count.
async fn continued(
    one: &OneTable<'_>,
    text: &str,
    notices: &mut Vec<Notice>,
) -> Result<Option<Earlier>> {
    let key = table_key(&one.systems.sync, one.name());
    let runs = one.app.state.runs_of_table(&key, 0).await?;
    let Some(earlier) = earlier(&runs, text) else { return Ok(None) };
    let lake = one.lake();
    let latest = lake.latest().await?;
    if still_counts(&lake, latest.as_ref(), earlier.done.values()).await? {
        return Ok(Some(earlier));
    }
    let message = "the table was read anew since an earlier backfill of this range; it begins anew";
    notices.push(Notice::new(NoticeCode::Setting, message));
    Ok(None)
}

/// The lowest value that the lake knows, where equal steps begin if the range is
/// open below. Rows further down belong to the first piece.
async fn lowest(one: &OneTable<'_>, below: Option<&Bound>) -> Result<Option<Position>> {
    let lake = one.lake();
    let Some(latest) = lake.latest().await? else { return Ok(None) };
    let files = lake.live_files(&latest).await?;
    let values = files.into_iter().filter_map(|file| file.cursor_min);
    let lowest = values.reduce(|left, right| match left.compare(&right) {
        Ok(Ordering::Greater) => right,
        _ => left,
    });
    Ok(lowest.filter(|lowest| {
        below.is_some_and(|high| matches!(lowest.compare(&high.at), Ok(Ordering::Less)))
    }))
}

async fn count_pieces(
    one: &OneTable<'_>,
    cursor: &TableCursor,
    range: &Range,
    from: Option<&Position>,
    cut: &Cut,
) -> Result<u32> {
    let unknown = || {
        Error::new(ErrorKind::Configuration, "where the first piece ends cannot be told")
            .with_hint("name the start of the range with --from")
    };
    let high = range.high.as_ref().map(|high| &high.at);
    match cut {
        Cut::Pieces(of @ 1..=cut::MOST_PIECES) => {
            if *of > 1 {
                from.ok_or_else(unknown)?;
            }
            Ok(*of)
        }
        Cut::Pieces(_) => Err(Error::new(
            ErrorKind::Configuration,
            format!("a backfill has 1 to {} pieces", cut::MOST_PIECES),
        )
        .with_hint("choose another number of --pieces")),
        Cut::Step(step) => {
            let (Some(from), Some(high)) = (from, high) else { return Err(unknown()) };
            cut::pieces_of_step(from, high, step)
        }
        Cut::Automatic => {
            let request = HighestRequest {
                table: one.name().clone(),
                cursor: cursor.read.clone(),
                effort: Effort::Cheap,
                count: Some(range.clone()),
                count_nulls: false,
            };
            let rows = one.systems.source.highest(&request).await?.rows;
            // Without an index every piece would read the whole table.
            let of = rows.map_or(1, |rows| rows.div_ceil(ROWS_OF_A_PIECE));
            Ok(u32::try_from(of.clamp(1, AUTOMATIC_PIECES)).unwrap_or(1))
        }
    }
}

/// A target that appends cannot take rows back: refused before the first piece.
async fn refuse_published(one: &OneTable<'_>, left: &[Range]) -> Result<()> {
    if one.systems.publisher.is_none() {
        return Ok(());
    }
    for range in left {
        let rows = stitch::lake_rows(one, range).await?;
        if rows > 0 {
            return Err(piece::published(range, rows));
        }
    }
    Ok(())
}

/// The completed pieces as they are on record: one that was interrupted may have
/// been finished by another run.
async fn by_record(one: &OneTable<'_>, report: &mut Backfill) -> Result<Vec<Done>> {
    let Some(backfill) = report.backfill else { return Ok(vec![]) };
    let key = table_key(&one.systems.sync, one.name());
    let runs = one.app.state.runs_of_table(&key, 0).await?;
    let recorded = earlier(&runs, &report.range).filter(|found| found.backfill == backfill);
    let recorded = recorded.map(|found| found.done).unwrap_or_default();
    report.rows = 0;
    for piece in &mut report.pieces {
        let Some(done) = recorded.get(&piece.number) else { continue };
        piece.run_id = Some(done.run_id);
        piece.rows = done.rows;
        if piece.state == PieceState::Done {
            report.rows = report.rows.saturating_add(done.rows);
        }
    }
    Ok(recorded.into_values().collect())
}

/// Does what is left, piece by piece, until one is not done.
async fn read_pieces(one: &OneTable<'_>, plan: &Plan, report: &mut Backfill) -> Result<()> {
    let of = u32::try_from(plan.pieces.len()).unwrap_or(u32::MAX);
    let mut is_first = true;
    for (range, at) in plan.pieces.iter().zip(0..) {
        let Some(piece) = report.pieces.get_mut(at) else { break };
        if piece.state != PieceState::Pending {
            continue;
        }
        if one.request.cancel.is_cancelled() {
            report.status = RunStatus::Cancelled;
            return Ok(());
        }
        let run_id = one.app.host.new_run_id();
        let backfill = *report.backfill.get_or_insert(run_id);
        let task = Task::Piece(Box::new(Piece {
            range: range.clone(),
            purpose: Purpose::Backfill(BackfillPiece {
                backfill,
                range: plan.text.clone(),
                number: piece.number,
                of,
                from: plan.from.as_ref().map(ToString::to_string),
            }),
        }));
        let patience = if is_first { Duration::ZERO } else { PATIENCE };
        is_first = false;
        let done = run_when_free(one, run_id, &task, patience).await?;
        piece.run_id = Some(done.run_id);
        let is_done = done.status == RunStatus::Completed;
        piece.state = if is_done { PieceState::Done } else { PieceState::Failed };
        for table in done.tables {
            let is_new = |notice: &Notice| !report.notices.contains(notice);
            let new: Vec<_> = table.notices.into_iter().filter(is_new).collect();
            report.notices.extend(new);
            report.error = report.error.take().or(table.error);
        }
        report.notices.extend(done.notices);
        if !is_done {
            let some = report
                .pieces
                .iter()
                .any(|piece| matches!(piece.state, PieceState::Done | PieceState::DoneBefore));
            report.status = match done.status {
                RunStatus::Cancelled => RunStatus::Cancelled,
                _ if some => RunStatus::Partial,
                status => status,
            };
            return Ok(());
        }
    }
    Ok(())
}

/// Runs a piece; one that finds a sync at work waits for it.
async fn run_when_free(
    one: &OneTable<'_>,
    run_id: RunId,
    task: &Task,
    patience: Duration,
) -> Result<RunReport> {
    let until = Instant::now() + patience;
    loop {
        let error = match one.run_as(run_id, task).await {
            Err(error) if error.kind() == ErrorKind::Locked && Instant::now() < until => error,
            other => return other,
        };
        tracing::debug!(error = error.chain(), "waiting for the table");
        tokio::select! {
            biased;
            () = one.request.cancel.cancelled() => return Err(error),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}
