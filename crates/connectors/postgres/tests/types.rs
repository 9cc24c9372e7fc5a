//! Every scalar type: read back and compared with what the server itself prints.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

mod common;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use common::{Database, collect, split, table, whole};
use tidelake_connector::Source;
use tidelake_model::{Column, InfiniteTime, Policies, ReadMethod, SpecialNumber, TableRead};
use tidelake_watermark::{Kind, Value};
use tokio_postgres::SimpleQueryMessage;

/// Name, type, values as literals.
type Sample = (&'static str, &'static str, &'static [&'static str]);

const PLAIN: &[Sample] = &[
    ("bool", "boolean", &["true", "false"]),
    ("int2", "smallint", &["-32768", "32767", "0"]),
    ("int4", "integer", &["-2147483648", "2147483647", "0"]),
    ("int8", "bigint", &["-9223372036854775808", "9223372036854775807", "0"]),
    ("oid", "oid", &["0", "4294967295"]),
    ("xid8", "xid8", &["0", "18446744073709551615"]),
    ("float4", "real", &["0", "-0", "1.5", "3.4028235e38", "1e-45", "NaN", "Infinity", "0.1"]),
    (
        "float8",
        "double precision",
        &["0", "-0", "1.7976931348623157e308", "5e-324", "-Infinity", "0.1"],
    ),
    (
        "n_15_2",
        "numeric(15,2)",
        &["0", "0.01", "-0.01", "9999999999999.99", "-9999999999999.99", "100"],
    ),
    (
        "n_38_10",
        "numeric(38,10)",
        &["9999999999999999999999999999.9999999999", "-0.0000000001", "12345678901234567890"],
    ),
    (
        "n_38_0",
        "numeric(38)",
        &["99999999999999999999999999999999999999", "-1", "10000", "20000000"],
    ),
    ("n_4_0", "numeric(4,0)", &["2013", "-9999"]),
    ("n_39_1", "numeric(39,1)", &["99999999999999999999999999999999999999.9", "-0.1"]),
    (
        "n_76_38",
        "numeric(76,38)",
        &["-99999999999999999999999999999999999999.99999999999999999999999999999999999999", "1"],
    ),
    (
        "n_77_0",
        "numeric(77,0)",
        &["1", "-99999999999999999999999999999999999999999999999999999999999999999999999999999"],
    ),
    ("n_5_m2", "numeric(5,-2)", &["9999900", "-100", "0"]),
    ("n_3_5", "numeric(3,5)", &["0.00999", "-0.00001", "0"]),
    ("n_free", "numeric", &["0", "1.10", "-1e-40", "1e60", "NaN", "Infinity"]),
    (
        "date",
        "date",
        &[
            "1970-01-01",
            "2000-01-01",
            "4714-11-24 BC",
            "0001-12-31 BC",
            "5874897-12-31",
            "1999-12-31",
        ],
    ),
    ("time", "time", &["00:00", "23:59:59.999999"]),
    ("timetz", "timetz", &["00:00+15:59", "23:59:59.999999-15:59"]),
    (
        "ts",
        "timestamp",
        &[
            "1970-01-01",
            "4714-11-24 BC",
            "294246-12-31 23:59:59.999999",
            "1999-12-31 23:59:59.999999",
            "0044-03-15 12:00 BC",
        ],
    ),
    ("ts0", "timestamp(0)", &["2026-11-30 09:15:00"]),
    (
        "tstz",
        "timestamptz",
        &[
            "1970-01-01Z",
            "4714-11-24Z BC",
            "294246-12-31 23:59:59.999999Z",
            "2026-11-30 09:15:00.123456+02",
        ],
    ),
    ("tstz3", "timestamptz(3)", &["2026-11-30 09:15:00.123Z"]),
    ("interval", "interval", &["1 year 2 months -3 days 04:05:06.789", "0", "-178000000 years"]),
    (
        "uuid",
        "uuid",
        &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
    ),
    ("json", "json", &["{\"b\": 1,  \"a\": [null]}", "null", "\"é\""]),
    ("jsonb", "jsonb", &["{\"b\": 1,  \"a\": [null]}", "1e5"]),
    ("bytea", "bytea", &["", "\\x00ff5c27", "abc"]),
    ("text", "text", &["", "it's \"x\" \\ é 名 🌊", "a\tb\nc"]),
    ("varchar", "varchar(10)", &["", "0123456789"]),
    ("name", "name", &["a name"]),
    ("inet", "inet", &["10.0.0.1/8", "192.168.1.1", "::1"]),
    ("cidr", "cidr", &["10.0.0.0/8"]),
    ("macaddr", "macaddr", &["08:00:2b:01:02:03"]),
    ("macaddr8", "macaddr8", &["08:00:2b:01:02:03:04:05"]),
    ("bit", "bit(4)", &["1010"]),
    ("varbit", "varbit", &["", "10111"]),
    ("xml", "xml", &["<a>é</a>"]),
    ("money", "money", &["-12.34", "92233720368547758.07"]),
    ("point", "point", &["(1.5,-2)"]),
    ("polygon", "polygon", &["((0,0),(1,1),(2,0.1))"]),
    ("pg_lsn", "pg_lsn", &["16/B374D848"]),
    ("tsvector", "tsvector", &["'a':1 'b':2"]),
    ("ints", "integer[]", &["{}", "{1,NULL,3}", "{{1,2},{3,4}}"]),
    ("texts", "text[]", &["{a,\"b c\",NULL}"]),
    ("range", "tstzrange", &["[2026-01-01,2026-02-01)", "empty"]),
    ("multirange", "int4multirange", &["{[1,3),[5,9)}"]),
    ("mood", "mood", &["sad", "it's ok"]),
    ("pair", "pair", &["(1,\"a b\")"]),
    ("positive", "positive", &["1", "2147483647"]),
    ("cents", "cents", &["0.01", "-12.50"]),
    ("deep", "deep", &["99.99"]),
];

