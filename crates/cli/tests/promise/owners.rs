//! Whose folder it is, and what is done when state and lake disagree.

use std::fs;

use crate::bench::{Bench, Report};

const TABLES: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY, at timestamptz NOT NULL, price numeric(8,2));
    CREATE INDEX ON orders (at);
    CREATE TABLE units (name text PRIMARY KEY);
    INSERT INTO orders SELECT i, now() - i * interval '1 min', i * 1.5 FROM generate_series(1, 60) AS i;
    INSERT INTO units VALUES ('kg'), ('m');
";
const ORDERS: &str = "--incremental-table public.orders:at:datetime --inflight-fence off";

/// More rows, old enough to be read.
fn order(bench: &Bench, first: u32, last: u32) {
    bench.database.run(&format!(
        "INSERT INTO orders SELECT i, now() - interval '10 ms', i FROM generate_series({first}, {last}) AS i;
         SELECT pg_sleep(0.02)"
    ));
}

fn complete(bench: &Bench) {
    bench.same("orders", "true");
    bench.same("units", "true");
}

/// Refused with exit code 5, by every table, with a way out; nothing changes.
fn refused(bench: &Bench) -> Report {
    let before = fs::read_dir(bench.desk.path("lake"))
        .is_ok()
        .then(|| bench.reader.objects(&bench.lake, "public"));
    let report = bench.try_sync("");
    assert_eq!(report.code, 5, "{report:?}");
    for name in ["orders", "units"] {
        let error = &report.table(name)["error"];
        if error.is_null() {
            // Not begun after the other had failed.
            assert!(report.table(name)["status"].is_null(), "{report:?}");
            continue;
        }
        assert_eq!(error["kind"], "mismatch", "{report:?}");
    }
    assert!(report.stderr.contains("--on-mismatch adopt"), "{report:?}");
    assert!(report.stderr.contains("--on-mismatch rebuild"), "{report:?}");
    if let Some(before) = before {
        // Whose folder it is may be written down; everything else stays.
        let data = |objects: Vec<(String, String, String)>| -> Vec<_> {
            objects.into_iter().filter(|(key, ..)| !key.ends_with("owner.json")).collect()
        };
        assert_eq!(data(bench.reader.objects(&bench.lake, "public")), data(before));
    }
    report
}

/// A bench whose lake went on after its state was copied.
fn older_copy() -> Option<Bench> {
    let bench = Bench::new(TABLES)?;
    bench.create(ORDERS);
    bench.sync();
    fs::copy(bench.desk.path("state.db"), bench.desk.path("copy.db")).unwrap();
    order(&bench, 100, 110);
    bench.sync();
    order(&bench, 200, 203);
    let second = bench.sync();
    assert_eq!(second.rows("orders"), 4);
    complete(&bench);
    for tail in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(bench.desk.path(&format!("state.db{tail}")));
    }
    fs::copy(bench.desk.path("copy.db"), bench.desk.path("state.db")).unwrap();
    order(&bench, 300, 301);
    Some(bench)
}

/// A bench whose state is lost; the sync was made anew.
fn lost_state() -> Option<Bench> {
    let bench = Bench::new(TABLES)?;
    bench.create(ORDERS);
    bench.sync();
    order(&bench, 100, 110);
    bench.sync();
    for tail in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(bench.desk.path(&format!("state.db{tail}")));
    }
    bench.create(ORDERS);
    order(&bench, 300, 301);
    Some(bench)
}

#[test]
fn two_syncs_never_share_a_folder() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    bench.sync();
    let second = bench.try_create(&format!("{ORDERS} --sync-id second"));
    assert_eq!(second.code, 5, "{}", second.transcript());
    assert!(second.stderr.contains("\"s\""), "{}", second.transcript());
    assert!(second.stderr.contains("--sub-path"), "{}", second.transcript());
    // Made before the first one ran, it is the run that is refused.
    bench.create(&format!("{ORDERS} --sync-id third --sub-path a"));
    bench.create(&format!("{ORDERS} --sync-id fourth --sub-path a"));
    bench.sync_as("--sync-id third");
    for decision in ["", "--on-mismatch adopt", "--on-mismatch rebuild"] {
        let report = bench.try_sync(&format!("--sync-id fourth {decision}"));
        assert_eq!(report.code, 5, "{decision}: {report:?}");
        assert!(report.stderr.contains("\"third\""), "{report:?}");
    }
    order(&bench, 100, 101);
    bench.sync_as("--sync-id third");
    bench.same_in("a/public/orders", "public", "orders", "true");
    // Another state store does not get in either.
    let mut bench = bench;
    let other = crate::terminal::file(&bench.desk.path("other.db"));
    bench.credential("other", other);
    bench.desk.must(&format!(
        "config create -a credentials.json --lxdb-auth-id other --source-db-auth-id source \
         --output-dir lake --sync-id s {ORDERS}"
    ));
    let answer = bench.desk.run("sync -a credentials.json --lxdb-auth-id other --sync-id s");
    assert_eq!(answer.code, 5, "{}", answer.transcript());
    assert!(answer.stderr.contains("another state store"), "{}", answer.transcript());
    bench.sync();
    complete(&bench);
}

