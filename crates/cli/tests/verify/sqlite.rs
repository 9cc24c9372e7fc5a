//! A SQLite source and a local folder.

use serde_json::{Value, json};

use crate::inject::{found, inject, only};
use crate::terminal::{Desk, file};

const GLOBAL: &str = "-a credentials.json --lxdb-auth-id state";

/// A shop with a lake of three runs: ten orders each.
fn shop() -> Desk {
    let desk = Desk::new();
    let credentials =
        json!({ "shop": file(&desk.path("shop.db")), "state": file(&desk.path("state.db")) });
    desk.credentials(&credentials);
    desk.shop("DELETE FROM orders");
    desk.must(&format!(
        "config create {GLOBAL} --source-db-auth-id shop --output-dir lake --sync-id s \
         --incremental-table main.orders:updated_at:datetime"
    ));
    for run in 0..3 {
        let rows: Vec<_> = (run * 10 + 1..=run * 10 + 10)
            .map(|id| format!("({id}, '2024-01-{id:02} 08:00:00', {id}.25, 'note {id}')"))
            .collect();
        desk.shop(&format!("INSERT INTO orders VALUES {}", rows.join(",")));
        desk.must(&format!("sync {GLOBAL} --sync-id s"));
    }
    desk
}

fn verify(desk: &Desk, options: &str) -> (i32, Value) {
    let answer = desk.run(&format!("verify {GLOBAL} --sync-id s --output json {options}"));
    let json = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", answer.transcript()));
    (answer.code, json)
}

#[test]
fn an_untouched_lake_is_the_same() {
    let desk = shop();
    let (code, json) = verify(&desk, "--files");
    assert_eq!(code, 0, "{json:#}");
    let outcomes: Vec<_> =
        json["tables"].as_array().unwrap().iter().map(|table| &table["outcome"]).collect();
    assert_eq!(outcomes, ["same", "same"]);
    let text = desk.must(&format!("verify {GLOBAL} --sync-id s"));
    assert!(text.contains("main.orders: the same"), "{text}");
    assert!(text.contains("2 tables the same"), "{text}");
}

#[test]
fn each_change_is_found_named_and_mended() {
    let desk = shop();
    let folder = desk.path("lake/main/orders");
    let edits = json!([
        {"id": 4, "do": "cell", "column": "note", "value": "forged"},
        {"id": 15, "do": "gone"},
        {"id": 27, "do": "twice"},
    ]);
    let Some(files) = inject(&folder, &edits) else { return };
    let (code, json) = verify(&desk, "--table orders --files");
    assert_eq!(code, 1, "{json:#}");
    let table = only(&json);
    let pair = |class: &str, id: &str| (class.to_owned(), id.to_owned());
    assert_eq!(found(table), [pair("missing", "15"), pair("doubled", "27"), pair("differs", "4")]);
    let changed = &table["findings"][2];
    assert_eq!(
        changed["columns"],
        json!([{"column": "note", "source": "note 4", "lake": "forged"}])
    );
    assert!(changed["files"][0]["file"].as_str().unwrap().ends_with(&files[0]), "{changed:#}");
    assert_eq!(changed["files"][0]["run_id"].as_str().unwrap(), &files[0][..26]);
    // Their manifests were made to fit: no file says that it was altered.
    assert_eq!(table["file_faults"], json!([]));

    let text = desk.run(&format!("verify {GLOBAL} --sync-id s --table orders"));
    for part in [
        "main.orders: DIFFERS",
        "id=15 at 2024-01-15T08:00:00",
        "id=27 at 2024-01-27T08:00:00: 2 times in the lake, 1 in the source",
        "note is \"note 4\" in the source, \"forged\" in the lake",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.transcript());
    }
    let hidden = desk.run(&format!("verify {GLOBAL} --sync-id s --table orders --no-values"));
    assert!(!hidden.stdout.contains("forged"), "{}", hidden.transcript());

    let (code, json) = verify(&desk, "--table orders --repair");
    let table = only(&json);
    assert_eq!((code, &table["outcome"]), (0, &json!("same")), "{json:#}");
    assert_eq!(table["repair"]["pieces"].as_array().unwrap().len(), 3);
    assert_eq!(table["repair"]["before"]["missing"], 1);
    assert_eq!(verify(&desk, "").0, 0);
}

#[test]
fn what_its_owner_does_to_the_source_is_told_apart() {
    let desk = shop();
    desk.shop(
        "UPDATE orders SET updated_at = '2024-03-01 00:00:00', note = 'moved' WHERE id = 3;
         DELETE FROM orders WHERE id = 8;",
    );
    let (code, json) = verify(&desk, "--table orders");
    let table = only(&json);
    let pair = |class: &str, id: &str| (class.to_owned(), id.to_owned());
    assert_eq!(code, 0, "{json:#}");
    assert_eq!(found(table), [pair("changed", "3"), pair("deleted", "8")]);
    assert_eq!(
        table["findings"][0]["remark"], "the source has this key at 2024-03-01T00:00:00",
        "{table:#}"
    );
    // A change that left the cursor alone is one that no run would carry.
    desk.shop("UPDATE orders SET price = 9 WHERE id = 5");
    let (code, json) = verify(&desk, "--table orders --limit 1");
    assert_eq!((code, &only(&json)["counts"]["differs"]), (1, &json!(1)), "{json:#}");
    assert_eq!(only(&json)["findings"][0]["columns"][0]["column"], "price");
}

