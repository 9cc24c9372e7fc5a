//! Reading from a real streaming standby.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_postgres::Config;

use crate::bench::{Bench, GLOBAL};
use crate::database::Session;
use crate::terminal::server;

const EVENTS: &str = "
    CREATE TABLE events (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), note text);
    CREATE INDEX ON events (at);
    INSERT INTO events (at, note) SELECT now() - i * interval '1 s', 'old' FROM generate_series(1, 50) AS i;
";
const BY_TIME: &str = "--incremental-table public.events:at:datetime";
const BY_ID: &str = "--incremental-table public.events:id:integer";
const REQUIRE: &str = "--inflight-fence require --fence-auth-id primary";

/// A bench whose source is the standby; `primary` is a credential of the primary.
struct Pair {
    bench: Bench,
    standby: Session,
}

impl Pair {
    fn make(sql: &str) -> Option<Self> {
        let (host, port) =
            (server("TIDELAKE_TEST_PG_STANDBY_HOST")?, server("TIDELAKE_TEST_PG_STANDBY_PORT")?);
        let mut bench = Bench::new(sql)?;
        let mut config = Config::new();
        config
            .host(&host)
            .port(port.parse().unwrap())
            .user(server("TIDELAKE_TEST_PG_USER")?)
            .password(server("TIDELAKE_TEST_PG_PASSWORD")?)
            .dbname(server("TIDELAKE_TEST_PG_DATABASE")?);
        let pair_standby = Session::open(&config);
        // A test that died may have left it so.
        pair_standby.run("SELECT pg_wal_replay_resume()");
        let primary = bench.database.credential();
        let mut source = primary.clone();
        source["info"]["server"] = json!(host);
        source["info"]["port"] = json!(port);
        bench.credential("primary", primary);
        bench.credential("source", source);
        let pair = Self { bench, standby: pair_standby };
        pair.catch_up();
        Some(pair)
    }

    /// Waits until all that is committed is replayed.
    fn catch_up(&self) {
        // What was committed without waiting is written by now.
        let write = "SET synchronous_commit = on; CREATE TEMP TABLE w (); DROP TABLE w";
        self.bench.database.run(write);
        let place = self.bench.database.value("SELECT pg_current_wal_flush_lsn()");
        let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{place}'");
        while self.standby.value(&replayed) != "t" {
            sleep(Duration::from_millis(20));
        }
    }

    fn pause(&self) {
        self.standby.run("SELECT pg_wal_replay_pause()");
        while self.standby.value("SELECT pg_get_wal_replay_pause_state()") != "paused" {
            sleep(Duration::from_millis(10));
        }
    }

    fn resume(&self) {
        self.standby.run("SELECT pg_wal_replay_resume()");
        self.catch_up();
    }

    /// Every row arrives, each once. Without the primary's word the newest wait
    /// for the replay of something later.
    fn all_arrive(&self) {
        sleep(Duration::from_millis(400));
        self.bench.database.run("CREATE TABLE later (); DROP TABLE later");
        self.catch_up();
        self.bench.sync();
        self.bench.same("events", "true");
    }
}

#[test]
fn a_transaction_on_the_primary_holds_the_window() {
    for cursor in [BY_TIME, BY_ID] {
        let Some(pair) = Pair::make(EVENTS) else { return };
        let bench = &pair.bench;
        bench.create(&format!(
            "{cursor} --inflight-fence auto --fence-auth-id primary --inflight-wait 1"
        ));
        let writer = bench.database.session();
        writer.run("BEGIN; INSERT INTO events (note) VALUES ('slow')");
        sleep(Duration::from_millis(400));
        bench.database.run("INSERT INTO events (note) VALUES ('quick, stamped later')");
        sleep(Duration::from_millis(400));
        let report = bench.sync();
        let notices = report.notices("events");
        assert!(notices.contains("fence_"), "{report:?}");
        assert!(!notices.contains("fence_unavailable"), "{report:?}");
        assert!(notices.contains(&writer.value("SELECT pg_backend_pid()")), "{report:?}");
        writer.run("COMMIT");
        pair.all_arrive();
    }
}

#[test]
fn what_the_primary_has_committed_is_read_at_once() {
    for cursor in [BY_TIME, BY_ID] {
        let Some(pair) = Pair::make(EVENTS) else { return };
        let bench = &pair.bench;
        bench.create(&format!("{cursor} {REQUIRE}"));
        bench.sync();
        for _ in 0..3 {
            bench
                .database
                .run("INSERT INTO events (note) SELECT 'many' FROM generate_series(1, 20000)");
            sleep(Duration::from_millis(300));
            let report = bench.sync();
            assert_eq!(report.rows("events"), 20_000, "{report:?}");
        }
        bench.same("events", "true");
    }
}

