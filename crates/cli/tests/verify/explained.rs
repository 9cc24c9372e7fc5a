//! `explain`: why a row is in the lake, or is not.

use serde_json::{Value, json};

use crate::bench::{Bench, GLOBAL};
use crate::inject::inject;
use crate::terminal::{Desk, file};

/// The explanation of a row, and what a person reads of it.
fn explain(desk: &Desk, table: &str, key: &str) -> (Value, String) {
    let line = format!("explain {GLOBAL} --sync-id s --table {table} --key {key}");
    let text = desk.must(&line);
    (serde_json::from_str(&desk.must(&format!("{line} --output json"))).unwrap(), text)
}

/// The verdict, and all reasons in one text.
fn why(desk: &Desk, table: &str, key: &str) -> (String, String) {
    let (json, _) = explain(desk, table, key);
    let reasons = json["reasons"].as_array().unwrap().iter();
    let reasons: Vec<_> = reasons.map(|reason| reason.as_str().unwrap()).collect();
    (json["verdict"].as_str().unwrap().to_owned(), reasons.join("; "))
}

fn shop(options: &str) -> Desk {
    let desk = Desk::new();
    let credentials =
        json!({ "shop": file(&desk.path("shop.db")), "state": file(&desk.path("state.db")) });
    desk.credentials(&credentials);
    desk.must(&format!(
        "config create {GLOBAL} --source-db-auth-id shop --output-dir lake --sync-id s {options}"
    ));
    desk
}

fn sync(desk: &Desk) {
    desk.must(&format!("sync {GLOBAL} --sync-id s"));
}

#[track_caller]
fn is(desk: &Desk, key: &str, verdict: &str, part: &str) {
    let (found, reasons) = why(desk, "orders", key);
    assert_eq!(found, verdict, "{key}: {reasons}");
    assert!(reasons.contains(part), "{key}: {part} is not in {reasons}");
}

#[test]
fn a_row_on_its_way_through_its_life() {
    let desk = shop("--incremental-table main.orders:updated_at:datetime");
    is(&desk, "id=1", "next_run", "the next run reads");
    is(&desk, "id=9", "no_such_row", "neither");
    sync(&desk);
    is(&desk, "id=1", "carried", "carried it");
    let (json, text) = explain(&desk, "main.orders", "id=1");
    assert_eq!(json["lake"].as_array().unwrap().len(), 1);
    assert_eq!(json["lake"][0]["cursor"], "2024-01-01T08:00:00");
    assert_eq!(json["lake"][0]["purpose"], "run");
    assert!(text.starts_with("main.orders id=1: is in the lake"), "{text}");
    assert!(text.contains(json["lake"][0]["run_id"].as_str().unwrap()), "{text}");

    // Its file is written anew for a neighbour; who carried the row is still told.
    desk.shop("UPDATE orders SET price = 7 WHERE id = 2");
    desk.must(&format!("verify {GLOBAL} --sync-id s --table orders --repair"));
    is(&desk, "id=2", "carried", "read [2024-01-02T09:30:00, 2024-01-02T09:30:00]");
    is(&desk, "id=1", "carried", "(repair) wrote its file anew");

    // A new version, above what was exported so far.
    desk.shop("UPDATE orders SET updated_at = '2024-05-01 00:00:00' WHERE id = 1");
    is(&desk, "id=1", "next_run", "it came late, below the watermark");
    is(&desk, "id=1", "next_run", "the lake has the row at 2024-01-01T08:00:00");
    sync(&desk);
    is(&desk, "id=1", "carried", "1 other version(s)");
    desk.shop("DELETE FROM orders WHERE id = 1");
    is(&desk, "id=1", "deleted", "the source has it no more");

    // Late, far ahead, and without a value.
    desk.shop(
        "INSERT INTO orders VALUES (3, '2024-01-01 12:00:00', 1, 'late'),
             (4, '2099-01-01 00:00:00', 1, 'ahead'), (5, NULL, 1, 'none')",
    );
    is(&desk, "id=3", "never_read", "run ");
    let (json, _) = explain(&desk, "orders", "id=3");
    assert!(json["hint"].as_str().unwrap().contains("--repair"), "{json:#}");
    is(&desk, "id=4", "held_back", "the source's clock");
    is(&desk, "id=5", "without_cursor", "--null-cursor first");
    desk.must(&format!("verify {GLOBAL} --sync-id s --table orders --repair"));
    is(&desk, "id=3", "carried", "carried it");
    let (json, _) = explain(&desk, "orders", "id=3");
    assert_eq!(json["lake"][0]["purpose"], "repair");

    // By another column, with several rows.
    let (json, _) = explain(&desk, "orders", "price=1");
    assert_eq!(json["source"].as_array().unwrap().len(), 3, "{json:#}");
    let (json, _) = explain(&desk, "orders", "updated_at");
    assert_eq!(json["source"][0]["verdict"], "without_cursor", "{json:#}");
}

