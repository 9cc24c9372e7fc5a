//! Arrays, composites and the like as JSON.

use arrow::array::{Array, AsArray};

use crate::common::{Database, collect, split, table, whole};
use crate::samples::{PART_TYPES, PARTS, TYPES};
use crate::scalars::{PRINTING, as_text, printed};

#[tokio::test]
async fn what_has_parts_is_json() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(&format!("SET lc_monetary = 'C'; {TYPES} {PART_TYPES}")).await.unwrap();
    let printer = database.client().await;
    printer.batch_execute(PRINTING).await.unwrap();
    let source = database.source().await;
    let mut failures = vec![];
    for (declared, values) in PARTS {
        let mut rows: Vec<_> =
            values.iter().map(|(value, _)| format!("('{}')", value.replace('\'', "''"))).collect();
        rows.push("(NULL)".to_owned());
        let statements = format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (n serial, v {declared}); INSERT INTO t (v) VALUES {}",
            rows.join(", ")
        );
        client
            .batch_execute(&statements)
            .await
            .unwrap_or_else(|error| panic!("{declared}: {error:?}"));
        let found = table(&source, "t").await;
        assert_eq!(found.columns[1].field.extension_type_name(), Some("arrow.json"), "{declared}");
        assert_eq!(found.columns[1].warning, None, "{declared}");
        let batches = collect(&source, &split(&source, whole(&found), 1).await).await.unwrap();
        let column = batches[0].column(1).as_string::<i32>();
        assert_eq!(column.len(), values.len() + 1);
        assert!(column.is_null(values.len()), "{declared}");
        for (row, (value, json)) in values.iter().enumerate() {
            let cell = column.value(row);
            serde_json::from_str::<serde_json::Value>(cell).unwrap();
            // Where the server puts spaces between the parts is its own affair.
            if cell.replace([' ', '\n'], "") != json.replace([' ', '\n'], "") {
                failures.push(format!("{declared} {value}: {cell}"));
            }
        }
        // Whoever asks for text gets the server's own.
        let read = as_text(whole(&found), "v");
        let batches = collect(&source, &split(&source, read, 1).await).await.unwrap();
        let texts: Vec<_> = batches[0]
            .column(1)
            .as_string::<i32>()
            .iter()
            .map(|text| text.map(str::to_owned))
            .collect();
        let wanted = printed(&printer, "SELECT v::text FROM public.t ORDER BY n").await;
        if texts != wanted {
            failures.push(format!("{declared} as text: {texts:?}"));
        }
    }
    database.drop_now().await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
