//! Transactions in flight.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::Database;
use serde_json::json;
use tidelake_connector::{
    ClockReading, ClockRequest, Connector, FencePurpose, LogPosition, Source,
};
use tidelake_model::{ErrorKind, FenceMode, NoticeCode, TableName};
use tidelake_postgres::Postgres;
use tidelake_watermark::Fence;

fn request(table: &str, purpose: FencePurpose) -> ClockRequest {
    ClockRequest {
        table: TableName::new("public", table),
        purpose,
        mode: FenceMode::Auto,
        wait: Duration::ZERO,
        ignore_users: vec![],
        log: LogPosition::Unasked,
    }
}

async fn clock(source: &Arc<dyn Source>, table: &str, purpose: FencePurpose) -> ClockReading {
    source.clock(&request(table, purpose)).await.unwrap()
}

fn told(reading: &ClockReading, code: NoticeCode) -> String {
    let notice = reading.notices.iter().find(|notice| notice.code == code);
    notice.unwrap_or_else(|| panic!("{:?}", reading.notices)).message.clone()
}

#[tokio::test]
async fn a_transaction_that_only_read_holds_the_time_fence() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute("CREATE TABLE t (id int, at timestamptz)").await.unwrap();
    let source = database.source().await;
    assert_eq!(clock(&source, "t", FencePurpose::Time).await.fence, Fence::Open);
    client.batch_execute("BEGIN; SELECT now()").await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let reading = clock(&source, "t", FencePurpose::Time).await;
    let Fence::Before(instant) = reading.fence else { panic!("{:?}", reading.fence) };
    assert!(told(&reading, NoticeCode::FenceLowered).contains("process"));
    // Its stamp is the instant of the fence, so nothing below it can come.
    client.batch_execute("INSERT INTO t VALUES (1, now()); COMMIT").await.unwrap();
    let row = client
        .query_one("SELECT (extract(epoch FROM at) * 1000000)::int8 FROM t", &[])
        .await
        .unwrap();
    assert_eq!(i128::from(row.get::<_, i64>(0)) * 1000, instant);
    database.drop_now().await;
}

#[tokio::test]
async fn readers_do_not_hold_the_fence_and_publishers_do() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute("CREATE TABLE t (id int, at timestamptz)").await.unwrap();
    let source = database.source().await;
    let other = database.source().await;
    let named =
        Postgres.source(&database.info_with(json!({"application_name": "my app"}))).await.unwrap();
    let table = common::table(&source, "t").await;
    let mut held = vec![];
    for reader in [&source, &other, &named] {
        held.push(common::split(reader, common::whole(&table), 1).await);
    }
    // A reader of another process under another name is not known as one.
    assert!(matches!(clock(&source, "t", FencePurpose::Time).await.fence, Fence::Before(_)));
    held.pop();
    for _ in 0..100 {
        if clock(&source, "t", FencePurpose::Time).await.fence == Fence::Open {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(clock(&source, "t", FencePurpose::Time).await.fence, Fence::Open);
    let writer = database.client().await;
    writer
        .batch_execute("SET application_name = 'tidelake publisher'; BEGIN; SELECT 1")
        .await
        .unwrap();
    assert!(matches!(clock(&source, "t", FencePurpose::Time).await.fence, Fence::Before(_)));
    // The name alone does not excuse a transaction that has written.
    writer
        .batch_execute("SET application_name = 'tidelake reader'; INSERT INTO t VALUES (1, now())")
        .await
        .unwrap();
    assert!(matches!(clock(&source, "t", FencePurpose::Time).await.fence, Fence::Before(_)));
    drop(held);
    database.drop_now().await;
}

#[tokio::test]
async fn a_prepared_writer_closes_both_fences() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute("CREATE TABLE t (id int, at timestamptz); CREATE TABLE elsewhere (id int)")
        .await
        .unwrap();
    let source = database.source().await;
    let gid = format!("it's {}", database.name).replace('\'', "''");
    client
        .batch_execute(&format!(
            "BEGIN; INSERT INTO t VALUES (1, now()); PREPARE TRANSACTION '{gid}'"
        ))
        .await
        .unwrap();
    for purpose in [FencePurpose::Time, FencePurpose::Identifier] {
        let reading = clock(&source, "t", purpose.clone()).await;
        assert_eq!(reading.fence, Fence::Closed);
        assert!(told(&reading, NoticeCode::FenceClosed).contains("it's"));
        assert_eq!(clock(&source, "elsewhere", purpose.clone()).await.fence, Fence::Open);
        let required = ClockRequest { mode: FenceMode::Require, ..request("t", purpose) };
        let error = source.clock(&required).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    client.batch_execute(&format!("COMMIT PREPARED '{gid}'")).await.unwrap();
    for purpose in [FencePurpose::Time, FencePurpose::Identifier] {
        assert_eq!(clock(&source, "t", purpose).await.fence, Fence::Open);
    }
    database.drop_now().await;
}

#[tokio::test]
async fn a_writer_that_prepares_while_it_is_waited_for_is_still_waited_for() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute("CREATE TABLE t (id int)").await.unwrap();
    let source = database.source().await;
    let gid = database.name.clone();
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    let wait =
        ClockRequest { wait: Duration::from_secs(20), ..request("t", FencePurpose::Identifier) };
    let waiting = tokio::spawn(async move { source.clock(&wait).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(200)).await;
    client.batch_execute(&format!("PREPARE TRANSACTION '{gid}'")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    client.batch_execute(&format!("COMMIT PREPARED '{gid}'")).await.unwrap();
    assert_eq!(waiting.await.unwrap().fence, Fence::Open);
    database.drop_now().await;
}

#[tokio::test]
async fn writers_of_partitions_children_and_under_views_are_seen() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE p (id int) PARTITION BY RANGE (id); \
             CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100); \
             CREATE TABLE parent (id int); CREATE TABLE child () INHERITS (parent); \
             CREATE VIEW v AS SELECT * FROM p; CREATE VIEW vv AS SELECT * FROM v",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let writer = database.client().await;
    for (written, seen_by) in
        [("p1", &["p", "v", "vv"][..]), ("child", &["parent"]), ("p", &["p", "vv"])]
    {
        writer.batch_execute(&format!("BEGIN; INSERT INTO {written} VALUES (1)")).await.unwrap();
        for table in seen_by {
            let reading = clock(&source, table, FencePurpose::Identifier).await;
            assert_eq!(reading.fence, Fence::Closed, "{written} {table}");
        }
        writer.batch_execute("ROLLBACK").await.unwrap();
    }
    // Whoever only reads or vacuums is not waited for.
    writer
        .batch_execute("BEGIN; SELECT * FROM p; LOCK TABLE p IN SHARE UPDATE EXCLUSIVE MODE")
        .await
        .unwrap();
    assert_eq!(clock(&source, "p", FencePurpose::Identifier).await.fence, Fence::Open);
    database.drop_now().await;
}