#[test]
fn two_environments_never_share_a_folder() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    bench.sync();
    let second = bench.try_create(&format!("{ORDERS} --env-name test"));
    assert_eq!(second.code, 5, "{}", second.transcript());
    complete(&bench);
}

#[test]
fn a_state_store_of_an_older_day_adopts_the_lake() {
    let Some(bench) = older_copy() else { return };
    refused(&bench);
    refused(&bench);
    let adopted = bench.sync_as("--on-mismatch adopt");
    assert_eq!(adopted.rows("orders"), 2, "only what is new is read: {adopted:?}");
    complete(&bench);
    order(&bench, 400, 401);
    assert_eq!(bench.sync().rows("orders"), 2);
    complete(&bench);
    let history = bench.watermark("history", "--table public.orders");
    assert!(history.stdout.contains("adopt"), "{}", history.transcript());
}

#[test]
fn a_state_store_of_an_older_day_rebuilds_the_lake() {
    let Some(bench) = older_copy() else { return };
    refused(&bench);
    let rebuilt = bench.sync_as("--on-mismatch rebuild");
    assert_eq!(rebuilt.rows("orders"), 60 + 11 + 4 + 2, "{rebuilt:?}");
    complete(&bench);
    order(&bench, 400, 401);
    assert_eq!(bench.sync().rows("orders"), 2);
    complete(&bench);
    let left = bench.reader.folder(&bench.lake, "public/orders").unwrap();
    assert!(left.dead.is_empty() && left.unnamed.is_empty(), "{left:?}");
}

#[test]
fn a_lost_state_store_adopts_the_lake() {
    let Some(bench) = lost_state() else { return };
    refused(&bench);
    let adopted = bench.sync_as("--on-mismatch adopt");
    assert_eq!(adopted.rows("orders"), 2, "{adopted:?}");
    complete(&bench);
    order(&bench, 400, 401);
    assert_eq!(bench.sync().rows("orders"), 2);
    complete(&bench);
}

#[test]
fn a_lost_state_store_rebuilds_the_lake() {
    let Some(bench) = lost_state() else { return };
    refused(&bench);
    bench.sync_as("--on-mismatch rebuild");
    complete(&bench);
    order(&bench, 400, 401);
    assert_eq!(bench.sync().rows("orders"), 2);
    complete(&bench);
}

#[test]
fn another_cursor_cannot_adopt() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    bench.sync();
    for tail in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(bench.desk.path(&format!("state.db{tail}")));
    }
    bench.create("--incremental-table public.orders:id:integer");
    let report = bench.try_sync("--on-mismatch adopt --no-progress");
    assert_eq!(report.table("orders")["error"]["kind"], "mismatch", "{report:?}");
    assert!(report.stderr.contains("rebuild"), "{report:?}");
    bench.sync_as("--on-mismatch rebuild");
    complete(&bench);
}

#[test]
fn a_lake_that_is_gone_is_rebuilt_only_when_told() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    bench.sync();
    order(&bench, 100, 110);
    bench.sync();
    fs::remove_dir_all(bench.desk.path("lake")).unwrap();
    refused(&bench);
    let adopted = bench.try_sync("--on-mismatch adopt");
    assert_eq!(adopted.code, 5, "there is nothing to adopt: {adopted:?}");
    assert!(adopted.stderr.contains("rebuild"), "{adopted:?}");
    let rebuilt = bench.sync_as("--on-mismatch rebuild");
    assert_eq!(rebuilt.rows("orders"), 71, "{rebuilt:?}");
    complete(&bench);
    order(&bench, 400, 401);
    assert_eq!(bench.sync().rows("orders"), 2);
    complete(&bench);
}

#[test]
fn a_lake_of_an_older_day_is_no_guess_either() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    bench.sync();
    let latest = bench.desk.path("lake/public/orders/_tidelake/latest.json");
    let before = fs::read(&latest).unwrap();
    order(&bench, 100, 110);
    bench.sync();
    fs::write(&latest, before).unwrap();
    let report = bench.try_sync("");
    assert_eq!(report.table("orders")["error"]["kind"], "mismatch", "{report:?}");
    bench.sync_as("--on-mismatch adopt");
    complete(&bench);
}

#[test]
fn a_decision_changes_nothing_where_all_agree() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    for decision in ["--on-mismatch adopt", "--on-mismatch rebuild"] {
        bench.sync_as(decision);
        complete(&bench);
    }
    assert_eq!(bench.look("public/orders").manifests.len(), 1);
}

#[test]
fn a_deleted_sync_leaves_its_folder_to_the_next() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    bench.sync();
    bench.desk.must("config delete -a credentials.json --lxdb-auth-id state --sync-id s");
    bench.create(ORDERS);
    order(&bench, 100, 101);
    refused(&bench);
    assert_eq!(bench.sync_as("--on-mismatch adopt").rows("orders"), 2);
    complete(&bench);
}
