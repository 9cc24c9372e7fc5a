//! Watermarks in the hands of people.

use std::sync::Arc;

use tidelake_model::{
    Change, ErrorKind, TableKey, TableName, TableRunStatus, WatermarkFilter, WatermarkRecord,
};
use tidelake_watermark::Progress;

use super::harness::{ensure, refused, same, some};
use super::nouns::{
    LONG, LONGER_THAN_SHORT, SHORT, actor, advance, begin, exclusive_from, integer, key, nameless,
    progress, run, settings, update,
};
use super::{Case, Outcome, Place};
use crate::store::{LockFilter, StateStore, WatermarkSettings};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a_key_has_one_watermark", |place| Box::pin(one_per_key(place))),
        Case::new("one_without_a_table_needs_an_empty_source", |place| Box::pin(for_source(place))),
        Case::new("watermarks_are_found_by_any_part_of_their_key", |place| Box::pin(found(place))),
        Case::new("an_edit_sets_both_values_and_leaves_history", |place| Box::pin(edited(place))),
        Case::new("a_reset_keeps_the_record", |place| Box::pin(reset(place))),
        Case::new("an_undo_puts_the_last_pair_back", |place| Box::pin(undone(place))),
        Case::new("an_undo_can_be_undone", |place| Box::pin(undone_twice(place))),
        Case::new("a_watermark_under_a_live_lease_stays", |place| Box::pin(leased(place))),
        Case::new("none_is_made_under_a_first_run", |place| Box::pin(first_run(place))),
        Case::new("a_deleted_watermark_is_gone_with_its_history", |place| Box::pin(deleted(place))),
    ]
}

async fn one_per_key(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let wanted = WatermarkSettings { initial: exclusive_from(-5), ..settings("id") };
    let made = store.create_watermark(&key("t"), &wanted, &actor(), Some("it's time")).await?;
    same("its version", made.version, 1)?;
    same("its values", &made.progress, &exclusive_from(-5))?;
    let again = store.create_watermark(&key("t"), &settings("other"), &actor(), None).await;
    let error = refused(ErrorKind::AlreadyExists, "a second one", again)?;
    ensure(error.message().contains(&made.id), "the message does not name the one that exists")?;
    same("all", store.watermarks(&WatermarkFilter::default()).await?, vec![made.clone()])?;
    let row = some("its history", store.history(&made.id).await?.pop())?;
    same("change", row.change.as_str(), "create")?;
    same("who", row.actor, actor())?;
    same("why", row.reason.as_deref(), Some("it's time"))
}

async fn for_source(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let first = store.create_watermark(&key("a"), &settings("id"), &actor(), None).await?;
    let second = store.create_watermark(&key("b"), &settings("id"), &actor(), None).await?;
    let made = store.create_watermark(&nameless(), &settings("id"), &actor(), None).await;
    let error = refused(ErrorKind::AlreadyExists, "beside two", made)?;
    for candidate in [&first, &second] {
        ensure(error.message().contains(&candidate.id), "a candidate is not named")?;
    }
    let elsewhere = TableKey { source_key: "other".to_owned(), ..nameless() };
    let made = store.create_watermark(&elsewhere, &settings("id"), &actor(), None).await?;
    same("its key", &made.key, &elsewhere)?;
    let again = store.create_watermark(&elsewhere, &settings("id"), &actor(), None).await;
    refused(ErrorKind::AlreadyExists, "a second one", again).map(drop)
}

