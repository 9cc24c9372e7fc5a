//! What the catalogue says of types.

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use tidelake_model::Column;
use tidelake_watermark::Kind;

use crate::common::{Database, collect, split, table, whole};
use crate::samples::TYPES;

fn column<'a>(columns: &'a [Column], name: &str) -> &'a Column {
    columns.iter().find(|column| column.name() == name).unwrap()
}

#[tokio::test]
async fn types_cursors_and_extensions_come_from_the_catalogue() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(TYPES).await.unwrap();
    client
        .batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY, u uuid NOT NULL, j json, jb jsonb, ts0 timestamp(0), \
             tz timestamptz, d cents NOT NULL, n numeric, f real, m mood, g int GENERATED ALWAYS AS (1) STORED)",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    let columns = &found.columns;
    let extension = |name| column(columns, name).field.extension_type_name().map(str::to_owned);
    assert_eq!(extension("u").as_deref(), Some("arrow.uuid"));
    assert_eq!(extension("j").as_deref(), Some("arrow.json"));
    assert_eq!(extension("jb").as_deref(), Some("arrow.json"));
    assert_eq!(column(columns, "d").field.data_type(), &DataType::Decimal128(10, 2));
    assert_eq!(column(columns, "d").source_type, "public.cents");
    let cursor =
        |name| column(columns, name).cursor.map(|cursor| (cursor.kind, cursor.fraction_digits));
    assert_eq!(cursor("id"), Some((Kind::Integer, 0)));
    assert_eq!(cursor("ts0"), Some((Kind::Datetime, 0)));
    assert_eq!(cursor("tz"), Some((Kind::Timestamp, 6)));
    assert_eq!(cursor("n"), Some((Kind::Number, 0)));
    for name in ["f", "u", "j", "m"] {
        assert_eq!(cursor(name), None, "{name}");
    }
    assert!(column(columns, "id").indexed && !column(columns, "tz").indexed);
    assert!(!column(columns, "u").field.is_nullable() && column(columns, "tz").field.is_nullable());
    assert_eq!(found.key(), ["id"]);
    assert_eq!(columns.last().unwrap().name(), "g");
    database.drop_now().await;
}

#[tokio::test]
async fn a_type_that_is_not_known_is_text_with_a_warning() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TYPE odd; \
             CREATE FUNCTION odd_in(cstring) RETURNS odd AS 'textin' LANGUAGE internal IMMUTABLE STRICT; \
             CREATE FUNCTION odd_out(odd) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE STRICT; \
             CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out); \
             CREATE TABLE t (id int, v odd); INSERT INTO t VALUES (1, 'it is odd'), (2, NULL)",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    assert!(found.columns[1].warning.as_ref().unwrap().contains("public.odd"));
    let batches = collect(&source, &split(&source, whole(&found), 1).await).await.unwrap();
    let texts = batches[0].column(1).as_string::<i32>();
    assert_eq!(texts.value(0), "it is odd");
    assert!(texts.is_null(1));
    database.drop_now().await;
}
