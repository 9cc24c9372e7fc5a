//! A state store on a server, whose connection is lost.

use std::time::Duration;

use serde_json::json;

use crate::bench::Bench;
use crate::proxy::{Action, Proxy, Way};
use crate::running::{CURSOR, Running, TABLES};
use crate::terminal::server;

/// A bench whose state store is reached through a proxy; its source is not.
fn bench() -> Option<(Bench, Proxy)> {
    let mut bench = Bench::new(TABLES)?;
    let (host, port) = (server("TIDELAKE_TEST_PG_HOST")?, server("TIDELAKE_TEST_PG_PORT")?);
    let proxy = Proxy::before(&format!("{host}:{port}"));
    let mut credential = bench.database.credential();
    credential["info"]["server"] = json!("127.0.0.1");
    credential["info"]["port"] = json!(proxy.port());
    credential["info"]["schema"] = json!("own_state");
    credential["info"]["keepalive"] = json!(30);
    bench.credential("state", credential);
    Some((bench, proxy))
}

/// New rows, which a sync may read at once.
fn more(bench: &Bench) {
    bench.database.run(
        "INSERT INTO events SELECT max(id) + g, now(), 'more' FROM events, generate_series(1, 50) g
         GROUP BY g",
    );
    std::thread::sleep(Duration::from_millis(300));
}

/// All rows are there once, and nothing is left to do.
fn all_is_well(bench: &Bench, because: &str) {
    let report = bench.try_sync("");
    assert_eq!(report.code, 0, "{because}: {report:?}");
    bench.same("events", "true");
    bench.same("kinds", "true");
}

#[test]
fn cut_after_any_step() {
    let Some((bench, proxy)) = bench() else { return };
    bench.create(&format!("--source-schema-name public {CURSOR}"));
    bench.sync();
    for step in ["load", "clock", "window", "batch", "staged", "committing", "manifest", "latest"] {
        more(&bench);
        let run = Running::held(&bench, &format!("{step}:public.events"));
        assert!(proxy.cut_all() > 0, "{step}");
        let report = run.end();
        assert_eq!(report.code, 0, "{step}: {report:?}");
        all_is_well(&bench, step);
    }
}

#[test]
fn cut_in_the_middle_of_its_words() {
    let Some((bench, proxy)) = bench() else { return };
    bench.create(&format!("--source-schema-name public {CURSOR}"));
    bench.sync();
    let mut ended_well = 0;
    for bytes in (1_500..24_000).step_by(2_500) {
        more(&bench);
        let way = if bytes % 2_000 < 1_000 { Way::ToServer } else { Way::ToClient };
        proxy.connections(move |number| match number {
            1 => Action::Cut(way, bytes),
            _ => Action::Pass,
        });
        let report = bench.try_sync("");
        proxy.pass();
        if report.code == 0 {
            ended_well += 1;
        } else {
            assert!(report.stderr.contains("state store"), "{bytes}: {report:?}");
            assert!(report.stderr.contains("hint: "), "{bytes}: {report:?}");
        }
        all_is_well(&bench, &format!("after {bytes} bytes"));
    }
    assert!(ended_well > 0);
}

#[test]
fn gone_for_good() {
    let Some((bench, proxy)) = bench() else { return };
    bench.create(&format!("--source-schema-name public {CURSOR}"));
    let run = Running::held(&bench, "staged:public.events");
    proxy.connections(|_| Action::Refuse);
    proxy.cut_all();
    let report = run.end();
    assert!([1, 3].contains(&report.code), "{report:?}");
    assert!(report.stderr.contains("state store"), "{report:?}");
    assert!(report.stderr.contains("hint: "), "{report:?}");
    proxy.pass();
    all_is_well(&bench, "the state store came back");
}
