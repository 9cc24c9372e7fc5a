//! How a watermark moves with a run.

use tidelake_model::{
    Actor, Head, HistoryRow, Result, RunId, TableKey, WatermarkRecord, position_text,
};
use tidelake_watermark::{Cursor, Kind, Position, Progress};

use super::leases::{held, is_held, lost};
use super::watermarks::By;
use super::{check_kinds, conflict, in_table, internal, refused, table_runs, watermark_of};
use crate::rows::Rows;
use crate::store::{
    Advance, AdvanceWatermark, Advanced, Lease, TableState, WatermarkSettings, versioned,
};
use crate::time::time_text;

/// The last step of a table run, all or nothing.
pub(crate) async fn advance(
    rows: &mut dyn Rows,
    lease: &Lease,
    advance: &Advance,
) -> Result<Advanced> {
    let mut row = held(rows, lease).await?;
    let now = rows.now().await?;
    table_runs::save(rows, lease, &advance.record, now).await?;
    let moved = match &advance.watermark {
        Some(to) => Some(move_watermark(rows, &lease.key, to, advance.record.run_id, now).await?),
        None => watermark_of(rows, &lease.key).await?,
    };
    if let Some(head) = &advance.head {
        row.head = Some(head.clone());
    }
    if advance.release {
        row.lease = None;
    }
    rows.save_tables(std::slice::from_ref(&row)).await?;
    // A store that dropped the write would send the next run over the same rows
    // again; better to fail here, before anything is committed.
    let watermark = watermark_of(rows, &lease.key).await?;
    if watermark != moved {
        return Err(in_table(
            internal("the watermark reads back otherwise than written"),
            &lease.key,
        ));
    }
    Ok(Advanced { watermark })
}

async fn move_watermark(
    rows: &mut dyn Rows,
    key: &TableKey,
    to: &AdvanceWatermark,
    run_id: RunId,
    now: i128,
) -> Result<WatermarkRecord> {
    let settings = &to.settings;
    check_kinds(&to.next, &settings.kind, key)?;
    let stored = watermark_of(rows, key).await?;
    let is_new = stored.is_none();
    let mut record = match (stored, to.expected) {
        (Some(record), Some(_)) => record,
        (None, None) => blank(rows, key, settings),
        (Some(record), None) => {
            let message = format!(
                "a watermark of version {} appeared meanwhile, where none was loaded",
                record.version
            );
            return Err(in_table(conflict(message), key));
        }
        (None, Some(version)) => {
            let message =
                format!("the watermark was deleted meanwhile: version {version} was loaded");
            return Err(in_table(conflict(message), key));
        }
    };
    let expected = to.expected.unwrap_or(record.version);
    let actor = Actor { kind: "run".to_owned(), name: run_id.to_string() };
    let by = By { actor, reason: None };
    let mut current = versioned(&record);
    let mut history = vec![];
    if record.column != settings.column {
        let reason = format!("the cursor became {} instead of {}", settings.column, record.column);
        let mut reset = current.reset(expected).map_err(|error| refused(&error, key))?;
        reset.progress = settings.initial.clone();
        let by = By { reason: Some(reason), ..by.clone() };
        history.push(by.row("reset", reset.version, &current.progress, &reset.progress, now));
        current = reset;
    }
    let expected = if history.is_empty() { expected } else { current.version };
    let next = current.advance(expected, to.next.clone()).map_err(|error| refused(&error, key))?;
    let is_changed = next.progress != current.progress;
    if is_changed || is_new {
        let change = if is_changed { "advance" } else { "create" };
        history.push(by.row(change, next.version, &current.progress, &next.progress, now));
        record.version = next.version;
    } else {
        record.version = current.version;
    }
    if is_changed {
        record.last_sync_at = Some(time_text(now));
    }
    // A run that found nothing is no sync whose rows could be counted.
    if is_changed || to.rows > 0 {
        record.row_count = to.rows;
    }
    record.progress = next.progress;
    record.column.clone_from(&settings.column);
    record.kind.clone_from(&settings.kind);
    record.last_checked_at = Some(time_text(now));
    record.last_run_id = Some(run_id);
    record.starts_generation = false;
    store(rows, &record, &history).await?;
    Ok(record)
}

/// Saves the record before its history, which belongs to it.
pub(crate) async fn store(
    rows: &mut dyn Rows,
    record: &WatermarkRecord,
    history: &[HistoryRow],
) -> Result<()> {
    rows.save_watermark(record).await?;
    for row in history {
        rows.insert_history(&record.id, row).await?;
    }
    Ok(())
}

