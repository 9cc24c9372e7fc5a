//! Commits, and everything that may happen twice or half.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

#[allow(unreachable_pub)]
mod common;

use common::*;
use tidelake_lake::Claim;
use tidelake_model::{ErrorKind, MANIFEST_FORMAT, Owner, PendingCommit};

#[tokio::test]
async fn nothing_is_visible_before_the_commit_and_all_is_after_it() {
    let (storage, table) = lake();
    let (files, objects): (Vec<_>, Vec<_>) = stage(&table, run(1), 0..10).await.into_iter().unzip();
    assert!(storage.keys().is_empty());
    assert_eq!(storage.pending(), ["public/orders/00000000000000000000000001-1-0-0.parquet"]);
    let [file] = files.as_slice() else { panic!("one file: {files:?}") };
    assert_eq!(
        (file.rows, file.cursor_min.clone(), file.cursor_max.clone()),
        (10, Some(at(0)), Some(at(9)))
    );

    let latest =
        commit(&table, &pending(None, manifest(run(1), 0, files.clone()), objects, false)).await;
    assert_eq!(latest.head, run(1));
    assert_eq!(table.latest().await.unwrap(), Some(latest.clone()));
    assert_eq!(table.live_files(&latest).await.unwrap(), files);
    assert_eq!(read(&table, &latest).await, (0..10).collect::<Vec<_>>());
    assert!(storage.pending().is_empty());
}

#[tokio::test]
async fn every_step_of_a_commit_may_be_repeated() {
    let (_, table) = lake();
    let first = append(&table, None, 1, 0..5).await;
    let (files, objects) = stage(&table, run(2), 5..8).await.into_iter().unzip();
    let commit_of = pending(Some(&first), manifest(run(2), 0, files), objects, false);
    let mut seen = Vec::new();
    for _ in 0..2 {
        for object in &commit_of.objects {
            table.complete(object).await.unwrap();
            table.complete(object).await.unwrap();
        }
        table.put_manifest(&commit_of.manifest).await.unwrap();
        table.put_manifest(&commit_of.manifest).await.unwrap();
        seen.push(table.commit_latest(&commit_of).await.unwrap());
        seen.push(table.commit_latest(&commit_of).await.unwrap());
    }
    assert!(seen.iter().all(|latest| *latest == seen[0]));
    assert_eq!(seen[0].sequence, 2);
    assert_eq!(read(&table, &seen[0]).await, (0..8).collect::<Vec<_>>());
}

#[tokio::test]
async fn another_manifest_of_the_same_run_is_a_conflict() {
    let (_, table) = lake();
    table.put_manifest(&manifest(run(1), 0, Vec::new())).await.unwrap();
    let error = table.put_manifest(&manifest(run(1), 7, Vec::new())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.table(), Some(&table_name()));
    assert_eq!(table.manifest_of(run(1)).await.unwrap().unwrap().generation, 0);
    assert_eq!(table.manifest_of(run(2)).await.unwrap(), None);
}

#[tokio::test]
async fn a_head_that_is_not_the_expected_one_is_a_mismatch() {
    let (_, table) = lake();
    let first = append(&table, None, 1, 0..5).await;
    append(&table, Some(&first), 2, 5..6).await;
    // A run that still thinks it follows the first.
    let stale = pending(Some(&first), manifest(run(3), 0, Vec::new()), Vec::new(), false);
    let error = table.commit_latest(&stale).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert!(error.hint().unwrap().contains("--on-mismatch"), "{error:?}");
    // One that thinks the lake is empty.
    let new = pending(None, manifest(run(4), 0, Vec::new()), Vec::new(), false);
    assert_eq!(table.commit_latest(&new).await.unwrap_err().kind(), ErrorKind::Mismatch);
    // One that thinks it is not.
    let (_, empty) = lake();
    assert_eq!(empty.commit_latest(&stale).await.unwrap_err().kind(), ErrorKind::Mismatch);
}

#[tokio::test]
async fn of_two_runs_that_follow_the_same_head_one_wins() {
    let (_, table) = lake();
    let first = append(&table, None, 1, 0..5).await;
    let commits: Vec<_> = (2..6)
        .map(|number| {
            pending(Some(&first), manifest(run(number), 0, Vec::new()), Vec::new(), false)
        })
        .collect();
    let results =
        futures::future::join_all(commits.iter().map(|one| table.commit_latest(one))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!(error.kind(), ErrorKind::Mismatch);
    }
}

