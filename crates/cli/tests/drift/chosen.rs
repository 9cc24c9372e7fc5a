//! Columns, keys and types that the user chose.

use rusqlite::Connection;
use serde_json::json;

use crate::bench::{Bench, GLOBAL, Report, assert_same};
use crate::database::Row;
use crate::reader::{self, Reader};
use crate::terminal::Desk;

fn row(cells: &[&str]) -> Row {
    cells.iter().map(|cell| (*cell != "~").then(|| (*cell).to_owned())).collect()
}

#[test]
fn columns_are_chosen_and_left_out() {
    let Some(bench) = Bench::new(
        "CREATE TABLE people (id bigint PRIMARY KEY, name text, born date, secret text);
         CREATE TABLE \"Odd : One\" (\"a.b\" integer, \"c,d\" text, \"e\"\"f\" text);
         INSERT INTO people VALUES (1, 'Ann', '2001-02-03', 'x');
         INSERT INTO \"Odd : One\" VALUES (1, 'two', 'three')",
    ) else {
        return;
    };
    let options = "--exclude-columns public.people:secret,born \
        '--columns=public.\"Odd : One\":\"a.b\",\"e\"\"f\"' \
        --incremental-table public.people:id:integer";
    bench.create(options);
    bench.sync();
    let people = bench.look("public/people");
    assert_eq!(people.columns, ["id", "name"]);
    assert_eq!(people.head.as_ref().unwrap()["key"], json!(["id"]));
    assert_same("people", people.rows, vec![row(&["1", "Ann"])]);
    let odd = bench.look("public/Odd %3A One");
    assert_eq!(odd.columns, ["a.b", "e\"f"]);
    assert_same("odd", odd.rows, vec![row(&["1", "three"])]);
    let shown = bench.desk.must(&format!("config show {GLOBAL} --sync-id s"));
    assert!(shown.contains("public.people without secret, born"), "{shown}");
    assert!(shown.contains("public.Odd : One: a.b, e\"f"), "{shown}");
    // A column that is left out does not drift.
    bench
        .database
        .run("ALTER TABLE people DROP secret; INSERT INTO people VALUES (2, 'Bob', NULL)");
    bench.sync();
    assert_same(
        "people",
        bench.look("public/people").rows,
        vec![row(&["1", "Ann"]), row(&["2", "Bob"])],
    );
}

#[test]
fn views_and_foreign_tables_follow_a_declared_key_and_cursor() {
    let Some(bench) = Bench::new(
        "CREATE TABLE base (id bigint PRIMARY KEY, part integer, at timestamptz);
         CREATE VIEW seen AS SELECT id, part, at, 'v' || id AS label FROM base;
         CREATE MATERIALIZED VIEW kept AS SELECT id, part FROM base;
         INSERT INTO base SELECT n, n % 2, now() - interval '1 hour' FROM generate_series(1, 5) n;
         REFRESH MATERIALIZED VIEW kept",
    ) else {
        return;
    };
    let setting =
        |name: &str| crate::terminal::server(&format!("TIDELAKE_TEST_PG_{name}")).unwrap();
    let foreign = bench
        .database
        .value("SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'")
        == "1";
    let mut options = "--key public.seen:part,id --incremental-table public.seen:id:integer \
        --key public.kept:id --incremental-table public.kept:id:integer --include seen,kept,far"
        .to_owned();
    if foreign {
        let password = setting("PASSWORD");
        bench.database.run(&format!(
            "CREATE EXTENSION postgres_fdw;
             CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw
                 OPTIONS (host '{}', port '{}', dbname '{}');
             CREATE USER MAPPING FOR CURRENT_USER SERVER itself
                 OPTIONS (user '{}', password '{password}');
             CREATE FOREIGN TABLE far (id bigint, part integer) SERVER itself
                 OPTIONS (schema_name 'public', table_name 'base')",
            setting("HOST"),
            setting("PORT"),
            bench.database.name,
            setting("USER"),
        ));
        options += " --key public.far:id --incremental-table public.far:id:integer";
    } else {
        println!("not run: foreign tables, since the server has no postgres_fdw");
    }
    bench.create(&options);
    bench.sync();
    bench.database.run("INSERT INTO base VALUES (6, 0, now()); REFRESH MATERIALIZED VIEW kept");
    let report = bench.sync();
    for name in ["seen", "kept", "far"].iter().take(if foreign { 3 } else { 2 }) {
        assert_eq!(report.rows(name), 1, "{name}");
        bench.same(name, "true");
    }
    let key = |table: &str| bench.look(table).head.unwrap()["key"].clone();
    assert_eq!(key("public/seen"), json!(["part", "id"]));
    assert_eq!(key("public/kept"), json!(["id"]));
}

