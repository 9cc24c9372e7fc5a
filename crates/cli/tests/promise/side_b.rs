//! Side B's command lines, word for word but for the program's name.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bench::{Bench, Report};
use crate::database::{Database, Session};
use crate::terminal::file;

/// As TPC-H has them, small. Days count back from today; orders and line items
/// have some of today and of tomorrow, and none of the two days before.
const TPCH: &str = "
    CREATE SCHEMA tpch_1_incremental;
    SET search_path = tpch_1_incremental;
    CREATE TABLE region (r_regionkey integer PRIMARY KEY, r_name char(25) NOT NULL,
        r_comment varchar(152));
    INSERT INTO region SELECT i, (ARRAY['AFRICA','AMERICA','ASIA','EUROPE','MIDDLE EAST'])[i + 1],
        'final accounts ' || i FROM generate_series(0, 4) AS i;
    CREATE TABLE nation (n_nationkey integer PRIMARY KEY, n_name char(25) NOT NULL,
        n_regionkey integer NOT NULL REFERENCES region, n_comment varchar(152));
    INSERT INTO nation SELECT i, 'NATION ' || i, i % 5, NULL FROM generate_series(0, 24) AS i;
    CREATE TABLE supplier (s_suppkey integer PRIMARY KEY, s_name char(25) NOT NULL,
        s_address varchar(40) NOT NULL, s_nationkey integer NOT NULL REFERENCES nation,
        s_phone char(15) NOT NULL, s_acctbal numeric(15,2) NOT NULL, s_comment varchar(101) NOT NULL);
    INSERT INTO supplier SELECT i, 'Supplier#' || lpad(i::text, 9, '0'), 'street ' || i, i % 25,
        '10-' || i, i * 100.01 - 500, 'quick' FROM generate_series(1, 10) AS i;
    CREATE TABLE customer (c_custkey integer PRIMARY KEY, c_name varchar(25) NOT NULL,
        c_address varchar(40) NOT NULL, c_nationkey integer NOT NULL REFERENCES nation,
        c_phone char(15) NOT NULL, c_acctbal numeric(15,2) NOT NULL, c_mktsegment char(10) NOT NULL,
        c_comment varchar(117) NOT NULL);
    INSERT INTO customer SELECT i, 'Customer#' || i, 'avenue ' || i, i % 25, '11-' || i,
        i * 10.25 - 100, 'BUILDING', 'even' FROM generate_series(1, 150) AS i;
    CREATE TABLE part (p_partkey integer PRIMARY KEY, p_name varchar(55) NOT NULL,
        p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL,
        p_size integer NOT NULL, p_container char(10) NOT NULL, p_retailprice numeric(15,2) NOT NULL,
        p_comment varchar(23) NOT NULL);
    INSERT INTO part SELECT i, 'part ' || i, 'Manufacturer#1', 'Brand#' || i % 5, 'TIN', i % 50,
        'BOX', 900 + i * 0.1, 'c' FROM generate_series(1, 200) AS i;
    CREATE TABLE partsupp (ps_partkey integer NOT NULL REFERENCES part,
        ps_suppkey integer NOT NULL REFERENCES supplier, ps_availqty integer NOT NULL,
        ps_supplycost numeric(15,2) NOT NULL, ps_comment varchar(199) NOT NULL,
        PRIMARY KEY (ps_partkey, ps_suppkey));
    INSERT INTO partsupp SELECT i, i % 10 + 1, i * 3, i * 1.5, 'd' FROM generate_series(1, 200) AS i;
    CREATE TABLE orders (o_orderkey integer PRIMARY KEY, o_custkey integer NOT NULL,
        o_orderstatus char(1) NOT NULL, o_totalprice numeric(15,2) NOT NULL,
        o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL,
        o_shippriority integer NOT NULL, o_comment varchar(79) NOT NULL);
    CREATE INDEX ON orders (o_orderdate);
    CREATE TABLE lineitem (l_orderkey integer NOT NULL, l_partkey integer NOT NULL,
        l_suppkey integer NOT NULL, l_linenumber integer NOT NULL, l_quantity numeric(15,2) NOT NULL,
        l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL,
        l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL,
        l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL,
        l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL,
        PRIMARY KEY (l_orderkey, l_linenumber));
    CREATE INDEX ON lineitem (l_shipdate);
    CREATE FUNCTION order_of(number integer, days_ago integer) RETURNS void AS $$
        INSERT INTO orders VALUES (number, number % 150 + 1, 'O', number * 7.77,
            current_date - days_ago, '1-URGENT', 'Clerk#' || number, 0, 'order ' || number);
        INSERT INTO lineitem SELECT number, number % 200 + 1, number % 10 + 1, line, line * 2,
            number * 1.11, 0.05, 0.08, 'N', 'O', current_date - days_ago, current_date,
            current_date, 'DELIVER IN PERSON', 'TRUCK', 'line ' || line
            FROM generate_series(1, 3) AS line
    $$ LANGUAGE sql SET search_path = tpch_1_incremental;
    SELECT order_of(i, 5 + i % 40) FROM generate_series(1, 600) AS i;
    SELECT order_of(i, 0) FROM generate_series(601, 610) AS i;
    SELECT order_of(i, -1) FROM generate_series(611, 615) AS i;
    ANALYZE;
