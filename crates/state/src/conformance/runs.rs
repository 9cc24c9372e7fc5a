//! Runs and table runs.

use std::sync::Arc;
use std::time::Duration;

use tidelake_model::{ErrorKind, RunStatus, TableRunStatus};

use super::harness::{ensure, refused, same, some};
use super::nouns::{
    LONG, LONGER_THAN_SHORT, SHORT, advance, begin, head, progress, record, record_of, request,
    run, update,
};
use super::{Case, Outcome, Place};
use crate::store::{LockFilter, RunFilter, TableUpdate};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a_table_run_is_read_back_as_it_was_written", |place| Box::pin(read_back(place))),
        Case::new("a_finished_run_holds_nothing", |place| Box::pin(finished(place))),
        Case::new("runs_come_newest_first", |place| Box::pin(newest_first(place))),
        Case::new("a_successor_finishes_what_was_left", |place| Box::pin(successor(place))),
        Case::new("a_run_that_ended_without_a_word_is_closed", |place| Box::pin(closed(place))),
        Case::new("a_run_that_is_taken_up_keeps_its_start", |place| Box::pin(taken_up(place))),
        Case::new("a_record_needs_its_own_table_and_run", |place| Box::pin(foreign(place))),
    ]
}

async fn read_back(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let begun = store.begin_run(&request(run(1), &["b", "a"], LONG)).await?;
    same("its status", begun.run.status, RunStatus::Running)?;
    for state in &begun.tables {
        let lease = &state.lease;
        let first = update(lease, TableRunStatus::Reading, false);
        store.update_table(lease, &first).await?;
        place.pass(Duration::from_millis(20)).await;
        let mut last = update(lease, TableRunStatus::Failed, true);
        last.record.error = Some("it's a \"failure\" \u{1f4a7}".to_owned());
        store.update_table(lease, &last).await?;
    }
    let stored = store.table_runs(run(1)).await?;
    let tables: Vec<_> = stored.iter().map(|run| run.table.table.clone()).collect();
    same("in the order of their names", tables, vec!["a".to_owned(), "b".to_owned()])?;
    for (stored, state) in stored.into_iter().zip(begun.tables.iter().rev()) {
        let finished_at = some("its end", stored.finished_at.clone())?;
        ensure(stored.started_at < finished_at, "it ended before it began")?;
        let mut wanted = record(&state.lease, TableRunStatus::Failed);
        wanted.error.clone_from(&stored.error);
        wanted.started_at.clone_from(&stored.started_at);
        wanted.finished_at = Some(finished_at);
        same("the record", stored, wanted)?;
    }
    Ok(())
}

async fn finished(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let begun = store.begin_run(&request(run(1), &["a", "b"], LONG)).await?;
    store.finish_run(run(1), RunStatus::Failed, Some("no disk")).await?;
    same("leases", store.locks(&LockFilter::default()).await?, vec![])?;
    let stored = some("the run", store.runs(&RunFilter::default()).await?.pop())?;
    same("its status", stored.status, RunStatus::Failed)?;
    same("its error", stored.error.as_deref(), Some("no disk"))?;
    same("its start", stored.started_at, begun.run.started_at)?;
    ensure(stored.finished_at.is_some(), "it has no end")?;
    let unknown = store.finish_run(run(2), RunStatus::Failed, None).await;
    refused(ErrorKind::NotFound, "a run that never began", unknown).map(drop)
}

async fn newest_first(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    for number in [3, 1, 2] {
        store.begin_run(&request(run(number), &[], LONG)).await?;
        store.finish_run(run(number), RunStatus::Completed, None).await?;
        place.pass(Duration::from_millis(20)).await;
    }
    let ids = |runs: Vec<tidelake_model::RunRecord>| -> Vec<_> {
        runs.into_iter().map(|run| run.run_id).collect()
    };
    let all = store.runs(&RunFilter::default()).await?;
    same("all", ids(all), vec![run(2), run(1), run(3)])?;
    let latest = RunFilter { limit: 2, ..RunFilter::default() };
    same("the latest", ids(store.runs(&latest).await?), vec![run(2), run(1)])?;
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    same("those under way", store.runs(&running).await?, vec![])?;
    let elsewhere = RunFilter { env: Some("test".to_owned()), ..RunFilter::default() };
    same("of another environment", store.runs(&elsewhere).await?, vec![])
}