#[test]
fn a_replay_that_stands_still_loses_no_row() {
    for options in [
        format!("{BY_TIME} --inflight-wait 1"),
        format!("{BY_TIME} --fence-auth-id primary --inflight-wait 1"),
        format!("{BY_ID} --fence-auth-id primary --inflight-wait 1"),
    ] {
        let Some(pair) = Pair::make(EVENTS) else { return };
        let bench = &pair.bench;
        bench.create(&options);
        bench.sync();
        pair.pause();
        bench.database.run("INSERT INTO events (note) SELECT 'new' FROM generate_series(1, 500)");
        sleep(Duration::from_millis(400));
        let report = bench.try_sync("");
        pair.resume();
        assert_eq!(report.code, 0, "{options}: {report:?}");
        assert_eq!(report.rows("events"), 0, "{options}: {report:?}");
        let told = if options.contains("primary") { "behind the primary" } else { "standby" };
        assert!(report.notices("events").contains(told), "{options}: {report:?}");
        pair.all_arrive();
    }
}

#[test]
fn a_replay_that_stands_still_is_no_wrong_clock() {
    let Some(pair) = Pair::make(EVENTS) else { return };
    let bench = &pair.bench;
    bench.create(BY_TIME);
    pair.pause();
    bench.database.run("INSERT INTO events (note) VALUES ('new')");
    // Longer than two clocks may differ.
    sleep(Duration::from_millis(2_500));
    let answer = bench.desk.run(&format!("doctor {GLOBAL} --sync-id s --verbose"));
    pair.resume();
    let told = answer.transcript();
    assert!(told.contains("a standby cannot see"), "{told}");
    let clock = told.lines().find(|line| line.contains("clock:")).unwrap_or_default();
    assert!(clock.trim_start().starts_with("fine"), "{told}");
}

#[test]
fn a_fence_that_must_hold_wants_the_primary() {
    let Some(pair) = Pair::make(EVENTS) else { return };
    let bench = &pair.bench;
    bench.create(&format!("{BY_TIME} --inflight-fence require"));
    let report = bench.try_sync("");
    assert_eq!(report.code, 1, "{report:?}");
    assert!(report.stderr.contains("--fence-auth-id"), "{report:?}");
    // The standby itself is no primary.
    let itself = REQUIRE.replace("primary", "source");
    bench.create(&format!("{BY_TIME} {itself} --sync-id other --sub-path other"));
    let report = bench.try_sync("--sync-id other");
    assert!(report.stderr.contains("standby itself"), "{report:?}");
    // Nor is a replay that stands still good enough.
    bench
        .create(&format!("{BY_TIME} {REQUIRE} --inflight-wait 1 --sync-id third --sub-path third"));
    bench.sync_as("--sync-id third");
    pair.pause();
    bench.database.run("INSERT INTO events (note) VALUES ('new')");
    let report = bench.try_sync("--sync-id third");
    pair.resume();
    assert_eq!(report.code, 1, "{report:?}");
    assert!(report.stderr.contains("behind the primary"), "{report:?}");
    assert!(!report.stderr.contains("trying again"), "{report:?}");
}

#[test]
fn conflicts_with_recovery_are_read_around_in_smaller_parts() {
    // Rows come so slowly that all of them take some three seconds, while a snapshot
    // lives for one at most.
    let Some(pair) = Pair::make(
        "CREATE TABLE events (id int PRIMARY KEY, at timestamptz NOT NULL, note text);
         INSERT INTO events SELECT g, now() - interval '3 h' + g * interval '100 ms', repeat('x', 200)
             FROM generate_series(1, 60000) g;
         CREATE INDEX ON events (at);
         CREATE FUNCTION slow(id int, note text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
             'BEGIN IF id % 100 = 0 THEN PERFORM pg_catalog.pg_sleep(0.005); END IF; RETURN note; END';
         CREATE VIEW slowly AS SELECT id, at, public.slow(id, note) AS note FROM events;
         CREATE TABLE junk (id int); ANALYZE",
    ) else {
        return;
    };
    let bench = &pair.bench;
    bench.create(
        "--include slowly --incremental-table public.slowly:at:datetime --fence-auth-id primary \
         --memory-limit 16MiB --parallel 16",
    );
    let done = AtomicBool::new(false);
    let report = scope(|scope| {
        let vacuum = scope.spawn(|| {
            let session = bench.database.session();
            let began = Instant::now();
            while !done.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(60) {
                session.run("INSERT INTO junk SELECT generate_series(1, 100)");
                session.run("DELETE FROM junk");
                session.run("VACUUM junk");
                sleep(Duration::from_millis(300));
            }
        });
        let report = bench.try_sync("");
        done.store(true, Ordering::Relaxed);
        vacuum.join().unwrap();
        report
    });
    assert_eq!(report.code, 0, "{report:?}");
    assert!(report.notices("slowly").contains("retried"), "{report:?}");
    assert!(report.stderr.contains("conflict with recovery"), "{report:?}");
    assert!(report.table("slowly")["files"].as_u64().unwrap() > 1, "{report:?}");
    bench.same("slowly", "true");
}
