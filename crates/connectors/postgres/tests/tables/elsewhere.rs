//! Views, materialised views and foreign tables, with a cursor.

use tidelake_connector::{Effort, HighestRequest};
use tidelake_model::{CursorRead, TableKind, TableRead};
use tidelake_watermark::{Bound, Cursor, Kind, Position, Range, Value};

use crate::common::{Database, collect, numbers, split, table, whole};

fn statements(database: &Database) -> String {
    let info = database.info();
    let text = |key: &str| info[key].as_str().unwrap().replace('\'', "''");
    format!(
        "CREATE TABLE plain (id bigint PRIMARY KEY, at timestamptz, parts int[], price numeric(10,2)); \
         INSERT INTO plain SELECT g, '2026-01-01Z'::timestamptz + g * interval '1 s', ARRAY[g], g / 4.0 \
         FROM generate_series(1, 500) g; \
         CREATE VIEW seen AS SELECT * FROM plain; \
         CREATE MATERIALIZED VIEW kept AS SELECT * FROM plain; \
         CREATE EXTENSION postgres_fdw; \
         CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw \
             OPTIONS (host '{host}', port '{port}', dbname '{database}'); \
         CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user '{user}', password '{password}'); \
         CREATE FOREIGN TABLE distant (id bigint NOT NULL, at timestamptz, parts int[], price numeric(10,2)) \
             SERVER here OPTIONS (schema_name 'public', table_name 'plain');",
        host = text("server"),
        port = text("port"),
        database = text("database"),
        user = text("username"),
        password = text("password"),
    )
}

#[tokio::test]
async fn what_is_no_table_is_read_by_a_cursor() {
    let Some(database) = Database::make().await else { return };
    database.client().await.batch_execute(&statements(&database)).await.unwrap();
    let source = database.source().await;
    for (name, kind) in
        [("seen", TableKind::View), ("kept", TableKind::View), ("distant", TableKind::Foreign)]
    {
        let found = table(&source, name).await;
        assert_eq!(found.kind, kind, "{name}");
        // The catalogue promises nothing here: a key is declared by the user.
        assert!(found.key().is_empty(), "{name}");
        assert!(found.columns.iter().all(|column| column.field.is_nullable()), "{name}");
        for (column, kind) in [("id", Kind::Integer), ("at", Kind::Timestamp)] {
            let cursor = CursorRead { cursor: Cursor::Single(column.into()), kinds: vec![kind] };
            let request = HighestRequest {
                table: found.name.clone(),
                cursor: cursor.clone(),
                effort: Effort::Scan,
                count: None,
                count_nulls: true,
            };
            let highest = source.highest(&request).await.unwrap().value.unwrap().unwrap();
            let at = |id: i128| -> Position {
                match kind {
                    Kind::Integer => Value::Integer(id).into(),
                    _ => Value::parse(Kind::Timestamp, "2026-01-01T00:00:00Z")
                        .map(|start| match start {
                            Value::Timestamp(nanos) => Value::Timestamp(nanos + id * 1_000_000_000),
                            other => other,
                        })
                        .unwrap()
                        .into(),
                }
            };
            assert_eq!(highest, at(500), "{name} by {column}");
            let bound = |id, inclusive| Some(Bound { at: at(id), inclusive });
            let range = Range { low: bound(100, false), high: bound(300, true) };
            let read = TableRead { cursor: Some(cursor), range: Some(range), ..whole(&found) };
            for degree in [1, 4] {
                let slices = split(&source, read.clone(), degree).await;
                let batches = collect(&source, &slices).await.unwrap();
                assert_eq!(numbers(&batches, "id"), (101..=300).collect::<Vec<_>>(), "{name}");
            }
        }
    }
    database.drop_now().await;
}
