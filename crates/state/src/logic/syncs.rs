//! Stored syncs.

use tidelake_model::{Error, ErrorKind, Result, SyncConfig, WatermarkFilter};

use super::leases::{live, locked};
use crate::rows::{Rows, TableFilter};

pub(crate) async fn create(rows: &mut dyn Rows, sync: &SyncConfig) -> Result<()> {
    let now = rows.now().await?;
    if rows.insert_sync(sync, now).await? {
        return Ok(());
    }
    let message = format!("sync {:?} exists{}", sync.sync_id, of(&sync.env));
    Err(Error::new(ErrorKind::AlreadyExists, message)
        .with_hint("choose another --sync-id, or delete it with: tidelake config delete"))
}

fn of(env: &str) -> String {
    if env.is_empty() { String::new() } else { format!(" in environment {env:?}") }
}

pub(crate) async fn get(rows: &mut dyn Rows, env: &str, sync_id: &str) -> Result<SyncConfig> {
    let mut ids = vec![];
    for sync in rows.syncs(Some(env)).await? {
        if sync.sync_id == sync_id {
            return Ok(sync);
        }
        ids.push(sync.sync_id);
    }
    let hint = match ids.is_empty() {
        true => "there is none yet; make one with: tidelake config create".to_owned(),
        false => format!("those that exist: {}", ids.join(", ")),
    };
    let message = format!("there is no sync {sync_id:?}{}", of(env));
    Err(Error::new(ErrorKind::NotFound, message).with_hint(hint))
}

/// The rows of its tables stay for their tokens: a table of a sync that is made
/// again under the same id must not give out a token twice.
pub(crate) async fn delete(rows: &mut dyn Rows, env: &str, sync_id: &str) -> Result<()> {
    let env = env.to_owned();
    let filter = TableFilter {
        env: Some(env.clone()),
        scope: Some(sync_id.to_owned()),
        ..TableFilter::default()
    };
    let mut tables = rows.lock_matching(&filter).await?;
    get(rows, &env, sync_id).await?;
    let now = rows.now().await?;
    for row in &mut tables {
        if let Some(lease) = live(row, now) {
            return Err(locked(&row.key, lease));
        }
        row.lease = None;
        row.head = None;
    }
    rows.save_tables(&tables).await?;
    let scope = Some(sync_id.to_owned());
    let filter = WatermarkFilter { env: Some(env.clone()), scope, ..WatermarkFilter::default() };
    for record in rows.watermarks(&filter).await? {
        rows.delete_watermark(&record.id).await?;
    }
    rows.delete_sync(&env, sync_id).await?;
    Ok(())
}
