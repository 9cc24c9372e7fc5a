//! Tables as they are found, and files as they are opened.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::fs;

use support::{Database, connect};
use tidelake_connector::{ClockRequest, Connector, FencePurpose, LogPosition, TableFilter};
use tidelake_model::{CredentialInfo, ErrorKind, FenceMode, TableKind, TableName};
use tidelake_sqlite::{SqliteConnector, demo};
use tidelake_watermark::Fence;

#[tokio::test]
async fn tables_and_views_are_found_and_internals_are_not() {
    let database = Database::new(
        "CREATE TABLE plain (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT NOT NULL, w INT UNIQUE,
             twice INT GENERATED ALWAYS AS (w * 2) STORED, thrice INT AS (w * 3));
         CREATE TABLE keyed (b TEXT, a INT, c BLOB, PRIMARY KEY (a, b)) WITHOUT ROWID;
         CREATE TABLE strict (i INT, t TEXT, x ANY) STRICT;
         CREATE TABLE odd (rowid TEXT, _rowid_ TEXT, oid TEXT);
         CREATE VIEW seen AS SELECT id, v, w + 1 AS sum FROM plain;
         CREATE VIEW broken AS SELECT * FROM gone;
         CREATE VIRTUAL TABLE words USING fts5 (body);
         CREATE INDEX partial ON strict (i) WHERE i > 0;
         CREATE INDEX folded ON strict (t COLLATE NOCASE);
         INSERT INTO plain (v, w) VALUES ('a', 1), ('b', 2);
         INSERT INTO keyed VALUES ('x', 1, x'00');
         INSERT INTO odd VALUES ('mine', 'too', 'all');
         INSERT INTO words VALUES ('hello');",
    )
    .await;
    let tables = database.tables().await;
    let names: Vec<_> = tables.iter().map(|table| table.name.table.as_str()).collect();
    assert_eq!(names, ["keyed", "odd", "plain", "seen", "strict", "words"]);

    let plain = database.table("plain").await;
    assert_eq!(plain.key(), ["id"]);
    assert_eq!(plain.estimated_rows, Some(2));
    let facts: Vec<_> = plain
        .columns
        .iter()
        .map(|column| (column.name(), column.field.is_nullable(), column.indexed))
        .collect();
    assert_eq!(
        facts,
        [
            ("id", false, true),
            ("v", false, false),
            ("w", true, true),
            ("twice", true, false),
            ("thrice", true, false),
        ]
    );
    let rows = database.rows(&database.whole("plain").await).await.unwrap();
    assert_eq!(rows, [["1", "a", "1", "2", "3"], ["2", "b", "2", "4", "6"]]);

    let keyed = database.table("keyed").await;
    assert_eq!(keyed.key(), ["a", "b"]);
    assert_eq!(keyed.estimated_rows, None);
    assert!(keyed.column("a").unwrap().indexed && !keyed.column("b").unwrap().indexed);
    assert!(!keyed.column("a").unwrap().field.is_nullable());
    assert_eq!(database.rows(&database.whole("keyed").await).await.unwrap(), [["x", "1", "00"]]);

    let strict = database.table("strict").await;
    assert!(strict.columns.iter().all(|column| !column.indexed));
    let seen = database.table("seen").await;
    assert_eq!(seen.kind, TableKind::View);
    assert_eq!(seen.estimated_rows, None);
    let rows = database.rows(&database.whole("seen").await).await.unwrap();
    assert_eq!(rows, [["1", "a", "2"], ["2", "b", "3"]]);
    let odd = database.rows(&database.whole("odd").await).await.unwrap();
    assert_eq!(odd, [["mine", "too", "all"]]);
    let words = database.rows(&database.whole("words").await).await.unwrap();
    assert_eq!(words, [["hello"]]);
}

#[tokio::test]
async fn analysed_tables_say_how_many_rows_they_have() {
    let database = Database::new(
        "CREATE TABLE t (v INT); CREATE INDEX by_v ON t (v);
         INSERT INTO t VALUES (1), (2), (3); DELETE FROM t WHERE v = 1; ANALYZE;
         CREATE TABLE empty (v INT)",
    )
    .await;
    assert_eq!(database.table("t").await.estimated_rows, Some(2));
    assert_eq!(database.table("empty").await.estimated_rows, Some(0));
    let empty = database.batches(&database.whole("empty").await).await.unwrap();
    assert!(empty.is_empty());
}

