//! How a run moves a watermark.

use std::sync::Arc;

use tidelake_model::{Change, ErrorKind, TableRunStatus, WatermarkFilter};
use tidelake_watermark::{Decimal, Kind, Position, Progress, Value};

use super::harness::{ensure, refused, same, some};
use super::nouns::{
    LONG, actor, advance, begin, exclusive_from, head, integer, key, nameless, progress, run,
    settings, update,
};
use super::{Case, Outcome, Place};
use crate::store::{LockFilter, WatermarkSettings};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("the_first_advance_makes_the_watermark", |place| Box::pin(first(place))),
        Case::new("an_advance_is_all_or_nothing", |place| Box::pin(all_or_nothing(place))),
        Case::new("a_changed_version_is_a_conflict", |place| Box::pin(changed(place))),
        Case::new("a_watermark_never_goes_back", |place| Box::pin(backwards(place))),
        Case::new("nothing_new_leaves_value_and_version", |place| Box::pin(nothing_new(place))),
        Case::new("a_full_table_advances_without_a_watermark", |place| Box::pin(full(place))),
        Case::new("another_column_starts_anew", |place| Box::pin(another_column(place))),
        Case::new("every_kind_of_value_is_read_back", |place| Box::pin(kinds(place))),
        Case::new("values_of_another_kind_are_refused", |place| Box::pin(other_kind(place))),
        Case::new("a_watermark_made_by_hand_is_claimed_once", |place| Box::pin(claimed(place))),
        Case::new("a_watermark_that_does_not_fit_is_left", |place| Box::pin(unfit(place))),
        Case::new("adopting_sets_head_and_watermark", |place| Box::pin(adopted(place))),
    ]
}

async fn first(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    same("before", state.watermark, None)?;
    let asked = advance(&state.lease, None, progress(10, 9));
    let advanced = store.advance(&state.lease, &asked).await?;
    let record = some("the watermark", advanced.watermark)?;
    same("its key", &record.key, &key("t"))?;
    same("its values", &record.progress, &progress(10, 9))?;
    same("its rows", record.row_count, 7)?;
    same("its run", record.last_run_id, Some(run(1)))?;
    same("generation", record.starts_generation, false)?;
    ensure(record.last_sync_at.is_some() && record.last_checked_at.is_some(), "a time is missing")?;
    same("leases", store.locks(&LockFilter::default()).await?, vec![])?;
    let history = store.history(&record.id).await?;
    let row = some("its history", history.first())?;
    same("change", row.change.as_str(), "advance")?;
    same("who", row.actor.name.clone(), run(1).to_string())?;
    same("before", &row.before, &Progress::default())?;
    same("after", &row.after, &progress(10, 9))?;

    let next = begin(&*store, run(2), "t", LONG).await?;
    same("what the next run loads", next.watermark, Some(record))?;
    same("the head", next.head, Some(head(run(1))))?;
    same("left", next.unfinished, None)
}

async fn all_or_nothing(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    store
        .update_table(&state.lease, &update(&state.lease, TableRunStatus::Committed, false))
        .await?;
    let wrong = advance(&state.lease, Some(3), progress(10, 10));
    refused(ErrorKind::Conflict, "a version", store.advance(&state.lease, &wrong).await)?;
    let table_runs = store.table_runs(run(1)).await?;
    let statuses: Vec<_> = table_runs.iter().map(|run| run.status).collect();
    same("the record", statuses, vec![TableRunStatus::Committed])?;
    same("leases", store.locks(&LockFilter::default()).await?.len(), 1)?;
    same("watermarks", store.watermarks(&WatermarkFilter::default()).await?, vec![])?;
    let adopted = store.adopt(&state.lease, None, None, &actor()).await?;
    same("the head", adopted.head, None)?;
    same("left", adopted.unfinished.map(|run| run.run_id), Some(run(1)))
}

async fn changed(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let made = store.create_watermark(&key("t"), &settings("id"), &actor(), None).await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    // What a run asks that believes there is none.
    let asked = advance(&state.lease, None, progress(10, 10));
    refused(ErrorKind::Conflict, "one appeared", store.advance(&state.lease, &asked).await)?;
    let asked = advance(&state.lease, Some(made.version + 1), progress(10, 10));
    refused(ErrorKind::Conflict, "another version", store.advance(&state.lease, &asked).await)?;
    let asked = advance(&state.lease, Some(made.version), progress(10, 10));
    let advanced = store.advance(&state.lease, &asked).await?;
    let record = some("the watermark", advanced.watermark)?;
    ensure(record.version > made.version, "the version did not rise")?;

    let state = begin(&*store, run(2), "t", LONG).await?;
    store.release_locks(&LockFilter::default()).await?;
    store.change_watermark(&record.id, &Change::Edit(integer(3)), None, &actor(), None).await?;
    let late = advance(&state.lease, Some(record.version), progress(20, 20));
    refused(ErrorKind::Conflict, "an edit came between", store.advance(&state.lease, &late).await)?;
    store.delete_watermark(&record.id).await?;
    let state = begin(&*store, run(3), "t", LONG).await?;
    let late = advance(&state.lease, Some(record.version), progress(20, 20));
    refused(ErrorKind::Conflict, "it was deleted", store.advance(&state.lease, &late).await)
        .map(drop)
}