const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
    CREATE TYPE pair AS (a integer, b text);
    CREATE DOMAIN positive AS integer CHECK (value > 0);
    CREATE DOMAIN cents AS numeric(10,2);
    CREATE DOMAIN deep AS cents;";

/// Whether the cell is what the server prints.
fn same(column: &ArrayRef, row: usize, text: &str) -> bool {
    use DataType as T;
    match column.data_type() {
        T::Boolean => column.as_boolean().value(row).to_string() == text,
        T::Int16 => column.as_primitive::<Int16Type>().value(row).to_string() == text,
        T::Int32 => column.as_primitive::<Int32Type>().value(row).to_string() == text,
        T::Int64 => column.as_primitive::<Int64Type>().value(row).to_string() == text,
        T::UInt32 => column.as_primitive::<UInt32Type>().value(row).to_string() == text,
        T::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string() == text,
        T::Float32 => {
            let value: f32 = text.parse().unwrap();
            column.as_primitive::<Float32Type>().value(row).total_cmp(&value).is_eq()
        }
        T::Float64 => {
            let value: f64 = text.parse().unwrap();
            column.as_primitive::<Float64Type>().value(row).total_cmp(&value).is_eq()
        }
        T::Decimal128(_, _) => column.as_primitive::<Decimal128Type>().value_as_string(row) == text,
        T::Decimal256(_, _) => column.as_primitive::<Decimal256Type>().value_as_string(row) == text,
        T::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            Value::parse(Kind::Date, text).unwrap() == Value::Date(days.into())
        }
        T::Time64(_) => {
            let micros = column.as_primitive::<Time64MicrosecondType>().value(row);
            let parts: Vec<f64> = text.split(':').map(|part| part.parse().unwrap()).collect();
            let seconds = parts[0] * 3600.0 + parts[1] * 60.0 + parts[2];
            (seconds * 1e6).round() as i64 == micros
        }
        T::Timestamp(_, zone) => {
            let nanos =
                i128::from(column.as_primitive::<TimestampMicrosecondType>().value(row)) * 1000;
            let (kind, value) = match zone {
                None => (Kind::Datetime, Value::Datetime(nanos)),
                Some(_) => (Kind::Timestamp, Value::Timestamp(nanos)),
            };
            Value::parse(kind, text).unwrap() == value
        }
        T::FixedSizeBinary(16) => {
            let hex: String = column
                .as_fixed_size_binary()
                .value(row)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            hex == text.replace('-', "")
        }
        T::Binary => {
            let hex: String =
                column.as_binary::<i32>().value(row).iter().map(|b| format!("{b:02x}")).collect();
            format!("\\x{hex}") == text
        }
        T::Utf8 => column.as_string::<i32>().value(row) == text,
        other => panic!("{other} is compared by nobody"),
    }
}

