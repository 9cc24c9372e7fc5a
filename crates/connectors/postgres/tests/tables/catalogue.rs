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
    client.batch_execute(&format!("DROP OWNED BY {role}")).await.unwrap();
    database.drop_now().await;
    let admin = crate::common::connect("postgres").await;
    admin.batch_execute(&format!("DROP ROLE {role}")).await.unwrap();
}
