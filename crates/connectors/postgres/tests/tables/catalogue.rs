//! Which tables and columns there are.

use arrow::array::AsArray;
use serde_json::json;
use tidelake_connector::{Connector, SplitRequest, TableFilter};
use tidelake_model::{ErrorKind, ReadMethod, TableKind};
use tidelake_postgres::Postgres;

use crate::common::{Database, collect, numbers, split, table, whole};

#[tokio::test]
async fn columns_that_are_generated_dropped_or_hidden() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, b text, c int, \
                 twice int GENERATED ALWAYS AS (c * 2) STORED); \
             INSERT INTO t (a, b, c) VALUES (1, 'one', 1), (2, 'two', 2); \
             ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD COLUMN late text DEFAULT 'late'; \
             ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN a date; \
             INSERT INTO t (c, a) VALUES (3, '2026-11-30'); \
             CREATE UNLOGGED TABLE fast (id int); INSERT INTO fast VALUES (1); \
             CREATE TABLE empty (id int, v text[]); \
             CREATE TABLE nothing (); INSERT INTO nothing DEFAULT VALUES; \
             CREATE TEMP TABLE passing (id int); \
             CREATE SEQUENCE counting; CREATE TYPE pair AS (a int);",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let tables = source.tables(&TableFilter::default()).await.unwrap();
    let names: Vec<_> = tables.iter().map(|table| table.name.table.as_str()).collect();
    assert_eq!(names, ["empty", "fast", "nothing", "t"]);
    assert!(tables.iter().all(|table| table.kind == TableKind::Table));
    // One without a column is there to be refused, or left out, by its name.
    assert!(tables[2].columns.is_empty());

    let found = table(&source, "t").await;
    let names: Vec<_> = found.columns.iter().map(|column| column.name()).collect();
    assert_eq!(names, ["id", "c", "twice", "late", "a"]);
    let batches = collect(&source, &split(&source, whole(&found), 1).await).await.unwrap();
    assert_eq!(numbers(&batches, "id"), [1, 2, 3]);
    assert_eq!(numbers(&batches, "twice"), [2, 4, 6]);
    let late = batches[0].column(3).as_string::<i32>();
    assert!(late.iter().all(|text| text == Some("late")));

    let found = table(&source, "empty").await;
    for degree in [1, 4] {
        let slices = split(&source, whole(&found), degree).await;
        let batches = collect(&source, &slices).await.unwrap();
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 0);
        assert_eq!(batches[0].schema(), found.schema());
    }
    let found = table(&source, "fast").await;
    let batches = collect(&source, &split(&source, whole(&found), 1).await).await.unwrap();
    assert_eq!(numbers(&batches, "id"), [1]);
    database.drop_now().await;
}

#[tokio::test]
async fn a_table_without_privileges_is_an_error_of_its_own() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let role = format!("reader{}", database.name.replace(' ', ""));
    client
        .batch_execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'hunter2'; CREATE SCHEMA closed; \
             CREATE TABLE open (id int); CREATE TABLE shut (id int); CREATE VIEW through AS SELECT * FROM shut; \
             CREATE VIEW shut_view AS SELECT * FROM open; CREATE TABLE closed.t (id int); \
             INSERT INTO open VALUES (1); INSERT INTO shut VALUES (2); \
             GRANT SELECT ON open, through, closed.t TO {role};"
        ))
        .await
        .unwrap();
    let info = database.info_with(json!({"username": role, "password": "hunter2"}));
    let source = Postgres.source(&info).await.unwrap();
    // All of them are in the catalogue, so that none is left out without a word.
    let tables = source.tables(&TableFilter::default()).await.unwrap();
    let names: Vec<_> = tables.iter().map(|table| table.name.to_string()).collect();
    assert_eq!(
        names,
        ["closed.t", "public.open", "public.shut", "public.shut_view", "public.through"]
    );
    for (found, may) in tables.iter().zip([false, true, false, false, true]) {
        let request =
            SplitRequest { read: whole(found), degree: 2, method: ReadMethod::Auto, key: None };
        match source.split(&request).await {
            Ok(slices) => {
                assert!(may, "{}", found.name);
                assert_eq!(collect(&source, &slices).await.unwrap()[0].num_rows(), 1);
            }
            Err(error) => {
                assert!(!may, "{error:?}");
                assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
                assert!(error.chain().contains(&found.name.to_string()), "{}", error.chain());
                assert!(error.hint().unwrap().contains("grant"), "{error:?}");
            }
        }
    }
    drop(source);
    forget(database, &client, &role).await;
}

