//! What became of a row, from what is known of its table.

use std::cmp::Ordering;

use arrow::array::RecordBatch;
use serde::Serialize;
use tidelake_connector::{Source, cursor_extent};
use tidelake_model::{
    Manifest, NoticeCode, NullCursor, Purpose, Result, SyncConfig, TableRun, TableRunStatus,
    WatermarkFilter, WindowRecord,
};
use tidelake_watermark::{Direction, Kind, Position, Progress};

use super::unreachable::Beyond;
use super::{Explanation, LakeRow, SourceRow, cursor_of};
use crate::application::Application;
use crate::create::watermark_settings;
use crate::primary::connect_primary;
use crate::tables::{SelectedTable, table_key};
use crate::window::{Fixed, Fixer, describe, describe_range};

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The lake has it as the source does.
    Carried,
    /// The next run reads it.
    NextRun,
    /// It is above what may be read now.
    HeldBack,
    /// It has no cursor value, and the policy leaves it out.
    WithoutCursor,
    /// Its cursor is NaN or infinity, which the windows do not have.
    Unreachable,
    /// It is below what was read, and no run saw it.
    NeverRead,
    /// It is below the first bound of the sync.
    BelowStart,
    /// Only the source could tell, since the cursor is text.
    Unknown,
    /// The source has it no more; the lake does.
    Deleted,
    /// Neither has it.
    NoSuchRow,
    /// Its table is not in the sync.
    NotInSync,
}

/// What is known of a table.
pub(super) struct Judge<'a> {
    sync: &'a SyncConfig,
    selected: &'a SelectedTable,
    progress: Progress,
    fixed: Fixed,
    runs: Vec<TableRun>,
}

impl<'a> Judge<'a> {
    /// Looks the watermark up, and fixes the window that the next run would read.
    pub(super) async fn prepare(
        app: &Application,
        sync: &'a SyncConfig,
        source: &dyn Source,
        selected: &'a SelectedTable,
    ) -> Result<Self> {
        let key = table_key(sync, &selected.table.name);
        let runs = app.state.runs_of_table(&key, 0).await?;
        let nothing = Fixed { window: None, notices: vec![], counters: vec![], is_vacant: false };
        let Some(cursor) = &selected.cursor else {
            let progress = Progress::default();
            return Ok(Self { sync, selected, progress, fixed: nothing, runs });
        };
        let settings = watermark_settings(&cursor.settings)?;
        let filter = WatermarkFilter {
            env: Some(key.env),
            scope: Some(key.scope),
            table: Some(selected.table.name.to_string()),
            ..WatermarkFilter::default()
        };
        let stored = app.state.watermarks(&filter).await?.into_iter();
        let progress = stored
            .filter(|record| record.column == settings.column)
            .map(|record| record.progress)
            .next()
            .unwrap_or(settings.initial);
        let name = &selected.table.name;
        let primary = connect_primary(app, sync).await?;
        let primary = primary.as_deref();
        let fixer = Fixer { sync, source, primary, table: name, cursor, may_wait: false };
        let fixed = fixer.fix(&progress, None, false).await?;
        Ok(Self { sync, selected, progress, fixed, runs })
    }

    /// How far the table was read, and what is next.
    pub(super) fn describe(&self, explanation: &mut Explanation) {
        let text = |position: &Option<Position>| position.as_ref().map(ToString::to_string);
        explanation.watermark = text(&self.progress.watermark);
        explanation.max_seen = text(&self.progress.max_seen);
        explanation.next_window = match &self.selected.cursor {
            None => Some("every row".to_owned()),
            Some(_) => self.fixed.window.as_ref().map(describe),
        };
    }

    /// Says what became of each row of the source, or of one that it no longer has.
    pub(super) fn judge(
        &self,
        rows: &[RecordBatch],
        beyond: &[Option<Beyond>],
        latest: Option<&Manifest>,
        explanation: &mut Explanation,
    ) -> Result<()> {
        let mut is_first = true;
        for (row, beyond) in rows.iter().zip(beyond) {
            let typed = cursor_of(row, self.selected);
            let (cursor, said) = match beyond {
                Some(beyond) => {
                    let said = self.beyond(beyond, typed.as_deref(), latest, explanation);
                    (Some(beyond.text.clone()), said)
                }
                None => {
                    let said = self.row(row, typed.as_deref(), latest, explanation)?;
                    (typed, said)
                }
            };
            explanation.source.push(SourceRow { cursor, verdict: said.verdict });
            if is_first {
                explanation.verdict = said.verdict;
                explanation.hint = said.hint;
                is_first = false;
            }
            for reason in said.reasons {
                if !explanation.reasons.contains(&reason) {
                    explanation.reasons.push(reason);
                }
            }
        }
        if rows.is_empty() {
            let said = gone(explanation);
            explanation.verdict = said.verdict;
            explanation.reasons = said.reasons;
            explanation.hint = said.hint;
        }
        Ok(())
    }

