//! Slices of large tables: they tile, see one snapshot, and are cut where rows are.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]

mod common;

use std::sync::Arc;

use common::{Database, collect, numbers, servers, split, whole};
use mysql_async::prelude::Queryable;
use tidelake_connector::{Source, SplitRequest};
use tidelake_model::{ErrorKind, ReadMethod};

/// A table of 32,768 rows of about 1.4 KB; `id` is an expression of `n`, from 0.
async fn large(database: &Database, name: &str, declared: &str, id: &str) {
    database
        .run(&[&format!(
            "CREATE TABLE {name} ({declared}, filler varchar(1400) CHARACTER SET ascii)"
        )])
        .await;
    let mut client = database.client().await;
    client.query_drop("CREATE TEMPORARY TABLE numbers (n bigint)").await.unwrap();
    client.query_drop("INSERT INTO numbers VALUES (0)").await.unwrap();
    for power in 0..15 {
        let statement = format!(
            "CREATE TEMPORARY TABLE more AS SELECT n + {} AS n FROM numbers",
            1u64 << power
        );
        client.query_drop(statement).await.unwrap();
        client.query_drop("INSERT INTO numbers SELECT n FROM more").await.unwrap();
        client.query_drop("DROP TEMPORARY TABLE more").await.unwrap();
    }
    client
        .query_drop(format!("INSERT INTO {name} SELECT {id}, REPEAT('x', 1400) FROM numbers"))
        .await
        .unwrap();
    client.query_drop(format!("ANALYZE TABLE {name}")).await.unwrap();
}

fn all() -> Vec<i64> {
    (0..32_768).collect()
}

async fn pieces(
    source: &Arc<dyn Source>,
    read: tidelake_model::TableRead,
) -> (Vec<usize>, Vec<i64>) {
    let slices = split(source, read, 4).await;
    let batches = collect(source, &slices).await.unwrap();
    (batches.iter().map(|batch| batch.num_rows()).collect(), numbers(&batches, "n"))
}

#[tokio::test]
async fn sparse_keys_are_cut_where_their_rows_are() {
    for server in servers() {
        let database = Database::make(server).await;
        // Half of the rows lie in a ten-millionth of the range.
        large(
            &database,
            "sparse",
            "id bigint primary key, n bigint",
            "IF(n < 16384, n, (n - 16000) * 1000000000), n",
        )
        .await;
        let source = database.source().await;
        let table = database.table(&source, "sparse").await;
        let (sizes, found) = pieces(&source, whole(&table)).await;
        assert_eq!(found, all());
        assert_eq!(sizes.len(), 4, "{server:?}: {sizes:?}");
        // Ranges of equal width would leave 20,192 rows in the first. The server tells no
        // range as larger than half of the table, so that the middle is found roughly.
        assert!(sizes.iter().all(|size| (3_000..18_000).contains(size)), "{server:?}: {sizes:?}");
        database.drop_now().await;
    }
}

#[tokio::test]
async fn every_slice_sees_the_rows_of_one_moment() {
    for server in servers() {
        let database = Database::make(server).await;
        large(&database, "busy", "id bigint primary key, n bigint", "n, n").await;
        let source = database.source().await;
        let table = database.table(&source, "busy").await;
        // A writer moves a row from end to end, in transactions of its own.
        let mut writer = database.client().await;
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let writing = tokio::spawn(async move {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                for statement in [
                    "UPDATE busy SET id = 1000000 WHERE id = 0",
                    "UPDATE busy SET id = 0 WHERE id = 1000000",
                ] {
                    writer.query_drop(statement).await.unwrap();
                }
            }
        });
        for _ in 0..5 {
            let (sizes, found) = pieces(&source, whole(&table)).await;
            assert_eq!(found, all(), "{server:?}");
            assert!(sizes.len() > 1, "{server:?}: {sizes:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writing.await.unwrap();
        database.drop_now().await;
    }
}

#[tokio::test]
async fn partitions_and_indexed_columns_with_nulls_tile() {
    for server in servers() {
        let database = Database::make(server).await;
        large(
            &database,
            "parts",
            "n bigint primary key, at datetime(6) null, key (at)",
            "n, IF(n % 5 = 0, NULL, TIMESTAMP'2026-01-01 00:00:00' + INTERVAL n SECOND)",
        )
        .await;
        database.run(&["ALTER TABLE parts PARTITION BY HASH (n) PARTITIONS 5"]).await;
        let source = database.source().await;
        let table = database.table(&source, "parts").await;
        assert_eq!(table.kind, tidelake_model::TableKind::Partitioned);
        let (sizes, found) = pieces(&source, whole(&table)).await;
        assert_eq!(found, all(), "{server:?}");
        assert_eq!(sizes.len(), 4, "{server:?}: {sizes:?}");
        let request = |key: &str| SplitRequest {
            read: whole(&table),
            degree: 3,
            method: ReadMethod::Range,
            key: Some(key.to_owned()),
        };
        let slices = source.split(&request("at")).await.unwrap();
        let batches = collect(&source, &slices).await.unwrap();
        assert_eq!(numbers(&batches, "n"), all(), "{server:?}");
        assert!(batches.len() > 1, "{server:?}");
        // The table can be dropped once nobody reads it.
        drop(slices);
        let error = source.split(&request("filler")).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        database.drop_now().await;
    }
}

/// A writer that stays open, and a user who may not lock: one reader, all rows.
#[tokio::test]
async fn a_table_that_cannot_be_locked_is_read_by_one_connection() {
    for server in servers() {
        let database = Database::make(server).await;
        large(&database, "held", "id bigint primary key, n bigint", "n, n").await;
        let source = database.source().await;
        let table = database.table(&source, "held").await;
        let mut writer = database.client().await;
        writer.query_drop("START TRANSACTION").await.unwrap();
        writer.query_drop("UPDATE held SET n = -1 WHERE id = 7").await.unwrap();
        let (sizes, found) = pieces(&source, whole(&table)).await;
        assert_eq!((sizes.len(), found), (1, all()), "{server:?}");
        writer.query_drop("ROLLBACK").await.unwrap();
        let user = common::unique("t").replace(' ', "_").chars().take(30).collect::<String>();
        let mut admin = server.client(None).await;
        for statement in [
            format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'Secret-42'"),
            format!("GRANT SELECT ON `{}`.* TO '{user}'@'%'", database.name),
        ] {
            admin.query_drop(statement).await.unwrap();
        }
        let info = serde_json::json!({"username": user, "password": "Secret-42"});
        use tidelake_connector::Connector;
        let poor = server.0.source(&database.info_with(info)).await.unwrap();
        let (sizes, found) = pieces(&poor, whole(&table)).await;
        assert_eq!((sizes.len(), found), (1, all()), "{server:?}");
        admin.query_drop(format!("DROP USER '{user}'@'%'")).await.unwrap();
        database.drop_now().await;
    }
}
