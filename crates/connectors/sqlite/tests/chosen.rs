//! Columns whose type the user chose, and policies.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, TimeUnit};
use futures::TryStreamExt;
use support::{Database, cells};
use tidelake_model::{ErrorKind, InfiniteTime, Policies, Result, SpecialNumber, TimestampUnit};

/// Reads values of a column as a type, with what was counted.
async fn read_as(
    declaration: &str,
    values: &[&str],
    data_type: Option<DataType>,
    policies: Policies,
) -> Result<(Vec<String>, BTreeMap<String, u64>)> {
    let database = Database::new(&format!("CREATE TABLE t (v {declaration})")).await;
    for value in values {
        database.execute(&format!("INSERT INTO t VALUES ({value})"));
    }
    let mut read = database.whole("t").await;
    if let Some(data_type) = data_type {
        let column = &mut read.columns[0];
        column.field = column.field.clone().with_data_type(data_type);
        column.chosen = true;
    }
    read.policies = policies;
    let slices = database.split_by(&read, 1).await?;
    let reading = database.source.read(&slices.slices[0]).await?;
    let batches = reading.batches.try_collect::<Vec<_>>().await?;
    let rows = batches.iter().flat_map(cells).map(|mut row| row.remove(0)).collect();
    Ok((rows, reading.counters.snapshot()))
}

const ODD: &[&str] = &[
    "NULL",
    "1",
    "-123456789012345",
    "1.5",
    "0.1 + 0.2",
    "1e20",
    "9e999",
    "'text'",
    "''",
    "'a' || char(0) || 'b'",
    "'12'",
    "x''",
    "x'00ff'",
    "CAST(x'C328' AS TEXT)",
];

#[tokio::test]
async fn every_class_in_every_column_is_text_where_text_was_chosen() {
    for declaration in
        ["INTEGER", "REAL", "TEXT", "BLOB", "DECIMAL(10,2)", "DATETIME", "BOOLEAN", ""]
    {
        let database = Database::new(&format!("CREATE TABLE t (v {declaration})")).await;
        let mut wanted = vec![];
        for value in ODD {
            database.execute(&format!("DELETE FROM t; INSERT INTO t VALUES ({value})"));
            // The shell's own text, `quote()` for bytes and for the digits of a
            // float that a cast to text cuts off.
            let statement = "SELECT CASE WHEN v IS NULL THEN '-'
                WHEN typeof(v) = 'blob' THEN quote(v)
                WHEN hex(v) = 'C328' THEN 'X''C328'''
                WHEN typeof(v) = 'real' AND v = 0.1 + 0.2 THEN '0.30000000000000004'
                ELSE CAST(v AS TEXT) END FROM t";
            let text: String = database.writer.query_row(statement, [], |row| row.get(0)).unwrap();
            wanted.push(text);
        }
        let read = read_as(declaration, ODD, Some(DataType::Utf8), Policies::default()).await;
        let (found, counts) = read.unwrap();
        assert_eq!(found, wanted, "{declaration}");
        assert_eq!(counts["blob_as_text:v"], 2, "{declaration}");
        assert_eq!(counts["invalid_text:v"], 1, "{declaration}");
    }
}

#[tokio::test]
async fn misfits_name_the_place_the_value_and_the_remedy() {
    for (declaration, value, shown) in [
        ("INTEGER", "'seven'", "the text 'seven', which is no integer"),
        ("INTEGER", "1.5", "the real number 1.5, which is no integer"),
        ("TEXT", "x'00ff'", "the blob X'00FF', which is no text"),
        ("TEXT", "CAST(x'C328' AS TEXT)", "no valid UTF-8, X'C328'"),
        ("BOOLEAN", "2", "the integer 2, which is no boolean"),
        ("REAL", "'1,5'", "the text '1,5', which is no float"),
        ("BLOB", "1", "the integer 1, which is no blob"),
        ("DATE", "'soon'", "the text 'soon', which is no time"),
        ("DATE", "'2026-11-30 12:00'", "it is not midnight"),
        ("DECIMAL(5,2)", "1000", "decimal of exactly 5 digits"),
        ("JSON", "''", "the text '', which is no JSON"),
        ("JSON", "'{a: 1}'", "the text '{a: 1}', which is no JSON"),
        ("JSON", "9e999", "the real number Inf, which is no JSON"),
    ] {
        let error = read_as(declaration, &["NULL", value], None, Policies::default()).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{declaration} {value}");
        assert!(error.message().contains("column \"v\" holds"), "{error:?}");
        assert!(error.message().contains(shown), "{error:?}");
        assert!(error.message().contains("(rowid 2)"), "{error:?}");
        assert!(error.hint().unwrap().contains("--type-cast main.t:v:text"), "{error:?}");
        assert_eq!(error.table().unwrap().to_string(), "main.t");
    }
}

