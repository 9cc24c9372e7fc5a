//! Leases, their end, and their fencing tokens.

use std::sync::Arc;

use tidelake_model::{ErrorKind, RunStatus, TableRunStatus};

use super::harness::{ensure, refused, same, some};
use super::nouns::{
    LONG, LONGER_THAN_SHORT, SHORT, actor, advance, begin, head, holder, key, progress, request,
    run, settings, update,
};
use super::{Case, Outcome, Place};
use crate::store::{Lease, LockFilter, RunFilter};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("two_runs_cannot_lease_one_table", |place| Box::pin(exclusive(place))),
        Case::new("all_tables_are_leased_or_none", |place| Box::pin(all_or_none(place))),
        Case::new("a_run_names_every_table_once", |place| Box::pin(once(place))),
        Case::new("an_expired_lease_is_taken_over", |place| Box::pin(expired(place))),
        Case::new("an_expired_lease_is_its_holders_until_taken", |place| Box::pin(kept(place))),
        Case::new("renewing_keeps_others_out", |place| Box::pin(renewed(place))),
        Case::new("renewing_tells_what_is_lost_and_keeps_the_rest", |place| {
            Box::pin(partly(place))
        }),
        Case::new("a_stale_token_is_refused_everywhere", |place| Box::pin(stale(place))),
        Case::new("a_lease_that_was_given_back_is_refused", |place| Box::pin(given_back(place))),
        Case::new("a_lease_is_broken_by_its_token_alone", |place| Box::pin(broken(place))),
        Case::new("the_same_process_may_ask_again", |place| Box::pin(again(place))),
        Case::new("locks_are_listed_and_released_by_hand", |place| Box::pin(by_hand(place))),
        Case::new("tokens_rise_for_ever", |place| Box::pin(rising(place))),
    ]
}

async fn exclusive(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    begin(&*store, run(1), "t", LONG).await?;
    let mut other = request(run(2), &["t"], LONG);
    other.holder = holder(2);
    let error = refused(ErrorKind::Locked, "a second run", store.begin_run(&other).await)?;
    same("the run in the way", error.run(), Some(run(1)))?;
    same("the table", error.table().cloned(), key("t").table)?;
    for part in ["machine", "process 1", &run(1).to_string(), "until 2"] {
        ensure(error.message().contains(part), &format!("the message does not name {part}"))?;
    }
    ensure(error.hint().is_some_and(|hint| hint.contains("release-locks")), "the hint is missing")?;
    same("runs", store.runs(&RunFilter::default()).await?.len(), 1)
}

async fn all_or_none(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    begin(&*store, run(1), "b", LONG).await?;
    let wide = store.begin_run(&request(run(2), &["c", "a", "b", "d"], LONG)).await;
    refused(ErrorKind::Locked, "one of four is leased", wide)?;
    same("leases", store.locks(&LockFilter::default()).await?.len(), 1)?;
    let begun = store.begin_run(&request(run(3), &["c", "a", "d"], LONG)).await?;
    let order: Vec<_> = begun.tables.iter().map(|state| state.lease.key.clone()).collect();
    same("the order that was asked for", order, vec![key("c"), key("a"), key("d")])?;
    let none = store.begin_run(&request(run(4), &[], LONG)).await?;
    same("a run without tables", none.tables.len(), 0)
}

async fn once(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let twice = store.begin_run(&request(run(1), &["a", "a"], LONG)).await;
    refused(ErrorKind::Configuration, "one table twice", twice)?;
    same("runs", store.runs(&RunFilter::default()).await?, vec![])
}

async fn expired(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let old = begin(&*store, run(1), "t", SHORT).await?;
    let reading = update(&old.lease, TableRunStatus::Reading, false);
    store.update_table(&old.lease, &reading).await?;
    place.pass(LONGER_THAN_SHORT).await;
    let locks = store.locks(&LockFilter::default()).await?;
    same("expired", locks.iter().map(|lock| lock.expired).collect::<Vec<_>>(), vec![true])?;

    let new = begin(&*store, run(2), "t", LONG).await?;
    ensure(new.lease.token > old.lease.token, "the token did not rise")?;
    let unfinished = some("what the dead run left", new.unfinished)?;
    same("its run", unfinished.run_id, run(1))?;
    same("its window", unfinished.window.as_ref(), reading.record.window.as_ref())?;
    let first = RunFilter { run_id: Some(run(1)), ..RunFilter::default() };
    let first = some("the dead run", store.runs(&first).await?.pop())?;
    same("the dead run", first.status, RunStatus::Failed)?;
    let error = first.error.unwrap_or_default();
    ensure(error.contains(&run(2).to_string()), "the dead run does not say who took over")?;
    let late = store.update_table(&old.lease, &reading).await;
    let error = refused(ErrorKind::Conflict, "the dead run's write", late)?;
    same("who holds it now", error.run(), Some(run(2)))
}

async fn kept(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", SHORT).await?;
    place.pass(LONGER_THAN_SHORT).await;
    let done = advance(&state.lease, None, progress(5, 5));
    store.advance(&state.lease, &done).await?;
    Ok(())
}

async fn renewed(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", SHORT).await?;
    store.renew(std::slice::from_ref(&state.lease), LONG).await?;
    place.pass(LONGER_THAN_SHORT).await;
    let other = store.begin_run(&request(run(2), &["t"], LONG)).await;
    refused(ErrorKind::Locked, "a second run", other)?;
    // The list of leases may be older than the last step.
    store.advance(&state.lease, &advance(&state.lease, None, progress(5, 5))).await?;
    store.renew(std::slice::from_ref(&state.lease), LONG).await?;
    same("leases", store.locks(&LockFilter::default()).await?, vec![])
}

