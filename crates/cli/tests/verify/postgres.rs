//! A PostgreSQL source, and a target that only appends.

use serde_json::{Value, json};

use crate::bench::{Bench, GLOBAL};
use crate::database::Database;
use crate::inject::{found, inject, only};

const ORDERS: &str = "
    CREATE TABLE orders (
        shop text NOT NULL, id bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
        price numeric(12, 2), tags text[], data jsonb, code uuid, raw bytea, ratio float8,
        PRIMARY KEY (shop, id));
    CREATE INDEX ON orders (at);
    INSERT INTO orders SELECT 'north', n, timestamptz '2026-01-01' + n * interval '1 s', n / 4.0,
        ARRAY[n::text, NULL], jsonb_build_object('n', n), md5(n::text)::uuid,
        decode(md5(n::text), 'hex'), CASE n % 4 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN '-0' ELSE n END
        FROM generate_series(1, 500) n;";

pub(crate) fn verify(bench: &Bench, options: &str) -> (i32, Value) {
    let answer = bench.desk.run(&format!("verify {GLOBAL} --sync-id s --output json {options}"));
    let json = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", answer.transcript()));
    (answer.code, json)
}

#[test]
fn every_type_is_the_same_on_both_sides_and_each_change_is_found() {
    let Some(bench) = Bench::new(ORDERS) else { return };
    bench.create("--incremental-table public.orders:at:datetime");
    bench.sync();
    let (code, json) = verify(&bench, "--files");
    assert_eq!((code, &only(&json)["source_rows"]), (0, &json!(500)), "{json:#}");
    assert_eq!(only(&json)["columns"].as_array().unwrap().len(), 9);

    bench.database.run(
        "UPDATE orders SET at = now() - interval '1 day' WHERE id = 7;
         UPDATE orders SET at = now() WHERE id = 8;
         DELETE FROM orders WHERE id = 9;",
    );
    bench.sync();
    let (code, json) = verify(&bench, "");
    let table = only(&json);
    assert_eq!(code, 0, "{json:#}");
    assert_eq!((&table["counts"]["changed"], &table["counts"]["deleted"]), (&json!(2), &json!(1)));

    let edits = json!([
        {"id": 100, "do": "cell", "column": "ratio", "value": 100.5},
        {"id": 200, "do": "gone"},
        {"id": 300, "do": "twice"},
    ]);
    let Some(_) = inject(&bench.desk.path("lake/public/orders"), &edits) else { return };
    // And one row that was committed late, below everything.
    bench.database.run("INSERT INTO orders VALUES ('north', 900, '2026-01-01 00:01:00Z')");
    let (code, json) = verify(&bench, "");
    let table = only(&json);
    assert_eq!(code, 1, "{json:#}");
    let errors: Vec<_> = found(table).into_iter().take(4).collect();
    let pair = |class: &str, id: &str| (class.to_owned(), id.to_owned());
    assert_eq!(
        errors,
        [
            pair("missing", "200"),
            pair("missing", "900"),
            pair("doubled", "300"),
            pair("differs", "100")
        ]
    );
    assert_eq!(table["findings"][0]["key"], json!({"shop": "north", "id": "200"}));
    let before = bench.progress("orders");
    let (code, json) = verify(&bench, "--repair");
    assert_eq!((code, &only(&json)["counts"]["missing"]), (0, &json!(0)), "{json:#}");
    assert_eq!(bench.progress("orders")["progress"], before["progress"]);
}

#[test]
fn a_repair_is_refused_where_the_target_only_appends() {
    let Some(mut bench) = Bench::new(ORDERS) else { return };
    let Some(warehouse) = Database::make() else { return };
    bench.credential("warehouse", warehouse.credential());
    bench.create(
        "--incremental-table public.orders:at:datetime --exclude-columns public.orders:ratio \
         --publish-target warehouse --publish-method internal --publish-schema-pattern pub",
    );
    bench.sync();
    let count = || warehouse.value("SELECT count(*) FROM pub.orders");
    assert_eq!(count(), "500");
    let edits = json!([{"id": 100, "do": "cell", "column": "price", "value": null}]);
    let Some(_) = inject(&bench.desk.path("lake/public/orders"), &edits) else { return };
    let (code, json) = verify(&bench, "--repair");
    let table = only(&json);
    assert_eq!((code, &table["outcome"]), (5, &json!("failed")), "{json:#}");
    // What was found is told all the same.
    assert_eq!(found(table), [("differs".to_owned(), "100".to_owned())]);
    assert!(table["error"]["hint"].as_str().unwrap().contains("reset"), "{json:#}");
    assert_eq!(count(), "500");
    assert_eq!(verify(&bench, "").0, 1);
}
