//! What becomes of a target's table when the lake's columns change.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Decimal256Array, FixedSizeBinaryArray, Float32Array,
    Int32Array, Int64Array, NullArray, RecordBatch, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, i256};
use common::Database;
use futures::StreamExt;
use tidelake_connector::{Load, Publisher, TargetTable};
use tidelake_model::{
    DataFile, Error, ErrorKind, MANIFEST_FORMAT, Manifest, PublishMethod, RunId, Strategy,
    TableName,
};
use tokio_postgres::Client;

fn manifest(run: u128, batch: &RecordBatch, types: &[(&str, &str)]) -> Manifest {
    let rows = batch.num_rows() as u64;
    Manifest {
        format_version: MANIFEST_FORMAT,
        run_id: RunId::from_number(run),
        attempt: 1,
        table: TableName::new("public", "t"),
        generation: 1,
        window: None,
        schema_version: 1,
        schema: batch.schema().as_ref().clone(),
        source_types: types
            .iter()
            .map(|(name, text)| (name.to_string(), text.to_string()))
            .collect(),
        key: vec!["id".into()],
        files: vec![DataFile {
            key: "a.parquet".into(),
            rows,
            bytes: 1,
            sha256: "0".repeat(64),
            cursor_min: None,
            cursor_max: None,
            cursor_nulls: 0,
        }],
        taken_out: vec![],
        live_highest: None,
        counters: BTreeMap::new(),
        notices: vec![],
        started_at: "2026-11-30T09:15:00Z".into(),
        finished_at: "2026-11-30T09:15:01Z".into(),
        tool_version: "0.0.0".into(),
    }
}

struct Loading {
    run: u128,
    replaces: bool,
    breaks: bool,
}

const APPEND: Loading = Loading { run: 1, replaces: false, breaks: false };

