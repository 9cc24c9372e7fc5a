//! Slices, snapshots and what happens when a read is given up.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

mod common;

use std::time::Duration;

use arrow::array::AsArray;
use common::{Database, collect, numbers, split, table, whole};
use futures::StreamExt;
use tidelake_connector::{Effort, HighestRequest, SplitRequest};
use tidelake_model::{CursorRead, ErrorKind, ReadMethod, TableRead};
use tidelake_watermark::{Bound, Cursor, Kind, Range, Value};

const ROWS: i64 = 120_000;

/// A table of some 30 MiB whose estimates are known.
fn fill(name: &str) -> String {
    format!(
        "CREATE TABLE {name} (id bigint, k text, at timestamptz, pad text); \
         INSERT INTO {name} SELECT g, md5(g::text), '2026-01-01Z'::timestamptz + g * interval '1 s', repeat('x', 200) \
         FROM generate_series(1, {ROWS}) g; ANALYZE {name};"
    )
}

fn by_id(read: TableRead, low: i128, high: i128) -> TableRead {
    let bound =
        |number: i128, inclusive| Some(Bound { at: Value::Integer(number).into(), inclusive });
    TableRead {
        cursor: Some(CursorRead {
            cursor: Cursor::Single("id".into()),
            kinds: vec![Kind::Integer],
        }),
        range: Some(Range { low: bound(low, false), high: bound(high, true) }),
        ..read
    }
}

#[tokio::test]
async fn slices_by_place_tile_one_snapshot() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(&fill("t")).await.unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    assert_eq!(found.estimated_rows, Some(ROWS as u64));
    let slices = split(&source, whole(&found), 3).await;
    assert_eq!(slices.slices.len(), 3);
    assert!(source.statement(&slices.slices[1]).contains("ctid >="));
    // What comes, goes and moves after the snapshot changes nothing.
    client
        .batch_execute(
            "INSERT INTO t SELECT 1000000 + g, '', now(), repeat('y', 200) FROM generate_series(1, 50000) g; \
             DELETE FROM t WHERE id % 7 = 0; UPDATE t SET pad = repeat('z', 250) WHERE id % 5 = 0",
        )
        .await
        .unwrap();
    let batches = collect(&source, &slices).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() > 10_000));
    assert_eq!(numbers(&batches, "id"), (1..=ROWS).collect::<Vec<_>>());
    database.drop_now().await;
}

#[tokio::test]
async fn a_window_is_cut_by_place_only_where_it_would_be_scanned() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(&fill("t")).await.unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    let read = || by_id(whole(&found), 100, ROWS.into());
    let slices = split(&source, read(), 2).await;
    assert_eq!(slices.slices.len(), 2);
    let batches = collect(&source, &slices).await.unwrap();
    assert_eq!(numbers(&batches, "id"), (101..=ROWS).collect::<Vec<_>>());
    client.batch_execute("CREATE INDEX ON t (id)").await.unwrap();
    let few = by_id(whole(&found), i128::from(ROWS) - 500, ROWS.into());
    let slices = split(&source, few, 4).await;
    assert_eq!(slices.slices.len(), 1);
    assert_eq!(numbers(&collect(&source, &slices).await.unwrap(), "id").len(), 500);
    database.drop_now().await;
}

#[tokio::test]
async fn ranges_of_a_column_tile_with_nulls_in_one_slice() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(&fill("t")).await.unwrap();
    client.batch_execute("UPDATE t SET k = NULL WHERE id <= 1000; ANALYZE t").await.unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    for key in ["k", "id", "at"] {
        let request = SplitRequest {
            read: whole(&found),
            degree: 4,
            method: ReadMethod::Range,
            key: Some(key.to_owned()),
        };
        let slices = source.split(&request).await.unwrap();
        assert_eq!(slices.slices.len(), 4, "{key}");
        let batches = collect(&source, &slices).await.unwrap();
        let least = batches.iter().map(|batch| batch.num_rows()).min().unwrap();
        assert!(least > 20_000, "{key}: {least}");
        assert_eq!(numbers(&batches, "id"), (1..=ROWS).collect::<Vec<_>>(), "{key}");
    }
    database.drop_now().await;
}

