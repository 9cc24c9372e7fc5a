//! Watermarks that are changed by hand, over a lake that only appends.

use serde_json::Value;

use crate::bench::Bench;
use crate::database::Database;

const EVENTS: &str = "
    CREATE TABLE events (id bigint PRIMARY KEY, at timestamp, note text);
    CREATE INDEX ON events (at);
    INSERT INTO events SELECT i, timestamp '2026-01-01' + i * interval '1 day', 'row ' || i
        FROM generate_series(1, 30) AS i;
    INSERT INTO events VALUES (-1, NULL, 'no day'), (-2, NULL, 'no day');
";
const BY_TIME: &str = "--incremental-table public.events:at:datetime";

/// Three files: days 1 to 30 with two rows without a day, 31 to 40, 41 to 50.
fn three_files(options: &str) -> Option<Bench> {
    let bench = Bench::new(EVENTS)?;
    bench.create(options);
    bench.sync();
    for tens in [3, 4] {
        add(&bench, tens * 10 + 1, tens * 10 + 10);
        assert_eq!(bench.sync().rows("events"), 10);
    }
    bench.same("events", "true");
    assert_eq!(bench.look("public/events").files.len(), 3);
    Some(bench)
}

fn add(bench: &Bench, first: u32, last: u32) {
    bench.database.run(&format!(
        "INSERT INTO events SELECT i, timestamp '2026-01-01' + i * interval '1 day', 'row ' || i
         FROM generate_series({first}, {last}) AS i"
    ));
}

/// `watermarks <verb>`, which must be done; its answer.
fn change(bench: &Bench, verb: &str, options: &str) -> Value {
    let answer = bench.watermark(verb, options);
    assert_eq!(answer.code, 0, "{}", answer.transcript());
    serde_json::from_str(&answer.stdout).unwrap()
}

/// After any change: each row once, also after further runs, and no file left
/// behind.
fn each_once(bench: &Bench) {
    bench.sync();
    bench.same("events", "true");
    bench.sync();
    bench.same("events", "true");
    let left = bench.reader.folder(&bench.lake, "public/events").unwrap();
    assert!(left.dead.is_empty(), "{left:?}");
    assert!(left.unnamed.is_empty() && left.others.is_empty(), "{left:?}");
}

#[test]
fn a_lower_edit_replaces_whole_files() {
    let Some(bench) = three_files(BY_TIME) else { return };
    let before = bench.look("public/events").files;
    bench.database.run("UPDATE events SET note = 'mended' WHERE id BETWEEN 35 AND 45");
    let edited = change(&bench, "set", "2026-01-31");
    assert_eq!(edited["touches"]["files"], 2, "{edited}");
    assert_eq!(edited["touches"]["rows"], 20, "{edited}");
    assert!(edited["touches"]["bytes"].as_u64().unwrap() > 0);
    let told = edited["notices"].to_string();
    assert!(told.contains("2 file") && told.contains("20 row"), "{told}");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 20, "{report:?}");
    bench.same("events", "true");
    let after = bench.look("public/events").files;
    assert!(after.contains(&before[0]), "the file below the value stays as it is");
    assert_eq!(after.len(), 2, "{after:?}");
    each_once(&bench);
}

#[test]
fn a_lower_edit_rewrites_a_file_that_straddles() {
    let Some(bench) = three_files(BY_TIME) else { return };
    bench.database.run("UPDATE events SET note = 'mended' WHERE id BETWEEN 10 AND 50");
    bench.database.run("DELETE FROM events WHERE id = 20");
    let edited = change(&bench, "set", "2026-01-10T00:00:00");
    assert_eq!(edited["touches"]["files"], 3, "{edited}");
    let report = bench.sync();
    // Days 10 to 50 but for day 20; those without a day stay in the lake.
    assert_eq!(report.rows("events"), 40, "{report:?}");
    // The day of the value itself counts as read: only id 9 lies there.
    bench.same("events", "true");
    each_once(&bench);
}

#[test]
fn a_lower_edit_above_which_the_source_is_empty() {
    let Some(bench) = three_files(BY_TIME) else { return };
    bench.database.run("DELETE FROM events WHERE id > 25");
    change(&bench, "set", "2026-01-26T00:00:00");
    assert_eq!(bench.sync().rows("events"), 0);
    bench.same("events", "true");
    assert_eq!(bench.look("public/events").files.len(), 1);
    each_once(&bench);
}

