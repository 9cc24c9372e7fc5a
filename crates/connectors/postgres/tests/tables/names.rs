//! Identifiers of every kind in schema, table, column, key and cursor.

use arrow::array::AsArray;
use tidelake_connector::sql::quote_ansi;
use tidelake_connector::{Effort, HighestRequest, SplitRequest, TableFilter};
use tidelake_model::{CursorRead, ReadMethod, TableRead};
use tidelake_watermark::{Bound, Cursor, Kind, Range, Value};

use crate::common::{Database, collect, numbers, whole};

/// Each is a schema, a table and the column of a cursor at once.
const NAMES: [&str; 22] = [
    "plain",
    "Plain",
    "PLAIN",
    "select",
    "user",
    "order by",
    "a.b",
    "a:b:integer",
    "\"",
    "a\"\"b",
    "it's",
    "100%_x\\",
    " lead and trail ",
    "new\nline",
    "tab\there",
    "Ünïcode 名🌊",
    "$1",
    "--comment",
    "/*x*/; DROP TABLE t",
    "E'\\\\n'",
    "ctid ",
    "a23456789b23456789c23456789d23456789e23456789f23456789g2345678é",
];

#[tokio::test]
async fn any_name_works_in_every_place() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    assert_eq!(NAMES[21].len(), 64, "the server cuts this one to 63 bytes or less");
    for name in NAMES {
        let quoted = quote_ansi(name);
        client
            .batch_execute(&format!(
                "SET client_min_messages = error; CREATE SCHEMA {quoted}; \
                 CREATE TYPE public.{quoted} AS ENUM ('a', 'b'); \
                 CREATE TABLE {quoted}.{quoted} ({quoted} bigint PRIMARY KEY, other public.{quoted}[], \
                     label public.{quoted}) WITH (autovacuum_enabled = off); \
                 INSERT INTO {quoted}.{quoted} SELECT g, '{{a,b}}', 'b' FROM generate_series(1, 50) g; \
                 ANALYZE {quoted}.{quoted}"
            ))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
    let source = database.source().await;
    let tables = source.tables(&TableFilter::default()).await.unwrap();
    assert_eq!(tables.len(), NAMES.len());
    for name in NAMES {
        // A character that would be cut in two goes as a whole.
        let name = if name.len() > 63 { name.trim_end_matches('é') } else { name };
        let found = tables.iter().find(|table| table.name.table == name);
        let found = found.unwrap_or_else(|| panic!("{name:?} is not there"));
        assert_eq!((found.name.schema.as_str(), found.columns[0].name()), (name, name));
        assert_eq!(found.key(), [name]);
        let cursor = CursorRead { cursor: Cursor::Single(name.into()), kinds: vec![Kind::Integer] };
        let request = HighestRequest {
            table: found.name.clone(),
            cursor: cursor.clone(),
            effort: Effort::Cheap,
            count: None,
            count_nulls: true,
        };
        let highest = source.highest(&request).await.unwrap();
        assert_eq!(highest.value.unwrap().unwrap(), Value::Integer(50).into());
        let bound = |id, inclusive| Some(Bound { at: Value::Integer(id).into(), inclusive });
        let range = Range { low: bound(10, false), high: bound(40, true) };
        let read = TableRead { cursor: Some(cursor), range: Some(range), ..whole(found) };
        for (method, key) in [(ReadMethod::Auto, None), (ReadMethod::Range, Some(name.to_owned()))]
        {
            let request = SplitRequest { read: read.clone(), degree: 3, method, key };
            let slices =
                source.split(&request).await.unwrap_or_else(|error| panic!("{name:?}: {error:?}"));
            assert_eq!(slices.slices.len(), if method == ReadMethod::Range { 3 } else { 1 });
            let batches = collect(&source, &slices).await.unwrap();
            assert_eq!(numbers(&batches, name), (11..=40).collect::<Vec<_>>());
            assert_eq!(batches[0].column(1).as_string::<i32>().value(0), r#"["a","b"]"#);
            assert_eq!(batches[0].column(2).as_string::<i32>().value(0), "b");
        }
    }
    database.drop_now().await;
}
