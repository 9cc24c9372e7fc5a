//! Time-outs: the server's, the user's, and silence.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod common;

use std::time::{Duration, Instant};

use common::{Database, collect, split, table, whole};
use serde_json::json;
use tidelake_connector::Connector;
use tidelake_model::{Again, ErrorKind};
use tidelake_postgres::Postgres;

const SLOW: &str = "CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 20) g;
    CREATE FUNCTION slow(n int) RETURNS int VOLATILE LANGUAGE sql
        AS 'SELECT n FROM pg_catalog.pg_sleep(0.1)';
    CREATE VIEW v AS SELECT public.slow(id) AS id FROM t";

#[tokio::test]
async fn limits_of_the_role_do_not_cut_a_read_off() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let role = format!("hasty {}", database.name);
    client.batch_execute(SLOW).await.unwrap();
    client
        .batch_execute(&format!(
            "CREATE ROLE \"{role}\" LOGIN PASSWORD 'hunter2';
             GRANT SELECT ON ALL TABLES IN SCHEMA public TO \"{role}\";
             ALTER ROLE \"{role}\" SET statement_timeout = '300ms';
             ALTER ROLE \"{role}\" SET idle_in_transaction_session_timeout = '300ms';
             ALTER ROLE \"{role}\" SET idle_session_timeout = '300ms'"
        ))
        .await
        .unwrap();
    let info = database.info_with(json!({"username": role, "password": "hunter2"}));
    let source = Postgres.source(&info).await.unwrap();
    let found = table(&source, "v").await;
    // The exporting transaction is idle meanwhile.
    let slices = split(&source, whole(&found), 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(collect(&source, &slices).await.unwrap()[0].num_rows(), 20);
    drop((slices, source));
    client.batch_execute(&format!("DROP OWNED BY \"{role}\"; DROP ROLE \"{role}\"")).await.unwrap();
    database.drop_now().await;
}

#[tokio::test]
async fn a_limit_of_the_credential_is_kept_and_named() {
    let Some(database) = Database::make().await else { return };
    database.client().await.batch_execute(SLOW).await.unwrap();
    let source = Postgres.source(&database.info_with(json!({"statement_timeout": 1}))).await;
    let source = source.unwrap();
    let found = table(&source, "v").await;
    let slices = split(&source, whole(&found), 1).await;
    let error = collect(&source, &slices).await.unwrap_err();
    assert_eq!((error.kind(), error.again()), (ErrorKind::Unavailable, Again::Never));
    assert!(error.hint().unwrap().contains("statement_timeout"), "{error:?}");
    assert!(error.chain().contains("57014"), "{error:?}");
    database.drop_now().await;
}

#[tokio::test]
async fn a_statement_that_works_in_silence_is_waited_for() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute("CREATE VIEW v AS SELECT 1 AS id FROM pg_catalog.pg_sleep(3)")
        .await
        .unwrap();
    let source = Postgres.source(&database.info_with(json!({"stall_timeout": 1}))).await.unwrap();
    let found = table(&source, "v").await;
    let began = Instant::now();
    let batches = collect(&source, &split(&source, whole(&found), 1).await).await.unwrap();
    assert_eq!(batches[0].num_rows(), 1);
    assert!(began.elapsed() > Duration::from_secs(3));
    database.drop_now().await;
}

#[tokio::test]
async fn who_cancels_a_read_ends_it() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute("CREATE VIEW v AS SELECT 1 AS id FROM pg_catalog.pg_sleep(60)")
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "v").await;
    let slices = split(&source, whole(&found), 1).await;
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'COPY%' AND state = 'active'";
    let read = collect(&source, &slices);
    let cancelled = async {
        loop {
            if !client.query(cancel, &[]).await.unwrap().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (read, ()) = tokio::join!(read, cancelled);
    let error = read.unwrap_err();
    assert_eq!((error.kind(), error.again()), (ErrorKind::Unavailable, Again::Never));
    assert!(error.hint().unwrap().contains("cancelled"), "{error:?}");
    database.drop_now().await;
}

#[tokio::test]
async fn a_snapshot_that_is_lost_is_told_apart_from_a_connection() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute("CREATE TABLE t AS SELECT 1 AS id").await.unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    let slices = split(&source, whole(&found), 1).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'";
    assert_eq!(client.query(end, &[]).await.unwrap().len(), 1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let error = collect(&source, &slices).await.unwrap_err();
    assert_eq!((error.kind(), error.again()), (ErrorKind::Unavailable, Again::Afresh), "{error:?}");
    database.drop_now().await;
}