";

const WITHOUT_CURSOR: [&str; 6] = ["region", "nation", "supplier", "customer", "part", "partsupp"];

/// A database whose name the command line gives; only one test at a time may
/// have it.
struct Named {
    bench: Bench,
    _turn: Session,
}

impl Named {
    fn make(name: &str, sql: &str) -> Option<Self> {
        let here = Database::admin_session()?;
        here.run(&format!("SELECT pg_advisory_lock(hashtext('{name}'))"));
        here.run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        let database = Database::make_named(name)?;
        Some(Self { bench: Bench::of(database, sql)?, _turn: here })
    }
}

/// The latest day that may be read: yesterday, an hour ago.
fn newest_day(bench: &Bench) -> String {
    bench.database.value(
        "SELECT ((now() AT TIME ZONE current_setting('TimeZone')) \
                          - interval '3600.25 s')::date - 1",
    )
}

fn entities(manifest: &Value) -> Vec<(String, BTreeSet<String>)> {
    let entities = manifest["entities"].as_array().unwrap().iter();
    entities
        .map(|entity| {
            let name = entity["entityName"].as_str().unwrap().to_owned();
            let partitions = entity["dataPartitions"].as_array().unwrap().iter();
            let location = |partition: &Value| partition["location"].as_str().unwrap().to_owned();
            (name, partitions.map(location).collect())
        })
        .collect()
}

