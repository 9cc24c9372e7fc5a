//! Every row arrives, each once, whoever commits what and when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::bench::{Bench, Held, differences, time};
use crate::database::{Database, servers};

const EVENTS: &str = "
    CREATE TABLE events (
        id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        note VARCHAR(60) NOT NULL,
        KEY (at)
    );
    INSERT INTO events (at, note)
        VALUES ('2024-01-01 00:00:00.5', 'old'), ('2024-01-01 00:00:01', 'old'),
               ('2024-02-29 23:59:59.999999', 'old');
";
const BY_TIME: &str =
    "--incremental-table {db}.events:at:datetime --sync-id by_time --sub-path by_time";
const BY_ID: &str = "--incremental-table {db}.events:id:integer --sync-id by_id --sub-path by_id";

fn events() -> String {
    format!("SELECT id, {}, note FROM events", time("at", "Z"))
}

/// Transactions of random lengths, some of which are taken back.
fn write(database: &Database, writer: u32, stop: &AtomicBool) {
    let session = database.session();
    let mut dice = u64::from(writer) * 7919 + 1;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        session.run("START TRANSACTION");
        for _ in 0..=roll(3) {
            number += 1;
            session.run(&format!("INSERT INTO events (note) VALUES ('{writer}: {number}')"));
            sleep(Duration::from_millis(roll(250)));
        }
        session.run(if roll(5) == 0 { "ROLLBACK" } else { "COMMIT" });
    }
}

/// Late commits below a mark that was read already, numbers that are committed out
/// of order, rows with the stamp of the bound: none is lost, none comes twice.
#[test]
fn random_commits_arrive_exactly_once() {
    for server in servers() {
        let Some(bench) = Bench::new(server, EVENTS) else { return };
        bench.create(&format!("{BY_TIME} --inflight-wait 1"));
        bench.create(&format!("{BY_ID} --inflight-wait 3"));
        let stop = AtomicBool::new(false);
        scope(|scope| {
            for writer in 0..3 {
                let (database, stop) = (&bench.database, &stop);
                scope.spawn(move || write(database, writer, stop));
            }
            for _ in 0..5 {
                for id in ["by_time", "by_id"] {
                    bench.sync_as(&format!("--sync-id {id}"));
                    let held = bench.look(&format!("{id}/"), "events");
                    let differ = differences(held, bench.database.rows(&events()));
                    let too_often = differ.iter().find(|(_, count)| *count > 0);
                    assert!(too_often.is_none(), "{server:?}: {id}: {too_often:?}");
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        for id in ["by_time", "by_id"] {
            bench.all_arrive(&format!("--sync-id {id}"), &format!("{id}/"), "events", &events());
        }
    }
}

/// airbyte#85918: the highest value and the rows were read in different snapshots.
#[test]
fn rows_that_come_between_the_bound_and_the_read_are_not_lost() {
    for server in servers() {
        let Some(bench) = Bench::new(server, EVENTS) else { return };
        bench.create("--incremental-table {db}.events:id:integer");
        for step in ["clock", "split", "window", "begin", "batch"] {
            bench.database.run("INSERT INTO events (note) VALUES ('before')");
            let run = Held::start(&bench, &format!("{step}:{{db}}.events"));
            bench.database.run("INSERT INTO events (note) VALUES ('while it is held')");
            let report = run.end();
            assert_eq!(report.code, 0, "{server:?}: {step}: {report:?}");
            bench.all_arrive("", "", "events", &events());
        }
    }
}

/// A transaction that took its stamp and its number before others that are read.
#[test]
fn a_slow_writer_is_waited_for_or_told() {
    for server in servers() {
        let Some(bench) = Bench::new(server, EVENTS) else { return };
        bench.create(&format!("{BY_TIME} --inflight-wait 1"));
        bench.create(&format!("{BY_ID} --inflight-wait 1"));
        let writer = bench.database.session();
        writer.run("START TRANSACTION; INSERT INTO events (note) VALUES ('slow')");
        sleep(Duration::from_millis(2_600));
        bench.database.run("INSERT INTO events (note) VALUES ('quick')");
        sleep(Duration::from_millis(300));
        let by_time = bench.sync_as("--sync-id by_time");
        assert!(by_time.notices("events").contains("fence_lowered"), "{server:?}: {by_time:?}");
        let connection = writer.value("SELECT CONNECTION_ID()");
        assert!(by_time.notices("events").contains(&connection), "{server:?}: {by_time:?}");
        let old = format!("{} WHERE note = 'old'", events());
        bench.same_in("by_time/", "events", &old, "the slow one is not committed");
        let by_id = bench.sync_as("--sync-id by_id");
        assert_eq!(by_id.rows("events"), 0, "{server:?}: {by_id:?}");
        assert!(by_id.notices("events").contains(&connection), "{server:?}: {by_id:?}");
        writer.run("COMMIT");
        for id in ["by_time", "by_id"] {
            bench.all_arrive(&format!("--sync-id {id}"), &format!("{id}/"), "events", &events());
        }
    }
}
