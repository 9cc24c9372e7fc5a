//! The store itself.

use tidelake_model::Result;

use super::internal;
use crate::rows::{IDENTITY, Rows, TOKEN_FLOOR, TableFilter};

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