#[test]
fn tpch_by_day_with_a_lag_into_a_bucket() {
    let Some(named) = Named::make("tpch", TPCH) else { return };
    let mut bench = named.bench;
    bench.wait_for_a_quiet_day();
    bench.credential("lxdb_mssql", file(&bench.desk.path("lxdb.db")));
    bench.credential("source_postgres", bench.database.credential());
    let Some(()) = bench.use_bucket("s3_01") else { return };
    let created = bench.desk.must(
        "config create -a credentials.json --lxdb_auth_id lxdb_mssql \
         --source_db_auth_id source_postgres --source_db_name tpch \
         --source_schema_name tpch_1_incremental --target_storage_id s3_01 \
         --incremental_table 'tpch_1_incremental.orders:o_orderdate:date' \
         --incremental_table 'tpch_1_incremental.lineitem:l_shipdate:date' \
         --incremental_safety_lag 3600 --generate_metadata --n_jobs 4 --fastbcp_p 2",
    );
    let sync_id = created.trim();
    assert!(sync_id.starts_with("sync-"), "{created}");

    let line = format!("sync -a credentials.json --lxdb_auth_id lxdb_mssql --sync_id {sync_id}");
    let day = newest_day(&bench);
    let said = bench.desk.run(&format!("{line} --log_level DEBUG"));
    assert_eq!(said.code, 0, "{}", said.transcript());
    let below = |column: &str| format!("{column} <= '{day}'");
    let folder = |table: &str| format!("tpch_1_incremental/{table}");
    let same = |bench: &Bench, table: &str, condition: &str| {
        bench.same_in(&folder(table), "tpch_1_incremental", table, condition);
    };
    same(&bench, "orders", &below("o_orderdate"));
    same(&bench, "lineitem", &below("l_shipdate"));
    assert_eq!(bench.look(&folder("orders")).rows.len(), 600);
    for table in WITHOUT_CURSOR {
        same(&bench, table, "true");
    }
    // Each window, its statement and the fence are told.
    for part in [
        format!("table=tpch_1_incremental.orders window=\"(…, {day}]\""),
        format!("table=tpch_1_incremental.lineitem window=\"(…, {day}]\""),
        format!("\"o_orderdate\" <= '{day}'::date"),
        format!("\"l_shipdate\" <= '{day}'::date"),
        "fence=\"".to_owned(),
        "safety_lag=3600".to_owned(),
        "source_clock=\"".to_owned(),
    ] {
        assert!(said.stderr.contains(&part), "{part} in {}", said.transcript());
    }

    // Days that nobody had: below the watermark, above everything exported.
    bench
        .database
        .run("SELECT tpch_1_incremental.order_of(i, 2) FROM generate_series(701, 707) AS i");
    bench
        .database
        .run("SELECT tpch_1_incremental.order_of(i, 0) FROM generate_series(801, 803) AS i");
    bench.database.run("DELETE FROM tpch_1_incremental.partsupp WHERE ps_partkey > 100");
    let first = bench.look(&folder("orders"));
    let answer = bench.desk.run(&format!("{line} --output json"));
    let second = Report::of(answer.code, &answer.stdout, answer.stderr);
    assert_eq!(second.code, 0, "{second:?}");
    assert_eq!(second.rows("orders"), 7, "{second:?}");
    assert_eq!(second.rows("lineitem"), 21);
    assert!(second.table("orders")["window"].as_str().unwrap().contains("gap"), "{second:?}");
    same(&bench, "orders", &below("o_orderdate"));
    same(&bench, "lineitem", &below("l_shipdate"));
    for table in WITHOUT_CURSOR {
        assert_eq!(second.table(table)["mode"], "full");
        same(&bench, table, "true");
    }
    let files = bench.look(&folder("orders")).files;
    assert!(first.files.iter().all(|file| files.contains(file)), "what was there stays");

    // The watermark is the window's end, whether or not a row reached it.
    let stored = bench.desk.must(&format!(
        "watermarks list -a credentials.json --lxdb_auth_id lxdb_mssql --sync_id {sync_id} \
         --output json"
    ));
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let stored = stored.as_array().unwrap();
    assert_eq!(stored.len(), 2, "{stored:?}");
    for record in stored {
        assert_eq!(record["progress"]["watermark"]["value"], day.as_str(), "{record}");
        let seen = bench.database.value("SELECT current_date - 2");
        assert_eq!(record["progress"]["max_seen"]["value"], seen.as_str(), "{record}");
    }

    // The Common Data Model files name exactly what counts.
    let document = |place: &str, key: &str| bench.reader.document(&bench.lake, place, key);
    let manifest = document("tpch_1_incremental", "manifest.cdm.json");
    assert_eq!(manifest["manifestName"], "tpch_1_incremental");
    let entities = entities(&manifest);
    assert_eq!(entities.len(), 8, "{manifest}");
    for (table, partitions) in entities {
        let live = bench.look(&folder(&table)).files;
        let live: BTreeSet<_> = live.iter().map(|file| format!("{table}/{file}")).collect();
        assert_eq!(partitions, live);
        let own = document(&folder(&table), &format!("{table}.cdm.json"));
        let attributes = own["definitions"][0]["hasAttributes"].as_array().unwrap();
        assert!(!attributes.is_empty(), "{own}");
    }
    let orders = document(&folder("orders"), "orders.cdm.json");
    let attributes = orders["definitions"][0]["hasAttributes"].as_array().unwrap();
    let price = attributes.iter().find(|found| found["name"] == "o_totalprice").unwrap();
    assert_eq!(price["dataType"], "decimal", "{price}");
    let comment = attributes.iter().find(|found| found["name"] == "o_comment").unwrap();
    assert_eq!(comment["maximumLength"], 79, "{comment}");
    let global = document("", "manifest.cdm.json");
    let definition = global["subManifests"][0]["definition"].as_str().unwrap();
    assert!(definition.starts_with("tpch_1_incremental/"), "{global}");
}

const EVENTS: &str = "
    CREATE TABLE page_views (view_id bigserial PRIMARY KEY, event_time timestamp NOT NULL, url text);
    CREATE TABLE clicks (click_id bigserial PRIMARY KEY, event_time timestamptz NOT NULL, target text);
    CREATE TABLE purchases (purchase_id bigserial PRIMARY KEY, created_at timestamp(3) NOT NULL,
        amount numeric(12,2) NOT NULL);
    INSERT INTO page_views (event_time, url)
        SELECT now() - i * interval '1 min', '/p/' || i FROM generate_series(60, 400) AS i;
    INSERT INTO clicks (event_time, target)
        SELECT now() - i * interval '1 min', 'button ' || i FROM generate_series(60, 300) AS i;
    INSERT INTO purchases (created_at, amount)
        SELECT now() - i * interval '1 min', i * 9.99 FROM generate_series(60, 200) AS i;
    INSERT INTO page_views (event_time, url) VALUES (now(), 'too new');
    ANALYZE;
";

