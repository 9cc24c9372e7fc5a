//! Connections to the source that are lost.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::{Bench, Held, time};
use crate::database::{Server, servers};
use crate::proxy::{Action, Way};

fn tables(server: Server) -> String {
    format!(
        "CREATE TABLE kinds (id INT PRIMARY KEY, body VARCHAR(400) NOT NULL);
         INSERT INTO kinds SELECT n, CONCAT(SHA2(n, 256), REPEAT('k', 200)) FROM {series};
         CREATE TABLE events (id INT PRIMARY KEY, at TIMESTAMP(6) NULL, body VARCHAR(400) NOT NULL,
                              KEY (at));
         INSERT INTO events SELECT n, TIMESTAMPADD(SECOND, n, '2024-01-01'),
             CONCAT(SHA2(n, 256), REPEAT('e', 200)) FROM {series};
         INSERT INTO events VALUES (90001, NULL, 'without a time');
         ANALYZE TABLE kinds, events",
        series = server.series(12_000),
    )
}

const KINDS: &str = "SELECT id, body FROM kinds";
/// Little memory makes small batches, so that rows arrive before a cut.
const OPTIONS: &str =
    "--incremental-table {db}.events:at:datetime --n-jobs 1 --memory-limit 16MiB --parallel 4";

fn events() -> String {
    format!("SELECT id, {}, body FROM events", time("at", "Z"))
}

fn is_whole(bench: &Bench, because: &str) {
    bench.same("kinds", KINDS, because);
    bench.same("events", &events(), because);
    bench.is_tidy("kinds", because);
    bench.is_tidy("events", because);
}

#[test]
fn a_connection_cut_in_its_rows_is_taken_up_again() {
    for server in servers() {
        let Some(mut bench) = Bench::new(server, &tables(server)) else { return };
        let proxy = bench.through_a_proxy("source", &json!({}));
        bench.create(OPTIONS);
        proxy.connections(|number| match number {
            1..=6 => Action::Cut(Way::ToClient, 300_000),
            _ => Action::Pass,
        });
        let report = bench.sync();
        assert!(proxy.counts().cut >= 3, "{server:?}: {report:?}");
        let notices = format!("{}{}", report.notices("events"), report.notices("kinds"));
        assert!(notices.contains("retried"), "{server:?}: {report:?}");
        is_whole(&bench, &format!("{server:?}"));
    }
}

#[test]
fn connections_that_the_server_kills_are_made_again() {
    for server in servers() {
        let Some(bench) = Bench::new(server, &tables(server)) else { return };
        bench.create(OPTIONS);
        for step in ["clock", "split", "batch"] {
            let run = Held::start(&bench, &format!("{step}:{{db}}.events"));
            bench.database.kill_all();
            let report = run.end();
            assert_eq!(report.code, 0, "{server:?}: {step}: {report:?}");
            is_whole(&bench, step);
            bench.database.run(
                "INSERT INTO events SELECT id + 100000, TIMESTAMPADD(YEAR, 1, at), body FROM events
                 WHERE id = (SELECT MAX(id) FROM events WHERE at IS NOT NULL)",
            );
        }
    }
}

#[test]
fn a_connection_that_stalls_is_left() {
    for server in servers() {
        let Some(mut bench) = Bench::new(server, &tables(server)) else { return };
        let limits = json!({"stall_timeout": 1, "connect_timeout": 2});
        let proxy = bench.through_a_proxy("source", &limits);
        bench.create(OPTIONS);
        proxy.connections(|number| match number {
            1 | 2 => Action::Stall(Way::ToClient, 300_000),
            _ => Action::Pass,
        });
        let began = Instant::now();
        let report = bench.sync();
        assert!(proxy.counts().stalled >= 1, "{server:?}: {report:?}");
        assert!(began.elapsed() < Duration::from_secs(30), "{server:?}: {:?}", began.elapsed());
        is_whole(&bench, &format!("{server:?}"));
    }
}

/// The whole session of the state store is cut at every length of its words.
#[test]
fn a_state_store_cut_in_the_middle_of_its_words_loses_nothing() {
    for server in servers() {
        let sql =
            "CREATE TABLE events (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(20) NOT NULL);
                   INSERT INTO events (note) VALUES ('first')";
        let Some(mut bench) = Bench::new(server, sql) else { return };
        let proxy = bench.through_a_proxy("state", &json!({"keepalive": 30}));
        bench.create("--incremental-table {db}.events:id:integer");
        bench.sync();
        let mut ended_well = 0;
        for bytes in (1_000..13_000).step_by(1_500) {
            bench.database.run("INSERT INTO events (note) VALUES ('more'), ('and more')");
            let way = if bytes % 1_000 == 0 { Way::ToServer } else { Way::ToClient };
            proxy.connections(move |number| match number {
                1 => Action::Cut(way, bytes),
                _ => Action::Pass,
            });
            let report = bench.try_sync("");
            proxy.pass();
            if report.code == 0 {
                ended_well += 1;
            } else {
                assert!(report.stderr.contains("state store"), "{server:?}: {bytes}: {report:?}");
                assert!(report.stderr.contains("hint: "), "{server:?}: {bytes}: {report:?}");
            }
            bench.sync();
            bench.same("events", "SELECT id, note FROM events", &format!("{server:?}: {bytes}"));
        }
        assert!(ended_well > 0, "{server:?}");
    }
}
