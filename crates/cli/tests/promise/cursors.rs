//! Every kind of cursor, and rows that have none.

use std::thread::sleep;
use std::time::Duration;

use crate::bench::{Bench, GLOBAL};

/// Rows that a run took, and that the lake then holds exactly what the condition
/// picks.
fn step(bench: &Bench, rows: u64, condition: &str) {
    let report = bench.sync();
    assert_eq!(report.rows("events"), rows, "{report:?}");
    bench.same("events", condition);
}

fn settle() {
    sleep(Duration::from_millis(400));
}

#[test]
fn a_day_is_taken_when_it_is_over() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, day date NOT NULL);
         INSERT INTO events SELECT i, current_date - i / 10 FROM generate_series(0, 39) AS i;
         INSERT INTO events VALUES (100, current_date + 1), (101, '2999-01-01')",
    ) else {
        return;
    };
    bench.wait_for_a_quiet_day();
    for (number, by) in ["day:date", "day:datetime"].into_iter().enumerate() {
        let id = format!("--sync-id day{number}");
        bench.create(&format!("--incremental-table public.events:{by} {id} --sub-path {number}"));
        let folder = format!("{number}/public/events");
        let past = "day < current_date";
        assert!(bench.sync_as(&id).rows("events") >= 30, "{by}");
        bench.same_in(&folder, "public", "events", past);
        // More of today, and of yesterday, which was thought to be over.
        let late = 1_000 * (number + 1);
        bench.database.run(&format!(
            "INSERT INTO events VALUES ({late}, current_date), ({late} + 1, current_date - 1)"
        ));
        bench.sync_as(&id);
        let seen = bench.database.value("SELECT current_date - 1");
        // What is stamped with a day that was exported already is too late for a
        // run that appends; nothing of today was taken.
        bench.same_in(&folder, "public", "events", &format!("{past} AND id <> {late} + 1"));
        let stored = bench.desk.must(&format!(
            "watermarks get -a credentials.json --lxdb-auth-id state {id} --output json"
        ));
        assert!(stored.contains(&seen), "{stored}");
        bench.database.run(&format!("DELETE FROM events WHERE id = {late} + 1"));
    }
}

#[test]
fn a_time_counted_in_days() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, at timestamptz NOT NULL);
         INSERT INTO events SELECT i, date_trunc('day', now(), 'UTC') - i * interval '5 hours'
             FROM generate_series(1, 20) AS i;
         INSERT INTO events VALUES (50, date_trunc('day', now(), 'UTC'))",
    ) else {
        return;
    };
    bench.wait_for_a_quiet_day();
    bench.create("--incremental-table public.events:at:date --cursor-zone UTC");
    bench.sync();
    // The tick that is over is the day before yesterday's end: midnight.
    let high = bench.progress("events")["progress"]["watermark"]["value"].clone();
    let high = high.as_str().unwrap();
    assert!(high.ends_with("T00:00:00Z"), "{high}");
    bench.same("events", &format!("at <= '{high}'"));
    bench.same("events", "at <= date_trunc('day', now(), 'UTC') - interval '1 day'");
}

const NULLABLE: &str = "
    CREATE TABLE events (id integer PRIMARY KEY, at timestamptz, note text);
    CREATE INDEX ON events (at);
    INSERT INTO events SELECT i, now() - i * interval '1 min', 'old' FROM generate_series(1, 10) AS i;
    INSERT INTO events VALUES (101, NULL, 'none'), (102, NULL, 'none');
";
const BY_TIME: &str = "--incremental-table public.events:at:datetime --inflight-fence off";
const REPLACING: &str =
    "--incremental-table public.events:at:datetime!delete_insert --inflight-fence off";

#[test]
fn rows_without_a_value_come_with_the_first_run() {
    let Some(bench) = Bench::new(NULLABLE) else { return };
    bench.create(BY_TIME);
    step(&bench, 12, "true");
    bench.database.run("INSERT INTO events VALUES (11, now() - interval '1 ms', ''), (103, NULL, ''); SELECT pg_sleep(0.01)");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 1, "{report:?}");
    assert!(report.notices("events").contains("null_cursor"), "{report:?}");
    assert_eq!(report.counter("events", "null_cursors"), Some(3));
    bench.same("events", "id <> 103");
}