#[test]
fn types_of_a_server_are_chosen() {
    let Some(bench) = Bench::new(
        "CREATE TABLE c (id bigint PRIMARY KEY, n numeric, w numeric(10,4), f bigint, s text,
             g text, d date, t timestamp, u text, j text, b text, i integer, z text, k integer);
         INSERT INTO c VALUES
             (1, 123456789012345678901234567890.123456789, 1.2300, 1, '42', '-7.50',
              '2024-05-06', '2024-05-06 00:00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
              '{\"a\": [1]}', 'bytes', 9, '2024-05-06 07:08:09+02', 255),
             (2, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ) else {
        return;
    };
    let casts = [
        "w:decimal(20,6)",
        "f:boolean",
        "s:int16",
        "g:decimal(5,2)",
        "d:timestamp",
        "t:date",
        "u:uuid",
        "j:json",
        "b:binary",
        "i:float64",
        "z:timestamptz",
        "k:uint8",
    ];
    let casts: Vec<_> = casts.iter().map(|cast| format!("--type-cast public.c:{cast}")).collect();
    bench.create(&format!(
        "--decimal public.c:n:76,20 {} --incremental-table public.c:id:integer",
        casts.join(" ")
    ));
    bench.sync();
    let found = bench.look("public/c");
    assert_eq!(
        found.types,
        [
            "int64",
            "decimal256(76, 20)",
            "decimal128(20, 6)",
            "bool",
            "int16",
            "decimal128(5, 2)",
            "timestamp[us]",
            "date32[day]",
            "extension<arrow.uuid>",
            "extension<arrow.json>",
            "binary",
            "double",
            "timestamp[us, tz=UTC]",
            "uint8",
        ]
    );
    let nulls = ["2", "~", "~", "false", "~", "~", "~", "~", "~", "~", "~", "~", "~", "~"];
    let values = [
        "1",
        "123456789012345678901234567890.12345678900000000000",
        "1.230000",
        "true",
        "42",
        "-7.50",
        "2024-05-06T00:00:00",
        "2024-05-06",
    ];
    let mut rows = found.rows.clone();
    rows.sort();
    assert_eq!(rows[0][..8], row(&values)[..]);
    let rest: Vec<_> = rows[0][9..].iter().map(|cell| cell.as_deref().unwrap()).collect();
    assert_eq!(rest, ["{\"a\": [1]}", "0x6279746573", "9.0", "2024-05-06T05:08:09Z", "255"]);
    assert_eq!(rows[1], row(&nulls));
    let shown = bench.desk.must(&format!("config show {GLOBAL} --sync-id s"));
    assert!(shown.contains("public.c: n as decimal(76,20)"), "{shown}");
    assert!(shown.contains("public.c: u as uuid"), "{shown}");

    // A value that does not fit fails the table and is named; nothing is rounded.
    for (sql, words) in [
        (
            "(3, NULL, NULL, NULL, '70000')",
            "column \"s\" holds \"70000\", which cannot become int16",
        ),
        ("(3, NULL, NULL, 2, NULL)", "column \"f\" holds \"2\", which cannot become boolean"),
    ] {
        bench.database.run(&format!("INSERT INTO c (id, n, w, f, s) VALUES {sql}"));
        let report = bench.try_sync("");
        let error = report.table("c")["error"]["message"].as_str().unwrap();
        assert!(error.contains(words), "{error}");
        assert_eq!(bench.look("public/c").rows.len(), 2);
        bench.database.run("DELETE FROM c WHERE id = 3");
    }
}