/// A record that was never stored; its version is 0.
pub(crate) fn blank(
    rows: &mut dyn Rows,
    key: &TableKey,
    settings: &WatermarkSettings,
) -> WatermarkRecord {
    WatermarkRecord {
        id: rows.new_id(),
        key: key.clone(),
        column: settings.column.clone(),
        kind: settings.kind.clone(),
        progress: settings.initial.clone(),
        version: 0,
        row_count: 0,
        last_sync_at: None,
        last_checked_at: None,
        last_run_id: None,
        starts_generation: false,
    }
}

/// Gives a table without a watermark the one that was made by hand for its
/// source without a table's name, if it fits.
pub(crate) async fn claim(
    rows: &mut dyn Rows,
    lease: &Lease,
    settings: &WatermarkSettings,
) -> Result<Option<WatermarkRecord>> {
    let nameless = TableKey { table: None, ..lease.key.clone() };
    // A key without a table sorts before one with a table.
    let locked = rows.lock_tables(&[nameless.clone(), lease.key.clone()]).await?;
    let row = locked.iter().find(|row| row.key == lease.key);
    let row = row.ok_or_else(|| internal("a row that was locked is not there"))?;
    if !is_held(lease, row) {
        return Err(lost(lease, row));
    }
    if watermark_of(rows, &lease.key).await?.is_some() {
        return Ok(None);
    }
    let Some(mut record) = watermark_of(rows, &nameless).await? else { return Ok(None) };
    let Some(progress) = fitting(&record, settings) else { return Ok(None) };
    let now = rows.now().await?;
    let by = By {
        actor: Actor { kind: "run".to_owned(), name: lease.run_id.to_string() },
        reason: Some("made by hand, claimed by the first run with its column".to_owned()),
    };
    let version = record.version.saturating_add(1);
    let history = by.row("adopt", version, &progress, &progress, now);
    record.version = version;
    record.key = lease.key.clone();
    record.kind.clone_from(&settings.kind);
    record.progress = progress;
    store(rows, &record, &[history]).await?;
    Ok(Some(record))
}

/// The progress of a watermark made by hand in the kind of the table's cursor;
/// `None` where column or kind differ.
fn fitting(record: &WatermarkRecord, settings: &WatermarkSettings) -> Option<Progress> {
    if record.column != settings.column || Cursor::parse(&record.column).is_none() {
        return None;
    }
    let Progress { watermark, max_seen, first, direction } = record.progress.clone();
    let is_empty = watermark.is_none() && max_seen.is_none() && first.is_none();
    if is_empty {
        return Some(settings.initial.clone());
    }
    let reread = |position: Option<Position>| match position {
        Some(position) => reread(&position, &settings.kind).map(Some),
        None => Some(None),
    };
    let first = reread(first)?.or_else(|| settings.initial.first.clone());
    Some(Progress { watermark: reread(watermark)?, max_seen: reread(max_seen)?, first, direction })
}

/// The same value in another kind of its own family: a date serves a time
/// column, an integer a decimal one. Nothing is lost, or there is no answer.
fn reread(position: &Position, kind: &str) -> Option<Position> {
    let (own, value) = position_text::to_parts(position);
    let family = |name: &str| match Kind::from_name(name) {
        Some(kind) if kind.is_time() => Some("time"),
        Some(Kind::Integer | Kind::Number) => Some("number"),
        _ => None,
    };
    if own != kind && (family(&own).is_none() || family(&own) != family(kind)) {
        return None;
    }
    position_text::from_parts(kind, &value).ok()
}

/// Sets head and watermark to what the lake says.
pub(crate) async fn adopt(
    rows: &mut dyn Rows,
    lease: &Lease,
    head: Option<&Head>,
    progress: Option<&(WatermarkSettings, Progress)>,
    by: &By,
) -> Result<TableState> {
    let mut row = held(rows, lease).await?;
    row.head = head.cloned();
    rows.save_tables(std::slice::from_ref(&row)).await?;
    if let Some((settings, progress)) = progress {
        check_kinds(progress, &settings.kind, &lease.key)?;
        let now = rows.now().await?;
        let stored = watermark_of(rows, &lease.key).await?;
        let mut record = stored.unwrap_or_else(|| blank(rows, &lease.key, settings));
        let version = record.version.saturating_add(1);
        let before =
            if record.column == settings.column { &record.progress } else { &settings.initial };
        let history = by.row("adopt", version, before, progress, now);
        record.version = version;
        record.column.clone_from(&settings.column);
        record.kind.clone_from(&settings.kind);
        record.progress = progress.clone();
        record.starts_generation = false;
        store(rows, &record, &[history]).await?;
    }
    let unfinished = rows.unfinished(std::slice::from_ref(&lease.key)).await?;
    Ok(TableState {
        lease: lease.clone(),
        head: row.head,
        watermark: watermark_of(rows, &lease.key).await?,
        unfinished: unfinished.into_iter().next_back().map(|(_, run)| run),
    })
}
