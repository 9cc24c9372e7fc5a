//! What goes, and what must never.

use std::fs;

use crate::reader::Reader;
use crate::years::Years;

fn newest_run(years: &Years) -> String {
    years.told("status --sync-id s")[0]["run"]["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn only_what_our_runs_left_goes() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("id:integer");
    years.must("sync --sync-id s");
    let run = newest_run(&years);
    let before = years.lake(&reader);
    let folder = years.desk.path("lake/main/sales");
    let plant = |name: &str| fs::write(folder.join(name), b"x").unwrap();
    // Left by an attempt of our run that nobody finished.
    let (file, upload) = (format!("{run}-77-0-0.parquet"), format!(".{run}-77-0-1.parquet.tmp"));
    plant(&file);
    plant(&upload);
    // Not ours: a run that nobody knows, another form of name, a folder below.
    let stranger = "01BX5ZZKBKACTAV9WEVGEMMVRZ-1-0-0.parquet";
    let strange = ["part-0.parquet", "notes.txt", stranger, &format!("{run}-1-0.parquet")];
    strange.iter().for_each(|name| plant(name));
    fs::create_dir(folder.join("own")).unwrap();
    plant(&format!("own/{run}-1-0-0.parquet"));

    let young = years.told("cleanup --sync-id s");
    assert_eq!(young["tables"], serde_json::json!([]), "younger than 7 days: {young}");
    let named = years.told("cleanup --sync-id s --older-than 0s --dry-run");
    assert_eq!(named["tables"][0]["files"], serde_json::json!([file]), "{named}");
    assert!(folder.join(&file).exists() && folder.join(&upload).exists());
    let done = years.told("cleanup --sync-id s --older-than 0s");
    assert_eq!(done["tables"][0]["files"], serde_json::json!([file]), "{done}");
    assert!(!folder.join(&file).exists() && !folder.join(&upload).exists());
    for name in strange {
        assert!(folder.join(name).exists(), "{name} is not ours");
    }
    assert!(folder.join(format!("own/{run}-1-0-0.parquet")).exists());
    assert_eq!(years.lake(&reader), before);
    let nothing = years.must("cleanup --sync-id s --older-than 0s");
    assert!(nothing.contains("gone: 0 files, 0 documents, 0 uploads"), "{nothing}");
}

#[test]
fn what_is_at_work_or_has_to_be_finished_is_passed_over() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("id:integer");
    years.must("sync --sync-id s");
    for step in ["completed", "manifest", "batch", "staged"] {
        years
            .execute(&format!("INSERT INTO sales(at) VALUES ('2024-01-01 0{}:00:00')", step.len()));
        years.die("sync --sync-id s", &format!("{step}:main.sales"));
        let answer = years.answer("cleanup --sync-id s --older-than 0s");
        assert_eq!(answer.code, 0, "{}", answer.transcript());
        if step != "batch" {
            assert!(answer.stderr.contains("has to be finished first"), "{}", answer.transcript());
        }
        years.must("sync --sync-id s");
        assert_eq!(years.lake(&reader), years.source("true"), "{step}");
    }
    // Held by a run that is alive.
    let hold = years.desk.path("hold");
    let line = "sync --sync-id s -a credentials.json --lxdb-auth-id state";
    let mut command = years.desk.command();
    command
        .args(line.split_whitespace())
        .env("TIDELAKE_FAULT", "load:main.sales")
        .env("TIDELAKE_FAULT_HOLD", &hold);
    let mut child = command.spawn().unwrap();
    while !hold.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let answer = years.answer("cleanup --older-than 0s");
    assert_eq!(answer.code, 0, "{}", answer.transcript());
    assert!(answer.stderr.contains("main.sales is passed over"), "{}", answer.transcript());
    fs::remove_file(&hold).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(years.lake(&reader), years.source("true"));
}

#[test]
fn old_records_and_generations_go() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("id:integer");
    for _ in 0..3 {
        years.must("sync --sync-id s");
    }
    years.must("watermarks reset --sync-id s --table main.sales");
    years.must("sync --sync-id s");
    let manifests =
        || fs::read_dir(years.desk.path("lake/main/sales/_tidelake/runs")).unwrap().count();
    let runs = || years.told("status --sync-id s --limit 0").as_array().unwrap().len();
    assert_eq!((manifests(), runs()), (2, 4));
    // The replaced generation is still listed until the next commit.
    years.execute("INSERT INTO sales(at) VALUES ('2024-01-01')");
    years.must("sync --sync-id s");
    let failed = years.told("cleanup --older-than 0s --status failed,cancelled --dry-run");
    assert_eq!(failed["runs"], serde_json::json!([]), "{failed}");
    let done = years.told("cleanup --older-than 0s");
    assert_eq!(done["tables"][0]["documents"].as_array().unwrap().len(), 1, "{done}");
    assert_eq!(manifests(), 2);
    assert_eq!(runs(), 1, "the newest run stays");
    years.must("sync --sync-id s");
    assert_eq!(years.lake(&reader), years.source("true"));
    let wrong = years.answer("cleanup --older-than yesterday");
    assert_eq!(wrong.code, 2, "{}", wrong.transcript());
    assert!(wrong.stderr.contains("7d"), "{}", wrong.transcript());
}