#[test]
fn rows_without_a_value_come_with_every_run() {
    let Some(bench) = Bench::new(NULLABLE) else { return };
    let refused = bench.try_create(&format!("{BY_TIME} --null-cursor include"));
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    bench.create(&format!("{REPLACING} --null-cursor include"));
    step(&bench, 12, "true");
    bench.database.run(
        "INSERT INTO events VALUES (11, now() - interval '1 ms', ''), (103, NULL, '');
         UPDATE events SET note = 'changed' WHERE id = 101;
         DELETE FROM events WHERE id = 102; SELECT pg_sleep(0.01)",
    );
    step(&bench, 3, "true");
    step(&bench, 2, "true");
    bench.database.run(
        "UPDATE events SET at = now() - interval '1 ms' WHERE id = 101; SELECT pg_sleep(0.01)",
    );
    step(&bench, 2, "true");
}

#[test]
fn rows_without_a_value_never_come() {
    let Some(bench) = Bench::new(NULLABLE) else { return };
    bench.create(&format!("{BY_TIME} --null-cursor exclude"));
    let report = bench.sync();
    assert_eq!(report.rows("events"), 10);
    assert_eq!(report.counter("events", "null_cursors"), Some(2), "{report:?}");
    bench.same("events", "at IS NOT NULL");
    step(&bench, 0, "at IS NOT NULL");
}

#[test]
fn rows_without_a_value_are_an_error() {
    let Some(bench) = Bench::new(NULLABLE) else { return };
    bench.create(&format!("{BY_TIME} --null-cursor fail"));
    let report = bench.try_sync("");
    assert_eq!(report.code, 1, "{report:?}");
    assert!(report.stderr.contains("--null-cursor"), "{report:?}");
    assert!(bench.look("public/events").head.is_none());
    bench.database.run("DELETE FROM events WHERE at IS NULL");
    step(&bench, 10, "true");
    bench.database.run("INSERT INTO events VALUES (103, NULL, '')");
    assert_eq!(bench.try_sync("").code, 1);
    bench.same("events", "id < 100");
}

#[test]
fn only_rows_without_a_value() {
    let Some(bench) = Bench::new(NULLABLE) else { return };
    bench.database.run("DELETE FROM events WHERE at IS NOT NULL");
    bench.create(BY_TIME);
    step(&bench, 2, "true");
    step(&bench, 0, "true");
    bench
        .database
        .run("INSERT INTO events VALUES (1, now() - interval '1 ms', ''); SELECT pg_sleep(0.01)");
    step(&bench, 1, "true");
}

#[test]
fn the_first_column_that_has_a_value() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, created_at timestamptz NOT NULL,
             updated_at timestamptz);
         INSERT INTO events SELECT i, now() - i * interval '1 min',
             CASE WHEN i % 2 = 0 THEN now() - i * interval '1 s' END FROM generate_series(1, 20) AS i",
    ) else {
        return;
    };
    bench.create(
        "--incremental-table 'public.events:updated_at|created_at:datetime' --inflight-fence off",
    );
    step(&bench, 20, "true");
    step(&bench, 0, "true");
    bench.database.run(
        "INSERT INTO events VALUES (21, now() - interval '2 ms', NULL),
             (22, now() - interval '1 year', now() - interval '1 ms'); SELECT pg_sleep(0.01)",
    );
    step(&bench, 2, "true");
}

#[test]
fn pairs_tell_ties_apart() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer, updated_at timestamp(0) NOT NULL, PRIMARY KEY (id));
         CREATE INDEX ON events (updated_at, id);
         INSERT INTO events SELECT i, '2026-01-01' FROM generate_series(1, 50) AS i;
         INSERT INTO events SELECT i, '2026-01-02' FROM generate_series(51, 60) AS i",
    ) else {
        return;
    };
    bench.create(
        "--incremental-table public.events:updated_at,id:datetime,integer --inflight-fence off",
    );
    step(&bench, 60, "true");
    // The same second, a higher number.
    bench
        .database
        .run("INSERT INTO events SELECT i, '2026-01-02' FROM generate_series(61, 70) AS i");
    step(&bench, 10, "true");
    bench
        .database
        .run("INSERT INTO events SELECT i, '2026-01-03' FROM generate_series(1001, 1003) AS i");
    step(&bench, 3, "true");
    step(&bench, 0, "true");
    // A typo in 2999 is held back and moves nothing.
    bench.database.run("INSERT INTO events VALUES (5000, '2999-01-01'), (1004, '2026-01-03')");
    let report = bench.sync();
    assert_eq!(report.rows("events"), 1, "{report:?}");
    assert!(report.notices("events").contains("held_back"), "{report:?}");
    bench.same("events", "id <> 5000");
    bench.database.run("INSERT INTO events VALUES (1005, '2026-01-04')");
    step(&bench, 1, "id <> 5000");
}

