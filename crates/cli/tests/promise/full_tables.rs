//! Tables that are exported whole, and runs that find nothing.

use std::thread::sleep;
use std::time::Duration;

use crate::bench::Bench;
use crate::reader::Engine;

const TABLES: &str = "
    CREATE TABLE units (name text PRIMARY KEY, factor numeric(10,3), since date);
    INSERT INTO units VALUES ('kg', 1, '2020-01-01'), ('g', 0.001, NULL), ('t', 1000, '1999-12-31');
    CREATE TABLE orders (id bigint PRIMARY KEY, at timestamptz NOT NULL);
    CREATE INDEX ON orders (at);
    INSERT INTO orders SELECT i, now() - i * interval '1 min' FROM generate_series(1, 20) AS i;
";
const ORDERS: &str = "--incremental-table public.orders:at:datetime --inflight-fence off";

fn parquet_files(bench: &Bench, table: &str) -> usize {
    let objects = bench.reader.objects(&bench.lake, &format!("public/{table}"));
    objects.iter().filter(|(key, ..)| key.ends_with(".parquet")).count()
}

#[test]
fn a_table_that_was_emptied_is_empty_in_the_lake() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create("--include units");
    bench.sync();
    bench.same("units", "true");
    bench.database.run("DELETE FROM units");
    bench.sync();
    let found = bench.look("public/units");
    assert!(found.files.is_empty() && found.rows.is_empty(), "{found:?}");
    let schema = found.head.expect("a manifest")["schema"]["fields"].clone();
    let names: Vec<_> =
        schema.as_array().unwrap().iter().map(|field| field["name"].clone()).collect();
    assert_eq!(names, ["name", "factor", "since"], "the schema stays");
    assert_eq!(parquet_files(&bench, "units"), 0, "the old files are deleted");
    bench.database.run("INSERT INTO units VALUES ('lb', 0.454, NULL)");
    bench.sync();
    bench.same("units", "true");
}

#[test]
fn a_new_export_replaces_the_old_files() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create("--include units");
    for round in 0..3 {
        bench.database.run(&format!("UPDATE units SET factor = {round} WHERE name = 'kg'"));
        bench.sync();
        bench.same("units", "true");
        assert_eq!(parquet_files(&bench, "units"), 1);
    }
}

#[test]
fn older_generations_stay_for_slow_readers() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create("--include units --keep-generations 1");
    for round in 0..4 {
        let before = bench.look("public/units").files;
        bench.database.run(&format!("UPDATE units SET factor = {round} WHERE name = 'kg'"));
        bench.sync();
        bench.same("units", "true");
        let now = bench.reader.folder(&bench.lake, "public/units").unwrap();
        // What the generation before held can still be read.
        assert_eq!(now.dead, before);
    }
    bench.database.run("DELETE FROM units");
    bench.sync();
    assert_eq!(parquet_files(&bench, "units"), 1);
}

/// Every object of the lake, with its checksum and the time of its last change.
fn listing(bench: &Bench) -> Vec<(String, String, String)> {
    bench.reader.objects(&bench.lake, "public")
}

#[test]
fn nothing_new_writes_nothing_into_a_folder() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(&format!("{ORDERS} --include orders --generate-metadata"));
    nothing_new(&bench);
}

#[test]
fn nothing_new_writes_nothing_into_a_bucket() {
    let Some(mut bench) = Bench::new(TABLES) else { return };
    let Some(()) = bench.use_bucket("bucket") else { return };
    bench.create(&format!(
        "{ORDERS} --include orders --generate-metadata --target-storage-id bucket"
    ));
    nothing_new(&bench);
}

fn nothing_new(bench: &Bench) {
    assert_eq!(bench.sync().rows("orders"), 20);
    let before = listing(bench);
    assert!(before.len() > 4, "{before:?}");
    // A bucket tells times by the second.
    sleep(Duration::from_millis(1_100));
    for _ in 0..2 {
        let report = bench.sync();
        assert_eq!((report.rows("orders"), &report.table("orders")["files"]), (0, &0.into()));
        assert_eq!(report.table("orders")["committed"], false, "{report:?}");
    }
    assert_eq!(listing(bench), before, "identical, byte for byte");
    let uploads = bench.reader.folder(&bench.lake, "public/orders").unwrap().uploads;
    assert!(uploads.is_empty(), "{uploads:?}");
    bench
        .database
        .run("INSERT INTO orders VALUES (21, now() - interval '5 ms'); SELECT pg_sleep(0.01)");
    assert_eq!(bench.sync().rows("orders"), 1);
    bench.same("orders", "true");
}

#[test]
fn a_first_run_of_an_empty_table_tells_its_schema() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.database.run("TRUNCATE orders; TRUNCATE units");
    bench.create(ORDERS);
    bench.sync();
    for (table, columns) in
        [("orders", vec!["id", "at"]), ("units", vec!["name", "factor", "since"])]
    {
        let found = bench.look(&format!("public/{table}"));
        assert_eq!(found.manifests.len(), 1, "{found:?}");
        assert!(found.files.is_empty());
        let head = found.head.unwrap();
        let fields = head["schema"]["fields"].as_array().unwrap();
        let names: Vec<_> = fields.iter().map(|field| field["name"].as_str().unwrap()).collect();
        assert_eq!(names, columns);
        assert_eq!(head["files"], serde_json::json!([]));
        assert_eq!(parquet_files(&bench, table), 0);
    }
    // Types as the source says them, by column.
    let types = bench.look("public/units").head.unwrap()["source_types"].clone();
    assert_eq!(types["factor"], "numeric(10,3)", "{types}");
    assert_eq!(types["since"], "date", "{types}");
    // Incremental and still empty: nothing more is written.
    let before = listing(&bench);
    bench.sync();
    let orders = |listing: Vec<(String, String, String)>| -> Vec<_> {
        listing.into_iter().filter(|(key, ..)| key.starts_with("orders/")).collect()
    };
    assert_eq!(orders(listing(&bench)), orders(before));
    bench.database.run("INSERT INTO orders VALUES (1, now() - interval '1 s')");
    bench.sync();
    bench.same("orders", "true");
}

#[test]
fn two_engines_read_the_same() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(ORDERS);
    bench.sync();
    for table in ["public/orders", "public/units"] {
        let [arrow, duck] = [Engine::PyArrow, Engine::DuckDb]
            .map(|engine| bench.reader.rows_with(engine, &bench.lake, table).unwrap());
        assert_eq!(arrow.rows, duck.rows);
        assert_eq!(arrow.columns, duck.columns);
    }
}

#[test]
fn one_table_that_fails_leaves_the_others_in_peace() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.database.run(
        "CREATE TABLE broken (id integer PRIMARY KEY, n numeric(5,2));
         INSERT INTO broken VALUES (1, 'NaN')",
    );
    bench.create(&format!("{ORDERS} --on-special-number fail --error-action continue --n-jobs 1"));
    let report = bench.try_sync("");
    assert_eq!(report.code, 3, "{report:?}");
    assert!(report.table("broken")["error"]["message"].as_str().unwrap().contains("broken"));
    bench.same("orders", "true");
    bench.same("units", "true");
    let left = bench.reader.folder(&bench.lake, "public/broken").unwrap();
    assert!(left.live.is_empty() && left.unnamed.is_empty() && left.others.is_empty(), "{left:?}");
    bench.database.run("UPDATE broken SET n = 1");
    bench.sync();
    bench.same("broken", "true");
}
