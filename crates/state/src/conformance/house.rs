//! The store as a whole.

use std::sync::Arc;
use std::time::Duration;

use tidelake_model::{
    BackfillPiece, ErrorKind, Purpose, RunId, RunRecord, RunStatus, TableRunStatus, WatermarkFilter,
};

use super::harness::{Failure, ensure, refused, same};
use super::nouns::{LONG, advance, begin, head, key, progress, run, sync_config, update};
use super::{Case, Outcome, Place};
use crate::store::{LockFilter, PruneFilter, RunFilter};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a_store_keeps_its_identity", |place| Box::pin(identity(place))),
        Case::new("the_clock_goes_on", |place| Box::pin(clock(place))),
        Case::new("what_one_instance_writes_another_reads", |place| Box::pin(shared(place))),
        Case::new("truncating_leaves_nothing_and_another_identity", |place| Box::pin(empty(place))),
        Case::new("a_destroyed_store_can_be_made_again", |place| Box::pin(destroyed(place))),
        Case::new("old_runs_are_pruned_unless_something_rests_on_them", |place| {
            Box::pin(pruned(place))
        }),
        Case::new("a_backfill_under_way_keeps_its_pieces", |place| Box::pin(backfilled(place))),
        Case::new("runs_are_pruned_by_sync_status_and_age", |place| Box::pin(pruned_by(place))),
        Case::new("tables_are_known_from_their_first_lease_on", |place| Box::pin(known(place))),
    ]
}

async fn identity(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let first = store.identity().await?;
    ensure(!first.is_empty(), "it is empty")?;
    same("opened again", place.open().await?.identity().await?, first)?;
    ensure(!store.location().is_empty(), "it does not say where it is")
}