#[test]
fn the_other_direction_leaves_the_boundary_open() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, batch integer NOT NULL);
         CREATE INDEX ON events (batch);
         INSERT INTO events SELECT i, i / 10 FROM generate_series(0, 39) AS i",
    ) else {
        return;
    };
    bench.create("--incremental-table public.events:batch:integer:e");
    // The newest batch is still being written.
    step(&bench, 30, "batch < 3");
    bench.database.run("INSERT INTO events VALUES (100, 3)");
    step(&bench, 0, "batch < 3");
    bench.database.run("INSERT INTO events VALUES (101, 4)");
    step(&bench, 11, "batch < 4");
    bench.database.run("INSERT INTO events VALUES (102, 6)");
    step(&bench, 1, "batch < 6");
}

#[test]
fn a_start_leaves_older_rows_out() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, at timestamp NOT NULL);
         INSERT INTO events SELECT i, timestamp '2023-12-31' + i * interval '6 hours'
             FROM generate_series(0, 19) AS i",
    ) else {
        return;
    };
    bench.create(
        "--incremental-table public.events:at:datetime@2024-01-01T12:00:00 --inflight-fence off",
    );
    step(&bench, 13, "at > '2024-01-01 12:00'");
    step(&bench, 0, "at > '2024-01-01 12:00'");
    bench.create("--incremental-table public.events:id:integer@10 --sync-id ids --sub-path ids");
    assert_eq!(bench.sync_as("--sync-id ids").rows("events"), 9);
    bench.same_in("ids/public/events", "public", "events", "id > 10");
}

#[test]
fn texts() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, code text COLLATE \"C\" NOT NULL UNIQUE);
         INSERT INTO events SELECT i, 'k' || lpad(i::text, 6, '0') FROM generate_series(1, 20) AS i;
         INSERT INTO events VALUES (100, ''), (101, 'it''s \"one\" \\ %'), (102, 'K9'), (103, '10'), (104, '9')",
    ) else {
        return;
    };
    bench.create("--incremental-table public.events:code:text");
    step(&bench, 25, "true");
    step(&bench, 0, "true");
    bench.database.run("INSERT INTO events SELECT i, 'k' || lpad(i::text, 6, '0') FROM generate_series(21, 25) AS i");
    step(&bench, 5, "true");
    bench.database.run("INSERT INTO events VALUES (200, 'z it''s'), (201, 'é')");
    step(&bench, 2, "true");
    bench.database.run("INSERT INTO events VALUES (202, '名 🌊')");
    step(&bench, 1, "true");
}

#[test]
fn numbers() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, n numeric(38,5));
         INSERT INTO events SELECT i, i * 0.1 FROM generate_series(1, 99) AS i;
         INSERT INTO events VALUES (1000, -5), (1001, 9.99999), (1002, 10.00001)",
    ) else {
        return;
    };
    bench.create("--incremental-table public.events:n:number");
    step(&bench, 102, "true");
    step(&bench, 0, "true");
    bench.database.run(
        "INSERT INTO events VALUES (2000, 10.00002), (2001, 123456789012345678901234567890.12345)",
    );
    step(&bench, 2, "true");
    bench.database.run("INSERT INTO events VALUES (2002, 123456789012345678901234567890.12346)");
    step(&bench, 1, "true");
    step(&bench, 0, "true");
}

#[test]
fn large_numbers_are_ordered_as_numbers() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id bigint PRIMARY KEY);
         INSERT INTO events SELECT i FROM generate_series(-20, 120) AS i",
    ) else {
        return;
    };
    bench.create("--incremental-table public.events:id:integer");
    step(&bench, 141, "true");
    bench.database.run("INSERT INTO events VALUES (1000), (9223372036854775806)");
    step(&bench, 2, "true");
    bench.database.run("INSERT INTO events VALUES (9223372036854775807)");
    step(&bench, 1, "true");
    step(&bench, 0, "true");
}

#[test]
fn bytes() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, version bytea NOT NULL UNIQUE);
         INSERT INTO events SELECT i, decode(lpad(to_hex(i), 16, '0'), 'hex') FROM generate_series(1, 300) AS i",
    ) else {
        return;
    };
    bench.create("--incremental-table public.events:version:binary");
    step(&bench, 300, "true");
    step(&bench, 0, "true");
    bench.database.run("INSERT INTO events VALUES (1000, decode('000000000000012d', 'hex')), (1001, decode('ff00', 'hex'))");
    step(&bench, 2, "true");
}

