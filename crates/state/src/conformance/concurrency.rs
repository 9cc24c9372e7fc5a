//! Many at once.

use std::sync::Arc;

use futures::future::try_join_all;
use tidelake_model::{Change, ErrorKind, RunStatus, TableRunStatus};

use super::harness::{ensure, same, some};
use super::nouns::{
    LONG, actor, advance, begin, integer, key, progress, request, run, settings, update,
};
use super::{Case, Failure, Outcome, Place};
use crate::store::{RunFilter, WatermarkSettings};

const WRITERS: u32 = 8;
const ROUNDS: u32 = 12;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("many_may_open_an_empty_store_at_once", |place| Box::pin(opening(place))),
        Case::new("eight_writers_do_not_block_each_other", |place| Box::pin(writers(place))),
        Case::new("a_run_of_many_tables_begins", |place| Box::pin(many_tables(place))),
        Case::new("one_of_many_gets_the_lease", |place| Box::pin(racing(place))),
        Case::new("runs_of_overlapping_tables_never_deadlock", |place| {
            Box::pin(overlapping(place))
        }),
        Case::new("concurrent_edits_lose_none", |place| Box::pin(edits(place))),
    ]
}

/// Runs all on tasks of their own.
async fn all<T: Send + 'static>(
    tasks: impl Iterator<Item: Future<Output = Outcome<T>> + Send + 'static>,
) -> Outcome<Vec<T>> {
    let tasks: Vec<_> = tasks.map(tokio::spawn).collect();
    try_join_all(tasks).await?.into_iter().collect()
}

async fn opening(place: Arc<dyn Place>) -> Outcome {
    let open = |_| {
        let place = place.clone();
        async move { Ok(place.open().await?.identity().await?) }
    };
    let mut identities = all((0..WRITERS).map(open)).await?;
    identities.dedup();
    same("identities", identities.len(), 1)
}

async fn writers(place: Arc<dyn Place>) -> Outcome {
    let write = |writer: u32| {
        let place = place.clone();
        async move {
            let store = place.open().await?;
            let table = format!("t{writer}");
            let mut version = None;
            for round in 1..=ROUNDS {
                let run_id = run(u128::from(writer * 1_000 + round));
                let state = begin(&*store, run_id, &table, LONG).await?;
                let lease = &state.lease;
                for status in [TableRunStatus::Reading, TableRunStatus::Committing] {
                    store.update_table(lease, &update(lease, status, false)).await?;
                    store.renew(std::slice::from_ref(lease), LONG).await?;
                }
                let to = i128::from(round);
                let done = advance(lease, version, progress(to, to));
                let record = some("it", store.advance(lease, &done).await?.watermark)?;
                same("the value", &record.progress, &progress(to, to))?;
                version = Some(record.version);
                store.finish_run(run_id, RunStatus::Completed, None).await?;
            }
            Ok(())
        }
    };
    all((0..WRITERS).map(write)).await?;
    let store = place.open().await?;
    let done = RunFilter { status: Some(RunStatus::Completed), ..RunFilter::default() };
    same("runs", store.runs(&done).await?.len(), usize::try_from(WRITERS * ROUNDS)?)
}

/// More than one statement can carry.
async fn many_tables(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let names: Vec<_> = (0..1_700).map(|number| format!("t{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let first = store.begin_run(&request(run(1), &names, LONG)).await?;
    let leases: Vec<_> = first.tables.into_iter().map(|state| state.lease).collect();
    same("leases", leases.len(), names.len())?;
    store.renew(&leases, LONG).await?;
    store.finish_run(run(1), RunStatus::Failed, None).await?;
    let second = store.begin_run(&request(run(2), &names, LONG)).await?;
    for (old, new) in leases.iter().zip(second.tables) {
        same("the table", &new.lease.key, &old.key)?;
        same("the token", new.lease.token, old.token + 1)?;
    }
    Ok(())
}

async fn racing(place: Arc<dyn Place>) -> Outcome {
    let mut last = 0;
    for round in 0..6 {
        let race = |runner: u32| {
            let place = place.clone();
            let run_id = run(u128::from(round * 1_000 + runner));
            async move {
                let store = place.open().await?;
                match store.begin_run(&request(run_id, &["t"], LONG)).await {
                    Ok(begun) => Ok(Some(super::nouns::only(begun)?.lease)),
                    Err(error) if error.kind() == ErrorKind::Locked => Ok(None),
                    Err(error) => Err(Failure::from(error)),
                }
            }
        };
        let leases: Vec<_> = all((0..WRITERS).map(race)).await?.into_iter().flatten().collect();
        same("leases", leases.len(), 1)?;
        let winner = some("the lease", leases.into_iter().next())?;
        ensure(winner.token > last, "a token did not rise")?;
        last = winner.token;
        let store = place.open().await?;
        store.finish_run(winner.run_id, RunStatus::Completed, None).await?;
    }
    Ok(())
}

async fn overlapping(place: Arc<dyn Place>) -> Outcome {
    let run_one = |runner: u32| {
        let place = place.clone();
        async move {
            let store = place.open().await?;
            let mut done = 0;
            for round in 0..ROUNDS {
                let run_id = run(u128::from(runner * 1_000 + round));
                let mut tables = vec!["a", "b", "c", "d"];
                if runner.is_multiple_of(2) {
                    tables.reverse();
                }
                if runner.is_multiple_of(3) {
                    tables.pop();
                }
                match store.begin_run(&request(run_id, &tables, LONG)).await {
                    Ok(_) => {
                        store.finish_run(run_id, RunStatus::Completed, None).await?;
                        done += 1;
                    }
                    Err(error) if error.kind() == ErrorKind::Locked => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(done)
        }
    };
    let done: u32 = all((0..WRITERS).map(run_one)).await?.into_iter().sum();
    ensure(done > 0, "nobody got the tables")
}

async fn edits(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let initial = WatermarkSettings { initial: progress(0, 0), ..settings("id") };
    let id = store.create_watermark(&key("t"), &initial, &actor(), None).await?.id;
    let edit = |writer: u32| {
        let (place, id) = (place.clone(), id.clone());
        async move {
            let store = place.open().await?;
            let edit = Change::Edit(integer(i128::from(writer)));
            for _ in 0..ROUNDS {
                store.change_watermark(&id, &edit, None, &actor(), None).await?;
            }
            Ok(())
        }
    };
    all((0..WRITERS).map(edit)).await?;
    let history = store.history(&id).await?;
    same("changes", history.len(), usize::try_from(WRITERS * ROUNDS + 1)?)?;
    for pair in history.windows(2) {
        if let [newer, older] = pair {
            same("a change follows the one before", &newer.before, &older.after)?;
        }
    }
    Ok(())
}
