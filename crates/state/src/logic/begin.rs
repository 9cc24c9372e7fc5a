//! The beginning and the end of a run.

use std::collections::{BTreeMap, BTreeSet};

use tidelake_model::{
    Error, ErrorKind, Result, RunId, RunRecord, RunStatus, TableKey, TableRun, TableRunStatus,
};

use super::house::identity;
use super::leases::{expiry, live, locked, orphan};
use super::{in_table, internal};
use crate::rows::{LeaseRow, Rows, TOKEN_FLOOR, TableFilter, TableRow};
use crate::store::{BeginRun, Begun, Lease, RunFilter, TableState};
use crate::time::time_text;

/// Takes the leases of all tables or of none, and loads what is remembered.
pub(crate) async fn begin_run(rows: &mut dyn Rows, request: &BeginRun) -> Result<Begun> {
    let keys = sorted_keys(&request.tables)?;
    let mut tables = rows.lock_tables(&keys).await?;
    let now = rows.now().await?;
    for key in &request.tables {
        let row = tables.iter().find(|row| row.key == *key);
        if let Some(lease) = row.and_then(|row| in_the_way(row, request, now)) {
            return Err(locked(key, lease));
        }
    }
    let taken = take(rows, &mut tables, request, now).await?;
    rows.save_tables(&tables).await?;

    let run = record(rows, request, now).await?;
    for run_id in taken {
        orphan(rows, run_id, &format!("taken over by run {}", request.run_id)).await?;
    }
    close_abandoned(rows, request, now).await?;

    let watermarks = rows.watermarks_of(&keys).await?;
    // In rising order of tokens, so that the latest one stays.
    let mut unfinished: BTreeMap<TableKey, TableRun> =
        rows.unfinished(&keys).await?.into_iter().collect();
    let mut states: BTreeMap<TableKey, TableState> = BTreeMap::new();
    for row in tables {
        let state = TableState {
            lease: Lease { key: row.key.clone(), run_id: request.run_id, token: row.token },
            head: row.head,
            watermark: watermarks.iter().find(|record| record.key == row.key).cloned(),
            unfinished: unfinished.remove(&row.key),
        };
        states.insert(row.key, state);
    }
    let in_order = request.tables.iter().filter_map(|key| states.remove(key)).collect();
    Ok(Begun { identity: identity(rows).await?, run, tables: in_order })
}

fn sorted_keys(tables: &[TableKey]) -> Result<Vec<TableKey>> {
    let mut keys = BTreeSet::new();
    for key in tables {
        if key.table.is_none() {
            return Err(internal("a run cannot lease a table without a name"));
        }
        if !keys.insert(key.clone()) {
            let error = Error::new(ErrorKind::Configuration, "the run names the table twice");
            return Err(in_table(error, key).with_hint("name every table once"));
        }
    }
    Ok(keys.into_iter().collect())
}

/// A live lease of another. The same run in the same process may ask again: its
/// first answer was lost on the way.
fn in_the_way<'a>(row: &'a TableRow, request: &BeginRun, now: i128) -> Option<&'a LeaseRow> {
    live(row, now).filter(|lease| lease.run_id != request.run_id || lease.holder != request.holder)
}

/// Gives every table a new lease with the next token; returns the other runs
/// whose leases ended by it.
async fn take(
    rows: &mut dyn Rows,
    tables: &mut [TableRow],
    request: &BeginRun,
    now: i128,
) -> Result<BTreeSet<RunId>> {
    let floor = match tables.iter().any(|row| row.token == 0) {
        true => rows.meta(TOKEN_FLOOR).await?.and_then(|floor| floor.parse().ok()).unwrap_or(0),
        false => 0,
    };
    let mut taken = BTreeSet::new();
    for row in tables {
        row.token = row.token.max(floor).saturating_add(1);
        let lease = LeaseRow {
            run_id: request.run_id,
            holder: request.holder.clone(),
            expires_at: expiry(now, request.ttl),
        };
        if let Some(old) = row.lease.replace(lease) {
            taken.insert(old.run_id);
        }
    }
    taken.remove(&request.run_id);
    Ok(taken)
}

/// Records the run; one that is taken up again keeps its start.
async fn record(rows: &mut dyn Rows, request: &BeginRun, now: i128) -> Result<RunRecord> {
    let earlier = rows.run(request.run_id).await?;
    let run = RunRecord {
        run_id: request.run_id,
        env: request.env.clone(),
        scope: request.scope.clone(),
        status: RunStatus::Running,
        started_at: earlier.map_or_else(|| time_text(now), |earlier| earlier.started_at),
        finished_at: None,
        error: None,
    };
    rows.save_run(&run).await?;
    Ok(run)
}

/// Ends runs of the same sync that hold nothing any more: their process ended
/// between the last table and the end of the run.
async fn close_abandoned(rows: &mut dyn Rows, request: &BeginRun, now: i128) -> Result<()> {
    let filter = RunFilter {
        env: Some(request.env.clone()),
        scope: Some(request.scope.clone()),
        status: Some(RunStatus::Running),
        ..RunFilter::default()
    };
    for mut run in rows.runs(&filter).await? {
        if run.run_id == request.run_id
            || !rows.tables(&TableFilter::of_run(run.run_id)).await?.is_empty()
        {
            continue;
        }
        let table_runs = rows.table_runs(run.run_id).await?;
        run.status = outcome(&table_runs);
        run.finished_at = Some(time_text(now));
        if run.status != RunStatus::Completed {
            run.error = Some("its process ended before the run did".to_owned());
        }
        rows.save_run(&run).await?;
    }
    Ok(())
}

fn outcome(table_runs: &[TableRun]) -> RunStatus {
    let is_done = |run: &TableRun| run.status == TableRunStatus::Completed;
    match table_runs.iter().filter(|run| is_done(run)).count() {
        0 => RunStatus::Failed,
        done if done == table_runs.len() => RunStatus::Completed,
        _ => RunStatus::Partial,
    }
}

/// Ends a run and gives back what it still holds.
pub(crate) async fn finish_run(
    rows: &mut dyn Rows,
    run_id: RunId,
    status: RunStatus,
    error: Option<&str>,
) -> Result<()> {
    let mut tables = rows.lock_matching(&TableFilter::of_run(run_id)).await?;
    for row in &mut tables {
        row.lease = None;
    }
    rows.save_tables(&tables).await?;
    let Some(mut run) = rows.run(run_id).await? else {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no run {run_id}")));
    };
    let now = rows.now().await?;
    run.status = status;
    run.finished_at = (status != RunStatus::Running).then(|| time_text(now));
    run.error = error.map(str::to_owned);
    rows.save_run(&run).await
}