async fn clock(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let before = store.now().await?;
    place.pass(Duration::from_millis(20)).await;
    let after = place.open().await?.now().await?;
    ensure(after - before >= 20_000_000, "20 ms passed, and it shows less")?;
    ensure(after - before < 60_000_000_000, "it shows a minute more")
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

fn ids(runs: &[RunRecord]) -> Vec<RunId> {
    runs.iter().map(|run| run.run_id).collect()
}

async fn pruned(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    // Runs 1 to 3 complete one after the other; the second is the lake's head.
    let mut version = None;
    for number in 1..=3 {
        let lease = begin(&*store, run(number), "t", LONG).await?.lease;
        let mut done = advance(&lease, version, progress(5, 5));
        done.head = (number == 2).then(|| head(run(2)));
        version = store.advance(&lease, &done).await?.watermark.map(|record| record.version);
        store.finish_run(run(number), RunStatus::Completed, None).await?;
        place.pass(Duration::from_millis(20)).await;
    }
    // The fourth failed and left nothing, the fifth has to be finished, the sixth
    // is under way.
    for (number, table, status) in
        [(4, "t", TableRunStatus::Failed), (5, "u", TableRunStatus::Committing)]
    {
        let lease = begin(&*store, run(number), table, LONG).await?.lease;
        store.update_table(&lease, &update(&lease, status, true)).await?;
        store.finish_run(run(number), RunStatus::Failed, Some("it failed")).await?;
    }
    begin(&*store, run(6), "v", LONG).await?;

    place.pass(Duration::from_millis(20)).await;
    let named = PruneFilter { dry_run: true, ..PruneFilter::default() };
    let expected = vec![run(1), run(4)];
    same("named", ids(&store.prune(&named).await?), expected.clone())?;
    same("all are there", store.runs(&RunFilter::default()).await?.len(), 6)?;
    same("pruned", ids(&store.prune(&PruneFilter::default()).await?), expected)?;
    let mut left = ids(&store.runs(&RunFilter::default()).await?);
    left.sort();
    same("left", left, vec![run(2), run(3), run(5), run(6)])?;
    for (number, tables) in [(1, 0), (2, 1), (3, 1), (4, 0), (5, 1)] {
        same("their tables", store.table_runs(run(number)).await?.len(), tables)?;
    }
    let of_table = store.runs_of_table(&key("t"), 0).await?;
    let of_table: Vec<_> = of_table.iter().map(|record| record.run_id).collect();
    same("of the table, newest first", of_table, vec![run(3), run(2)])?;
    same("the newest", store.runs_of_table(&key("t"), 1).await?.len(), 1)?;
    same("a second time", ids(&store.prune(&PruneFilter::default()).await?), vec![])?;
    // What was kept serves: the table that was left is offered to its next run.
    let next = begin(&*store, run(7), "u", LONG).await?;
    let left = next.unfinished.ok_or_else(|| Failure::new("what was left is gone"))?;
    same("left", left.run_id, run(5))
}

async fn backfilled(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    // Two pieces of three are done; an ordinary run comes between; then the third.
    for (at, number) in (1..).zip([Some(1), Some(2), None, Some(3), None]) {
        let lease = begin(&*store, run(at), "t", LONG).await?.lease;
        let mut done = update(&lease, TableRunStatus::Completed, true);
        if let (Some(window), Some(number)) = (&mut done.record.window, number) {
            let range = "(0, 9]".to_owned();
            let piece = BackfillPiece { backfill: run(1), range, number, of: 3, from: None };
            window.purpose = Purpose::Backfill(piece);
        }
        store.update_table(&lease, &done).await?;
        store.finish_run(run(at), RunStatus::Completed, None).await?;
        place.pass(Duration::from_millis(20)).await;
        // The newest run of a table stays in any case.
        let expected = match at {
            4 => vec![run(3)],
            5 => vec![run(1), run(2), run(4)],
            _ => vec![],
        };
        same("pruned", ids(&store.prune(&PruneFilter::default()).await?), expected)?;
    }
    Ok(())
}

async fn pruned_by(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let statuses = [RunStatus::Failed, RunStatus::Cancelled, RunStatus::Partial];
    for (number, status) in (1..).zip(statuses) {
        begin(&*store, run(number), "t", LONG).await?;
        store.finish_run(run(number), status, None).await?;
        place.pass(Duration::from_millis(20)).await;
    }
    let scope = store.runs(&RunFilter::default()).await?.pop().map(|run| run.scope);
    let filter = PruneFilter { scope, dry_run: true, ..PruneFilter::default() };
    let named = async |filter: PruneFilter| Outcome::Ok(ids(&store.prune(&filter).await?));
    same("all", named(filter.clone()).await?, vec![run(1), run(2), run(3)])?;
    let failed =
        PruneFilter { statuses: vec![RunStatus::Partial, RunStatus::Failed], ..filter.clone() };
    same("by status", named(failed).await?, vec![run(1), run(3)])?;
    let running = PruneFilter { statuses: vec![RunStatus::Running], ..filter.clone() };
    same("those under way", named(running).await?, vec![])?;
    let other = PruneFilter { scope: Some("another".to_owned()), ..filter.clone() };
    same("of another sync", named(other).await?, vec![])?;
    let elsewhere = PruneFilter { env: Some("another".to_owned()), ..filter.clone() };
    same("of another environment", named(elsewhere).await?, vec![])?;
    let young = PruneFilter { older_than: Duration::from_secs(3_600), ..filter };
    same("of an hour ago", named(young).await?, vec![])
}

async fn known(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let lease = begin(&*store, run(1), "b", LONG).await?.lease;
    let (env, scope) = (lease.key.env.clone(), lease.key.scope.clone());
    let mut done = advance(&lease, None, progress(5, 5));
    done.head = Some(head(run(1)));
    store.advance(&lease, &done).await?;
    begin(&*store, run(2), "a", LONG).await?;
    let tables = store.tables(&env, &scope).await?;
    let found: Vec<_> = tables.into_iter().map(|table| (table.key, table.head)).collect();
    same("tables", found, vec![(key("a"), None), (key("b"), Some(head(run(1))))])?;
    same("of another sync", store.tables(&env, "another").await?, vec![])
}