#[tokio::test]
async fn decimals_are_exact_or_refused() {
    let exact = DataType::Decimal128(12, 3);
    for (declaration, values, wanted) in [
        ("INTEGER", &["5", "-7"][..], &["5.000", "-7.000"][..]),
        ("TEXT", &["'1.25'", "'-0.001'", "'7'"], &["1.250", "-0.001", "7.000"]),
        ("REAL", &["1.125", "0.1", "-3"], &["1.125", "0.100", "-3.000"]),
        ("NUMERIC", &["19.99", "5"], &["19.990", "5.000"]),
    ] {
        let read = read_as(declaration, values, Some(exact.clone()), Policies::default()).await;
        assert_eq!(read.unwrap().0, wanted, "{declaration}");
    }
    for (declaration, value) in [
        ("REAL", "0.1 + 0.2"),
        ("REAL", "1.00005"),
        ("TEXT", "'1.2345'"),
        ("TEXT", "'1e3'"),
        ("TEXT", "''"),
        ("INTEGER", "1000000000"),
        ("BLOB", "x'31'"),
    ] {
        let read = read_as(declaration, &[value], Some(exact.clone()), Policies::default()).await;
        let error = read.unwrap_err();
        assert!(error.message().contains("decimal of exactly 12 digits, 3"), "{error:?}");
    }
    let wide = "'".to_owned() + &"9".repeat(74) + ".25'";
    let very_wide = Some(DataType::Decimal256(76, 2));
    let read = read_as("TEXT", &[wide.as_str()], very_wide, Policies::default()).await;
    assert_eq!(read.unwrap().0, [wide.trim_matches('\'')]);
    let thousands = Some(DataType::Decimal128(5, -3));
    let read = read_as("INTEGER", &["12000"], thousands.clone(), Policies::default()).await;
    assert_eq!(read.unwrap().0, ["12000"]);
    read_as("INTEGER", &["12001"], thousands, Policies::default()).await.unwrap_err();
}

#[tokio::test]
async fn special_numbers_follow_the_policy() {
    use SpecialNumber::*;
    let text = Some(DataType::Utf8);
    let exact = ["9e999", "'NaN'", "'-Infinity'", "1.5"];
    for (declaration, values, data_type, policy, wanted, count) in [
        ("DECIMAL(5,2)", &exact[..], None, Nan, Some(&["-", "-", "-", "1.50"][..]), 3),
        ("DECIMAL(5,2)", &exact, None, Null, Some(&["-", "-", "-", "1.50"]), 3),
        ("DECIMAL(5,2)", &exact, text.clone(), Text, Some(&["Inf", "NaN", "-Infinity", "1.5"]), 0),
        ("DECIMAL(5,2)", &exact[1..], None, Fail, None, 0),
        ("REAL", &["9e999", "-9e999"], None, Nan, Some(&["inf", "-inf"]), 0),
        ("REAL", &["9e999", "-9e999"], None, Text, Some(&["inf", "-inf"]), 0),
        ("REAL", &["9e999", "1.5"], None, Null, Some(&["-", "1.5"]), 1),
        ("REAL", &["9e999"], None, Fail, None, 0),
        ("NUMERIC", &["9e999", "'NaN'"], None, Nan, Some(&["Inf", "NaN"]), 0),
        ("NUMERIC", &["9e999", "'NaN'"], None, Null, Some(&["-", "-"]), 2),
        ("NUMERIC", &["'NaN'"], None, Fail, None, 0),
    ] {
        let policies = Policies { special_number: policy, ..Policies::default() };
        match (read_as(declaration, values, data_type, policies).await, wanted) {
            (Ok((found, counts)), Some(wanted)) => {
                assert_eq!(found, wanted, "{declaration} {policy:?}");
                assert_eq!(counts.get("special_number:v").copied().unwrap_or(0), count);
            }
            (Err(error), None) => {
                assert!(error.hint().unwrap().contains("--on-special-number"), "{error:?}");
            }
            (found, _) => panic!("{declaration} {policy:?}: {found:?}"),
        }
    }
    let policies = Policies { special_number: Null, ..Policies::default() };
    let error = read_as("REAL NOT NULL", &["9e999"], None, policies).await.unwrap_err();
    assert!(error.message().contains("cannot be NULL"), "{error:?}");
}