async fn found(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let keys = [
        TableKey { table: None, source_key: "zoo".to_owned(), ..key("") },
        TableKey { env: "test".to_owned(), ..key("a") },
        key("b"),
        key("a"),
        TableKey { table: Some(TableName::new("Public", "a")), ..key("") },
        TableKey { scope: String::new(), ..key("a") },
        TableKey { connector_type: "other".to_owned(), ..key("a") },
    ];
    for key in &keys {
        store.create_watermark(key, &settings("id"), &actor(), None).await?;
    }
    let all = WatermarkFilter::default();
    let mut sorted = keys.to_vec();
    sorted.sort();
    same("all, by key", keys_of(store.watermarks(&all).await?), sorted)?;
    let text = |text: &str| Some(text.to_owned());
    for (count, filter) in [
        (6, WatermarkFilter { env: text(""), ..all.clone() }),
        (1, WatermarkFilter { env: text("test"), ..all.clone() }),
        (1, WatermarkFilter { scope: text(""), ..all.clone() }),
        (1, WatermarkFilter { connector_type: text("other"), ..all.clone() }),
        (1, WatermarkFilter { source_key: text("zoo"), ..all.clone() }),
        (4, WatermarkFilter { table: text("public.a"), ..all.clone() }),
        (1, WatermarkFilter { table: text("Public.a"), ..all.clone() }),
        (0, WatermarkFilter { table: text("public.%"), ..all.clone() }),
        (0, WatermarkFilter { table: text("' OR 1=1 --"), ..all.clone() }),
        (0, WatermarkFilter { table: text("."), ..all.clone() }),
    ] {
        same(&format!("{filter:?}"), store.watermarks(&filter).await?.len(), count)?;
    }
    Ok(())
}

fn keys_of(records: Vec<WatermarkRecord>) -> Vec<TableKey> {
    records.into_iter().map(|record| record.key).collect()
}

/// A watermark that a run moved to 10, having seen 9.
async fn moved(store: &dyn StateStore) -> Outcome<WatermarkRecord> {
    let state = begin(store, run(1), "t", LONG).await?;
    let advanced =
        store.advance(&state.lease, &advance(&state.lease, None, progress(10, 9))).await?;
    some("the watermark", advanced.watermark)
}

async fn edited(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let before = moved(&*store).await?;
    let edit = Change::Edit(integer(4));
    let stale = store.change_watermark(&before.id, &edit, Some(99), &actor(), None).await;
    refused(ErrorKind::Conflict, "another version", stale)?;
    let version = Some(before.version);
    let after = store.change_watermark(&before.id, &edit, version, &actor(), Some("redo")).await?;
    same("its values", &after.progress, &progress(4, 4))?;
    ensure(after.version > before.version, "the version did not rise")?;
    same("last sync", &after.last_sync_at, &before.last_sync_at)?;
    let history = store.history(&before.id).await?;
    let newest = some("its history", history.first())?;
    same("version", newest.version, after.version)?;
    same("change", newest.change.as_str(), "edit")?;
    same("before", &newest.before, &progress(10, 9))?;
    same("after", &newest.after, &progress(4, 4))?;
    same("why", newest.reason.as_deref(), Some("redo"))?;
    let unknown = store.change_watermark("no such id", &edit, None, &actor(), None).await;
    refused(ErrorKind::NotFound, "an unknown id", unknown)?;
    refused(ErrorKind::NotFound, "its history", store.history("no such id").await).map(drop)
}

async fn reset(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let before = moved(&*store).await?;
    let after = store.change_watermark(&before.id, &Change::Reset, None, &actor(), None).await?;
    same("its id", &after.id, &before.id)?;
    same("its column", &after.column, &before.column)?;
    same("its values", &after.progress, &Progress::default())?;
    same("generation", after.starts_generation, true)?;
    let state = begin(&*store, run(2), "t", LONG).await?;
    same("what the next run loads", state.watermark.as_ref(), Some(&after))?;
    let next = advance(&state.lease, Some(after.version), progress(3, 3));
    let record = some("the watermark", store.advance(&state.lease, &next).await?.watermark)?;
    same("generation after it", record.starts_generation, false)?;
    // A value set by hand after a reset adds rows, it does not replace any.
    store.change_watermark(&before.id, &Change::Reset, None, &actor(), None).await?;
    let edit = Change::Edit(integer(8));
    let record = store.change_watermark(&before.id, &edit, None, &actor(), None).await?;
    same("generation after an edit", record.starts_generation, false)
}