    fn row(
        &self,
        row: &RecordBatch,
        cursor: Option<&str>,
        latest: Option<&Manifest>,
        explanation: &Explanation,
    ) -> Result<Said> {
        let Some(settings) = &self.selected.cursor else {
            return Ok(whole_table(latest, explanation));
        };
        let extent = cursor_extent(row, &settings.read)?;
        let mut same = explanation.lake.iter().filter(|found| found.cursor.as_deref() == cursor);
        let count = same.clone().count();
        if let Some(found) = same.next_back() {
            let carrier = extent.lowest.as_ref().and_then(|at| self.carrier(at, found));
            return Ok(carried(count, found, carrier, explanation));
        }
        let mut said = match extent.lowest {
            _ if extent.nulls > 0 => self.without_cursor(),
            Some(at) => self.placed(&at)?,
            None => self.text(settings.kind()),
        };
        let older = explanation.lake.len();
        if older > 0 {
            said.reasons.push(format!(
                "the lake has the row at {}, as it was before",
                explanation
                    .lake
                    .iter()
                    .map(|row| shown(row.cursor.as_deref()))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        Ok(said)
    }

    /// A row whose cursor is NaN or infinity, which the lake may have as another
    /// value.
    fn beyond(
        &self,
        beyond: &Beyond,
        typed: Option<&str>,
        latest: Option<&Manifest>,
        explanation: &Explanation,
    ) -> Said {
        if self.selected.cursor.is_none() {
            return whole_table(latest, explanation);
        }
        let Beyond { text, is_low } = beyond;
        let has_it =
            |found: &&LakeRow| typed.is_some() && found.cursor.as_deref() == typed && *is_low;
        let mut same = explanation.lake.iter().filter(has_it);
        let count = same.clone().count();
        if let Some(found) = same.next_back() {
            return carried(count, found, None, explanation);
        }
        let range = self.fixed.window.as_ref().and_then(|window| window.range.as_ref());
        let mut reason = format!("its cursor is {text}, which no window reaches");
        if *is_low {
            reason = match range {
                Some(range) if range.low.is_none() => format!(
                    "its cursor is {text}, which is below all values: the next run meets it in {}, \
                     and fails there unless --on-infinite-time is clamp",
                    describe_range(range)
                ),
                _ => format!("its cursor is {text}, which is below every window to come"),
            };
        }
        let hint = "give the row another value in the cursor, or choose another cursor";
        Said { verdict: Verdict::Unreachable, reasons: vec![reason], hint: Some(hint.to_owned()) }
    }

    /// The run that read the value, where its file was written anew by another.
    fn carrier(&self, at: &Position, found: &LakeRow) -> Option<&TableRun> {
        let is_carrier = |run: &&TableRun| {
            let purpose = run.window.as_ref().map(|window| &window.purpose);
            Some(run.run_id) <= found.run_id
                && purpose.is_some_and(|purpose| *purpose != Purpose::Compact)
                && read_it(run, at)
        };
        self.runs.iter().find(is_carrier).filter(|run| Some(run.run_id) != found.run_id)
    }

    fn without_cursor(&self) -> Said {
        let (verdict, reason, hint) = match self.sync.null_cursor {
            NullCursor::Include => (
                Verdict::NextRun,
                "it has no value in the cursor, and every run carries such rows \
                 (--null-cursor include)",
                None,
            ),
            NullCursor::First if self.progress.watermark.is_none() => (
                Verdict::NextRun,
                "it has no value in the cursor, and the first run carries such rows",
                None,
            ),
            NullCursor::First => (
                Verdict::WithoutCursor,
                "it has no value in the cursor; only the first run carries such rows \
                 (--null-cursor first), and that was before the row was there",
                Some("fill the column, or make the sync with --null-cursor include"),
            ),
            NullCursor::Exclude => (
                Verdict::WithoutCursor,
                "it has no value in the cursor, and such rows are left out (--null-cursor exclude)",
                Some("fill the column, or make the sync with another --null-cursor"),
            ),
            NullCursor::Fail => (
                Verdict::WithoutCursor,
                "it has no value in the cursor, and a run fails while there are such rows \
                 (--null-cursor fail)",
                Some("fill the column, or make the sync with another --null-cursor"),
            ),
        };
        Said { verdict, reasons: vec![reason.to_owned()], hint: hint.map(str::to_owned) }
    }

    fn text(&self, kind: Kind) -> Said {
        let watermark = shown(self.progress.watermark.as_ref().map(ToString::to_string).as_deref());
        Said::new(
            Verdict::Unknown,
            format!(
                "only the source can compare values of kind {kind}: if this one is above the \
                 watermark {watermark}, the next run reads it"
            ),
        )
    }

    /// A row that the lake does not have, by the place of its cursor.
    fn placed(&self, at: &Position) -> Result<Said> {
        if let Some(window) = &self.fixed.window
            && let Some(range) = &window.range
            && range.contains(at).unwrap_or(false)
        {
            return Ok(self.next_run(at, window));
        }
        if self.is_read(at) {
            return Ok(self.never_read(at));
        }
        Ok(self.held_back(at))
    }

    /// Whether a value is at or below what was read.
    fn is_read(&self, at: &Position) -> bool {
        let Progress { max_seen, first, direction, .. } = &self.progress;
        let limit = max_seen.as_ref().or(first.as_ref());
        match limit.map(|limit| at.compare(limit)) {
            Some(Ok(Ordering::Less)) => true,
            Some(Ok(Ordering::Equal)) => max_seen.is_some() || *direction == Direction::Inclusive,
            _ => false,
        }
    }

    fn next_run(&self, at: &Position, window: &WindowRecord) -> Said {
        let range = window.range.as_ref().map(describe_range).unwrap_or_default();
        let mut reason = format!("it is at {at}, and the next run reads {range}");
        let below = self.progress.watermark.as_ref().map(|mark| at.compare(mark));
        if matches!(below, Some(Ok(Ordering::Less | Ordering::Equal))) {
            reason.push_str(
                "; it came late, below the watermark, but above all that was exported so far",
            );
        }
        let hint = format!("tidelake sync --sync-id {}", self.sync.sync_id);
        Said { verdict: Verdict::NextRun, reasons: vec![reason], hint: Some(hint) }
    }

    /// Below what was read: which run should have seen it.
    fn never_read(&self, at: &Position) -> Said {
        let table = &self.selected.table.name;
        let repair = format!(
            "tidelake verify --sync-id {} --table {table} --repair reads it, or a backfill of its \
             range",
            self.sync.sync_id
        );
        if let Some(first) = &self.progress.first
            && matches!(at.compare(first), Ok(Ordering::Less | Ordering::Equal))
            && !self.runs.iter().any(|run| read_it(run, at))
        {
            return Said {
                verdict: Verdict::BelowStart,
                reasons: vec![format!(
                    "it is at {at}, and the sync reads the table from {first} on"
                )],
                hint: Some("tidelake backfill reads what lies below".to_owned()),
            };
        }
        let seen = shown(self.progress.max_seen.as_ref().map(ToString::to_string).as_deref());
        let mut reasons =
            vec![format!("it is at {at}, and everything up to {seen} counts as read")];
        match self.runs.iter().find(|run| read_it(run, at)) {
            Some(run) => reasons.push(format!(
                "run {} read {} at {}, and the lake does not have it: the row was committed later, \
                 its cursor was set to a value of the past, or it was taken out of the lake since",
                run.run_id,
                run.window.as_ref().map(describe).unwrap_or_default(),
                run.started_at,
            )),
            None => reasons.push(
                "no run on record read this value: the watermark was set by hand, or the record \
                 of the run was cleaned up"
                    .to_owned(),
            ),
        }
        Said { verdict: Verdict::NeverRead, reasons, hint: Some(repair) }
    }

    /// Above what may be read now: by the clock, the lag or the fence.
    fn held_back(&self, at: &Position) -> Said {
        let mut said = Said::new(Verdict::HeldBack, format!("it is at {at}, and waits"));
        match &self.fixed.window {
            None => said.reasons.push("nothing may be read of the table now".to_owned()),
            Some(window) => {
                let high = shown(window.high.as_ref().map(ToString::to_string).as_deref());
                let mut reason = match window.ceiling.as_str() {
                    "clock" => format!(
                        "what is read ends at {high}, one tick below the source's clock{}",
                        match window.safety_lag {
                            0 => String::new(),
                            lag => format!(" less a safety lag of {lag} s"),
                        }
                    ),
                    _ => format!("what is read ends at {high}"),
                };
                if let Some(gap) = &self.sync.safety_gap {
                    reason.push_str(&format!(" (safety gap {gap})"));
                }
                said.reasons.push(reason);
                said.reasons.extend(window.fence.as_ref().map(|fence| format!("fence: {fence}")));
            }
        }
        for notice in &self.fixed.notices {
            if !matches!(notice.code, NoticeCode::NullCursor | NoticeCode::CursorNotIndexed) {
                said.reasons.push(notice.message.clone());
            }
        }
        said.hint = Some("wait until that has passed, then sync again".to_owned());
        said
    }
}

/// Whether the run finished reading a window that holds the value.
fn read_it(run: &TableRun, at: &Position) -> bool {
    let done = matches!(run.status, TableRunStatus::Completed | TableRunStatus::Committed);
    let range = run.window.as_ref().and_then(|window| window.range.as_ref());
    done && range.is_some_and(|range| range.contains(at).unwrap_or(false))
}

/// What is said of one row.
struct Said {
    verdict: Verdict,
    reasons: Vec<String>,
    hint: Option<String>,
}

impl Said {
    fn new(verdict: Verdict, reason: String) -> Self {
        Self { verdict, reasons: vec![reason], hint: None }
    }
}

fn shown(text: Option<&str>) -> String {
    text.unwrap_or("NULL").to_owned()
}

fn carried(
    count: usize,
    found: &LakeRow,
    carrier: Option<&TableRun>,
    explanation: &Explanation,
) -> Said {
    let run = found.run_id.map(|run| run.to_string()).unwrap_or_else(|| "unknown".to_owned());
    let at = found.read_at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    let reason = match carrier {
        Some(carrier) => format!(
            "run {} read {} at {} and carried it; run {run} ({}) wrote its file anew{at}",
            carrier.run_id,
            carrier.window.as_ref().map(describe).unwrap_or_default(),
            carrier.started_at,
            found.purpose.unwrap_or("run"),
        ),
        None => {
            let read = found.window.as_ref().map(|window| format!(" read {window}{at} and"));
            format!("run {run}{} carried it", read.unwrap_or_default())
        }
    };
    let mut said = Said::new(Verdict::Carried, reason);
    if count > 1 {
        said.reasons.push(format!("the lake has it {count} times"));
        said.hint = Some(format!(
            "tidelake verify --sync-id {} --table {} shows whether that is too often",
            explanation.sync_id, explanation.table
        ));
    }
    let older = explanation.lake.len().saturating_sub(count);
    if older > 0 {
        said.reasons.push(format!("the lake has {older} other version(s) of it as well"));
    }
    said
}

fn whole_table(latest: Option<&Manifest>, explanation: &Explanation) -> Said {
    if let Some(found) = explanation.lake.last() {
        return carried(explanation.lake.len(), found, None, explanation);
    }
    let reason = match latest {
        None => "the table was never synced; the next run reads all of it".to_owned(),
        Some(latest) => format!(
            "the table is read whole each time; run {} read it at {}, when the row was not there; \
             the next run reads it",
            latest.run_id, latest.finished_at
        ),
    };
    let hint = format!("tidelake sync --sync-id {}", explanation.sync_id);
    Said { verdict: Verdict::NextRun, reasons: vec![reason], hint: Some(hint) }
}

/// The source does not have the row.
fn gone(explanation: &Explanation) -> Said {
    if explanation.lake.is_empty() {
        return Said::new(
            Verdict::NoSuchRow,
            "neither the source nor the lake has such a row".to_owned(),
        );
    }
    Said::new(
        Verdict::Deleted,
        "the source has it no more, and the lake keeps what was read of it".to_owned(),
    )
}
