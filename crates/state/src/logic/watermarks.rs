//! Changes of watermarks by people and programs, not by runs.

use tidelake_model::{
    Actor, Change, Error, ErrorKind, HistoryRow, Result, TableKey, TableRun, TableRunStatus,
    WatermarkFilter, WatermarkRecord, position_text,
};
use tidelake_watermark::Progress;

use super::leases::{live, locked};
use super::progress::{blank, store};
use super::{check_kinds, conflict, in_table, lock_table, refused, watermark_of};
use crate::rows::{Rows, TableRow};
use crate::store::{WatermarkSettings, versioned};
use crate::time::time_text;

/// Who changed a watermark, and why.
#[derive(Debug, Clone)]
pub(crate) struct By {
    pub(crate) actor: Actor,
    pub(crate) reason: Option<String>,
}

impl By {
    pub(crate) fn row(
        &self,
        change: &str,
        version: u64,
        before: &Progress,
        after: &Progress,
        now: i128,
    ) -> HistoryRow {
        HistoryRow {
            version,
            change: change.to_owned(),
            before: before.clone(),
            after: after.clone(),
            actor: self.actor.clone(),
            reason: self.reason.clone(),
            at: time_text(now),
        }
    }
}

pub(crate) async fn create(
    rows: &mut dyn Rows,
    key: &TableKey,
    settings: &WatermarkSettings,
    by: &By,
) -> Result<WatermarkRecord> {
    check_kinds(&settings.initial, &settings.kind, key)?;
    let row = lock_table(rows, key).await?;
    if let Some(taken) = watermark_of(rows, key).await? {
        return Err(exists(key, &[taken]));
    }
    if key.table.is_none() {
        // Such a watermark stands for a source that has none yet.
        let of_source = WatermarkFilter {
            env: Some(key.env.clone()),
            scope: Some(key.scope.clone()),
            connector_type: Some(key.connector_type.clone()),
            source_key: Some(key.source_key.clone()),
            table: None,
        };
        let candidates = rows.watermarks(&of_source).await?;
        if !candidates.is_empty() {
            return Err(exists(key, &candidates));
        }
    }
    // The first run of a table has no watermark yet, and makes one when it ends.
    check_unheld(rows, key, &row).await?;
    let now = rows.now().await?;
    let mut record = blank(rows, key, settings);
    record.version = 1;
    let history = by.row("create", 1, &record.progress, &record.progress, now);
    store(rows, &record, &[history]).await?;
    Ok(record)
}

fn exists(key: &TableKey, candidates: &[WatermarkRecord]) -> Error {
    let name = |record: &WatermarkRecord| match &record.key.table {
        Some(table) => format!("{} ({table})", record.id),
        None => record.id.clone(),
    };
    let names = candidates.iter().map(name).collect::<Vec<_>>().join(", ");
    let message = format!("{} {} has a watermark: {names}", key.connector_type, key.source_key);
    in_table(Error::new(ErrorKind::AlreadyExists, message), key)
        .with_hint("change the one that exists, or delete it first")
}

/// Loads a watermark and locks its table's row, which no run may hold.
async fn unheld(rows: &mut dyn Rows, id: &str) -> Result<WatermarkRecord> {
    // A claim may change the key between the look and the lock; the record is
    // read again under the lock of the key that it has then.
    for _ in 0..3 {
        let key = known(rows, id).await?.key;
        let row = lock_table(rows, &key).await?;
        let record = known(rows, id).await?;
        if record.key != key {
            continue;
        }
        check_unheld(rows, &key, &row).await?;
        return Ok(record);
    }
    Err(conflict("the watermark went to another table meanwhile"))
}

/// Refuses while a run holds the table, or has begun to commit and is not finished.
async fn check_unheld(rows: &mut dyn Rows, key: &TableKey, row: &TableRow) -> Result<()> {
    let now = rows.now().await?;
    if let Some(lease) = live(row, now) {
        return Err(locked(key, lease));
    }
    let left = rows.unfinished(std::slice::from_ref(key)).await?;
    match left.iter().find(|(_, run)| run.status != TableRunStatus::Reading) {
        Some((_, run)) => Err(being_committed(key, run)),
        None => Ok(()),
    }
}

/// Files that a run committed, or is about to, count with the watermark that it
/// read from; that one may not change before the run is finished.
fn being_committed(key: &TableKey, run: &TableRun) -> Error {
    let message = format!("run {} was interrupted while it committed its files", run.run_id);
    in_table(Error::new(ErrorKind::Conflict, message), key)
        .in_run(run.run_id)
        .with_hint("run tidelake sync, which finishes it first, and then change the watermark")
}

async fn known(rows: &mut dyn Rows, id: &str) -> Result<WatermarkRecord> {
    rows.watermark(id).await?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no watermark {id:?}"))
            .with_hint("list them with: tidelake watermarks list")
    })
}

pub(crate) async fn change(
    rows: &mut dyn Rows,
    id: &str,
    change: &Change,
    expected: Option<u64>,
    by: &By,
) -> Result<WatermarkRecord> {
    let mut record = unheld(rows, id).await?;
    let key = record.key.clone();
    let current = versioned(&record);
    let expected = expected.unwrap_or(current.version);
    let refused = |error| refused(&error, &key);
    let (name, next) = match change {
        Change::Edit(position) => {
            if record.kind.is_empty() {
                record.kind = position_text::to_parts(position).0;
            }
            ("edit", current.edit(expected, position.clone()).map_err(refused)?)
        }
        Change::Reset => ("reset", current.reset(expected).map_err(refused)?),
        Change::Undo => {
            let earlier = before_last_change(rows, &record).await?;
            ("undo", current.undo(expected, earlier).map_err(refused)?)
        }
    };
    check_kinds(&next.progress, &record.kind, &key)?;
    let now = rows.now().await?;
    let history = by.row(name, next.version, &current.progress, &next.progress, now);
    // Without a value everything is read again, which must then replace what the
    // lake holds; with one the lake's rows stay and rows are added.
    record.starts_generation = match change {
        Change::Edit(_) => false,
        Change::Reset => true,
        Change::Undo => next.progress.watermark.is_none() && next.progress.max_seen.is_none(),
    };
    record.version = next.version;
    record.progress = next.progress;
    store(rows, &record, &[history]).await?;
    Ok(record)
}

async fn before_last_change(rows: &mut dyn Rows, record: &WatermarkRecord) -> Result<Progress> {
    match rows.history(&record.id, 1).await?.into_iter().next() {
        Some(row) if row.change != "create" => Ok(row.before),
        _ => Err(in_table(conflict("the watermark was never changed"), &record.key)
            .with_hint("there is nothing to undo")),
    }
}

pub(crate) async fn delete(rows: &mut dyn Rows, id: &str) -> Result<()> {
    unheld(rows, id).await?;
    rows.delete_watermark(id).await
}

pub(crate) async fn history(rows: &mut dyn Rows, id: &str) -> Result<Vec<HistoryRow>> {
    known(rows, id).await?;
    rows.history(id, 0).await
}