#[test]
fn a_lower_edit_over_columns_that_moved() {
    let Some(bench) = three_files(BY_TIME) else { return };
    bench.database.run(
        "UPDATE events SET note = NULL WHERE id = 1; UPDATE events SET note = NULL WHERE id = 45",
    );
    change(&bench, "reset", "");
    bench.sync();
    // The rows below the value keep their NULL, whatever the catalogue says now.
    bench.database.run(
        "DELETE FROM events WHERE id = 45; ALTER TABLE events RENAME note TO old;
         ALTER TABLE events ADD note text; UPDATE events SET note = coalesce(old, '');
         ALTER TABLE events DROP old, ALTER note SET NOT NULL, DROP CONSTRAINT events_pkey;
         ALTER TABLE events RENAME id TO old; ALTER TABLE events ADD id bigint;
         UPDATE events SET id = old; ALTER TABLE events DROP old",
    );
    change(&bench, "set", "2026-02-01T00:00:00");
    assert_eq!(bench.sync().rows("events"), 18);
    let found = bench.look("public/events");
    assert_eq!(found.columns, ["id", "at", "note"]);
    assert_eq!(found.rows.len(), 51);
    let notes: Vec<_> = found.rows.iter().map(|row| row[2].as_deref()).collect();
    assert_eq!(notes.iter().filter(|note| note.is_none()).count(), 1, "{notes:?}");
}

#[test]
fn a_lower_edit_between_two_rows_of_the_newest_file() {
    let Some(bench) = three_files(BY_TIME) else { return };
    change(&bench, "set", "'2026-02-15 12:00:00'");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 5, "{report:?}");
    each_once(&bench);
}

#[test]
fn a_lower_edit_below_everything_keeps_rows_without_a_value() {
    let Some(bench) = three_files(BY_TIME) else { return };
    change(&bench, "set", "1999-01-01");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 50, "{report:?}");
    each_once(&bench);
}

#[test]
fn a_higher_edit_skips() {
    let Some(bench) = three_files(BY_TIME) else { return };
    add(&bench, 51, 60);
    let edited = change(&bench, "set", "2026-02-25");
    assert_eq!(edited["touches"]["files"], 0, "{edited}");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 5, "{report:?}");
    bench.same("events", "id NOT BETWEEN 51 AND 55");
    bench.sync();
    bench.same("events", "id NOT BETWEEN 51 AND 55");
}

#[test]
fn a_higher_edit_above_the_clock_is_told_of() {
    let Some(bench) = three_files(BY_TIME) else { return };
    let quiet = bench.sync();
    assert!(!quiet.notices("events").contains("the source's clock"), "{quiet:?}");
    change(&bench, "set", "2999-01-01");
    let report = bench.sync();
    let told = report.notices("events");
    assert!(told.contains("source_behind_watermark") && told.contains("2999-01-01"), "{told}");
    change(&bench, "undo", "");
    each_once(&bench);
}

#[test]
fn an_undo_puts_back_what_was() {
    let Some(bench) = three_files(BY_TIME) else { return };
    let before = bench.progress("events")["progress"].clone();
    // Nothing ran in between: as if nothing had been.
    change(&bench, "set", "2026-01-05");
    change(&bench, "undo", "");
    assert_eq!(bench.progress("events")["progress"], before);
    assert_eq!(bench.sync().rows("events"), 0);
    bench.same("events", "true");
    // Up, a run, and back: the skipped rows come, none twice.
    add(&bench, 51, 60);
    change(&bench, "set", "2026-02-25");
    change(&bench, "undo", "");
    assert_eq!(bench.sync().rows("events"), 10);
    each_once(&bench);
    // Back before a run: its rows are read again and replaced.
    add(&bench, 61, 65);
    assert_eq!(bench.sync().rows("events"), 5);
    let undone = change(&bench, "undo", "");
    assert!(undone["touches"]["rows"].as_u64().unwrap() >= 5, "{undone}");
    bench.database.run("UPDATE events SET note = 'mended' WHERE id > 60");
    assert_eq!(bench.sync().rows("events"), 5);
    each_once(&bench);
}

#[test]
fn a_reset_replaces_everything() {
    for by in [BY_TIME, "--incremental-table public.events:id:integer"] {
        let Some(bench) = three_files(by) else { return };
        bench.database.run("UPDATE events SET note = 'mended'; DELETE FROM events WHERE id = 7");
        change(&bench, "reset", "");
        let report = bench.sync();
        assert_eq!(report.rows("events"), 51, "{report:?}");
        each_once(&bench);
        assert_eq!(bench.look("public/events").manifests.len(), 1, "one generation");
    }
}

#[test]
fn reset_watermarks_replaces_everything() {
    let Some(bench) = three_files(BY_TIME) else { return };
    bench.database.run("UPDATE events SET note = 'mended'");
    let report = bench.sync_as("--reset-watermarks");
    assert_eq!(report.rows("events"), 52, "{report:?}");
    each_once(&bench);
    // Also where it finds an empty table.
    bench.database.run("TRUNCATE events");
    bench.sync_as("--reset-watermarks");
    bench.same("events", "true");
    assert!(bench.look("public/events").files.is_empty());
    add(&bench, 1, 3);
    assert_eq!(bench.sync().rows("events"), 3);
    each_once(&bench);
}

