//! Stored syncs.

use std::sync::Arc;

use tidelake_model::{ErrorKind, TableRunStatus, WatermarkFilter};

use super::harness::{ensure, refused, same, some};
use super::nouns::{LONG, SYNC, advance, begin, head, progress, run, sync_config, update};
use super::{Case, Outcome, Place};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a_sync_is_read_back_as_it_was_stored", |place| Box::pin(read_back(place))),
        Case::new("a_sync_id_is_taken_once_per_environment", |place| Box::pin(taken(place))),
        Case::new("an_unknown_sync_is_told_with_those_that_exist", |place| {
            Box::pin(unknown(place))
        }),
        Case::new("a_deleted_sync_leaves_runs_and_no_watermark", |place| Box::pin(deleted(place))),
        Case::new("a_sync_under_way_cannot_be_deleted", |place| Box::pin(under_way(place))),
        Case::new("a_token_is_never_used_again_after_a_delete", |place| Box::pin(tokens(place))),
    ]
}

async fn read_back(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let odd = "it's \"the\" env; DROP TABLE syncs --\u{1f30a}";
    for (env, sync_id) in [("", "b"), ("", "a"), (odd, "c")] {
        store.create_sync(&sync_config(env, sync_id)).await?;
    }
    same("the sync", store.sync(odd, "c").await?, sync_config(odd, "c"))?;
    same(
        "those of one environment",
        store.syncs(Some("")).await?,
        vec![sync_config("", "a"), sync_config("", "b")],
    )?;
    same("all of them", store.syncs(None).await?.len(), 3)
}

async fn taken(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    store.create_sync(&sync_config("", "a")).await?;
    store.create_sync(&sync_config("test", "a")).await?;
    let mut other = sync_config("", "a");
    other.safety_lag = 99;
    refused(ErrorKind::AlreadyExists, "a second one", store.create_sync(&other).await)?;
    same("the first one", store.sync("", "a").await?, sync_config("", "a"))
}

async fn unknown(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    refused(ErrorKind::NotFound, "none exists", store.sync("", "a").await)?;
    store.create_sync(&sync_config("", "orders")).await?;
    let error = refused(ErrorKind::NotFound, "another exists", store.sync("", "a").await)?;
    ensure(error.hint().is_some_and(|hint| hint.contains("orders")), "the hint names no sync")?;
    refused(ErrorKind::NotFound, "deleting it", store.delete_sync("", "a").await).map(drop)
}

async fn deleted(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    store.create_sync(&sync_config("", SYNC)).await?;
    let first = begin(&*store, run(1), "t", LONG).await?;
    store.advance(&first.lease, &advance(&first.lease, None, progress(5, 5))).await?;
    store.finish_run(run(1), tidelake_model::RunStatus::Completed, None).await?;
    store.delete_sync("", SYNC).await?;
    refused(ErrorKind::NotFound, "the deleted sync", store.sync("", SYNC).await)?;
    same("watermarks", store.watermarks(&WatermarkFilter::default()).await?, vec![])?;
    same("runs", store.runs(&Default::default()).await?.len(), 1)?;
    same("table runs", store.table_runs(run(1)).await?.len(), 1)?;
    let second = begin(&*store, run(2), "t", LONG).await?;
    same("its head", second.head, None)?;
    same("its watermark", second.watermark, None)
}

async fn under_way(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    store.create_sync(&sync_config("", SYNC)).await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    let error = refused(ErrorKind::Locked, "a leased table", store.delete_sync("", SYNC).await)?;
    same("the run in the way", error.run(), Some(run(1)))?;
    store.update_table(&state.lease, &update(&state.lease, TableRunStatus::Failed, true)).await?;
    store.delete_sync("", SYNC).await?;
    Ok(())
}

async fn tokens(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let mut last = 0;
    for number in 1..=4 {
        store.create_sync(&sync_config("", SYNC)).await?;
        let state = begin(&*store, run(number), "t", LONG).await?;
        ensure(state.lease.token > last, "a token did not rise")?;
        last = state.lease.token;
        store.advance(&state.lease, &advance(&state.lease, None, progress(5, 5))).await?;
        let filter = WatermarkFilter::default();
        let record = some("a watermark", store.watermarks(&filter).await?.pop())?;
        same("its run", record.last_run_id, Some(run(number)))?;
        if number == 2 {
            store.truncate().await?;
        } else {
            store.delete_sync("", SYNC).await?;
        }
    }
    let state = begin(&*store, run(9), "t", LONG).await?;
    store.adopt(&state.lease, Some(&head(run(3))), None, &super::nouns::actor()).await?;
    Ok(())
}