#[tokio::test]
async fn a_number_that_was_taken_early_is_waited_for_and_read() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute("CREATE TABLE t (id bigserial PRIMARY KEY, v text)").await.unwrap();
    let source = database.source().await;
    let early = database.client().await;
    early
        .batch_execute("BEGIN; INSERT INTO t (v) VALUES ('low number, late commit')")
        .await
        .unwrap();
    client.batch_execute("INSERT INTO t (v) VALUES ('high number, early commit')").await.unwrap();
    // H = 2 is known here; the fence waits for whoever holds 1.
    let commit = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        early.batch_execute("COMMIT").await.unwrap();
    };
    let wait =
        ClockRequest { wait: Duration::from_secs(20), ..request("t", FencePurpose::Identifier) };
    let (reading, ()) = tokio::join!(source.clock(&wait), commit);
    let reading = reading.unwrap();
    assert_eq!(reading.fence, Fence::Open);
    assert!(reading.fence_note.unwrap().contains("waited"));
    let table = common::table(&source, "t").await;
    let batches = common::collect(&source, &common::split(&source, common::whole(&table), 1).await)
        .await
        .unwrap();
    assert_eq!(common::numbers(&batches, "id"), [1, 2]);
    database.drop_now().await;
}

#[tokio::test]
async fn a_statement_that_builds_an_index_holds_nothing_unless_it_wrote_before() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (id int, at timestamptz); INSERT INTO t VALUES (1, now()); \
             CREATE FUNCTION slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_sleep(3); RETURN $1; END'",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let build = "CREATE INDEX ON t (slow(id))";
    for (before, held) in [
        ("", false),
        ("BEGIN; SELECT now();", true),
        ("BEGIN; INSERT INTO t SELECT 1, now() WHERE false;", true),
    ] {
        let builder = database.client().await;
        if !before.is_empty() {
            builder.batch_execute(before).await.unwrap();
        }
        let building = tokio::spawn(async move { builder.batch_execute(build).await });
        let progress =
            "SELECT count(*) FROM pg_stat_progress_create_index WHERE datname = current_database()";
        while client.query_one(progress, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let fence = clock(&source, "t", FencePurpose::Time).await.fence;
        assert_eq!(fence != Fence::Open, held, "{before:?}: {fence:?}");
        client
            .batch_execute("SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index WHERE datname = current_database()")
            .await
            .unwrap();
        assert!(building.await.unwrap().is_err());
    }
    database.drop_now().await;
}

#[tokio::test]
async fn without_the_privilege_the_user_is_told() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let role = format!("plain {}", database.name);
    client
        .batch_execute(&format!(
            "CREATE ROLE \"{role}\" LOGIN PASSWORD 'hunter2'; CREATE TABLE t (id int, at timestamptz); \
             GRANT SELECT ON t TO \"{role}\"; ALTER ROLE \"{role}\" SET TimeZone = 'Asia/Tokyo'"
        ))
        .await
        .unwrap();
    let info = database.info_with(json!({"username": role, "password": "hunter2"}));
    let source = Postgres.source(&info).await.unwrap();
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1, now())").await.unwrap();
    let reading = clock(&source, "t", FencePurpose::Time).await;
    assert_eq!(reading.fence, Fence::Open);
    assert!(told(&reading, NoticeCode::FenceUnavailable).contains("pg_read_all_stats"));
    // What the role is set to, whatever the session is pinned to.
    assert_eq!(reading.zone, "Asia/Tokyo");
    let required = ClockRequest { mode: FenceMode::Require, ..request("t", FencePurpose::Time) };
    let error = source.clock(&required).await.unwrap_err();
    assert!(error.hint().unwrap().contains("pg_read_all_stats"));
    // Locks are seen by everyone.
    assert_eq!(clock(&source, "t", FencePurpose::Identifier).await.fence, Fence::Closed);
    client.batch_execute("ROLLBACK").await.unwrap();
    drop(source);
    client.batch_execute(&format!("DROP OWNED BY \"{role}\"; DROP ROLE \"{role}\"")).await.unwrap();
    database.drop_now().await;
}
