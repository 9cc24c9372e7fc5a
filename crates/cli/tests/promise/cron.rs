//! Three event tables, a sync every few moments, writers that never rest.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::bench::{Bench, Report};
use crate::database::Session;

const TABLES: &str = "
    CREATE TABLE visits (id bigserial PRIMARY KEY, at timestamptz NOT NULL, who text);
    CREATE TABLE baskets (id bigserial PRIMARY KEY, at timestamp NOT NULL, price numeric(10,2));
    CREATE TABLE payments (id bigserial PRIMARY KEY, at timestamptz(0) NOT NULL, note text, paid boolean);
    CREATE INDEX ON visits (at);
    CREATE INDEX ON payments (at);
    INSERT INTO visits (at, who) SELECT now() - i * interval '1 s', NULL FROM generate_series(1, 200) AS i;
";
const NAMES: [&str; 3] = ["visits", "baskets", "payments"];
const RUNS: u32 = 30;

/// One transaction: rows into one or two tables, stamped with its start or by an
/// application some moments ago, that stays open for a while, and may be undone.
fn transaction(session: &Session, number: u64) {
    let pick = |salt: u64, of: u64| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> salt) % of;
    // The application's own stamps are covered by the lag, not by the fence.
    let stamp = match pick(7, 3) {
        0 => format!("clock_timestamp() - interval '{} ms'", pick(11, 900)),
        _ => "now()".to_owned(),
    };
    session.run("BEGIN");
    for _ in 0..=pick(13, 2) {
        match pick(17, 3) {
            0 => session.run(&format!(
                "INSERT INTO visits (at, who) SELECT {stamp}, 'w{number}' \
                                       FROM generate_series(1, {})",
                1 + pick(19, 4)
            )),
            1 => session
                .run(&format!("INSERT INTO baskets (at, price) VALUES ({stamp}, {number} * 0.01)")),
            _ => session.run(&format!(
                "INSERT INTO payments (at, note, paid) VALUES ({stamp}, NULL, true)"
            )),
        }
        sleep(Duration::from_millis(pick(23, 250)));
    }
    session.run(if pick(29, 8) == 0 { "ROLLBACK" } else { "COMMIT" });
}

/// Everything at or below the watermark that was committed is there once.
fn complete(bench: &Bench, report: &Report) {
    for name in NAMES {
        let watermark = report.watermark(name).trim_end_matches('Z');
        let condition = match name {
            "baskets" => format!("at <= '{watermark}'"),
            _ => format!("at <= '{watermark}Z'"),
        };
        bench.same(name, &condition);
    }
}

fn rest(bench: &Bench) {
    sleep(Duration::from_millis(3_500));
    bench.sync();
    for name in NAMES {
        bench.same(name, "true");
    }
}

#[test]
fn thirty_runs_beside_writers_that_commit_out_of_order() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(
        "--incremental-safety-lag 2 --incremental-table public.visits:at:datetime \
         --incremental-table public.baskets:at:datetime \
         --incremental-table public.payments:at:datetime",
    );
    let over = AtomicBool::new(false);
    let numbers = AtomicU64::new(1);
    let exported = scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let session = bench.database.session();
                while !over.load(Ordering::Relaxed) {
                    transaction(&session, numbers.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
        let mut exported = 0;
        for run in 1..=RUNS {
            sleep(Duration::from_millis(150));
            let report = bench.sync();
            exported += NAMES.map(|name| report.rows(name)).iter().sum::<u64>();
            if run % 10 == 0 {
                complete(&bench, &report);
            }
        }
        over.store(true, Ordering::Relaxed);
        exported
    });
    rest(&bench);
    assert!(exported > 250, "the writers wrote: {exported}");
    assert!(numbers.load(Ordering::Relaxed) > 30);
}

#[test]
fn a_second_cron_that_comes_too_early_is_sent_away() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench
        .create("--incremental-table public.visits:id:integer --include visits --inflight-wait 20");
    let writer = bench.database.session();
    writer.run("BEGIN; INSERT INTO visits (at) VALUES (now())");
    scope(|scope| {
        let first = scope.spawn(|| bench.sync());
        sleep(Duration::from_millis(700));
        let second = bench.try_sync("");
        assert_eq!(second.code, 4, "{second:?}");
        assert!(second.stderr.contains("hint:"), "{second:?}");
        writer.run("COMMIT");
        // What the writer wrote is above the highest number at the start.
        assert_eq!(first.join().unwrap().rows("visits"), 200);
    });
    assert_eq!(bench.sync().rows("visits"), 1);
    bench.same("visits", "true");
}
