//! One changed cell, one missing and one doubled row among very many:
//! `TIDELAKE_TEST_VERIFY_ROWS` says among how many.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::Bench;
use crate::inject::{found, inject, only};
use crate::postgres::verify;

const ROWS: u64 = 200_000;

fn rows() -> u64 {
    let told = std::env::var("TIDELAKE_TEST_VERIFY_ROWS").ok();
    told.map_or(ROWS, |rows| rows.parse().unwrap())
}

#[test]
fn three_wrong_rows_among_very_many_are_found() {
    let rows = rows();
    let Some(bench) = Bench::new(&format!(
        "CREATE TABLE orders (
             id bigint PRIMARY KEY, at timestamptz NOT NULL, customer int NOT NULL,
             price numeric(12, 2), note text, code uuid);
         INSERT INTO orders SELECT n, timestamptz '2026-01-01' + n * interval '1 ms', n % 9973,
             n / 7.0, 'order ' || n || ' of ' || md5(n::text), md5(n::text)::uuid
             FROM generate_series(1, {rows}) n;
         CREATE INDEX ON orders (at);
         ANALYZE orders;"
    )) else {
        return;
    };
    bench.create("--incremental-table public.orders:at:datetime");
    let took = |work: &dyn Fn()| -> Duration {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let synced = took(&|| assert_eq!(bench.sync().rows("orders"), rows));
    let same = took(&|| {
        let (code, json) = verify(&bench, "--files");
        assert_eq!((code, &only(&json)["lake_rows"]), (0, &json!(rows)), "{json:#}");
    });

    let (changed, missing, doubled) = (rows / 3, rows / 2, rows - 17);
    let edits = json!([
        {"id": changed, "do": "cell", "column": "note", "value": "forged"},
        {"id": missing, "do": "gone"},
        {"id": doubled, "do": "twice"},
    ]);
    let Some(files) = inject(&bench.desk.path("lake/public/orders"), &edits) else { return };
    let different = took(&|| {
        let (code, json) = verify(&bench, "");
        let table = only(&json);
        let pair = |class: &str, id: u64| (class.to_owned(), id.to_string());
        let wanted = [pair("missing", missing), pair("doubled", doubled), pair("differs", changed)];
        assert_eq!((code, found(table)), (1, wanted.to_vec()), "{json:#}");
        let finding = &table["findings"][2];
        assert_eq!(finding["columns"][0]["column"], "note");
        assert_eq!(finding["columns"][0]["lake"], "forged");
        assert!(finding["files"][0]["file"].as_str().unwrap().ends_with(&files[0]));
    });
    println!(
        "{rows} rows: sync {synced:.1?}, verify {same:.1?} when all is the same, {different:.1?} \
         when three rows differ"
    );
    let (code, json) = verify(&bench, "--repair");
    assert_eq!((code, &only(&json)["outcome"]), (0, &json!("same")), "{json:#}");
}
