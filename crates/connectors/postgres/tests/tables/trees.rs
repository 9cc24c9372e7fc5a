//! Partitions and inheritance: a parent gives every row of its tree once.

use arrow::array::AsArray;
use tidelake_model::{ReadMethod, TableKind, TableRead};

use crate::common::{Database, collect, numbers, split, table, whole};

/// Two levels, a partition with its columns in another order, one with dropped
/// columns, one of another schema, an empty one and a default one.
const PARTITIONED: &str = "
    CREATE SCHEMA elsewhere;
    CREATE TABLE t (id bigint, gone int, kind text, at date, note text) PARTITION BY LIST (kind);
    ALTER TABLE t DROP COLUMN gone;
    CREATE TABLE t_a (note text, dropped int, at date, kind text, id bigint);
    ALTER TABLE t_a DROP COLUMN dropped;
    ALTER TABLE t ATTACH PARTITION t_a FOR VALUES IN ('a');
    CREATE TABLE t_b PARTITION OF t FOR VALUES IN ('b') PARTITION BY RANGE (at);
    CREATE TABLE t_b_old PARTITION OF t_b FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
    CREATE TABLE elsewhere.t_b_new (at date, id bigint, note text, kind text);
    ALTER TABLE t_b ATTACH PARTITION elsewhere.t_b_new FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);
    CREATE TABLE t_empty PARTITION OF t FOR VALUES IN ('e');
    CREATE TABLE t_rest PARTITION OF t DEFAULT;
    INSERT INTO t SELECT g, (ARRAY['a', 'b', 'c', NULL])[1 + g % 4], date '2025-06-01' + g::int, 'row ' || g
    FROM generate_series(1, 1000) g;
    ANALYZE t;";

#[tokio::test]
async fn a_partitioned_table_is_read_through_its_parent() {
    let Some(database) = Database::make().await else { return };
    database.client().await.batch_execute(PARTITIONED).await.unwrap();
    let source = database.source().await;
    let tables = source.tables(&tidelake_connector::TableFilter::default()).await.unwrap();
    let names: Vec<_> = tables.iter().map(|table| table.name.to_string()).collect();
    assert_eq!(names, ["public.t"], "partitions are no tables of their own");
    let found = table(&source, "t").await;
    assert_eq!((found.kind, found.estimated_rows), (TableKind::Partitioned, Some(1000)));
    for degree in [1, 2, 3, 8] {
        let slices = split(&source, whole(&found), degree).await;
        assert_eq!(slices.slices.len(), (degree as usize).min(5));
        let batches = collect(&source, &slices).await.unwrap();
        assert_eq!(numbers(&batches, "id"), (1..=1000).collect::<Vec<_>>());
        for batch in &batches {
            let ids = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8);
            let ids = ids.unwrap();
            for row in 0..batch.num_rows() {
                let note = batch.column_by_name("note").unwrap().as_string::<i32>().value(row);
                assert_eq!(note, format!("row {}", ids.as_string::<i32>().value(row)));
            }
        }
    }
    database.drop_now().await;
}

/// A parent and two children, of which one has two parents, more columns and
/// another order, each of enough pages to be cut by them.
const INHERITED: &str = "
    CREATE TABLE t (id bigint, note text) WITH (fillfactor = 10);
    CREATE TABLE other (extra int);
    CREATE TABLE child () INHERITS (t) WITH (fillfactor = 10);
    CREATE TABLE twofold (more text) INHERITS (other, t) WITH (fillfactor = 10);
    CREATE TABLE grandchild () INHERITS (twofold, child);
    INSERT INTO t SELECT g, repeat('t', 300) FROM generate_series(1, 4500) g;
    INSERT INTO child SELECT g, repeat('c', 300) FROM generate_series(4501, 9500) g;
    INSERT INTO twofold (id, note, more, extra)
        SELECT g, repeat('b', 300), 'more', g FROM generate_series(9501, 11500) g;
    INSERT INTO grandchild (id, note) SELECT g, 'g' FROM generate_series(11501, 11600) g;
    ANALYZE t; ANALYZE child; ANALYZE twofold; ANALYZE grandchild;";

#[tokio::test]
async fn an_inherited_table_gives_the_rows_of_its_children_once() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(INHERITED).await.unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    assert_eq!(found.estimated_rows, Some(11_600), "each child counts once");
    let wanted: Vec<_> = (1..=11_600).collect();
    for degree in [1, 2, 3] {
        let slices = split(&source, whole(&found), degree).await;
        assert_eq!(slices.slices.len(), (degree as usize).min(2), "cut by the parent's pages");
        // Rows that move to other pages meanwhile are read where they were.
        if degree == 2 {
            client
                .batch_execute("UPDATE t SET note = repeat('u', 400) WHERE id % 3 = 0")
                .await
                .unwrap();
        }
        let batches = collect(&source, &slices).await.unwrap();
        assert_eq!(numbers(&batches, "id"), wanted, "degree {degree}");
    }
    // Children are tables too, with what they inherit.
    let twofold = table(&source, "twofold").await;
    let names: Vec<_> = twofold.columns.iter().map(|column| column.name().to_owned()).collect();
    assert_eq!(names, ["extra", "id", "note", "more"]);
    let batches = collect(&source, &split(&source, whole(&twofold), 1).await).await.unwrap();
    assert_eq!(numbers(&batches, "id"), (9_501..=11_600).collect::<Vec<_>>());
    database.drop_now().await;
}

#[tokio::test]
async fn an_inherited_table_is_cut_by_a_columns_values() {
    let Some(database) = Database::make().await else { return };
    database.client().await.batch_execute(INHERITED).await.unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    let request = tidelake_connector::SplitRequest {
        read: TableRead { ..whole(&found) },
        degree: 4,
        method: ReadMethod::Range,
        key: Some("id".into()),
    };
    let slices = source.split(&request).await.unwrap();
    assert!(slices.slices.len() > 1);
    let batches = collect(&source, &slices).await.unwrap();
    assert_eq!(numbers(&batches, "id"), (1..=11_600).collect::<Vec<_>>());
    database.drop_now().await;
}