#[tokio::test]
async fn partitions_are_dealt_out_and_read_once() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE p (id bigint, at date) PARTITION BY RANGE (id); \
             CREATE TABLE \"p 1\" PARTITION OF p FOR VALUES FROM (0) TO (1000); \
             CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) PARTITION BY HASH (id); \
             CREATE TABLE p2a PARTITION OF p2 FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE TABLE p2b (at date, dropped int, id bigint); ALTER TABLE p2b DROP COLUMN dropped; \
             ALTER TABLE p2 ATTACH PARTITION p2b FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
             CREATE TABLE rest PARTITION OF p DEFAULT; \
             INSERT INTO p SELECT g, '2026-01-01' FROM generate_series(1, 5000) g; ANALYZE p",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let all = source.tables(&Default::default()).await.unwrap();
    assert_eq!(all.len(), 1, "partitions are read through their parent");
    assert_eq!(all[0].estimated_rows, Some(5000));
    for degree in [1, 2, 9] {
        let slices = split(&source, whole(&all[0]), degree).await;
        assert_eq!(slices.slices.len(), usize::try_from(degree).unwrap().min(4));
        let batches = collect(&source, &slices).await.unwrap();
        assert_eq!(numbers(&batches, "id"), (1..=5000).collect::<Vec<_>>());
    }
    database.drop_now().await;
}

#[tokio::test]
async fn a_view_and_a_materialised_view_are_read() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 100) g; \
             CREATE VIEW v AS SELECT id * 2 AS id FROM t; CREATE MATERIALIZED VIEW m AS SELECT id FROM v",
        )
        .await
        .unwrap();
    let source = database.source().await;
    for (name, factor) in [("v", 2), ("m", 2)] {
        let slices = split(&source, whole(&table(&source, name).await), 4).await;
        let batches = collect(&source, &slices).await.unwrap();
        let wanted: Vec<_> = (1..=100).map(|id| id * factor).collect();
        assert_eq!(numbers(&batches, "id"), wanted, "{name}");
    }
    database.drop_now().await;
}

#[tokio::test]
async fn a_read_that_is_given_up_ends_on_the_server() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(&fill("t")).await.unwrap();
    // This view sends a row and then nothing for a long time.
    client
        .batch_execute("CREATE VIEW slow AS SELECT id, CASE WHEN id > 50000 THEN pg_sleep(60)::text END AS s FROM t")
        .await
        .unwrap();
    let source = database.source().await;
    for name in ["t", "slow"] {
        let read = TableRead { batch_bytes: 1000, ..whole(&table(&source, name).await) };
        let slices = split(&source, read, 1).await;
        let mut reading = source.read(&slices.slices[0]).await.unwrap();
        reading.batches.next().await.unwrap().unwrap();
        drop(reading);
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY%' AND state = 'active'";
        for round in 0.. {
            if client.query_one(busy, &[]).await.unwrap().get::<_, i64>(0) == 0 {
                break;
            }
            assert!(round < 200, "{name} still runs");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The snapshot is still there for another try.
        let first = source.read(&slices.slices[0]).await.unwrap().batches.next().await;
        first.unwrap().unwrap();
    }
    database.drop_now().await;
}

#[tokio::test]
async fn a_session_that_the_server_ends_is_unavailable_and_the_next_works() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(&fill("t")).await.unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    let slices = split(&source, TableRead { batch_bytes: 1000, ..whole(&found) }, 1).await;
    let mut reading = source.read(&slices.slices[0]).await.unwrap();
    reading.batches.next().await.unwrap().unwrap();
    client
        .batch_execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        .await
        .unwrap();
    let mut outcome = Ok(());
    while let Some(batch) = reading.batches.next().await {
        outcome = batch.map(|_| ());
    }
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    let error = source.read(&slices.slices[0]).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    drop(slices);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(table(&source, "t").await.name, found.name);
    database.drop_now().await;
}

#[tokio::test]
async fn cells_of_a_megabyte_are_read() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute("CREATE TABLE t AS SELECT g AS id, repeat(chr(64 + g), g * 300000) AS v FROM generate_series(1, 12) g")
        .await
        .unwrap();
    let source = database.source().await;
    let slices = split(&source, whole(&table(&source, "t").await), 1).await;
    let mut reading = source.read(&slices.slices[0]).await.unwrap();
    let mut seen = 0;
    while let Some(batch) = reading.batches.next().await {
        let batch = batch.unwrap();
        assert!(batch.num_rows() <= 4);
        for text in batch.column(1).as_string::<i32>().iter().flatten() {
            seen += 1;
            assert_eq!(text.len(), seen * 300_000);
        }
    }
    assert_eq!(seen, 12);
    database.drop_now().await;
}

