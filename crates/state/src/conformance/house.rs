//! The store as a whole.

use std::sync::Arc;

use tidelake_model::{ErrorKind, TableRunStatus, WatermarkFilter};

use super::harness::{ensure, refused, same};
use super::nouns::{LONG, advance, begin, progress, run, sync_config, update};
use super::{Case, Outcome, Place};
use crate::store::{LockFilter, RunFilter};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a_store_keeps_its_identity", |place| Box::pin(identity(place))),
        Case::new("what_one_instance_writes_another_reads", |place| Box::pin(shared(place))),
        Case::new("truncating_leaves_nothing_and_another_identity", |place| Box::pin(empty(place))),
        Case::new("a_destroyed_store_can_be_made_again", |place| Box::pin(destroyed(place))),
    ]
}

async fn identity(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let first = store.identity().await?;
    ensure(!first.is_empty(), "it is empty")?;
    same("opened again", place.open().await?.identity().await?, first)?;
    ensure(!store.location().is_empty(), "it does not say where it is")
}

async fn shared(place: Arc<dyn Place>) -> Outcome {
    let (left, right) = (place.open().await?, place.open().await?);
    left.create_sync(&sync_config("", "a")).await?;
    same("the sync", right.sync("", "a").await?, sync_config("", "a"))?;
    let state = begin(&*right, run(1), "t", LONG).await?;
    same("leases", left.locks(&LockFilter::default()).await?.len(), 1)?;
    left.advance(&state.lease, &advance(&state.lease, None, progress(5, 5))).await?;
    let reading = update(&state.lease, TableRunStatus::Reading, false);
    refused(
        ErrorKind::Conflict,
        "it is given back",
        right.update_table(&state.lease, &reading).await,
    )
    .map(drop)
}

async fn empty(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let before = store.identity().await?;
    store.create_sync(&sync_config("", "a")).await?;
    let old = begin(&*store, run(1), "t", LONG).await?.lease;
    store.advance(&old, &advance(&old, None, progress(5, 5))).await?;
    let old = begin(&*store, run(2), "t", LONG).await?.lease;
    store.truncate().await?;
    ensure(store.identity().await? != before, "the identity stayed")?;
    same("syncs", store.syncs(None).await?, vec![])?;
    same("runs", store.runs(&RunFilter::default()).await?, vec![])?;
    same("table runs", store.table_runs(run(1)).await?, vec![])?;
    same("watermarks", store.watermarks(&WatermarkFilter::default()).await?, vec![])?;
    same("leases", store.locks(&LockFilter::default()).await?, vec![])?;
    let new = begin(&*store, run(2), "t", LONG).await?.lease;
    ensure(new.token > old.token, "the token did not rise")?;
    let late = store.update_table(&old, &update(&old, TableRunStatus::Reading, false)).await;
    refused(ErrorKind::Conflict, "a lease from before", late).map(drop)
}

async fn destroyed(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    store.create_sync(&sync_config("", "a")).await?;
    store.destroy().await?;
    let again = place.open().await?;
    same("syncs", again.syncs(None).await?, vec![])?;
    again.create_sync(&sync_config("", "a")).await?;
    Ok(())
}