#[tokio::test]
async fn names_of_any_kind_are_read() {
    let database = Database::new(
        "CREATE TABLE \"we\"\"ird : tab.le\" (\"select\" INT, \"ü 名\" TEXT, \"it's\" DATETIME, \"\"\"\" INT);
         CREATE INDEX \"in\"\"dex\" ON \"we\"\"ird : tab.le\" (\"it's\");
         INSERT INTO \"we\"\"ird : tab.le\" VALUES (1, 'a', '2026-11-30', 2);
         CREATE TABLE \"100%\" (a INT); CREATE TABLE \"\" (a INT);",
    )
    .await;
    let names: Vec<_> = database.tables().await.into_iter().map(|table| table.name.table).collect();
    assert_eq!(names, ["100%", "we\"ird : tab.le"]);
    let rows = database.rows(&database.whole("we\"ird : tab.le").await).await.unwrap();
    assert_eq!(rows, [["1", "a", "2026-11-30T00:00:00", "2"]]);
}

#[tokio::test]
async fn a_schema_that_is_not_main_holds_nothing() {
    let database = Database::new("CREATE TABLE t (v INT)").await;
    let filter = TableFilter { schemas: vec!["public".to_owned()], ..TableFilter::default() };
    assert!(database.source.tables(&filter).await.unwrap().is_empty());
    let mut read = database.whole("t").await;
    read.table = TableName::new("public", "t");
    assert_eq!(database.split(&read).await.err().unwrap().kind(), ErrorKind::NotFound);
    read.table = TableName::new("main", "T");
    assert_eq!(database.split(&read).await.err().unwrap().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn columns_are_checked_in_the_snapshot() {
    let database = Database::new("CREATE TABLE t (a INT NOT NULL, b INT)").await;
    let read = database.whole("t").await;
    for (change, named) in [
        ("ALTER TABLE t DROP COLUMN b", "\"b\""),
        ("ALTER TABLE t ADD COLUMN b TEXT", "\"b\""),
        ("DROP TABLE t; CREATE TABLE t (a INT, b INT)", "\"a\""),
    ] {
        database.execute(change);
        let error = database.split(&read).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Data, "{change}");
        assert!(error.message().contains(named), "{error:?}");
    }
}

#[tokio::test]
async fn files_that_are_no_database_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("text.db"), "this is no database, however long it is made to be".repeat(50))
        .unwrap();
    for (name, kind) in [
        ("missing.db", ErrorKind::NotFound),
        ("", ErrorKind::Configuration),
        ("text.db", ErrorKind::Configuration),
        ("text.db/inside", ErrorKind::NotFound),
    ] {
        let error = connect(serde_json::json!({ "filepath": path(name) })).await.err().unwrap();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(error.message().contains(folder.path().to_str().unwrap()), "{error:?}");
        assert!(error.hint().is_some());
    }
    assert!(!path("missing.db").exists());
    for info in [
        serde_json::json!({}),
        serde_json::json!({ "filepath": 5 }),
        serde_json::json!({ "filepath": "x", "password": "y" }),
    ] {
        let error = connect(info).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    }
    // A file of no bytes is a database without tables.
    fs::write(path("empty.db"), "").unwrap();
    let source = connect(serde_json::json!({ "filepath": path("empty.db") })).await.unwrap();
    assert!(source.tables(&TableFilter::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_file_that_is_deleted_or_cut_off_is_an_error() {
    let database = Database::new("PRAGMA journal_mode = DELETE; CREATE TABLE t (v TEXT)").await;
    database.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO t SELECT printf('%.*c', 200, 'x') FROM n",
    );
    let read = database.whole("t").await;
    let slices = database.split_by(&read, 1).await.unwrap();
    let file = fs::OpenOptions::new().write(true).open(&database.path).unwrap();
    file.set_len(100_000).unwrap();
    let reading = database.source.read(&slices.slices[0]).await.unwrap();
    let rows = futures::TryStreamExt::try_collect::<Vec<_>>(reading.batches).await;
    assert!(matches!(rows.unwrap_err().kind(), ErrorKind::Data | ErrorKind::Unavailable));

    fs::remove_file(&database.path).unwrap();
    let error = database.split(&read).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("data.db"));
}

#[tokio::test]
async fn the_clock_is_in_utc_and_open() {
    let database = Database::new("CREATE TABLE t (v INT)").await;
    let request = ClockRequest {
        table: TableName::new("main", "t"),
        purpose: FencePurpose::Time,
        mode: FenceMode::Require,
        wait: std::time::Duration::ZERO,
        ignore_users: vec![],
        log: LogPosition::Unasked,
    };
    let reading = database.source.clock(&request).await.unwrap();
    assert_eq!((reading.zone.as_str(), reading.fence), ("UTC", Fence::Open));
    assert!(reading.fence_note.unwrap().contains("serialised"));
}

