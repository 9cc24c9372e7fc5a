//! Values that the lake's types cannot hold, under each policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    Date32Type, Float32Type, Float64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use tidelake_connector::Source;
use tidelake_model::{Error, ErrorKind, InfiniteTime, Policies, SpecialNumber, TableRead};

use crate::common::{Database, split, table, whole};
use crate::scalars::as_text;

type Found = (RecordBatch, BTreeMap<String, u64>);

async fn read_one(source: &Arc<dyn Source>, read: TableRead) -> Result<Found, Error> {
    let slices = split(source, read, 1).await;
    let reading = source.read(&slices.slices[0]).await?;
    let counters = reading.counters.clone();
    let batches: Vec<RecordBatch> = futures::TryStreamExt::try_collect(reading.batches).await?;
    Ok((batches[0].clone(), counters.snapshot()))
}

async fn read_with(source: &Arc<dyn Source>, policies: Policies) -> Result<Found, Error> {
    let found = table(source, "t").await;
    read_one(source, TableRead { policies, ..whole(&found) }).await
}

fn nulls(batch: &RecordBatch) -> Vec<usize> {
    batch.columns().iter().map(|column| column.null_count()).collect()
}

fn numbers(special_number: SpecialNumber) -> Policies {
    Policies { special_number, ..Policies::default() }
}

fn times(infinite_time: InfiniteTime) -> Policies {
    Policies { infinite_time, ..Policies::default() }
}

const NUMBERS: &str = "
    CREATE TABLE t (d numeric(10,2), w numeric(60,2), n numeric, f real, g double precision, i int);
    INSERT INTO t VALUES ('NaN', 'NaN', 'NaN', 'NaN', 'NaN', 1),
        (1, 1, 'Infinity', 'Infinity', 'Infinity', 2), (NULL, NULL, '-Infinity', '-Infinity', '-Infinity', 3),
        (0, 0, 1.10, 0.5, 0.5, 4)";

#[tokio::test]
async fn special_numbers_follow_their_policy_and_are_counted_by_column() {
    let Some(database) = Database::make().await else { return };
    database.client().await.batch_execute(NUMBERS).await.unwrap();
    let source = database.source().await;
    let counts = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>()
    };
    for policy in [SpecialNumber::Nan, SpecialNumber::Text] {
        let (batch, counters) = read_with(&source, numbers(policy)).await.unwrap();
        assert_eq!(nulls(&batch), [2, 2, 0, 0, 0, 0]);
        assert_eq!(counts(&counters), ["special_number:d 1", "special_number:w 1"]);
        let texts: Vec<_> = batch.column(2).as_string::<i32>().iter().flatten().collect();
        assert_eq!(texts, ["NaN", "Infinity", "-Infinity", "1.10"]);
        let floats = batch.column(3).as_primitive::<Float32Type>();
        assert!(
            floats.value(0).is_nan() && floats.value(1) > f32::MAX && floats.value(2) < f32::MIN
        );
        let doubles = batch.column(4).as_primitive::<Float64Type>();
        assert!(
            doubles.value(0).is_nan() && doubles.value(1) > f64::MAX && doubles.value(2) < f64::MIN
        );
    }
    let (batch, counters) = read_with(&source, numbers(SpecialNumber::Null)).await.unwrap();
    assert_eq!(nulls(&batch), [2, 2, 3, 3, 3, 0]);
    assert_eq!(
        counts(&counters),
        [
            "special_number:d 1",
            "special_number:f 3",
            "special_number:g 3",
            "special_number:n 3",
            "special_number:w 1"
        ]
    );
    // Under `text` the columns of decimals are text.
    for name in ["d", "w", "n", "f", "g"] {
        let found = table(&source, "t").await;
        let read =
            as_text(TableRead { policies: numbers(SpecialNumber::Text), ..whole(&found) }, name);
        let (batch, counters) = read_one(&source, read).await.unwrap();
        assert_eq!(batch.column_by_name(name).unwrap().as_string::<i32>().value(0), "NaN");
        assert!(!counters.contains_key(&format!("special_number:{name}")));
    }
    for name in ["d", "w", "n", "f", "g"] {
        let found = table(&source, "t").await;
        let mut read = TableRead { policies: numbers(SpecialNumber::Fail), ..whole(&found) };
        read.columns.retain(|column| [name, "i"].contains(&column.name()));
        let error = read_one(&source, read).await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(text.contains(&format!("column {name:?}")) && text.contains("(row 1 of"), "{text}");
        assert!(error.hint().unwrap().contains("--on-special-number"));
    }
    database.drop_now().await;
}

