//! What a doctor says of a sync that is well, and of one that is not.

use std::fs;

use serde_json::Value;

use crate::years::Years;

/// The verdict on a topic, in a part.
fn verdict(diagnosis: &Value, part: &str, topic: &str) -> Vec<String> {
    let parts = diagnosis["parts"].as_array().unwrap().iter();
    let findings = parts
        .filter(|found| found["part"] == part)
        .flat_map(|found| found["findings"].as_array().unwrap().clone());
    findings
        .filter(|finding| finding["topic"] == topic)
        .map(|finding| finding["verdict"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_sync_that_is_well() {
    let years = Years::make("at:datetime");
    years.must("sync --sync-id s");
    let diagnosis = years.told("doctor --sync-id s");
    assert!(!diagnosis.to_string().contains("\"failure\""), "{diagnosis}");
    for (part, topic, expected) in [
        ("state store", "clock", "fine"),
        ("source", "clock", "fine"),
        ("source", "journal", "fine"),
        ("source", "index", "fine"),
        ("source", "NULLs", "warning"),
        ("source", "order", "fine"),
        ("lake", "writing", "fine"),
    ] {
        assert_eq!(verdict(&diagnosis, part, topic), [expected], "{topic}: {diagnosis}");
    }
    assert_eq!(verdict(&diagnosis, "lake", "state and lake"), ["fine", "fine"], "{diagnosis}");
    let text = years.must("doctor");
    assert!(text.contains("0 failures, 1 warning"), "{text}");
    let alone = years.must("doctor --source-db-auth-id years -v");
    assert!(alone.contains("main.units: size"), "{alone}");
    // The probe in the lake is gone again.
    let left = years.desk.lake_files();
    assert!(!left.iter().any(|file| file.to_string_lossy().contains("probe")), "{left:?}");
}

#[test]
fn each_trouble_has_its_name() {
    let years = Years::make("at:datetime");
    years.must("sync --sync-id s");
    years.execute("DROP INDEX sales_by_time; DELETE FROM sales WHERE at > '2024-03-01'");
    years.execute("CREATE INDEX sales_by_id ON sales (at, id)");
    years.execute("INSERT INTO sales VALUES (5000, '2023-01-01 00:00:00', 1)");
    let diagnosis = years.told("doctor --sync-id s");
    assert_eq!(verdict(&diagnosis, "source", "watermark"), ["warning"], "{diagnosis}");
    assert_eq!(verdict(&diagnosis, "source", "order"), ["warning"], "{diagnosis}");
    years.execute("DROP INDEX sales_by_id");
    let diagnosis = years.told("doctor --sync-id s");
    assert_eq!(verdict(&diagnosis, "source", "index"), ["warning"], "{diagnosis}");

    // State and lake disagree, as the next sync would find.
    let latest = years.desk.path("lake/main/sales/_tidelake/latest.json");
    let kept = fs::read(&latest).unwrap();
    fs::remove_file(&latest).unwrap();
    let answer = years.answer("doctor --sync-id s --output json");
    assert_eq!(answer.code, 1, "{}", answer.transcript());
    let diagnosis: Value = serde_json::from_str(&answer.stdout).unwrap();
    let found = verdict(&diagnosis, "lake", "state and lake");
    assert_eq!(found, ["failure", "fine"], "{diagnosis}");
    fs::write(&latest, kept).unwrap();

    // The cursor is gone, and then the whole source.
    years.execute("ALTER TABLE sales RENAME COLUMN at TO seen_at");
    let answer = years.answer("doctor");
    assert_eq!(answer.code, 1, "{}", answer.transcript());
    assert!(
        answer.stdout.contains("failure  main.sales: table: the column \"at\""),
        "{}",
        answer.transcript()
    );
    for name in ["years.db", "years.db-wal", "years.db-shm"] {
        let _ = fs::remove_file(years.desk.path(name));
    }
    let answer = years.answer("doctor");
    assert_eq!(answer.code, 1, "{}", answer.transcript());
    assert!(answer.stdout.contains("failure  connection: there is no file"), "{}", answer.stdout);
    assert!(answer.stdout.contains("hint: check filepath"), "{}", answer.stdout);
    let unknown = years.answer("doctor --sync-id nothing");
    assert_eq!(unknown.code, 2, "{}", unknown.transcript());
}