async fn undone(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let before = moved(&*store).await?;
    for change in [Change::Edit(integer(400)), Change::Reset] {
        store.change_watermark(&before.id, &change, None, &actor(), None).await?;
        let after = store.change_watermark(&before.id, &Change::Undo, None, &actor(), None).await?;
        same("its values", &after.progress, &progress(10, 9))?;
        same("generation", after.starts_generation, false)?;
    }
    let made = store.create_watermark(&key("new"), &settings("id"), &actor(), None).await?;
    let nothing = store.change_watermark(&made.id, &Change::Undo, None, &actor(), None).await;
    refused(ErrorKind::Conflict, "nothing to undo", nothing).map(drop)
}

async fn undone_twice(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let id = moved(&*store).await?.id;
    // The very first advance: before it, nothing was read.
    let undone = store.change_watermark(&id, &Change::Undo, None, &actor(), None).await?;
    same("its values", &undone.progress, &Progress::default())?;
    same("generation", undone.starts_generation, true)?;
    let back = store.change_watermark(&id, &Change::Undo, None, &actor(), None).await?;
    same("its values", &back.progress, &progress(10, 9))?;
    same("generation", back.starts_generation, false)?;
    let versions: Vec<_> = store.history(&id).await?.into_iter().map(|row| row.version).collect();
    same("versions", versions, vec![3, 2, 1])
}

async fn leased(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let record = moved(&*store).await?;
    begin(&*store, run(2), "t", SHORT).await?;
    for change in [Change::Edit(integer(4)), Change::Reset, Change::Undo] {
        let changed = store.change_watermark(&record.id, &change, None, &actor(), None).await;
        let error = refused(ErrorKind::Locked, "a change", changed)?;
        same("the run in the way", error.run(), Some(run(2)))?;
    }
    refused(ErrorKind::Locked, "a delete", store.delete_watermark(&record.id).await)?;
    place.pass(LONGER_THAN_SHORT).await;
    store.change_watermark(&record.id, &Change::Reset, None, &actor(), None).await?;
    Ok(())
}

async fn first_run(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let state = begin(&*store, run(1), "t", SHORT).await?;
    let make =
        || async { store.create_watermark(&key("t"), &settings("id"), &actor(), None).await };
    let error = refused(ErrorKind::Locked, "while it is held", make().await)?;
    same("the run in the way", error.run(), Some(run(1)))?;
    // Its files count already, and it makes the watermark that goes with them.
    let committed = update(&state.lease, TableRunStatus::Committed, true);
    store.update_table(&state.lease, &committed).await?;
    let error = refused(ErrorKind::Conflict, "before it is finished", make().await)?;
    same("the run to be finished", error.run(), Some(run(1)))?;
    let state = begin(&*store, run(2), "t", SHORT).await?;
    store.advance(&state.lease, &advance(&state.lease, None, progress(10, 10))).await?;
    refused(ErrorKind::AlreadyExists, "afterwards", make().await).map(drop)
}

async fn deleted(place: Arc<dyn Place>) -> Outcome {
    let store = place.open().await?;
    let record = moved(&*store).await?;
    store.delete_watermark(&record.id).await?;
    refused(ErrorKind::NotFound, "its history", store.history(&record.id).await)?;
    refused(ErrorKind::NotFound, "twice", store.delete_watermark(&record.id).await)?;
    let state = begin(&*store, run(2), "t", LONG).await?;
    same("what the next run loads", state.watermark, None)?;
    store.release_locks(&LockFilter::default()).await?;
    let made = store.create_watermark(&key("t"), &settings("id"), &actor(), None).await?;
    ensure(made.id != record.id, "an id was used again")?;
    same("its history", store.history(&made.id).await?.len(), 1)
}