#[test]
fn event_streams_below_a_sub_path() {
    let Some(mut bench) = Bench::new(EVENTS) else { return };
    bench.credential("lxdb_sqlite", file(&bench.desk.path("lxdb.db")));
    bench.credential("source_postgres", bench.database.credential());
    let Some(()) = bench.use_bucket("s3_01") else { return };
    let created = bench.desk.must(
        "config create -a credentials.json --lxdb_auth_id lxdb_sqlite \
         --source_db_auth_id source_postgres --source_schema_name public \
         --target_storage_id s3_01 --sub_path production/events \
         --incremental_table 'public.page_views:event_time:datetime' \
         --incremental_table 'public.clicks:event_time:datetime' \
         --incremental_table 'public.purchases:created_at:datetime' \
         --incremental_safety_lag 300 --n_jobs 8 --fastbcp_p 4",
    );
    let line = format!(
        "sync -a credentials.json --lxdb_auth_id lxdb_sqlite --sync_id {} --output json",
        created.trim()
    );
    let tables =
        [("page_views", "event_time"), ("clicks", "event_time"), ("purchases", "created_at")];
    let sync = || {
        let answer = bench.desk.run(&line);
        let report = Report::of(answer.code, &answer.stdout, answer.stderr);
        assert_eq!(report.code, 0, "{report:?}");
        for (table, column) in tables {
            let folder = format!("production/events/public/{table}");
            bench.same_in(
                &folder,
                "public",
                table,
                &format!("{column} <= now() - interval '5 min'"),
            );
        }
        report
    };
    let first = sync();
    assert_eq!(first.rows("page_views"), 341);
    let second = sync();
    for (table, _) in tables {
        assert_eq!(second.rows(table), 0, "{second:?}");
        assert_eq!(second.table(table)["files"], 0);
    }
    bench.database.run(
        "INSERT INTO page_views (event_time, url) VALUES (now() - interval '6 min', 'late');
         INSERT INTO clicks (event_time, target) VALUES (now() - interval '301 s', 'late');
         INSERT INTO purchases (created_at, amount) VALUES (now(), 1)",
    );
    let third = sync();
    assert_eq!(tables.map(|(table, _)| third.rows(table)), [1, 1, 0], "{third:?}");
}

#[test]
fn the_two_halves_publish_into_tables() {
    let Some(mut bench) = Bench::new(EVENTS) else { return };
    let Some(warehouse) = Database::make() else { return };
    bench.credential("lxdb_sqlite", file(&bench.desk.path("lxdb.db")));
    bench.credential("source_postgres", bench.database.credential());
    bench.credential("warehouse", warehouse.credential());
    let created = bench.desk.must(
        "config create -a credentials.json --lxdb_auth_id lxdb_sqlite \
         --source_db_auth_id source_postgres --source_schema_name public --output_dir lake \
         --incremental_table 'public.page_views:event_time:datetime' \
         --incremental_table 'public.clicks:event_time:datetime' \
         --publish_target warehouse --publish_method internal \
         --publish_schema_pattern 'raw_{schema}' --publish_table_pattern 'ext_{table}' \
         --incremental_safety_lag 60 --n_jobs 4",
    );
    let id = created.trim();
    let half = |name: &str| {
        let answer = bench.desk.run(&format!(
            "{name} -a credentials.json --lxdb_auth_id lxdb_sqlite --sync_id {id} --output json"
        ));
        let report = Report::of(answer.code, &answer.stdout, answer.stderr);
        assert_eq!(report.code, 0, "{report:?}");
        report
    };
    let published = |table: &str| {
        let name = format!("raw_public.ext_{table}");
        let exists = warehouse.rows(&format!("SELECT to_regclass('{name}')"))[0][0].is_some();
        if exists {
            warehouse.value(&format!("SELECT count(*) FROM {name}"))
        } else {
            "none".into()
        }
    };
    let exported = half("sync[export]");
    assert_eq!(exported.rows("page_views"), 341);
    assert_eq!(published("page_views"), "none", "exported is not published");
    assert_eq!(exported.watermark("page_views"), "", "the watermark waits for the publish");
    // Nothing new is exported while something waits.
    bench.database.run("INSERT INTO clicks (event_time) VALUES (now() - interval '2 min')");
    let again = half("sync[export]");
    assert_eq!(again.rows("clicks"), 0, "{again:?}");
    let done = half("sync[publish]");
    assert_ne!(done.watermark("page_views"), "", "{done:?}");
    assert_eq!(published("page_views"), "341");
    assert_eq!(published("clicks"), "241");
    assert_eq!(published("purchases"), "141");
    half("sync[publish]");
    assert_eq!(published("clicks"), "241", "a second publish loads nothing again");
    half("sync[export]");
    half("sync[publish]");
    assert_eq!(published("clicks"), "242");
    assert_eq!(published("page_views"), "341");
    assert_eq!(published("purchases"), "141", "a full table is replaced");
    let runs = warehouse.value("SELECT count(*) FROM raw_public._tidelake_loads");
    assert!(runs.parse::<u32>().unwrap() >= 4, "{runs}");
    let sum = "SELECT sum(view_id)::text || md5(string_agg(url, ',' ORDER BY view_id)) FROM ";
    let below = "public.page_views WHERE url <> 'too new'";
    assert_eq!(
        warehouse.value(&format!("{sum} raw_public.ext_page_views")),
        bench.database.value(&format!("{sum} {below}"))
    );
    bench.same("clicks", "true");
}
