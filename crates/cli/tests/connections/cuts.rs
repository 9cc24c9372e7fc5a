//! Connections to the source that are lost, and come back.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::{Bench, Report};
use crate::proxy::{Action, Proxy, Way};
use crate::running::{CURSOR, MORE, Running, TABLES, behind_proxy};

/// How often a table's connection was lost, as the run says.
fn losses(report: &Report, table: &str) -> u32 {
    let notices = report.notices(table);
    let Some((_, after)) = notices.split_once("a connection was lost ") else { return 0 };
    let word = after.split([' ', ';']).next().unwrap();
    if word == "once" { 1 } else { word.parse().unwrap() }
}

#[test]
fn twenty_cuts_in_the_rows_of_one_snapshot() {
    let Some((bench, proxy)) = behind_proxy(TABLES, &json!({})) else { return };
    bench.create(CURSOR);
    // The first connection holds the snapshot; of those after it every second one
    // reads, the others ask the server to stop a read that was cut.
    proxy.connections(|number| match number {
        2..=40 => Action::Cut(Way::ToClient, 400_000),
        _ => Action::Pass,
    });
    let report = bench.sync();
    assert_eq!(proxy.counts().cut, 20, "{report:?}");
    assert_eq!(losses(&report, "kinds") + losses(&report, "events"), 20, "{report:?}");
    assert!(report.notices("events").contains("retried"), "{report:?}");
    bench.same("kinds", "true");
    bench.same("events", "true");
    // An attempt that was cut left nothing behind.
    let lake = &bench.lake;
    for table in ["kinds", "events"] {
        let folder = bench.reader.folder(lake, &format!("public/{table}")).unwrap();
        assert!(folder.unnamed.is_empty() && folder.others.is_empty(), "{folder:?}");
        assert_eq!(folder.live.len(), 1, "{folder:?}");
    }
}

/// Runs a sync each of whose first connections is cut in its rows, and with it all
/// others, that of the snapshot too; gives how often. Below `first` they stay.
fn cut_with_the_snapshot(bench: &Bench, proxy: &Proxy, first: u64) -> (u32, Report) {
    proxy.connections(move |number| match number {
        number if (first..=80).contains(&number) => Action::Cut(Way::ToClient, 700_000),
        _ => Action::Pass,
    });
    let mut run = Running::start(bench);
    let (mut cuts, mut seen) = (0, proxy.counts().cut);
    while !run.is_over() {
        if proxy.counts().cut > seen {
            proxy.cut_all();
            cuts += 1;
            seen = proxy.counts().cut;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    proxy.pass();
    (cuts, run.end())
}

#[test]
fn twenty_cuts_of_everything_with_the_snapshot() {
    let Some((bench, proxy)) = behind_proxy(TABLES, &json!({})) else { return };
    bench.create(CURSOR);
    let (first, report) = cut_with_the_snapshot(&bench, &proxy, 2);
    assert_eq!(report.code, 0, "{report:?}");
    bench.same("kinds", "true");
    bench.same("events", "true");
    // The incremental table was read in parts, each of which survived.
    assert!(report.table("events")["files"].as_u64().unwrap() > 3, "{report:?}");
    bench.database.run(MORE);
    // A window above a lower bound is read by the session that took its snapshot.
    let (second, report) = cut_with_the_snapshot(&bench, &proxy, 1);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(report.rows("events"), 12_001, "{report:?}");
    bench.same("kinds", "true");
    bench.same("events", "true");
    assert!(first >= 20 && second >= 20, "only {first} and {second} cuts");
}

#[test]
fn a_server_that_goes_away_for_a_while() {
    let Some((bench, proxy)) = behind_proxy(TABLES, &json!({})) else { return };
    bench.create(CURSOR);
    let run = Running::held(&bench, "batch:public.events");
    // As a restart: sessions are ended by the server, then nobody answers.
    bench.database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name LIKE 'tidelake%'",
    );
    proxy.connections(|_| Action::Refuse);
    let back = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1_500));
        proxy.pass();
        proxy
    });
    let report = run.end();
    assert_eq!(report.code, 0, "{report:?}");
    assert!(losses(&report, "events") + losses(&report, "kinds") >= 3, "{report:?}");
    bench.same("kinds", "true");
    bench.same("events", "true");
    drop(back.join().unwrap());
}

#[test]
fn a_server_that_stays_away_is_given_up() {
    let Some((bench, proxy)) = behind_proxy(TABLES, &json!({})) else { return };
    bench.create(CURSOR);
    // Without rows to be lost the wait is short.
    proxy.connections(|_| Action::Refuse);
    let began = Instant::now();
    let report = bench.try_sync("");
    assert_eq!(report.code, 1, "{report:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(report.stderr.contains("hint: "), "{report:?}");
    assert_eq!(report.stderr.matches("trying again").count(), 3, "{report:?}");
    proxy.pass();
    bench.sync();
    bench.same("events", "true");
}

#[test]
fn a_connection_that_stalls_is_left() {
    let limits = json!({"stall_timeout": 1, "connect_timeout": 2});
    let Some((bench, proxy)) = behind_proxy(TABLES, &limits) else { return };
    bench.create(CURSOR);
    proxy.connections(|number| match number {
        // The third asks the server what the second does, the fourth cancels that.
        2 | 5 => Action::Stall(Way::ToClient, 400_000),
        _ => Action::Pass,
    });
    let began = Instant::now();
    let report = bench.sync();
    assert_eq!(proxy.counts().stalled, 2, "{report:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(report.stderr.contains("nothing came from the server"), "{report:?}");
    bench.same("kinds", "true");
    bench.same("events", "true");
}
