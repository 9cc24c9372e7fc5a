//! As many columns as a table can have.

use arrow::array::AsArray;
use arrow::datatypes::Int32Type;
use tidelake_model::TableRead;

use crate::common::{Database, collect, split, table, whole};

const MOST: usize = 1_600;

#[tokio::test]
async fn sixteen_hundred_columns_are_read() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let columns: Vec<_> = (0..MOST)
        .map(|place| format!("c{place} {}", if place % 2 == 0 { "int" } else { "text" }))
        .collect();
    // A row has to fit into a page, so most of a row's texts are short or NULL.
    let values = |row: usize| -> String {
        let value = |place: usize| match (place % 2, (place + row) % 3) {
            (_, 0) => "NULL".to_owned(),
            (0, _) => (place * 10 + row).to_string(),
            _ => format!("'t{}'", place % 10),
        };
        format!("({})", (0..MOST).map(value).collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<_> = (0..20).map(values).collect();
    client
        .batch_execute(&format!(
            "CREATE TABLE t ({}); INSERT INTO t VALUES {}; INSERT INTO t SELECT t.* FROM t, generate_series(1, 99)",
            columns.join(", "),
            rows.join(", ")
        ))
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    assert_eq!(found.columns.len(), MOST);
    let read = TableRead { batch_bytes: 1 << 20, ..whole(&found) };
    let slices = split(&source, read, 1).await;
    let batches = collect(&source, &slices).await.unwrap();
    let batch = &batches[0];
    assert_eq!((batch.num_rows(), batch.num_columns()), (2_000, MOST));
    for row in 0..20 {
        for (place, column) in batch.columns().iter().enumerate() {
            let is_null = (place + row) % 3 == 0;
            assert_eq!(column.is_null(row), is_null, "c{place} of row {row}");
            if is_null {
                continue;
            }
            if place % 2 == 0 {
                let number = column.as_primitive::<Int32Type>().value(row);
                assert_eq!(number as usize, place * 10 + row);
            } else {
                assert_eq!(column.as_string::<i32>().value(row), format!("t{}", place % 10));
            }
        }
    }
    database.drop_now().await;
}