#[tokio::test]
async fn columns_that_were_granted_are_read_and_no_others() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let role = format!("picker{}", database.name.replace(' ', ""));
    client
        .batch_execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'hunter2'; \
             CREATE TABLE people (id int, name text, salary int); \
             INSERT INTO people SELECT n, 'x', n FROM generate_series(1, 400000) n; \
             CREATE TABLE days (id int, secret int) PARTITION BY RANGE (id); \
             CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (0) TO (10); \
             INSERT INTO days VALUES (1, 2); ANALYZE; \
             GRANT SELECT (id, name) ON people TO {role}; GRANT SELECT (id) ON days TO {role};"
        ))
        .await
        .unwrap();
    let info = database.info_with(json!({"username": role, "password": "hunter2"}));
    let source = Postgres.source(&info).await.unwrap();
    for (name, granted, rows) in [("people", 2, 400_000), ("days", 1, 1)] {
        let found = table(&source, name).await;
        let mut read = whole(&found);
        let method = ReadMethod::Auto;
        let request = SplitRequest { read: read.clone(), degree: 4, method, key: None };
        let slices = source.split(&request).await;
        let denied = match slices {
            Err(error) => error,
            Ok(slices) => collect(&source, &slices).await.unwrap_err(),
        };
        assert_eq!(denied.kind(), ErrorKind::Denied, "{denied:?}");
        read.columns.truncate(granted);
        let slices = source.split(&SplitRequest { read, ..request }).await.unwrap();
        let batches = collect(&source, &slices).await.unwrap();
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), rows, "{name}");
    }
    drop(source);
    forget(database, &client, &role).await;
}

#[tokio::test]
async fn a_table_that_is_written_anew_behind_the_snapshot_is_not_taken_for_empty() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let role = format!("late{}", database.name.replace(' ', ""));
    client
        .batch_execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'hunter2'; CREATE TABLE moved (id int, other int); \
             INSERT INTO moved VALUES (1, 2); GRANT SELECT (id) ON moved TO {role};"
        ))
        .await
        .unwrap();
    let lock = "BEGIN; LOCK TABLE moved IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(lock).await.unwrap();
    let info = database.info_with(json!({"username": role, "password": "hunter2"}));
    let source = Postgres.source(&info).await.unwrap();
    let mut read = whole(&table(&source, "moved").await);
    read.columns.truncate(1);
    let request = SplitRequest { read, degree: 1, method: ReadMethod::Auto, key: None };
    let (taken, ()) = tokio::join!(source.split(&request), async {
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        let rewrite = "ALTER TABLE moved ALTER other TYPE bigint; COMMIT";
        client.batch_execute(rewrite).await.unwrap();
    });
    // The first snapshot was given up for another.
    let batches = collect(&source, &taken.unwrap()).await.unwrap();
    assert_eq!(numbers(&batches, "id"), [1]);
    drop(source);
    forget(database, &client, &role).await;
}

/// Drops the database, and the role that had rights in it.
async fn forget(database: Database, client: &tokio_postgres::Client, role: &str) {
    client.batch_execute(&format!("DROP OWNED BY {role}")).await.unwrap();
    database.drop_now().await;
    let admin = crate::common::connect("postgres").await;
    admin.batch_execute(&format!("DROP ROLE {role}")).await.unwrap();
}
