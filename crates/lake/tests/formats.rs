//! Stored formats: their JSON Schemas, and golden files of every version.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

#[allow(unreachable_pub)]
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use common::*;
use serde_json::Value as Json;
use tidelake_lake::{latest_schema, manifest_schema};
use tidelake_model::{
    DataFile, Latest, LiveManifest, MANIFEST_FORMAT, Manifest, ManifestWindow, Notice, NoticeCode,
    Owner, ReplacedGeneration, WindowRecord,
};
use tidelake_watermark::{Bound, Kind, Position, Progress, Range, Value};

/// Whether checked-in files are to be written instead of compared.
fn updates() -> bool {
    env::var("TIDELAKE_UPDATE").as_deref() == Ok("1")
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compare(path: &Path, document: &Json) {
    let text = format!("{}\n", serde_json::to_string_pretty(document).unwrap());
    if updates() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &text).unwrap();
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == text,
        "{} is not what the code says; run this test with TIDELAKE_UPDATE=1 and review the change",
        path.display()
    );
}

#[test]
fn the_manifest_schema_is_checked_in() {
    compare(&workspace().join("docs/manifest.schema.json"), &manifest_schema());
}

#[test]
fn the_latest_schema_is_checked_in() {
    compare(&workspace().join("docs/latest.schema.json"), &latest_schema());
}

fn instant(text: &str) -> Position {
    Value::parse(Kind::Timestamp, text).unwrap().into()
}

fn full_manifest() -> Manifest {
    let bound = |text: &str, inclusive| Some(Bound { at: instant(text), inclusive });
    let range = Range {
        low: bound("2026-11-29T00:00:00Z", false),
        high: bound("2026-11-30T09:00:00.123456Z", true),
    };
    let progress = Progress {
        watermark: Some(instant("2026-11-30T09:00:00.123456Z")),
        max_seen: Some(instant("2026-11-30T08:59:00Z")),
        ..Progress::default()
    };
    let file = DataFile {
        key: "00000000000000000000000007-3-0-0.parquet".to_owned(),
        rows: 12,
        bytes: 3456,
        sha256: "ab".repeat(32),
        cursor_min: Some(instant("2026-11-29T00:00:00.000001Z")),
        cursor_max: Some(instant("2026-11-30T08:59:00Z")),
        cursor_nulls: 1,
    };
    Manifest {
        attempt: 3,
        window: Some(ManifestWindow {
            cursor: Some("updated_at".to_owned()),
            window: WindowRecord {
                gap: Some(Range { high: bound("2026-11-29T12:00:00Z", true), ..range.clone() }),
                range: Some(range),
                high: Some(instant("2026-11-30T09:00:00.123456Z")),
                stays: false,
                replaces: false,
                null_cursors: false,
                ceiling: "clock".to_owned(),
                fence: Some("nothing in flight".to_owned()),
                safety_lag: 300,
                version: Some(4),
                progress: Progress::default(),
                purpose: tidelake_model::Purpose::Run,
            },
            progress,
        }),
        taken_out: vec![tidelake_model::TakenOut {
            key: "00000000000000000000000006-1-0-0.parquet".to_owned(),
            rows: 2,
        }],
        live_highest: Some(instant("2026-11-30T08:59:00Z")),
        counters: BTreeMap::from([("null_cursors".to_owned(), 1), ("rows".to_owned(), 12)]),
        notices: vec![Notice::new(NoticeCode::NullCursor, "1 row has no updated_at")],
        ..manifest(run(7), 2, vec![file])
    }
}

fn full_latest() -> Latest {
    let live = |number| LiveManifest {
        run_id: run(number),
        key: format!("_tidelake/runs/{}.json", run(number)),
    };
    Latest {
        format_version: MANIFEST_FORMAT,
        sequence: 104,
        head: run(7),
        generation: 2,
        checkpoint: Some(format!("_tidelake/checkpoints/{}.json", run(6))),
        manifests: vec![live(6), live(7)],
        replaced: vec![ReplacedGeneration {
            generation: 1,
            checkpoint: None,
            manifests: vec![live(1)],
        }],
    }
}

fn full_owner() -> Owner {
    Owner {
        format_version: MANIFEST_FORMAT,
        state_store: "01JDXQ4Z9V3T8M2K5N7P0R6S1W".to_owned(),
        env: "prod".to_owned(),
        scope: "nightly".to_owned(),
        table: table_name(),
    }
}

fn golden(version: u32, name: &str) -> PathBuf {
    let folder = format!("tests/golden/v{version}");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)
}

/// Format version 1 as it was written when it was new. These files must never
/// change: lakes hold such documents.
#[tokio::test]
async fn documents_of_format_version_1_are_read() {
    if updates() && !golden(1, "latest.json").exists() {
        compare(&golden(1, "manifest.json"), &serde_json::to_value(full_manifest()).unwrap());
        compare(&golden(1, "latest.json"), &serde_json::to_value(full_latest()).unwrap());
        compare(&golden(1, "owner.json"), &serde_json::to_value(full_owner()).unwrap());
    }
    let (_, table) = lake();
    let put = async |name: &str, key: &str| {
        let bytes = fs::read(golden(1, name)).unwrap();
        let key = format!("public/orders/_tidelake/{key}");
        table.storage().put(&key, bytes.into()).await.unwrap();
    };
    put("latest.json", "latest.json").await;
    put("owner.json", "owner.json").await;
    put("manifest.json", &format!("runs/{}.json", run(7))).await;
    put("checkpoint.json", &format!("checkpoints/{}.json", run(6))).await;
    let earlier = manifest(run(6), 2, Vec::new());
    table.put_manifest(&earlier).await.unwrap();

    let latest = table.latest().await.unwrap().unwrap();
    assert_eq!(latest, full_latest());
    assert_eq!(table.owner().await.unwrap(), Some(full_owner()));
    assert_eq!(table.manifest(&latest.manifests[1]).await.unwrap(), full_manifest());
    let keys: Vec<_> =
        table.live_files(&latest).await.unwrap().into_iter().map(|file| file.key).collect();
    assert_eq!(
        keys,
        ["00000000000000000000000005-1-0-0.parquet", "00000000000000000000000007-3-0-0.parquet"],
        "the checkpoint's file that the manifest takes out is gone"
    );
}

#[test]
fn documents_fit_their_schemas() {
    let manifests = jsonschema::validator_for(&manifest_schema()).unwrap();
    let newest = jsonschema::validator_for(&latest_schema()).unwrap();
    for document in [full_manifest(), manifest(run(1), 0, Vec::new())] {
        let document = serde_json::to_value(document).unwrap();
        let errors: Vec<_> =
            manifests.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let mut latest = serde_json::to_value(full_latest()).unwrap();
    assert!(newest.is_valid(&latest));
    latest["head"] = "not a run".into();
    assert!(!newest.is_valid(&latest));
}