#[test]
fn what_the_sync_itself_leaves_out() {
    let desk = shop(
        "--incremental-table main.orders:updated_at:datetime@2024-01-02 --include orders \
         --null-cursor exclude --exclude-columns main.orders:note",
    );
    sync(&desk);
    desk.shop("INSERT INTO orders VALUES (5, NULL, 1, 'none')");
    is(&desk, "id=1", "below_start", "from 2024-01-02");
    is(&desk, "id=2", "carried", "carried it");
    is(&desk, "id=5", "without_cursor", "--null-cursor exclude");
    let (verdict, reasons) = why(&desk, "events", "id=1");
    assert_eq!(verdict, "not_in_sync");
    assert!(reasons.contains("--include orders"), "{reasons}");
    let (json, _) = explain(&desk, "orders", "id=2");
    assert!(json["notices"][0]["message"].as_str().unwrap().contains("note"), "{json:#}");
    for (line, part) in [
        ("--table nosuch --key id=1", "nosuch"),
        ("--table orders --key nosuch=1", "id, updated_at, price"),
        ("--table orders --key id=x", "is no value of column"),
        ("--table orders --key id=1,", "--key"),
    ] {
        let answer = desk.run(&format!("explain {GLOBAL} --sync-id s {line}"));
        assert_eq!(answer.code, 2, "{}", answer.transcript());
        assert!(answer.stderr.contains(part), "{}", answer.transcript());
    }
}

#[test]
fn a_full_table_and_a_row_that_the_lake_lost() {
    let desk = shop("--incremental-table main.orders:updated_at:datetime");
    sync(&desk);
    desk.shop("INSERT INTO events VALUES (10, 'late')");
    assert_eq!(why(&desk, "events", "id=1").0, "carried");
    let (verdict, reasons) = why(&desk, "events", "id=10");
    assert_eq!(verdict, "next_run");
    assert!(reasons.contains("read whole each time"), "{reasons}");
    let edits = json!([{"id": 2, "do": "gone"}]);
    let Some(_) = inject(&desk.path("lake/main/orders"), &edits) else { return };
    is(&desk, "id=2", "never_read", "taken out of the lake");
}

#[test]
fn whose_transaction_holds_a_row_back() {
    let Some(bench) = Bench::new(
        "CREATE TABLE orders (shop text, id int, at timestamptz DEFAULT now(), code uuid,
             PRIMARY KEY (shop, id));
         CREATE INDEX ON orders (at);
         INSERT INTO orders VALUES ('north', 1, now() - interval '1 day', gen_random_uuid());",
    ) else {
        return;
    };
    bench.create("--incremental-table public.orders:at:datetime --incremental-safety-lag 2");
    bench.sync();
    let desk = &bench.desk;
    let writer = bench.database.session();
    writer.run("BEGIN; SELECT txid_current()");
    std::thread::sleep(std::time::Duration::from_millis(300));
    bench.database.run("INSERT INTO orders VALUES ('south, inc', 2, now())");
    let (verdict, reasons) = why(desk, "orders", "'shop=\"south, inc\",id=2'");
    assert_eq!(verdict, "held_back", "{reasons}");
    assert!(reasons.contains("safety lag of 2 s"), "{reasons}");
    assert!(reasons.contains("process ") && reasons.contains("user"), "{reasons}");
    writer.run("COMMIT");
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    let (verdict, reasons) = why(desk, "orders", "'shop=\"south, inc\",id=2'");
    assert_eq!(verdict, "next_run", "{reasons}");
    bench.sync();
    let (json, _) = explain(desk, "public.orders", "'shop=\"south, inc\"' --key id=2");
    assert_eq!(json["verdict"], "carried", "{json:#}");
    let code = bench.database.value("SELECT code FROM orders WHERE id = 1");
    let (json, _) = explain(desk, "orders", &format!("code={code}"));
    assert_eq!((&json["verdict"], &json["key"]["code"]), (&json!("carried"), &json!(code)));
    // What the source no longer has is found in the lake by what was typed.
    let at = bench.database.value("SELECT at FROM orders WHERE id = 1").replace(' ', "T");
    bench.database.run("DELETE FROM orders WHERE id = 1");
    for key in [format!("code={code}"), format!("at={at}"), "shop=north,id=1".to_owned()] {
        let (json, _) = explain(desk, "orders", &key);
        assert_eq!(
            (&json["verdict"], &json["lake"][0]["purpose"]),
            (&json!("deleted"), &json!("run"))
        );
    }
}