#[test]
fn types_of_a_file_are_chosen() {
    let Some(reader) = Reader::start() else { return };
    let desk = Desk::new();
    let shop = Connection::open(desk.path("shop.db")).unwrap();
    shop.execute_batch(
        "DROP TABLE orders; DROP TABLE events;
         CREATE TABLE c (id INTEGER PRIMARY KEY, flag INTEGER, price NUMERIC, code TEXT,
                         made DATE, amount DECIMAL(10,2), small INTEGER);
         INSERT INTO c VALUES (1, 1, '12.345', '17', '2024-05-06', 1.5, -128),
                              (2, 0, 7, NULL, NULL, NULL, NULL)",
    )
    .unwrap();
    desk.must(
        "config create -a credentials.json --source-db-auth-id shop --output-dir lake --sync-id s \
         --incremental-table main.c:id:integer --type-cast c:flag:boolean --decimal c:price:10,3 \
         --type-cast main.c:code:uint32 --type-cast c:made:text --type-cast c:amount:text \
         --type-cast c:small:int8",
    );
    desk.must("sync -a credentials.json --sync-id s");
    let found = reader.rows(&reader::folder(&desk.path("lake")), "main/c").unwrap();
    assert_eq!(
        found.types,
        ["int64", "bool", "decimal128(10, 3)", "uint32", "string", "string", "int8"]
    );
    assert_same(
        "c",
        found.rows,
        vec![
            row(&["1", "true", "12.345", "17", "2024-05-06", "1.5", "-128"]),
            row(&["2", "false", "7.000", "~", "~", "~", "~"]),
        ],
    );
}

#[test]
fn policies_make_columns_text() {
    let Some(bench) = Bench::new(
        "CREATE TABLE v (id integer NOT NULL, n numeric(6,2) NOT NULL, f double precision NOT NULL,
                         d date NOT NULL, t timestamptz NOT NULL);
         INSERT INTO v VALUES (1, 'NaN', 'NaN', 'infinity', '-infinity'),
                              (2, 1.50, 0.5, '2024-01-02', '2024-01-02 03:04:05Z')",
    ) else {
        return;
    };
    bench.create("--sync-id t --on-special-number text --on-infinite-time text");
    bench.sync_as("--sync-id t");
    let found = bench.look("public/v");
    assert_eq!(found.types, ["int32", "string", "double", "string", "string"]);
    assert_same(
        "v",
        found.rows,
        vec![
            row(&["1", "NaN", "nan", "infinity", "-infinity"]),
            row(&["2", "1.50", "0.5", "2024-01-02", "2024-01-02 03:04:05+00"]),
        ],
    );
    // NULL for each that is no number, in floats as well; floats keep theirs by
    // default, and a decimal has none to keep.
    for (policy, wanted, counted) in [("null", ["~", "~"], 2), ("nan", ["~", "nan"], 1)] {
        bench.create(&format!(
            "--sync-id {policy} --sub-path {policy} --on-special-number {policy}"
        ));
        let report = bench.sync_as(&format!("--sync-id {policy}"));
        let rows = bench.look(&format!("{policy}/public/v")).rows;
        let first = rows.iter().find(|row| row[0].as_deref() == Some("1")).unwrap();
        assert_eq!(first[1..3], row(&wanted)[..], "{policy}");
        let counters = report.table("v")["counters"].as_object().unwrap();
        let special: u64 = counters
            .iter()
            .filter(|(name, _)| name.contains("special") || name.contains("nan"))
            .map(|(_, count)| count.as_u64().unwrap())
            .sum();
        assert_eq!(special, counted, "{policy}: {counters:?}");
    }
}

#[test]
fn a_plan_reads_the_chosen_columns_only() {
    let Some(bench) = Bench::new("CREATE TABLE q (id integer, secret text)") else { return };
    bench.create("--columns public.q:id");
    let answer = bench.desk.run(&format!("plan {GLOBAL} --sync-id s --output json"));
    let report = Report::of(answer.code, &answer.stdout, answer.stderr);
    let sql = report.json["tables"][0]["sql"][0].as_str().unwrap();
    assert!(sql.contains("\"id\"") && !sql.contains("secret"), "{sql}");
}
