//! PgBouncer before the server: as good as none in session mode, refused in
//! transaction mode.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod common;

use std::sync::Arc;

use common::{Database, collect, numbers, split, table, variable, whole};
use serde_json::json;
use tidelake_connector::{Connector, Source};
use tidelake_model::{CredentialInfo, Error, ErrorKind};
use tidelake_postgres::Postgres;

/// The test database behind a pool of that mode; `None` where there is none.
fn behind(database: &Database, mode: &str) -> Option<CredentialInfo> {
    let name = format!("TIDELAKE_TEST_PGBOUNCER_{mode}_PORT");
    if std::env::var(&name).is_err() {
        assert!(std::env::var("TIDELAKE_TEST_REQUIRE_SERVERS").is_err(), "{name} is not set");
        println!("not run: {name} is not set");
        return None;
    }
    Some(database.info_with(json!({"port": variable(&name), "sslmode": "disable"})))
}

async fn refusal(info: &CredentialInfo) -> Error {
    match Postgres.source(info).await {
        Ok(_) => panic!("a pooler in transaction mode was not noticed"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn session_mode_reads_slices_of_one_snapshot() {
    let Some(database) = Database::make().await else { return };
    let Some(info) = behind(&database, "SESSION") else { return };
    let client = database.client().await;
    client
        .batch_execute("CREATE TABLE t AS SELECT g AS id, repeat('x', 400) v FROM generate_series(1, 60000) g; ANALYZE t")
        .await
        .unwrap();
    let source: Arc<dyn Source> = Postgres.source(&info).await.unwrap();
    let found = table(&source, "t").await;
    let slices = split(&source, whole(&found), 3).await;
    assert_eq!(slices.slices.len(), 3);
    client.batch_execute("DELETE FROM t WHERE id > 30000").await.unwrap();
    let batches = collect(&source, &slices).await.unwrap();
    assert_eq!(numbers(&batches, "id"), (1..=60_000).collect::<Vec<_>>());
    drop((slices, source));
    database.drop_now().await;
}

#[tokio::test]
async fn transaction_mode_is_told_at_once() {
    let Some(database) = Database::make().await else { return };
    let Some(info) = behind(&database, "TRANSACTION") else { return };
    // Again with sessions of others about, which shuffle who gets which.
    for others in 0..4 {
        let mut busy = vec![];
        for _ in 0..others {
            let client = common::connect_to(
                &variable("TIDELAKE_TEST_PGBOUNCER_TRANSACTION_PORT"),
                &database.name,
            )
            .await;
            client.batch_execute("BEGIN; SELECT 1").await.unwrap();
            busy.push(client);
        }
        let error = refusal(&info).await;
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{others}: {error:?}");
        assert!(!error.is_retryable());
        assert!(
            error.message().contains("pooler") && error.hint().unwrap().contains("session mode")
        );
    }
    database.drop_now().await;
}