#[tokio::test]
async fn every_scalar_type_is_what_the_server_prints() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(TYPES).await.unwrap();
    client
        .batch_execute(
            "SET TimeZone = 'UTC'; SET IntervalStyle = 'iso_8601'; SET DateStyle = 'ISO'; \
             SET extra_float_digits = 3; SET bytea_output = 'hex'",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let mut failures = vec![];
    for (name, declared, values) in PLAIN {
        let mut rows: Vec<_> =
            values.iter().map(|value| format!("('{}')", value.replace('\'', "''"))).collect();
        rows.push("(NULL)".to_owned());
        let statements = format!(
            "CREATE TABLE \"t {name}\" (n serial, v {declared}); INSERT INTO \"t {name}\" (v) VALUES {}",
            rows.join(", ")
        );
        client.batch_execute(&statements).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let found = table(&source, &format!("t {name}")).await;
        assert_eq!(found.columns[1].warning, None, "{name}");
        let slices = split(&source, whole(&found), 1).await;
        let batches = match collect(&source, &slices).await {
            Ok(batches) => batches,
            Err(error) => {
                failures.push(format!("{name}: {error:?}"));
                continue;
            }
        };
        let column = batches[0].column(1);
        let printed =
            client.simple_query(&format!("SELECT v::text FROM \"t {name}\" ORDER BY n")).await;
        let printed: Vec<Option<String>> = printed
            .unwrap()
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
                _ => None,
            })
            .collect();
        assert_eq!(printed.len(), column.len(), "{name}");
        for (row, text) in printed.iter().enumerate() {
            let fits = match text {
                None => column.is_null(row),
                Some(text) => !column.is_null(row) && same(column, row, text),
            };
            if !fits {
                let shown = arrow::util::display::array_value_to_string(column, row);
                failures.push(format!("{name}: the server prints {text:?}, read was {shown:?}"));
            }
        }
    }
    database.drop_now().await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

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

async fn read_with(
    source: &Arc<dyn Source>,
    policies: Policies,
) -> Result<
    (Vec<arrow::array::RecordBatch>, std::collections::BTreeMap<String, u64>),
    tidelake_model::Error,
> {
    let found = table(source, "t").await;
    let read = TableRead { policies, ..whole(&found) };
    let slices = split(source, read, 1).await;
    let reading = source.read(&slices.slices[0]).await?;
    let counters = reading.counters.clone();
    let batches = futures::TryStreamExt::try_collect(reading.batches).await?;
    Ok((batches, counters.snapshot()))
}

#[tokio::test]
async fn values_without_a_place_follow_the_policies() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (n numeric(10,2), d date, ts timestamp, tz timestamptz); \
             INSERT INTO t VALUES ('NaN', 'infinity', 'infinity', 'infinity'), \
             (1, '-infinity', '-infinity', '-infinity'), \
             (NULL, NULL, '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999Z')",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let (batches, counters) = read_with(&source, Policies::default()).await.unwrap();
    let nulls: Vec<_> = batches[0].columns().iter().map(|column| column.null_count()).collect();
    assert_eq!(nulls, [2, 3, 3, 3]);
    assert_eq!((counters["special_number"], counters["infinite_time"]), (1, 8));
    let clamp = Policies { infinite_time: InfiniteTime::Clamp, ..Policies::default() };
    let (batches, counters) = read_with(&source, clamp).await.unwrap();
    let moments = batches[0].column(3).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(moments.values()[..], [i64::MAX, i64::MIN, i64::MAX]);
    assert_eq!(counters["infinite_time"], 8);
    let fail = Policies { special_number: SpecialNumber::Fail, ..Policies::default() };
    let error = read_with(&source, fail).await.unwrap_err();
    assert!(error.to_string().contains("\"n\""), "{error:?}");
    // Whoever asks for text gets what the server prints.
    let mut found = table(&source, "t").await;
    for column in &mut found.columns {
        column.field = column.field.clone().with_data_type(DataType::Utf8);
    }
    let request = tidelake_connector::SplitRequest {
        read: whole(&found),
        degree: 1,
        method: ReadMethod::Auto,
        key: None,
    };
    let slices = source.split(&request).await.unwrap();
    let batches = collect(&source, &slices).await.unwrap();
    let texts: Vec<_> =
        batches[0].columns().iter().map(|column| column.as_string::<i32>().value(0)).collect();
    assert_eq!(texts, ["NaN", "infinity", "infinity", "infinity"]);
    database.drop_now().await;
}

#[tokio::test]
async fn the_end_of_a_day_is_no_time_of_day_in_a_file() {
    let Some(database) = Database::make().await else { return };
    let statements = "CREATE TABLE t (at time); INSERT INTO t VALUES ('24:00'), ('23:59')";
    database.client().await.batch_execute(statements).await.unwrap();
    let source = database.source().await;
    let (batches, counters) = read_with(&source, Policies::default()).await.unwrap();
    let times = batches[0].column(0).as_primitive::<Time64MicrosecondType>();
    assert!(times.is_null(0) && times.value(1) == 86_340_000_000);
    assert_eq!(counters["infinite_time"], 1);
    let clamp = Policies { infinite_time: InfiniteTime::Clamp, ..Policies::default() };
    let (batches, _) = read_with(&source, clamp).await.unwrap();
    let times = batches[0].column(0).as_primitive::<Time64MicrosecondType>();
    assert_eq!(times.value(0), 86_399_999_999);
    database.drop_now().await;
}