#[test]
fn a_deleted_watermark_starts_anew() {
    let Some(bench) = three_files(BY_TIME) else { return };
    change(&bench, "delete", "--table public.events");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 52, "{report:?}");
    each_once(&bench);
}

#[test]
fn edits_of_the_other_direction() {
    let Some(bench) = three_files("--incremental-table public.events:at:datetime:e") else {
        return;
    };
    // [low, high): the row of the value itself is read again.
    change(&bench, "set", "2026-02-15");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 6, "{report:?}");
    each_once(&bench);
    change(&bench, "undo", "");
    each_once(&bench);
    change(&bench, "reset", "");
    each_once(&bench);
}

#[test]
fn edits_of_numbers_and_pairs() {
    let Some(bench) = three_files("--incremental-table public.events:id:integer") else { return };
    change(&bench, "set", "15");
    assert_eq!(bench.sync().rows("events"), 35);
    each_once(&bench);
    let wrong = bench.watermark("set", "1.5");
    assert_eq!(wrong.code, 2, "{}", wrong.transcript());
    let Some(bench) = three_files("--incremental-table public.events:at,id:datetime,integer")
    else {
        return;
    };
    change(&bench, "set", "2026-02-15,45");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 5, "{report:?}");
    each_once(&bench);
}

#[test]
fn a_table_may_be_named_without_its_schema() {
    let Some(bench) = three_files(BY_TIME) else { return };
    bench.database.run(
        "CREATE SCHEMA other; CREATE TABLE other.events (id bigint PRIMARY KEY);
         CREATE TABLE other.orders (id bigint PRIMARY KEY)",
    );
    bench.create(
        "--source-schema-name other --incremental-table other.events:id:integer \
         --incremental-table other.orders:id:integer --sync-id other --sub-path other",
    );
    bench.sync_as("--sync-id other");
    change(&bench, "get", "--table events");
    change(&bench, "set", "2026-02-15 --table events");
    each_once(&bench);
    let get = |options: &str| {
        let line = "watermarks get -a credentials.json --lxdb-auth-id state --table";
        bench.desk.run(&format!("{line} {options}"))
    };
    assert_eq!(get("orders").code, 0, "{}", get("orders").transcript());
    let several = get("events");
    assert_ne!(several.code, 0, "two are meant");
    for name in ["public.events", "other.events"] {
        assert!(several.stderr.contains(name), "{}", several.transcript());
    }
    assert_eq!(get("other.events").code, 0);
    assert_eq!(get("Events").code, 2, "{}", get("Events").transcript());
}

#[test]
fn an_edit_waits_for_a_version_and_is_written_down() {
    let Some(bench) = three_files(BY_TIME) else { return };
    let version = bench.progress("events")["version"].as_u64().unwrap();
    let stale = bench.watermark("set", &format!("2026-01-05 --expected-version {}", version - 1));
    assert_ne!(stale.code, 0, "{}", stale.transcript());
    change(
        &bench,
        "set",
        &format!("2026-01-05 --expected-version {version} --reason 'prices were wrong'"),
    );
    let history = bench.watermark("history", "");
    assert!(history.stdout.contains("prices were wrong"), "{}", history.transcript());
    assert!(history.stdout.contains("ann"), "who: {}", history.transcript());
    for wrong in ["''", "yesterday", "2026-13-01", "1.5"] {
        let refused = bench.watermark("set", wrong);
        assert_eq!(refused.code, 2, "{wrong}: {}", refused.transcript());
    }
    each_once(&bench);
}

#[test]
fn a_target_that_only_appends_cannot_follow() {
    let Some(mut bench) = Bench::new(EVENTS) else { return };
    let Some(warehouse) = Database::make() else { return };
    bench.credential("warehouse", warehouse.credential());
    bench.create(&format!(
        "{BY_TIME} --publish-target warehouse --publish-method internal \
         --publish-schema-pattern pub"
    ));
    bench.sync();
    let count = || warehouse.value("SELECT count(*) || '/' || count(DISTINCT id) FROM pub.events");
    assert_eq!(count(), "32/32");
    let refused = bench.watermark("set", "2026-01-05");
    assert_eq!(refused.code, 5, "{}", refused.transcript());
    assert!(refused.stdout.contains("reset"), "the way out is told: {}", refused.transcript());
    assert_eq!(bench.sync().rows("events"), 0, "nothing was changed");
    let undone = bench.watermark("undo", "");
    if undone.code == 0 {
        // Back to nothing is a reset, which a target can follow.
        bench.sync();
        assert_eq!(count(), "32/32");
    }
    change(&bench, "reset", "");
    add(&bench, 31, 35);
    bench.sync();
    assert_eq!(count(), "37/37", "a reset replaces the target's rows");
    bench.same("events", "true");
    // Above what is there it may be moved.
    change(&bench, "set", "2026-03-01");
    add(&bench, 70, 71);
    assert_eq!(bench.sync().rows("events"), 2);
    assert_eq!(count(), "39/39");
}