#[test]
fn a_gap_keeps_the_newest_numbers_back() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, note text);
         INSERT INTO events SELECT i, '' FROM generate_series(1, 100) AS i",
    ) else {
        return;
    };
    let lagged = bench.try_create(
        "--incremental-table public.events:id:integer --incremental-safety-lag 5 --sync-id no",
    );
    assert_eq!(lagged.code, 2, "{}", lagged.transcript());
    assert!(lagged.stderr.contains("--safety-gap"), "{}", lagged.transcript());
    bench.create("--incremental-table public.events:id:integer --safety-gap 10");
    step(&bench, 90, "id <= 90");
    // A low number that came late, within the gap.
    bench.database.run("DELETE FROM events WHERE id = 95; INSERT INTO events VALUES (105, '')");
    step(&bench, 4, "id <= 95");
    bench.database.run("INSERT INTO events VALUES (95, 'late'), (200, '')");
    step(&bench, 7, "id <= 190");
}

#[test]
fn a_source_that_went_backwards_is_told() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
         CREATE INDEX ON events (at);
         INSERT INTO events SELECT i, now() - interval '1 s' FROM generate_series(1, 100) AS i",
    ) else {
        return;
    };
    bench.create("--incremental-table public.events:id:integer");
    bench.create("--incremental-table public.events:at:datetime --sync-id time --sub-path time");
    bench.sync();
    settle();
    bench.sync_as("--sync-id time");
    bench.database.run("DELETE FROM events; INSERT INTO events SELECT i, '2020-01-01' FROM generate_series(1, 5) AS i");
    for id in ["", "--sync-id time"] {
        let report = bench.sync_as(id);
        assert_eq!(report.rows("events"), 0, "{report:?}");
        assert!(report.notices("events").contains("source_behind_watermark"), "{id}: {report:?}");
    }
    let status = bench.desk.must(
        "status -a credentials.json --lxdb-auth-id state --sync-id s --verbose --output json",
    );
    assert!(status.contains("source_behind_watermark"), "{status}");
    // Emptied is not backwards.
    bench.database.run("DELETE FROM events");
    let report = bench.sync();
    assert!(!report.notices("events").contains("source_behind"), "{report:?}");
}

#[test]
fn late_updates_are_found_by_looking_back() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, at timestamptz NOT NULL, note text);
         CREATE INDEX ON events (at);
         INSERT INTO events SELECT i, now() - i * interval '1 min', 'old' FROM generate_series(0, 59) AS i",
    ) else {
        return;
    };
    let refused = bench.try_create(&format!("{BY_TIME} --lookback 600"));
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    bench.create(&format!("{REPLACING} --lookback 10m"));
    settle();
    step(&bench, 60, "true");
    bench.database.run(
        "UPDATE events SET note = 'late' WHERE id IN (2, 5);
         DELETE FROM events WHERE id = 4;
         INSERT INTO events VALUES (1000, now() - interval '7 min', 'came late');
         UPDATE events SET note = 'too late' WHERE id = 30",
    );
    let before = bench.progress("events")["progress"]["watermark"]["value"].to_string();
    let report = bench.sync();
    // Minutes 0 to 9, without 4, and the one that came late.
    assert_eq!(report.rows("events"), 10, "{report:?}");
    let found = bench.look("public/events").rows;
    let of = |id: &str| -> Vec<_> {
        found.iter().filter(|row| row[0].as_deref() == Some(id)).map(|row| row[2].clone()).collect()
    };
    assert_eq!(found.len(), 60);
    assert_eq!(of("2"), [Some("late".to_owned())]);
    assert_eq!(of("4"), []);
    assert_eq!(of("30"), [Some("old".to_owned())], "beyond the lookback nothing is read");
    assert_eq!(of("1000").len(), 1);
    let after = bench.progress("events")["progress"]["watermark"]["value"].to_string();
    assert!(after >= before, "the watermark stays true: {before} {after}");
    bench.database.run("UPDATE events SET note = 'old' WHERE id = 30");
    step(&bench, 10, "true");
}

