//! Cells of a megabyte, and of nothing.

use arrow::array::{Array, AsArray};
use tidelake_model::TableRead;

use crate::common::{Database, collect, split, table, whole};

const MEGABYTE: usize = 1 << 20;

#[tokio::test]
async fn cells_of_a_megabyte_arrive_whole() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (n int, a text, b bytea, c json, d jsonb, e text[], f xml, g varchar, h numeric); \
             INSERT INTO t SELECT 1, v, convert_to(v, 'UTF8'), to_json(v), to_jsonb(v), array[v, v], \
                 ('<a>' || v || '</a>')::xml, v, repeat('7', 131000)::numeric \
             FROM (SELECT repeat('é🌊', 174763) AS v) v; \
             INSERT INTO t VALUES (2, '', '', '\"\"', '\"\"', '{\"\"}', '', '', 0); INSERT INTO t (n) VALUES (3)",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    // Batches that are smaller than a cell.
    for batch_bytes in [1, 1 << 20, 1 << 30] {
        let read = TableRead { batch_bytes, ..whole(&found) };
        let batches = collect(&source, &split(&source, read, 1).await).await.unwrap();
        let batch = &batches[0];
        let wanted = "é🌊".repeat(174_763);
        assert!(wanted.len() > MEGABYTE);
        let text = |column: usize| batch.column(column).as_string::<i32>();
        assert_eq!(text(1).value(0), wanted);
        assert_eq!(batch.column(2).as_binary::<i32>().value(0), wanted.as_bytes());
        for column in [3, 4] {
            assert_eq!(text(column).value(0), format!("\"{wanted}\""));
        }
        assert_eq!(text(5).value(0), format!("[\"{wanted}\",\"{wanted}\"]"));
        assert_eq!(text(6).value(0), format!("<a>{wanted}</a>"));
        assert_eq!(text(7).value(0), wanted);
        assert_eq!(text(8).value(0), "7".repeat(131_000));
        let empty: Vec<_> = (3..9).map(|column| text(column).value(1)).collect();
        assert_eq!(empty, ["\"\"", "\"\"", "[\"\"]", "", "", "0"]);
        assert!(
            text(1).value(1).is_empty() && batch.column(2).as_binary::<i32>().value(1).is_empty()
        );
        assert!(
            (1..9)
                .all(|column| batch.column(column).is_null(2) && !batch.column(column).is_null(1))
        );
    }
    database.drop_now().await;
}