#[tokio::test]
async fn a_run_adds_to_its_own_generation_only() {
    let (_, table) = lake();
    let first = append(&table, None, 1, 0..5).await;
    let strange = pending(Some(&first), manifest(run(2), 3, Vec::new()), Vec::new(), false);
    assert_eq!(table.commit_latest(&strange).await.unwrap_err().kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn a_checkpoint_after_a_hundred_manifests_changes_nothing_for_readers() {
    let (storage, table) = lake();
    let mut latest = None;
    let mut expected = Vec::new();
    for number in 1..=230 {
        let low = i64::try_from(number).unwrap() * 10;
        expected.extend(low..low + 2);
        latest = Some(append(&table, latest.as_ref(), number, low..low + 2).await);
    }
    let latest = latest.unwrap();
    assert_eq!(latest.sequence, 230);
    assert_eq!(latest.manifests.len(), 30);
    assert!(latest.checkpoint.is_some());
    let live = table.live_files(&latest).await.unwrap();
    let plain: Vec<_> = {
        let mut files = Vec::new();
        for number in 1..=230 {
            files.extend(table.manifest_of(run(number)).await.unwrap().unwrap().files);
        }
        files
    };
    assert_eq!(live, plain);
    assert_eq!(read(&table, &latest).await, expected);
    let checkpoints = storage.keys().into_iter().filter(|key| key.contains("/checkpoints/"));
    assert_eq!(checkpoints.count(), 2);
}

#[tokio::test]
async fn a_commit_that_died_after_its_checkpoint_is_repeated() {
    let (_, table) = lake();
    let mut latest = append(&table, None, 1, 0..1).await;
    for number in 2..=100 {
        latest = append(&table, Some(&latest), number, []).await;
    }
    let commit_of = pending(Some(&latest), manifest(run(101), 0, Vec::new()), Vec::new(), false);
    table.put_manifest(&commit_of.manifest).await.unwrap();
    let folded = table.commit_latest(&commit_of).await.unwrap();
    // The checkpoint is there and `latest.json` is as before it.
    let again = lake_with(&table, &latest).await.commit_latest(&commit_of).await.unwrap();
    assert_eq!(folded, again);
    assert_eq!(again.manifests.len(), 1);
    assert_eq!(read(&table, &again).await, [0]);
}

/// The same lake with an earlier `latest.json`.
async fn lake_with(
    table: &tidelake_lake::TableLake,
    latest: &tidelake_model::Latest,
) -> tidelake_lake::TableLake {
    let bytes = serde_json::to_vec(latest).unwrap();
    let key = "public/orders/_tidelake/latest.json";
    table.storage().put(key, bytes.into()).await.unwrap();
    table.clone()
}

#[tokio::test]
async fn a_full_table_replaces_the_one_before() {
    let (storage, table) = lake();
    let first = append(&table, None, 1, 0..5).await;
    let (files, objects) = stage(&table, run(2), 0..3).await.into_iter().unzip();
    let second =
        commit(&table, &pending(Some(&first), manifest(run(2), 1, files), objects, true)).await;
    assert_eq!(read(&table, &second).await, [0, 1, 2]);
    assert_eq!(second.replaced.len(), 1);
    // A reader of the replaced generation still can, until it is cleaned.
    assert_eq!(read(&table, &first).await.len(), 5);
    assert_eq!(table.clean(&second, 0).await.unwrap(), 1);
    assert_eq!(read(&table, &second).await, [0, 1, 2]);
    let files = storage.keys().into_iter().filter(|key| key.ends_with(".parquet"));
    assert_eq!(
        files.collect::<Vec<_>>(),
        ["public/orders/00000000000000000000000002-1-0-0.parquet"]
    );
    assert!(table.manifest_of(run(1)).await.unwrap().is_some(), "documents stay");

    let third = append(&table, Some(&second), 3, 3..4).await;
    assert!(third.replaced.is_empty(), "what is cleaned is forgotten");
}

#[tokio::test]
async fn generations_that_are_kept_stay_readable() {
    let (_, table) = lake();
    let mut latest = None;
    for number in 1..=4 {
        let (files, objects) =
            stage(&table, run(number), 0..i64::try_from(number).unwrap()).await.into_iter().unzip();
        let manifest = manifest(run(number), u64::try_from(number).unwrap(), files);
        let replaces = latest.is_some();
        let commit_of = PendingCommit {
            keep_generations: 2,
            ..pending(latest.as_ref(), manifest, objects, replaces)
        };
        let committed = commit(&table, &commit_of).await;
        table.clean(&committed, 2).await.unwrap();
        latest = Some(committed);
    }
    let latest = latest.unwrap();
    assert_eq!(read(&table, &latest).await.len(), 4);
    let generations: Vec<_> = latest.replaced.iter().map(|old| old.generation).collect();
    assert_eq!(generations, [3, 2, 1], "the one cleaned just now is forgotten by the next commit");
    for (number, readable) in [(3, true), (2, true), (1, false)] {
        let manifest = table.manifest_of(run(number)).await.unwrap().unwrap();
        let key = format!("public/orders/{}", manifest.files[0].key);
        assert_eq!(table.storage().head(&key).await.unwrap().is_some(), readable, "{number}");
    }
}

#[tokio::test]
async fn a_generation_whose_cleaning_died_is_cleaned_by_the_next_commit() {
    let (storage, table) = lake();
    let first = append(&table, None, 1, 0..5).await;
    let (files, objects) = stage(&table, run(2), 0..3).await.into_iter().unzip();
    let second =
        commit(&table, &pending(Some(&first), manifest(run(2), 1, files), objects, true)).await;
    let third = append(&table, Some(&second), 3, 3..4).await;
    assert!(third.replaced.is_empty());
    let files = storage.keys().into_iter().filter(|key| key.ends_with(".parquet"));
    assert_eq!(files.count(), 2, "the first run's file is gone");
}

#[tokio::test]
async fn a_manifest_that_names_strange_keys_deletes_nothing() {
    let (storage, table) = lake();
    storage_put(&table, "public/other/precious.parquet").await;
    let first = append(&table, None, 1, 0..5).await;
    let mut edited = manifest(run(2), 0, Vec::new());
    let mut file = table.live_files(&first).await.unwrap().remove(0);
    file.key = "../other/precious.parquet".to_owned();
    edited.taken_out = vec![taken_out(&file)];
    let second = commit(&table, &pending(Some(&first), edited, Vec::new(), false)).await;
    let before = storage.keys();
    assert_eq!(table.clean(&second, 0).await.unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(storage.keys(), before);
}

async fn storage_put(table: &tidelake_lake::TableLake, key: &str) {
    table.storage().put(key, bytes::Bytes::from_static(b"x")).await.unwrap();
}

#[tokio::test]
async fn a_listed_document_that_is_gone_is_a_mismatch() {
    let (storage, table) = lake();
    let latest = append(&table, None, 1, 0..5).await;
    let key = "public/orders/_tidelake/runs/00000000000000000000000001.json";
    tidelake_lake::Storage::delete(storage.as_ref(), key).await.unwrap();
    let error = table.live_files(&latest).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert!(error.message().contains("does not exist"), "{error:?}");
}

#[tokio::test]
async fn a_folder_has_one_owner() {
    let (_, table) = lake();
    let owner = |store: &str| Owner {
        format_version: MANIFEST_FORMAT,
        state_store: store.to_owned(),
        env: String::new(),
        scope: "nightly".to_owned(),
        table: table_name(),
    };
    assert_eq!(table.owner().await.unwrap(), None);
    assert_eq!(table.claim(&owner("a")).await.unwrap(), Claim::Ours);
    assert_eq!(table.claim(&owner("a")).await.unwrap(), Claim::Ours);
    assert_eq!(table.claim(&owner("b")).await.unwrap(), Claim::Other(owner("a")));
    table.take_over(&owner("b")).await.unwrap();
    assert_eq!(table.claim(&owner("b")).await.unwrap(), Claim::Ours);
    assert_eq!(table.owner().await.unwrap(), Some(owner("b")));
}