async fn load(
    publisher: &Arc<dyn Publisher>,
    batch: &RecordBatch,
    loading: Loading,
    types: &[(&str, &str)],
) -> Result<u64, Error> {
    let manifest = manifest(loading.run, batch, types);
    let target = TargetTable { schema: "lake".into(), table: "t".into() };
    let rows = || {
        let batch = batch.clone();
        let end = loading
            .breaks
            .then(|| Err(Error::new(ErrorKind::Unavailable, "the test breaks the rows off")));
        futures::stream::iter([Ok(batch)].into_iter().chain(end)).boxed()
    };
    publisher
        .load(&Load {
            manifest: &manifest,
            target: &target,
            strategy: Strategy::Append,
            method: PublishMethod::Internal,
            replaces: loading.replaces,
            primary_key: true,
            owner: "a sync",
            takes_over: false,
            rows: &rows,
        })
        .await
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), *name != "id"))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// The target's columns, with what must not be NULL marked.
async fn declared(client: &Client) -> Vec<String> {
    let statement = "SELECT attname || ' ' || format_type(atttypid, atttypmod) \
        || CASE WHEN attnotnull THEN '!' ELSE '' END \
        FROM pg_attribute WHERE attrelid = 'lake.t'::regclass AND attnum > 0 AND NOT attisdropped \
        ORDER BY attnum";
    let rows = client.query(statement, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn rows(client: &Client) -> Vec<String> {
    let statement = "SELECT to_json(t)::text FROM lake.t ORDER BY id";
    let rows = client.query(statement, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_table_follows_the_lake_in_the_loads_own_transaction() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let publisher = database.publisher().await;
    let price = |value, precision, scale| -> ArrayRef {
        let array = Decimal128Array::from(vec![value]);
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    };
    let first = batch(vec![
        ("id", Arc::new(Int32Array::from(vec![1]))),
        ("rate", Arc::new(Float32Array::from(vec![1.5]))),
        ("price", price(123, 5, 2)),
        ("gone", Arc::new(StringArray::from(vec!["x"]))),
    ]);
    load(&publisher, &first, APPEND, &[]).await.unwrap();
    let before = ["id integer!", "rate real", "price numeric(5,2)", "gone text"];
    assert_eq!(declared(&client).await, before);
    let wide = Decimal256Array::from(vec![i256::from_i128(1)]).with_precision_and_scale(60, 10);
    let second = batch(vec![
        ("new", Arc::new(TimestampMicrosecondArray::from(vec![0]).with_timezone("UTC"))),
        ("price", Arc::new(wide.unwrap())),
        ("id", Arc::new(Int64Array::from(vec![1i64 << 40]))),
        ("rate", Arc::new(Float32Array::from(vec![2.5]))),
        ("none", Arc::new(NullArray::new(1))),
    ]);
    // What breaks off leaves the columns as they were.
    let loading = || Loading { run: 2, ..APPEND };
    load(&publisher, &second, Loading { breaks: true, ..loading() }, &[]).await.unwrap_err();
    assert_eq!(declared(&client).await, before);
    load(&publisher, &second, loading(), &[]).await.unwrap();
    assert_eq!(
        declared(&client).await,
        [
            "id bigint!",
            "rate real",
            "price numeric(60,10)",
            "gone text",
            "new timestamp with time zone",
            "none text"
        ]
    );
    assert_eq!(
        rows(&client).await,
        [
            r#"{"id":1,"rate":1.5,"price":1.2300000000,"gone":"x","new":null,"none":null}"#,
            r#"{"id":1099511627776,"rate":2.5,"price":0.0000000001,"gone":null,"new":"1970-01-01T00:00:00+00:00","none":null}"#,
        ]
    );
    // A narrower column is no reason to narrow the table, and another type is none
    // to lose what is there.
    load(&publisher, &first.slice(0, 0), Loading { run: 3, ..APPEND }, &[]).await.unwrap();
    let other = batch(vec![
        ("id", Arc::new(Int64Array::from(vec![7]))),
        ("rate", Arc::new(StringArray::from(vec!["much"]))),
    ]);
    let error = load(&publisher, &other, Loading { run: 4, ..APPEND }, &[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("\"rate\" of the target is of type real"), "{error}");
    // A replacement keeps nothing, so its types may be any.
    let replaces = Loading { run: 5, replaces: true, breaks: false };
    load(&publisher, &other, replaces, &[]).await.unwrap();
    assert_eq!(declared(&client).await[1], "rate text");
    let found = rows(&client).await;
    assert!(found.len() == 1 && found[0].contains(r#""rate":"much""#), "{found:?}");
    database.drop_now().await;
}

#[tokio::test]
async fn a_table_that_somebody_made_is_widened_and_never_made_anew() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let publisher = database.publisher().await;
    client
        .batch_execute(
            "CREATE SCHEMA lake; CREATE TABLE lake.t (id int, n numeric(100,1), at time(0), s int)",
        )
        .await
        .unwrap();
    let price = Decimal128Array::from(vec![12_345]).with_precision_and_scale(10, 4).unwrap();
    let good = batch(vec![
        ("id", Arc::new(UInt64Array::from(vec![u64::MAX]))),
        ("n", Arc::new(price)),
        ("at", Arc::new(Time64MicrosecondArray::from(vec![1]))),
    ]);
    let bad = batch(vec![
        ("id", Arc::new(Int64Array::from(vec![1]))),
        ("s", Arc::new(StringArray::from(vec!["text"]))),
    ]);
    for replaces in [false, true] {
        let loading = Loading { run: 9, replaces, breaks: false };
        let error = load(&publisher, &bad, loading, &[]).await.unwrap_err();
        assert!(error.hint().unwrap().contains("alter the column's type"), "{error:?}");
    }
    load(&publisher, &good, APPEND, &[]).await.unwrap();
    assert_eq!(
        declared(&client).await,
        ["id numeric(20,0)", "n numeric(103,4)", "at time without time zone", "s integer"]
    );
    assert_eq!(
        rows(&client).await,
        [r#"{"id":18446744073709551615,"n":1.2345,"at":"00:00:00.000001","s":null}"#]
    );
    database.drop_now().await;
}

#[tokio::test]
async fn ends_and_extensions_come_back_as_they_left() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let publisher = database.publisher().await;
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let uuid = FixedSizeBinaryArray::try_from_iter([[7u8; 16]].into_iter()).unwrap();
    let columns = batch(vec![
        ("id", Arc::new(Int64Array::from(vec![1]))),
        ("day", Arc::new(Date32Array::from(vec![i32::MAX]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN]))),
        ("parts", text("[1.10,\"NaN\",null]")),
        ("doc", text("{\"b\": 1,  \"a\": 1e5}")),
        ("free", text("NaN")),
        ("key", Arc::new(uuid)),
    ]);
    let extension = |field: &Field, name: &str| {
        let pair = ("ARROW:extension:name".to_owned(), name.to_owned());
        field.clone().with_metadata([pair].into())
    };
    let fields: Vec<_> = columns
        .schema()
        .fields()
        .iter()
        .map(|field| match field.name().as_str() {
            "parts" | "doc" => extension(field, "arrow.json"),
            "key" => extension(field, "arrow.uuid"),
            _ => field.as_ref().clone(),
        })
        .collect();
    let columns =
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.columns().to_vec()).unwrap();
    let types = [("parts", "numeric[]"), ("doc", "json"), ("free", "numeric")];
    load(&publisher, &columns, APPEND, &types).await.unwrap();
    assert_eq!(
        declared(&client).await[1..],
        [
            "day date",
            "at timestamp without time zone",
            "parts jsonb",
            "doc json",
            "free text",
            "key uuid"
        ]
    );
    let row = client
        .query_one("SELECT row(day, at, parts, doc, free, key)::text FROM lake.t", &[])
        .await
        .unwrap();
    assert_eq!(
        row.get::<_, String>(0),
        "(infinity,-infinity,\"[1.10, \"\"NaN\"\", null]\",\"{\"\"b\"\": 1,  \"\"a\"\": 1e5}\",NaN,\
         07070707-0707-0707-0707-070707070707)"
    );
    assert_eq!(columns.column(0).data_type(), &DataType::Int64);
    database.drop_now().await;
}