#[test]
fn the_same_day_in_the_zone_of_the_cursor() {
    let Some(bench) = Bench::new(
        "CREATE TABLE events (id integer PRIMARY KEY, at timestamp NOT NULL);
         INSERT INTO events SELECT i, (now() AT TIME ZONE 'Asia/Tokyo') - interval '5 min' * i
             FROM generate_series(-3, 20) AS i",
    ) else {
        return;
    };
    bench.create(
        "--incremental-table public.events:at:datetime --cursor-zone Asia/Tokyo --inflight-fence off",
    );
    settle();
    step(&bench, 21, "id >= 0");
    // The same naive times are hours ahead of a clock in UTC.
    bench.create(
        "--incremental-table public.events:at:datetime --cursor-zone UTC --inflight-fence off \
         --sync-id utc --sub-path utc",
    );
    assert_eq!(bench.sync_as("--sync-id utc").rows("events"), 0);
}

/// The verdict of `explain`, and its reasons.
fn why(bench: &Bench, sync_id: &str, table: &str, id: u32) -> (String, String) {
    let line =
        format!("explain {GLOBAL} --sync-id {sync_id} --table {table} --key id={id} --output json");
    let json: serde_json::Value = serde_json::from_str(&bench.desk.must(&line)).unwrap();
    let reasons = json["reasons"].as_array().unwrap().iter();
    let reasons: Vec<_> = reasons.map(|reason| reason.as_str().unwrap()).collect();
    (json["verdict"].as_str().unwrap().to_owned(), reasons.join("; "))
}

#[test]
fn rows_that_no_window_reaches_are_told() {
    let Some(bench) = Bench::new(
        "CREATE TABLE times (id integer PRIMARY KEY, at timestamptz NOT NULL);
         CREATE INDEX ON times (at);
         INSERT INTO times VALUES (1, now() - interval '1 min'), (2, 'infinity');
         CREATE TABLE numbers (id integer PRIMARY KEY, at numeric(10,2));
         INSERT INTO numbers VALUES (1, 1.50), (2, 'NaN'), (3, 'NaN'), (4, NULL);
         CREATE TABLE nothing (id integer PRIMARY KEY, at numeric NOT NULL);
         INSERT INTO nothing VALUES (1, 'NaN'), (2, 'Infinity');",
    ) else {
        return;
    };
    bench.create(
        "--incremental-table public.times:at:datetime --incremental-table public.numbers:at:number \
         --incremental-table public.nothing:at:number --inflight-fence off",
    );
    let report = bench.sync();
    for (table, read, unread) in [("times", 1, 1), ("numbers", 2, 2), ("nothing", 0, 2)] {
        assert_eq!(report.rows(table), read, "{report:?}");
        assert_eq!(report.counter(table, "unreachable_cursors"), Some(unread), "{report:?}");
        let told = format!("{unread} row(s) have NaN or infinity in at, which no window reaches");
        assert!(report.json.to_string().contains(&told), "{report:?}");
    }
    // Later runs tell it as well, and one that has nothing else to tell.
    bench.database.run(
        "DELETE FROM numbers WHERE id = 3; INSERT INTO times VALUES (3, '-infinity');
         UPDATE nothing SET at = 1 WHERE id = 1",
    );
    let report = bench.sync();
    for (table, unread) in [("times", 1), ("numbers", 1), ("nothing", 1)] {
        assert_eq!(report.counter(table, "unreachable_cursors"), Some(unread), "{report:?}");
    }
    for (table, id, verdict, reason) in [
        ("times", 1, "carried", "carried it"),
        ("times", 2, "unreachable", "its cursor is infinity, which no window reaches"),
        ("times", 3, "unreachable", "its cursor is -infinity, which is below every window to come"),
        ("numbers", 2, "unreachable", "its cursor is NaN, which no window reaches"),
        ("numbers", 4, "carried", "carried it"),
        ("nothing", 1, "carried", "carried it"),
        ("nothing", 2, "unreachable", "its cursor is Infinity, which no window reaches"),
    ] {
        let (found, reasons) = why(&bench, "s", table, id);
        assert_eq!(found, verdict, "{table} {id}: {reasons}");
        assert!(reasons.contains(reason), "{table} {id}: {reasons}");
    }
    bench.database.run(
        "DELETE FROM times WHERE id = 2; DELETE FROM numbers WHERE id = 2; \
         DELETE FROM nothing WHERE id = 2",
    );
    let report = bench.sync();
    for table in ["times", "numbers", "nothing"] {
        assert_eq!(report.counter(table, "unreachable_cursors"), None, "{report:?}");
    }
}