#[test]
fn what_cannot_be_verified_has_its_own_exit_code() {
    let desk = shop();
    let unknown = desk.run(&format!("verify {GLOBAL} --sync-id s --table nosuch"));
    assert_eq!(unknown.code, 2, "{}", unknown.transcript());
    assert!(unknown.stderr.contains("main.orders"), "{}", unknown.transcript());
    let nobody = desk.run(&format!("verify {GLOBAL} --sync-id nosuch"));
    assert_eq!(nobody.code, 2, "{}", nobody.transcript());
    desk.shop("ALTER TABLE orders RENAME TO old_orders");
    let (code, json) = verify(&desk, "--table main.events --table main.orders");
    assert_eq!(code, 3, "{json:#}");
    std::fs::remove_file(desk.path("lake/main/events/_tidelake/latest.json")).unwrap();
    let (code, json) = verify(&desk, "--table main.orders");
    assert_eq!(code, 1, "{json:#}");
    let (code, json) = verify(&desk, "--table main.events");
    assert_eq!((code, &only(&json)["outcome"]), (0, &json!("nothing")), "{json:#}");
}

#[test]
fn a_column_that_became_another_is_told_as_a_run_tells_it() {
    let desk = shop();
    desk.shop("ALTER TABLE orders DROP COLUMN note; ALTER TABLE orders ADD COLUMN note INTEGER");
    let verified = desk.run(&format!("verify {GLOBAL} --sync-id s --table orders"));
    assert_eq!(verified.code, 1, "{}", verified.transcript());
    let told = format!("{}{}", verified.stdout, verified.stderr);
    assert!(told.contains("column \"note\" changed since the last run"), "{told}");
    assert!(told.contains("hint"), "{told}");
}

#[test]
fn a_file_that_was_damaged_is_named() {
    let desk = shop();
    let files: Vec<_> = desk
        .lake_files()
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("orders"))
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect();
    std::fs::remove_file(&files[0]).unwrap();
    let bytes = std::fs::read(&files[1]).unwrap();
    std::fs::write(&files[1], &bytes[..bytes.len() / 2]).unwrap();
    let (code, json) = verify(&desk, "--table orders");
    let table = only(&json);
    assert_eq!(code, 1, "{json:#}");
    let faults: Vec<_> =
        table["file_faults"].as_array().unwrap().iter().map(|fault| &fault["fault"]).collect();
    assert_eq!(faults, ["missing", "length"]);
    assert_eq!(table["counts"]["missing"], 20);
    let (code, json) = verify(&desk, "--table orders --repair");
    assert_eq!(code, 0, "{json:#}");
}

#[test]
fn what_a_backfill_read_and_a_compaction_merged_is_compared_as_well() {
    let desk = Desk::new();
    let credentials =
        json!({ "shop": file(&desk.path("shop.db")), "state": file(&desk.path("state.db")) });
    desk.credentials(&credentials);
    let rows: Vec<_> = (10..=28).map(|id| format!("({id}, '2024-01-{id}', 1, 'x')")).collect();
    desk.shop(&format!("INSERT INTO orders VALUES {}", rows.join(",")));
    desk.must(&format!(
        "config create {GLOBAL} --source-db-auth-id shop --output-dir lake --sync-id s --include \
         orders --incremental-table main.orders:updated_at:datetime@2024-01-20"
    ));
    desk.must(&format!("sync {GLOBAL} --sync-id s"));
    desk.must(&format!(
        "backfill {GLOBAL} --sync-id s --table main.orders --from 2024-01-11 --to 2024-01-14"
    ));
    let compared = "(2024-01-11T00:00:00, 2024-01-14T00:00:00] and (2024-01-20T00:00:00, \
                    2024-01-28T00:00:00] and rows without a value";
    for _ in 0..2 {
        let (code, json) = verify(&desk, "");
        let table = only(&json);
        assert_eq!((code, &table["compared"]), (0, &json!(compared)), "{json:#}");
        assert_eq!((&table["source_rows"], &table["lake_rows"]), (&json!(11), &json!(11)));
        desk.must(&format!("compact {GLOBAL} --sync-id s"));
    }
    // What lies between was never read, and is left out.
    desk.shop("UPDATE orders SET note = 'y' WHERE id IN (12, 16, 25)");
    let (code, json) = verify(&desk, "");
    let pair = |id: &str| ("differs".to_owned(), id.to_owned());
    assert_eq!((code, found(only(&json))), (1, vec![pair("12"), pair("25")]), "{json:#}");
}