async fn successor(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let old = begin(&*store, run(1), "t", SHORT).await?.lease;
    store.update_table(&old, &update(&old, TableRunStatus::Committing, false)).await?;
    place.pass(LONGER_THAN_SHORT).await;
    let new = begin(&*store, run(2), "t", LONG).await?;
    same("left", new.unfinished.map(|left| left.status), Some(TableRunStatus::Committing))?;

    let committed = TableUpdate {
        record: record_of(run(1), &new.lease, TableRunStatus::Committed),
        release: false,
    };
    store.update_table(&new.lease, &committed).await?;
    let mut done = advance(&new.lease, None, progress(5, 5));
    done.record = record_of(run(1), &new.lease, TableRunStatus::Completed);
    done.head = Some(head(run(1)));
    done.release = false;
    let advanced = store.advance(&new.lease, &done).await?;
    let record = some("the watermark", advanced.watermark)?;
    same("the run that moved it", record.last_run_id, Some(run(1)))?;

    // It goes on with its own window under the same lease.
    let own = advance(&new.lease, Some(record.version), progress(9, 9));
    store.advance(&new.lease, &own).await?;
    let next = begin(&*store, run(3), "t", LONG).await?;
    same("left", next.unfinished, None)?;
    same("the head", next.head, Some(head(run(2))))?;
    same("of the first run", store.table_runs(run(1)).await?.len(), 1)?;
    same("of the second run", store.table_runs(run(2)).await?.len(), 1)
}

async fn closed(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    // One is done with its tables and dies before it says so, one did half.
    let state = begin(&*store, run(1), "a", LONG).await?;
    store.advance(&state.lease, &advance(&state.lease, None, progress(5, 5))).await?;
    let half = store.begin_run(&request(run(2), &["a", "b"], LONG)).await?;
    for (state, status) in
        half.tables.iter().zip([TableRunStatus::Completed, TableRunStatus::Failed])
    {
        store.update_table(&state.lease, &update(&state.lease, status, true)).await?;
    }
    // One is alive.
    begin(&*store, run(3), "c", LONG).await?;
    begin(&*store, run(4), "d", LONG).await?;
    let mut runs = store.runs(&RunFilter::default()).await?;
    runs.sort_by_key(|run| run.run_id);
    let statuses: Vec<_> = runs.into_iter().map(|run| run.status).collect();
    same(
        "statuses",
        statuses,
        vec![RunStatus::Completed, RunStatus::Partial, RunStatus::Running, RunStatus::Running],
    )
}

async fn taken_up(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let first = store.begin_run(&request(run(1), &["t"], LONG)).await?;
    store.finish_run(run(1), RunStatus::Cancelled, Some("interrupted")).await?;
    place.pass(Duration::from_millis(20)).await;
    let second = store.begin_run(&request(run(1), &["t"], LONG)).await?;
    same("its start", &second.run.started_at, &first.run.started_at)?;
    same("its status", second.run.status, RunStatus::Running)?;
    same("its error", second.run.error, None)?;
    same("runs", store.runs(&RunFilter::default()).await?.len(), 1)
}

async fn foreign(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let begun = store.begin_run(&request(run(1), &["a", "b"], LONG)).await?;
    let leases: Vec<_> = begun.tables.into_iter().map(|state| state.lease).collect();
    let (Some(first), Some(second)) = (leases.first(), leases.last()) else {
        return Err(super::Failure::new("a lease is missing"));
    };
    let mixed = store.update_table(first, &update(second, TableRunStatus::Reading, false)).await;
    refused(ErrorKind::Internal, "another table's record", mixed)?;
    let unknown =
        TableUpdate { record: record_of(run(7), first, TableRunStatus::Reading), release: false };
    let unknown = store.update_table(first, &unknown).await;
    refused(ErrorKind::Conflict, "the record of a run that never was", unknown)?;
    same("table runs", store.table_runs(run(1)).await?, vec![])
}