async fn backwards(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    store.advance(&state.lease, &advance(&state.lease, None, progress(10, 9))).await?;
    for lower in [progress(9, 9), progress(10, 8), Progress::default()] {
        let state = begin(&*store, run(2), "t", LONG).await?;
        let loaded = some("the watermark", state.watermark)?;
        let asked = advance(&state.lease, Some(loaded.version), lower);
        refused(ErrorKind::Conflict, "a lower value", store.advance(&state.lease, &asked).await)?;
    }
    let filter = WatermarkFilter::default();
    let record = some("the watermark", store.watermarks(&filter).await?.pop())?;
    same("its values", record.progress, progress(10, 9))
}

async fn nothing_new(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    let advanced =
        store.advance(&state.lease, &advance(&state.lease, None, progress(10, 9))).await?;
    let before = some("the watermark", advanced.watermark)?;
    place.pass(std::time::Duration::from_millis(20)).await;
    let state = begin(&*store, run(2), "t", LONG).await?;
    let mut asked = advance(&state.lease, Some(before.version), progress(10, 9));
    if let Some(to) = &mut asked.watermark {
        to.rows = 0;
    }
    let after = some("the watermark", store.advance(&state.lease, &asked).await?.watermark)?;
    ensure(after.last_checked_at > before.last_checked_at, "it does not say that a run looked")?;
    same("the run that looked", after.last_run_id, Some(run(2)))?;
    let mut wanted = before.clone();
    wanted.last_checked_at.clone_from(&after.last_checked_at);
    wanted.last_run_id = after.last_run_id;
    same("all the rest", after, wanted)?;
    same("history", store.history(&before.id).await?.len(), 1)
}

async fn full(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    let mut asked = advance(&state.lease, None, Progress::default());
    asked.watermark = None;
    same("the watermark", store.advance(&state.lease, &asked).await?.watermark, None)?;
    let mut asked = asked.clone();
    let state = begin(&*store, run(2), "t", LONG).await?;
    same("the head", state.head, Some(head(run(1))))?;
    asked.record.run_id = run(2);
    asked.head = None;
    store.advance(&state.lease, &asked).await?;
    let state = begin(&*store, run(3), "t", LONG).await?;
    same("the head that nobody named", state.head, Some(head(run(1))))
}

async fn another_column(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    let advanced =
        store.advance(&state.lease, &advance(&state.lease, None, progress(100, 99))).await?;
    let before = some("the watermark", advanced.watermark)?;
    let state = begin(&*store, run(2), "t", LONG).await?;
    // Lower, of another kind: nothing of the old column counts.
    let day = Position::from(Value::Date(-1));
    let next =
        Progress { watermark: Some(day.clone()), max_seen: Some(day), ..Progress::default() };
    let mut asked = advance(&state.lease, Some(before.version), next.clone());
    if let Some(to) = &mut asked.watermark {
        to.settings = WatermarkSettings { kind: "date".to_owned(), ..settings("changed, \"at\"") };
    }
    let after = some("the watermark", store.advance(&state.lease, &asked).await?.watermark)?;
    same("its id", &after.id, &before.id)?;
    same("its column", after.column.as_str(), "changed, \"at\"")?;
    same("its values", &after.progress, &next)?;
    let history = store.history(&after.id).await?;
    let changes: Vec<_> = history.iter().map(|row| row.change.as_str()).collect();
    same("its history", changes, vec!["advance", "reset", "advance"])?;
    let undone = store.change_watermark(&after.id, &Change::Undo, None, &actor(), None).await?;
    same("undone", undone.progress, Progress::default())?;
    same("undone to the start", undone.starts_generation, true)
}

async fn kinds(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let number = Decimal::parse("-0.10000000000000000000000000000000000001");
    let mut values = vec![
        Position::from(Value::Date(-1_000_000)),
        Value::Datetime(1_764_494_100_123_456_789).into(),
        Value::Timestamp(-1).into(),
        Value::Integer(i128::MIN).into(),
        Value::Number(some("a decimal", number)?).into(),
        Value::Text("it's \"\\\u{1f30a}; DROP TABLE watermarks --".to_owned()).into(),
        Value::Text(String::new()).into(),
        Value::Binary(vec![0, 255]).into(),
    ];
    let tuple = [Value::Timestamp(1), Value::Text("a,b\\c".to_owned()), Value::Integer(-1)];
    values.push(some("a tuple", Position::tuple(tuple))?);
    for (at, value) in values.into_iter().enumerate() {
        let kind =
            value.kinds().iter().map(|kind: &Kind| kind.name()).collect::<Vec<_>>().join(",");
        let initial = Progress { first: Some(value.clone()), ..exclusive_from(0) };
        let next = Progress {
            watermark: Some(value.clone()),
            max_seen: Some(value.clone()),
            ..initial.clone()
        };
        let table = format!("it's \"table\" {at} \u{1f30a}");
        let run_id = run(u128::try_from(at)?);
        let state = begin(&*store, run_id, &table, LONG).await?;
        let mut asked = advance(&state.lease, None, next.clone());
        if let Some(to) = &mut asked.watermark {
            to.settings = WatermarkSettings { column: "c".to_owned(), kind, initial };
        }
        let stored = some("it", store.advance(&state.lease, &asked).await?.watermark)?;
        same("the values", &stored.progress, &next)?;
        let history = store.history(&stored.id).await?;
        same("the history", history.into_iter().map(|row| row.after).collect(), vec![next])?;
    }
    Ok(())
}