#[tokio::test]
async fn the_credential_has_a_schema_and_no_publisher() {
    let schema = SqliteConnector.config_schema();
    assert_eq!(schema["required"], serde_json::json!(["filepath"]));
    assert_eq!(schema["additionalProperties"], serde_json::json!(false));
    let info = CredentialInfo::new(serde_json::json!({}));
    assert!(SqliteConnector.publisher(&info).await.unwrap().is_none());
    assert_eq!(SqliteConnector.name(), "sqlite");
}

#[tokio::test]
async fn the_shop_grows_in_the_past() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    demo::create_shop(&path).unwrap();
    assert_eq!(demo::create_shop(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);

    let source = connect(serde_json::json!({ "filepath": path })).await.unwrap();
    let tables = source.tables(&TableFilter::default()).await.unwrap();
    let names: Vec<_> = tables.iter().map(|table| table.name.to_string()).collect();
    assert_eq!(names, ["main.customers", "main.events", "main.orders"]);
    assert!(tables[2].column("placed_at").unwrap().indexed);
    for name in demo::INCREMENTAL_TABLES {
        let table = name.split(':').next().unwrap();
        assert!(names.iter().any(|found| found == table));
    }
    let reader = rusqlite::Connection::open(&path).unwrap();
    let last = || -> (String, i64, bool) {
        let statement = "SELECT max(placed_at), count(*),
            max(placed_at) < strftime('%Y-%m-%d %H:%M:%f', 'now') FROM orders";
        reader.query_row(statement, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
    };
    let mut before = last();
    for _ in 0..20 {
        assert_eq!(demo::add_rows(&path).unwrap(), 85);
        let after = last();
        assert!(after.0 > before.0 && after.1 == before.1 + 25 && after.2, "{before:?} {after:?}");
        before = after;
    }
    let missing = demo::add_rows(&folder.path().join("none.db")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn two_thousand_columns_are_read() {
    for count in [1_999, 2_000] {
        let names: Vec<_> = (0..count).map(|number| format!("c{number} DATETIME")).collect();
        let database = Database::new(&format!(
            "CREATE TABLE wide ({}); INSERT INTO wide (c0, c{}) VALUES ('2026-11-30', 'soon')",
            names.join(", "),
            count - 1
        ))
        .await;
        let read = database.whole("wide").await;
        assert_eq!(read.columns.len(), count);
        // A statement can select no more, so the row's number has no place.
        let error = database.rows(&read).await.unwrap_err();
        let place = if count == 1_999 { "(rowid 1)" } else { "(row 1 of the read)" };
        assert!(error.message().contains(place), "{error:?}");
        database.execute(&format!("UPDATE wide SET c{} = NULL", count - 1));
        let rows = database.rows(&read).await.unwrap();
        assert_eq!((rows[0].len(), rows[0][0].as_str()), (count, "2026-11-30T00:00:00"));
    }
}

#[tokio::test]
async fn tables_without_row_numbers_and_shadow_tables() {
    let database = Database::new(
        "CREATE TABLE keyed (a INT PRIMARY KEY, b INT) WITHOUT ROWID;
         INSERT INTO keyed VALUES (1, 'x');
         CREATE TABLE \"order\" (\"select\" INT, \"from\" TEXT); CREATE TABLE \"main\" (a INT);
         CREATE TABLE \"sqlitefoo\" (a INT);
         CREATE VIRTUAL TABLE boxes USING rtree (id, low, high);
         CREATE VIRTUAL TABLE words USING fts5 (title, body, tokenize = 'porter');
         INSERT INTO words VALUES ('a', 'b'); INSERT INTO boxes VALUES (1, 0.5, 1.5);",
    )
    .await;
    let names: Vec<_> = database.tables().await.into_iter().map(|table| table.name.table).collect();
    assert_eq!(names, ["boxes", "keyed", "main", "order", "sqlitefoo", "words"]);
    let error = database.rows(&database.whole("keyed").await).await.unwrap_err();
    assert!(error.message().contains("(row 1 of the read)"), "{error:?}");
    for (table, row) in [("words", vec!["a", "b"]), ("boxes", vec!["1", "0.5", "1.5"])] {
        assert_eq!(database.rows(&database.whole(table).await).await.unwrap(), [row]);
    }
}