async fn partly(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let begun = store.begin_run(&request(run(1), &["a", "b", "c"], SHORT)).await?;
    let leases: Vec<Lease> = begun.tables.into_iter().map(|state| state.lease).collect();
    place.pass(LONGER_THAN_SHORT).await;
    begin(&*store, run(2), "b", LONG).await?;
    let error = refused(ErrorKind::Conflict, "one is lost", store.renew(&leases, LONG).await)?;
    same("which one", error.table().cloned(), key("b").table)?;
    let locks = store.locks(&LockFilter::default()).await?;
    let live = locks.iter().filter(|lock| !lock.expired && lock.run_id == run(1)).count();
    same("leases that go on", live, 2)
}

async fn stale(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let old = begin(&*store, run(1), "t", SHORT).await?.lease;
    place.pass(LONGER_THAN_SHORT).await;
    let new = begin(&*store, run(2), "t", LONG).await?.lease;
    let forged = Lease { token: new.token, ..old.clone() };
    for lease in [&old, &forged] {
        let reading = update(lease, TableRunStatus::Reading, true);
        let written = store.update_table(lease, &reading).await;
        refused(ErrorKind::Conflict, "update_table", written)?;
        let advanced = store.advance(lease, &advance(lease, None, progress(5, 5))).await;
        refused(ErrorKind::Conflict, "advance", advanced)?;
        let renewed = store.renew(std::slice::from_ref(lease), LONG).await;
        refused(ErrorKind::Conflict, "renew", renewed)?;
        let adopted = store.adopt(lease, Some(&head(run(1))), None, &actor()).await;
        refused(ErrorKind::Conflict, "adopt", adopted)?;
        let claimed = store.claim_watermark(lease, &settings("id")).await;
        refused(ErrorKind::Conflict, "claim_watermark", claimed)?;
    }
    same("break_lease", store.break_lease(&key("t"), old.token).await?, false)?;
    store.finish_run(run(1), RunStatus::Failed, Some("it lost its lease")).await?;
    same("table runs", store.table_runs(run(1)).await?, vec![])?;
    store.advance(&new, &advance(&new, None, progress(6, 6))).await?;
    Ok(())
}

async fn given_back(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let lease = begin(&*store, run(1), "t", LONG).await?.lease;
    let failed = update(&lease, TableRunStatus::Failed, true);
    store.update_table(&lease, &failed).await?;
    refused(ErrorKind::Conflict, "a write", store.update_table(&lease, &failed).await)?;
    let unknown = Lease { key: key("never"), ..lease };
    let failed = update(&unknown, TableRunStatus::Failed, true);
    let written = store.update_table(&unknown, &failed).await;
    refused(ErrorKind::Conflict, "a table that was never leased", written).map(drop)
}

async fn broken(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let lease = begin(&*store, run(1), "t", LONG).await?.lease;
    same("another token", store.break_lease(&key("t"), lease.token + 1).await?, false)?;
    same("another table", store.break_lease(&key("u"), lease.token).await?, false)?;
    same("the token", store.break_lease(&key("t"), lease.token).await?, true)?;
    same("twice", store.break_lease(&key("t"), lease.token).await?, false)?;
    let first = some("the run", store.runs(&RunFilter::default()).await?.pop())?;
    same("the dead run", first.status, RunStatus::Failed)?;
    begin(&*store, run(2), "t", LONG).await?;
    Ok(())
}

async fn again(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let asked = request(run(1), &["t"], LONG);
    let first = store.begin_run(&asked).await?;
    let second = store.begin_run(&asked).await?;
    same("the start", second.run.started_at, first.run.started_at)?;
    let tokens: Vec<_> =
        first.tables.iter().chain(&second.tables).map(|state| state.lease.token).collect();
    ensure(tokens.is_sorted_by(|left, right| left < right), "the token did not rise")?;
    let mut elsewhere = asked;
    elsewhere.holder = holder(2);
    let resumed = store.begin_run(&elsewhere).await;
    refused(ErrorKind::Locked, "the same run in another process", resumed).map(drop)
}

async fn by_hand(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    store.begin_run(&request(run(1), &["a", "b"], SHORT)).await?;
    place.pass(LONGER_THAN_SHORT).await;
    let live = begin(&*store, run(2), "c", LONG).await?;
    let other = LockFilter { scope: Some("other".to_owned()), ..LockFilter::default() };
    same("of another sync", store.release_locks(&other).await?, vec![])?;
    let expired = LockFilter { expired_only: true, ..LockFilter::default() };
    let released = store.release_locks(&expired).await?;
    let keys: Vec<_> = released.into_iter().map(|lock| lock.key).collect();
    same("released", keys, vec![key("a"), key("b")])?;
    let of_run = LockFilter { run_id: Some(run(2)), ..LockFilter::default() };
    let listed = store.locks(&of_run).await?;
    same(
        "the live one's token",
        listed.iter().map(|lock| lock.token).max(),
        Some(live.lease.token),
    )?;
    same("its holder", listed.into_iter().map(|lock| lock.holder).next(), Some(holder(1)))?;
    same("the live one", store.release_locks(&of_run).await?.len(), 1)?;
    let written = update(&live.lease, TableRunStatus::Reading, false);
    let written = store.update_table(&live.lease, &written).await;
    refused(ErrorKind::Conflict, "a write after the release", written)?;
    let failed = RunFilter { status: Some(RunStatus::Failed), ..RunFilter::default() };
    same("runs that ended by it", store.runs(&failed).await?.len(), 2)
}

async fn rising(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let mut last = 0;
    for number in 1..=5 {
        let lease = begin(&*store, run(number), "t", LONG).await?.lease;
        ensure(lease.token > last, "a token did not rise")?;
        last = lease.token;
        store.finish_run(run(number), RunStatus::Cancelled, None).await?;
    }
    Ok(())
}
