//! The store itself.

use std::collections::{BTreeMap, BTreeSet};

use tidelake_model::{BackfillPiece, Purpose, Result, RunId, RunRecord, TableRunStatus};

use super::internal;
use crate::rows::{IDENTITY, Rows, TOKEN_FLOOR, TableFilter};
use crate::store::{KnownTable, PruneFilter};

pub(crate) async fn identity(rows: &mut dyn Rows) -> Result<String> {
    rows.meta(IDENTITY).await?.ok_or_else(|| internal("the state store has no identity"))
}

/// Gives a new store its identity.
pub(crate) async fn found(rows: &mut dyn Rows) -> Result<()> {
    if rows.meta(IDENTITY).await?.is_none() {
        let id = rows.new_id();
        rows.set_meta(IDENTITY, &id).await?;
    }
    Ok(())
}

/// Empties the store. Tokens go on rising: a run that still believes in its
/// lease must not meet the same token in other hands.
pub(crate) async fn truncate(rows: &mut dyn Rows) -> Result<()> {
    let tables = rows.lock_matching(&TableFilter::default()).await?;
    let floor = rows.meta(TOKEN_FLOOR).await?.and_then(|floor| floor.parse().ok());
    let tokens = tables.iter().map(|row| row.token);
    let floor: u64 = tokens.chain(floor).max().unwrap_or(0);
    rows.clear().await?;
    rows.set_meta(TOKEN_FLOOR, &floor.to_string()).await?;
    found(rows).await
}

pub(crate) async fn tables(rows: &mut dyn Rows, env: &str, scope: &str) -> Result<Vec<KnownTable>> {
    let filter = TableFilter {
        env: Some(env.to_owned()),
        scope: Some(scope.to_owned()),
        ..TableFilter::default()
    };
    let known = rows.tables(&filter).await?.into_iter().filter(|row| row.key.table.is_some());
    Ok(known.map(|row| KnownTable { key: row.key, head: row.head }).collect())
}

/// Removes old runs, or only names them.
pub(crate) async fn prune(rows: &mut dyn Rows, filter: &PruneFilter) -> Result<Vec<RunRecord>> {
    let age = i128::try_from(filter.older_than.as_nanos()).unwrap_or(i128::MAX);
    let until = rows.now().await?.saturating_sub(age);
    let mut old = rows.prunable(filter, until).await?;
    let kept = of_backfills_under_way(rows, &old).await?;
    old.retain(|run| !kept.contains(&run.run_id));
    if !filter.dry_run {
        for run in &old {
            rows.delete_run(run.run_id).await?;
        }
    }
    Ok(old)
}

/// Runs of backfills that are not done, or not all of which is old: by these
/// records they go on where they stopped, so they go together or not at all.
async fn of_backfills_under_way(
    rows: &mut dyn Rows,
    runs: &[RunRecord],
) -> Result<BTreeSet<RunId>> {
    let mut done: BTreeMap<RunId, BTreeSet<u32>> = BTreeMap::new();
    let mut pieces: Vec<(RunId, BackfillPiece)> = vec![];
    for run in runs {
        for table in rows.table_runs(run.run_id).await? {
            let Some(Purpose::Backfill(piece)) = table.window.map(|window| window.purpose) else {
                continue;
            };
            if table.status == TableRunStatus::Completed {
                done.entry(piece.backfill).or_default().insert(piece.number);
            }
            pieces.push((run.run_id, piece));
        }
    }
    let is_whole = |piece: &BackfillPiece| {
        let count = done.get(&piece.backfill).map_or(0, BTreeSet::len);
        u32::try_from(count).is_ok_and(|count| count >= piece.of)
    };
    Ok(pieces.into_iter().filter(|(_, piece)| !is_whole(piece)).map(|(run, _)| run).collect())
}
