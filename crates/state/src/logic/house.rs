//! The store itself.

use tidelake_model::{Result, RunRecord};

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
    let old = rows.prunable(filter, until).await?;
    if !filter.dry_run {
        for run in &old {
            rows.delete_run(run.run_id).await?;
        }
    }
    Ok(old)
}