async fn other_kind(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    let text = Position::from(Value::Text("5".to_owned()));
    let next = Progress { watermark: Some(text.clone()), ..Progress::default() };
    let asked = advance(&state.lease, None, next);
    refused(ErrorKind::Configuration, "advance", store.advance(&state.lease, &asked).await)?;
    store.advance(&state.lease, &advance(&state.lease, None, progress(5, 5))).await?;
    let filter = WatermarkFilter::default();
    let record = some("the watermark", store.watermarks(&filter).await?.pop())?;
    let edit = Change::Edit(text);
    let edited = store.change_watermark(&record.id, &edit, None, &actor(), None).await;
    refused(ErrorKind::Configuration, "edit", edited).map(drop)
}

async fn claimed(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let initial = Progress { watermark: Some(integer(41)), ..Progress::default() };
    let by_hand = WatermarkSettings { initial, ..settings("id") };
    let made = store.create_watermark(&nameless(), &by_hand, &actor(), Some("why")).await?;
    let first = begin(&*store, run(1), "a", LONG).await?;
    same("before", first.watermark, None)?;
    // The column turns out to be a decimal.
    let found = WatermarkSettings { kind: "number".to_owned(), ..settings("id") };
    let claimed = store.claim_watermark(&first.lease, &found).await?;
    let claimed = some("the watermark", claimed)?;
    same("its id", &claimed.id, &made.id)?;
    same("its key", &claimed.key, &key("a"))?;
    same("its kind", claimed.kind.as_str(), "number")?;
    same("its value", claimed.progress.watermark.map(|at| at.to_string()), Some("41".to_owned()))?;
    ensure(claimed.version > made.version, "the version did not rise")?;
    let changes: Vec<_> =
        store.history(&made.id).await?.into_iter().map(|row| row.change).collect();
    same("its history", changes, vec!["adopt".to_owned(), "create".to_owned()])?;

    let second = begin(&*store, run(2), "b", LONG).await?;
    same("another table", store.claim_watermark(&second.lease, &found).await?, None)?;
    same("the same table", store.claim_watermark(&first.lease, &found).await?, None)?;
    let third = store.begin_run(&super::nouns::request(run(1), &["a"], LONG)).await?;
    let third = super::nouns::only(third)?;
    same("what is loaded", third.watermark.map(|record| record.id), Some(made.id))
}

async fn unfit(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let initial = Progress { watermark: Some(integer(41)), ..Progress::default() };
    let by_hand = WatermarkSettings { initial, ..settings("id") };
    store.create_watermark(&nameless(), &by_hand, &actor(), None).await?;
    let state = begin(&*store, run(1), "a", LONG).await?;
    let day = WatermarkSettings { kind: "date".to_owned(), ..settings("id") };
    for found in [settings("other"), day] {
        same("it", store.claim_watermark(&state.lease, &found).await?, None)?;
    }
    let filter = WatermarkFilter::default();
    let left = some("the watermark", store.watermarks(&filter).await?.pop())?;
    same("its key", left.key, nameless())
}

async fn adopted(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", LONG).await?;
    let lease = &state.lease;
    let wanted = progress(50, 48);
    let adopted =
        store.adopt(lease, Some(&head(run(7))), Some((&settings("id"), &wanted)), &actor()).await?;
    same("the lease", &adopted.lease, lease)?;
    same("the head", adopted.head, Some(head(run(7))))?;
    let record = some("the watermark", adopted.watermark)?;
    same("its values", &record.progress, &wanted)?;
    // The lake may also be older than the state.
    let lower = progress(20, 20);
    let again = store.adopt(lease, None, Some((&settings("id"), &lower)), &actor()).await?;
    same("the head", again.head, None)?;
    let record = some("the watermark", again.watermark)?;
    same("its values", &record.progress, &lower)?;
    let history = store.history(&record.id).await?;
    let changes: Vec<_> = history.iter().map(|row| row.change.as_str()).collect();
    same("its history", changes, vec!["adopt", "adopt"])?;
    store.advance(lease, &advance(lease, Some(record.version), progress(21, 21))).await?;
    Ok(())
}