#[tokio::test]
async fn times_without_an_end_follow_the_policy() {
    let values = ["'infinity'", "'-infinity'", "'2026-11-30'"];
    let far = ["'300000-01-01'", "'-300000-01-01'", "'2026-11-30'"];
    for values in [values, far] {
        for (policy, is_null) in [(InfiniteTime::Null, true), (InfiniteTime::Clamp, false)] {
            let policies = Policies { infinite_time: policy, ..Policies::default() };
            let (found, counts) = read_as("DATETIME", &values, None, policies).await.unwrap();
            assert_eq!(found[0] == "-" && found[1] == "-", is_null, "{found:?}");
            assert!(is_null || found[0] != found[1], "{found:?}");
            assert_eq!(found[2], "2026-11-30T00:00:00");
            assert_eq!(counts["infinite_time:v"], 2);
        }
        let policies = Policies { infinite_time: InfiniteTime::Fail, ..Policies::default() };
        let error = read_as("DATETIME", &values, None, policies).await.unwrap_err();
        assert!(error.hint().unwrap().contains("--on-infinite-time"), "{error:?}");
        let policies = Policies { infinite_time: InfiniteTime::Text, ..Policies::default() };
        let read = read_as("DATETIME", &values, Some(DataType::Utf8), policies).await.unwrap();
        assert_eq!(read.0, values.map(|value| value.trim_matches('\'')));
    }
    let dates = ["'5000000-01-01'", "'-4712-01-01'", "'infinity'"];
    let (found, counts) = read_as("DATE", &dates, None, Policies::default()).await.unwrap();
    assert_eq!((found[0] == "-", found[1] == "-", found[2].as_str()), (false, false, "-"));
    assert_eq!(counts["infinite_time:v"], 1);
}

#[tokio::test]
async fn nanoseconds_are_carried_or_told_and_never_cut() {
    let values = ["'2026-11-30 09:15:00.123456789'", "'2026-11-30 10:00:00.1234567+01:00'"];
    let error = read_as("DATETIME", &values, None, Policies::default()).await.unwrap_err();
    assert!(error.message().contains("more than six digits"), "{error:?}");
    assert!(error.hint().unwrap().contains("--timestamp-unit ns"), "{error:?}");

    let nanoseconds = Some(DataType::Timestamp(TimeUnit::Nanosecond, None));
    let policies = Policies { timestamp_unit: TimestampUnit::Ns, ..Policies::default() };
    let read = read_as("DATETIME", &values, nanoseconds.clone(), policies).await.unwrap();
    assert_eq!(read.0, ["2026-11-30T09:15:00.123456789", "2026-11-30T09:00:00.123456700"]);
    // Outside the years 1677 to 2262 they do not fit.
    let far = ["'9999-12-31'", "'2026-11-30'"];
    let (found, counts) = read_as("DATETIME", &far, nanoseconds.clone(), policies).await.unwrap();
    assert_eq!(found, ["-", "2026-11-30T00:00:00"]);
    assert_eq!(counts["infinite_time:v"], 1);
    let policies = Policies { infinite_time: InfiniteTime::Fail, ..policies };
    read_as("DATETIME", &far, nanoseconds, policies).await.unwrap_err();
}

#[tokio::test]
async fn other_chosen_types_are_exact_too() {
    let int = Some(DataType::Int64);
    let (found, _) =
        read_as("TEXT", &["'12'", "'-9'"], int.clone(), Policies::default()).await.unwrap();
    assert_eq!(found, ["12", "-9"]);
    read_as("TEXT", &["'1.0'"], int, Policies::default()).await.unwrap_err();
    let binary = Some(DataType::Binary);
    let odd = ["x'00ff'", "CAST(x'C328' AS TEXT)", "'ü'"];
    let (found, _) = read_as("TEXT", &odd, binary, Policies::default()).await.unwrap();
    assert_eq!(found, ["00ff", "c328", "c3bc"]);
    let refused =
        read_as("TEXT", &["1"], Some(DataType::Duration(TimeUnit::Second)), Policies::default());
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::Unsupported);
}