#[tokio::test]
async fn the_highest_value_is_finite() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (at timestamptz, n numeric, d date, b bytea); CREATE INDEX ON t (at); \
             INSERT INTO t VALUES ('infinity', 'NaN', 'infinity', '\\x01'), ('2026-11-30 09:15:00.123456Z', 1.50, '2026-11-30', '\\x00ff'), \
             ('-infinity', 'Infinity', '-infinity', NULL), (NULL, NULL, NULL, NULL)",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    for (column, kind, text) in [
        ("at", Kind::Timestamp, "2026-11-30T09:15:00.123456Z"),
        ("n", Kind::Number, "1.50"),
        ("d", Kind::Date, "2026-11-30"),
        ("b", Kind::Binary, "0x01"),
    ] {
        let request = HighestRequest {
            table: found.name.clone(),
            cursor: CursorRead { cursor: Cursor::Single(column.into()), kinds: vec![kind] },
            effort: Effort::Scan,
            count: None,
            count_nulls: true,
        };
        let highest = source.highest(&request).await.unwrap();
        assert_eq!(highest.value.unwrap().unwrap().to_string(), text);
        assert_eq!(highest.nulls, (column == "at").then_some(1), "{column}");
        let cheap = HighestRequest { effort: Effort::Cheap, ..request };
        assert_eq!(source.highest(&cheap).await.unwrap().value.is_some(), column == "at");
    }
    database.drop_now().await;
}

#[tokio::test]
async fn rows_above_every_window_are_counted() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (id bigint, plain numeric, scaled numeric(10,2), d date, \
             naive timestamp, at timestamptz, code text); \
             CREATE INDEX ON t (at); CREATE INDEX ON t (scaled); \
             INSERT INTO t VALUES (1, 1.5, 1.5, '2026-11-30', '2026-11-30', '2026-11-30Z', 'a'), \
             (2, 'NaN', 'NaN', 'infinity', 'infinity', 'infinity', 'NaN'), \
             (3, 'Infinity', 'NaN', 'infinity', '2026-11-30', 'infinity', 'infinity'), \
             (4, '-Infinity', NULL, '-infinity', '-infinity', '-infinity', '-infinity'), \
             (5, NULL, 'NaN', 'infinity', NULL, NULL, NULL)",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    for (column, kind, is_indexed, rows) in [
        ("id", Kind::Integer, false, 0),
        ("plain", Kind::Number, false, 2),
        ("scaled", Kind::Number, true, 3),
        ("d", Kind::Date, false, 3),
        ("naive", Kind::Datetime, false, 1),
        ("at", Kind::Timestamp, true, 2),
        ("code", Kind::Text, false, 0),
    ] {
        let request = HighestRequest {
            table: found.name.clone(),
            cursor: CursorRead { cursor: Cursor::Single(column.into()), kinds: vec![kind] },
            effort: Effort::Scan,
            count: None,
            count_nulls: false,
        };
        let highest = source.highest(&request).await.unwrap();
        assert_eq!(highest.unreachable, Some(rows), "{column}");
        let cheap = HighestRequest { effort: Effort::Cheap, ..request };
        let highest = source.highest(&cheap).await.unwrap();
        assert_eq!(highest.unreachable, is_indexed.then_some(rows), "{column}");
    }
    // A table of such values alone has no highest one.
    client.batch_execute("DELETE FROM t WHERE id NOT IN (2, 3)").await.unwrap();
    let request = HighestRequest {
        table: found.name.clone(),
        cursor: CursorRead { cursor: Cursor::Single("plain".into()), kinds: vec![Kind::Number] },
        effort: Effort::Scan,
        count: None,
        count_nulls: false,
    };
    let highest = source.highest(&request).await.unwrap();
    assert_eq!((highest.value, highest.unreachable), (Some(None), Some(2)));
    database.drop_now().await;
}