const TIMES: &str = "
    CREATE TABLE t (d date, ts timestamp, tz timestamptz, at time);
    INSERT INTO t VALUES ('infinity', 'infinity', 'infinity', '24:00'),
        ('-infinity', '-infinity', '-infinity', '00:00'),
        ('5874897-12-31', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999Z', '23:59:59.999999'),
        ('4714-11-24 BC', '4714-11-24 BC', '4714-11-24 00:00Z BC', NULL)";

#[tokio::test]
async fn infinite_times_follow_their_policy_and_are_counted_by_column() {
    let Some(database) = Database::make().await else { return };
    database.client().await.batch_execute(TIMES).await.unwrap();
    let source = database.source().await;
    let wanted = [("at", 1), ("d", 2), ("ts", 3), ("tz", 3)];
    let wanted: BTreeMap<_, u64> =
        wanted.into_iter().map(|(name, count)| (format!("infinite_time:{name}"), count)).collect();
    let (batch, counters) = read_with(&source, times(InfiniteTime::Null)).await.unwrap();
    assert_eq!((nulls(&batch), &counters), (vec![2, 3, 3, 2], &wanted));
    let (batch, counters) = read_with(&source, times(InfiniteTime::Clamp)).await.unwrap();
    assert_eq!((nulls(&batch), &counters), (vec![0, 0, 0, 1], &wanted));
    let days = batch.column(0).as_primitive::<Date32Type>();
    assert_eq!(days.values()[..], [i32::MAX, i32::MIN, 2_145_042_905, -2_440_588]);
    for column in [1, 2] {
        let moments = batch.column(column).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(moments.values()[..], [i64::MAX, i64::MIN, i64::MAX, -210_866_803_200_000_000]);
    }
    let at = batch.column(3).as_primitive::<Time64MicrosecondType>();
    assert_eq!(at.values()[..3], [86_399_999_999, 0, 86_399_999_999]);
    // Under `text` the columns are text, and say what the server says.
    let found = table(&source, "t").await;
    let mut read = TableRead { policies: times(InfiniteTime::Text), ..whole(&found) };
    for name in ["d", "ts", "tz", "at"] {
        read = as_text(read, name);
    }
    let (batch, counters) = read_one(&source, read).await.unwrap();
    assert!(counters.is_empty());
    let texts = |row| -> Vec<_> {
        batch.columns().iter().map(|column| column.as_string::<i32>().value(row)).collect()
    };
    assert_eq!(texts(0), ["infinity", "infinity", "infinity", "24:00:00"]);
    assert_eq!(
        texts(2),
        [
            "5874897-12-31",
            "294276-12-31 23:59:59.999999",
            "294276-12-31 23:59:59.999999+00",
            "23:59:59.999999"
        ]
    );
    assert_eq!(
        texts(3)[..3],
        ["4714-11-24 BC", "4714-11-24 00:00:00 BC", "4714-11-24 00:00:00+00 BC"]
    );
    for name in ["d", "ts", "tz", "at"] {
        let mut read = TableRead { policies: times(InfiniteTime::Fail), ..whole(&found) };
        read.columns.retain(|column| column.name() == name);
        let error = read_one(&source, read).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("column {name:?}")) && text.contains("(row 1 of"), "{text}");
        assert!(error.hint().unwrap().contains("--on-infinite-time"));
    }
    database.drop_now().await;
}

#[tokio::test]
async fn what_would_be_null_where_none_may_be_is_an_error() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (d date NOT NULL, n numeric(5,2) NOT NULL, f real NOT NULL); \
             INSERT INTO t VALUES ('infinity', 'NaN', 'NaN')",
        )
        .await
        .unwrap();
    let source = database.source().await;
    let found = table(&source, "t").await;
    for name in ["d", "n", "f"] {
        let mut read = TableRead { policies: numbers(SpecialNumber::Null), ..whole(&found) };
        read.columns.retain(|column| column.name() == name);
        let error = read_one(&source, read).await.unwrap_err();
        assert!(error.to_string().contains("cannot be NULL"), "{error:?}");
    }
    database.drop_now().await;
}
