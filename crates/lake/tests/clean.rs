//! Cleaning never deletes a file that counts, and in the end leaves none behind
//! that does not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

#[allow(unreachable_pub)]
mod common;

use common::*;
use proptest::prelude::*;
use tidelake_lake::{Storage, TableLake};
use tidelake_model::{DataFile, Latest, PendingCommit};

#[derive(Debug, Clone)]
enum Change {
    Append {
        files: u32,
    },
    /// Takes out every live file whose place is a multiple, and adds some.
    RangeReplace {
        every: usize,
        files: u32,
    },
    Replace {
        files: u32,
    },
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..4_u32).prop_map(|files| Change::Append { files }),
        2 => (1..4_usize, 0..3_u32).prop_map(|(every, files)| Change::RangeReplace { every, files }),
        2 => (0..3_u32).prop_map(|files| Change::Replace { files }),
    ]
}

/// A data file with nothing in it.
async fn file(table: &TableLake, number: u128, index: u32) -> DataFile {
    let key = TableLake::data_key(run(number), 1, 0, index);
    let whole = format!("public/orders/{key}");
    table.storage().put(&whole, bytes::Bytes::from_static(b"x")).await.unwrap();
    DataFile {
        key,
        rows: 1,
        bytes: 1,
        sha256: String::new(),
        cursor_min: None,
        cursor_max: None,
        cursor_nulls: 0,
    }
}

async fn apply(
    table: &TableLake,
    latest: Option<&Latest>,
    number: u128,
    change: &Change,
    keep: u32,
) -> Latest {
    let (count, replaces) = match change {
        Change::Append { files } | Change::RangeReplace { files, .. } => (*files, false),
        Change::Replace { files } => (*files, latest.is_some()),
    };
    let mut files = Vec::new();
    for index in 0..count {
        files.push(file(table, number, index).await);
    }
    let before = latest.map_or(0, |latest| latest.generation);
    let mut manifest = manifest(run(number), before + u64::from(replaces), files);
    if let (Change::RangeReplace { every, .. }, Some(latest)) = (change, latest) {
        let live = table.live_files(latest).await.unwrap();
        manifest.taken_out = live.iter().step_by(*every).map(taken_out).collect();
    }
    let commit_of =
        PendingCommit { keep_generations: keep, ..pending(latest, manifest, Vec::new(), replaces) };
    commit(table, &commit_of).await
}

/// Keys that a reader of the table, or of a kept generation, may open.
async fn readable(table: &TableLake, latest: &Latest, keep: usize) -> Vec<String> {
    let mut files = table.live_files(latest).await.unwrap();
    for generation in latest.replaced.iter().take(keep) {
        let old = Latest {
            checkpoint: generation.checkpoint.clone(),
            manifests: generation.manifests.clone(),
            ..latest.clone()
        };
        files.extend(table.live_files(&old).await.unwrap());
    }
    let mut keys: Vec<_> =
        files.into_iter().map(|file| format!("public/orders/{}", file.key)).collect();
    keys.sort();
    keys
}

fn data_files(keys: Vec<String>) -> Vec<String> {
    keys.into_iter().filter(|key| key.ends_with(".parquet")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cleaning_deletes_what_counts_no_more_and_nothing_else(
        changes in prop::collection::vec((change(), any::<bool>()), 1..12),
        keep in 0..3_u32,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (storage, table) = lake();
            let keep_generations = usize::try_from(keep).unwrap();
            let mut latest: Option<Latest> = None;
            let mut number = 0;
            let mut forgot_taken_out = false;
            for (change, cleans) in &changes {
                number += 1;
                let next = apply(&table, latest.as_ref(), number, change, keep).await;
                if *cleans {
                    table.clean(&next, keep).await.unwrap();
                    table.clean(&next, keep).await.unwrap();
                } else {
                    forgot_taken_out |= matches!(change, Change::RangeReplace { .. });
                }
                for key in readable(&table, &next, keep_generations).await {
                    let there = storage.head(&key).await.unwrap().is_some();
                    prop_assert!(there, "{key} counts and is gone after {change:?}");
                }
                latest = Some(next);
            }
            // A runner that cleans what it finds leaves no file behind.
            number += 1;
            let end = Change::Append { files: 0 };
            let last = apply(&table, latest.as_ref(), number, &end, keep).await;
            table.clean(&last, keep).await.unwrap();
            if !forgot_taken_out {
                let expected = readable(&table, &last, keep_generations).await;
                prop_assert_eq!(data_files(storage.keys()), expected);
            }
            Ok(())
        })?;
    }
}
