//! What each declared type and stored form becomes, and what fails.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use arrow::datatypes::{DataType, TimeUnit};
use support::{Database, window};
use tidelake_connector::{Effort, HighestRequest};
use tidelake_model::{CursorRead, ErrorKind, Policies, SpecialNumber, TableRead};
use tidelake_watermark::{Cursor, Kind};

/// Inserts each expression into a column of its own table, and gives the cells.
async fn stored(declaration: &str, values: &[&str]) -> tidelake_model::Result<Vec<String>> {
    let database = Database::new(&format!("CREATE TABLE t (v {declaration})")).await;
    for value in values {
        database.execute(&format!("INSERT INTO t VALUES ({value})"));
    }
    database.column("t", "v").await
}

async fn carried(declaration: &str, values: &[(&str, &str)]) {
    for (value, wanted) in values {
        let found = stored(declaration, &[value]).await;
        let found = found.unwrap_or_else(|error| panic!("{declaration} {value}: {error:?}"));
        assert_eq!(found, [*wanted], "{declaration} {value}");
    }
    let all: Vec<_> = values.iter().map(|(value, _)| *value).collect();
    let nulls = stored(declaration, &["NULL"]).await.unwrap();
    assert_eq!(nulls, ["-"], "{declaration} {all:?}");
}

async fn refused(declaration: &str, values: &[&str]) {
    for value in values {
        // The second of two rows, so that its number is told from the first.
        match stored(declaration, &["NULL", value]).await {
            Ok(found) => panic!("{declaration} {value} became {found:?}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
                assert!(error.message().contains("\"v\""), "{error:?}");
                assert!(error.message().contains("(rowid 2)"), "{error:?}");
                assert!(error.hint().is_some(), "{error:?}");
            }
        }
    }
}

#[tokio::test]
async fn integers() {
    carried(
        "INTEGER",
        &[
            ("42", "42"),
            ("'7'", "7"),
            ("1.0", "1"),
            ("-9223372036854775808", "-9223372036854775808"),
        ],
    )
    .await;
    refused("BIGINT", &["'seven'", "1.5", "x'00'", "1e300", "'18446744073709551615'"]).await;
}

#[tokio::test]
async fn booleans() {
    carried("BOOLEAN", &[("0", "false"), ("1", "true"), ("'True'", "true"), ("FALSE", "false")])
        .await;
    refused("BOOL", &["2", "'yes'", "0.5", "x'01'"]).await;
}

#[tokio::test]
async fn floats() {
    carried("DOUBLE", &[("1.5", "1.5"), ("2", "2.0"), ("-0.1", "-0.1"), ("9e999", "inf")]).await;
    refused("REAL", &["'NaN'", "'1,5'", "x'00'"]).await;
}

#[tokio::test]
async fn decimals() {
    carried(
        "DECIMAL(10,2)",
        &[
            ("19.99", "19.99"),
            ("'19.99'", "19.99"),
            ("5", "5.00"),
            ("-0.07", "-0.07"),
            ("1e3", "1000.00"),
            ("0", "0.00"),
            ("99999999.99", "99999999.99"),
        ],
    )
    .await;
    refused("DECIMAL(10,2)", &["0.1 + 0.2", "19.991", "100000000", "'abc'", "x'31'"]).await;
    // Two decimals of this scale are one float: which was meant is lost.
    refused("DECIMAL(22,2)", &["'12345678901234567890.12'"]).await;
    carried("NUMERIC(5)", &[("12345", "12345")]).await;
    refused("NUMERIC(5)", &["123456", "1.5"]).await;
    carried(
        "NUMERIC",
        &[("19.99", "19.99"), ("5", "5"), ("'abc'", "abc"), ("1e20", "100000000000000000000")],
    )
    .await;
}

#[tokio::test]
async fn infinite_decimals_follow_the_policy() {
    let database =
        Database::new("CREATE TABLE t (v DECIMAL(10,2)); INSERT INTO t VALUES (9e999), (1)").await;
    let read = database.whole("t").await;
    assert_eq!(database.rows(&read).await.unwrap(), [["-"], ["1.00"]]);

    let policies = Policies { special_number: SpecialNumber::Fail, ..Policies::default() };
    let error = database.rows(&TableRead { policies, ..read.clone() }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);

    let slices = database.split_by(&read, 1).await.unwrap();
    let reading = database.source.read(&slices.slices[0]).await.unwrap();
    futures::TryStreamExt::try_collect::<Vec<_>>(reading.batches).await.unwrap();
    let counts = reading.counters.snapshot();
    assert_eq!(counts["special_number:v"], 1);
}

#[tokio::test]
async fn texts() {
    carried(
        "VARCHAR(3)",
        &[("'longer'", "longer"), ("12", "12"), ("1.5", "1.5"), ("''", ""), ("'ü🌊'", "ü🌊")],
    )
    .await;
    refused("TEXT", &["x'00'", "CAST(x'C328' AS TEXT)"]).await;
    carried("STRING", &[("'007'", "7"), ("'a7'", "a7")]).await;
    carried("TIME", &[("'09:15:00'", "09:15:00")]).await;
    carried("JSON", &[("'{\"a\": 1}'", "{\"a\": 1}"), ("5", "5")]).await;
    carried(
        "UUID",
        &[
            ("'0F8FAD5B-D9CB-469F-A165-70867728950E'", "0F8FAD5B-D9CB-469F-A165-70867728950E"),
            ("x'0F8FAD5BD9CB469FA16570867728950E'", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ],
    )
    .await;
    refused("UUID", &["x'0F8F'"]).await;
}

#[tokio::test]
async fn bytes() {
    carried("BLOB", &[("x'00ff'", "00ff"), ("x''", "")]).await;
    refused("BLOB", &["'text'", "1", "1.5"]).await;
}

#[tokio::test]
async fn untyped_columns_are_text() {
    carried("", &[("1", "1"), ("1.0", "1.0"), ("'a'", "a"), ("1e300", "1.0e+300")]).await;
    refused("", &["x'00'"]).await;
    carried("MONEY", &[("19.99", "19.99")]).await;
}

#[tokio::test]
async fn dates() {
    carried(
        "DATE",
        &[
            ("'2026-11-30'", "2026-11-30"),
            ("'2026-11-30 00:00:00'", "2026-11-30"),
            ("'2026-11-30T00:00:00.000Z'", "2026-11-30"),
            ("1795996800", "2026-11-30"),
            ("1795996800000", "2026-11-30"),
            ("julianday('2026-11-30')", "2026-11-30"),
            ("'0001-01-01'", "0001-01-01"),
            ("'9999-12-31'", "9999-12-31"),
        ],
    )
    .await;
    refused(
        "DATE",
        &[
            "'2026-11-30 00:00:01'",
            "20261130",
            "'2026-02-30'",
            "'30.11.2026'",
            "''",
            "x'00'",
            "'now'",
        ],
    )
    .await;
}

#[tokio::test]
async fn times() {
    let shown = "2026-11-30T09:15:00";
    let fraction = "2026-11-30T09:15:00.123456";
    carried(
        "DATETIME",
        &[
            ("'2026-11-30 09:15:00'", shown),
            ("'2026-11-30T09:15'", shown),
            ("'2026-11-30T09:15:00Z'", shown),
            ("'2026-11-30 10:15:00+01:00'", shown),
            ("'2026-11-30 09:15:00.123456'", fraction),
            ("'2026-11-30T09:15:00.123456000Z'", fraction),
            ("'2026-11-30'", "2026-11-30T00:00:00"),
            ("1796030100", shown),
            ("1796030100.123456", fraction),
            ("1796030100000", shown),
            ("1796030100123456", fraction),
            ("julianday('2026-11-30 09:15:00')", shown),
            ("julianday('2026-11-30 09:15:00.123')", "2026-11-30T09:15:00.123"),
            ("0", "1970-01-01T00:00:00"),
            ("-86400", "1969-12-31T00:00:00"),
        ],
    )
    .await;
    carried("TIMESTAMPTZ", &[("'2026-11-30 10:15:00+01:00'", "2026-11-30T09:15:00Z")]).await;
    carried("DATETIME(9)", &[("'2026-11-30 09:15:00.123456789'", "2026-11-30T09:15:00.123456789")])
        .await;
    refused(
        "TIMESTAMP",
        &[
            "'2026-11-30 09:15:00.1234567891'",
            "'2026-11-30 25:00:00'",
            "'yesterday'",
            "''",
            "9223372036854775807",
            "9e999",
            "x'00'",
            "1796030100.1234567",
            // A julian day at noon, or seconds early in 1970.
            "2461375",
        ],
    )
    .await;
    // Beyond what 64 bits of nanoseconds count.
    carried("DATETIME(9)", &[("'9999-12-31 00:00:00'", "-")]).await;
    carried("DATETIME", &[("'-0043-03-15'", "-0043-03-15T00:00:00"), ("'infinity'", "-")]).await;
    refused("DATETIME(6)", &["'2026-11-30 09:15:00.1234567'"]).await;
}

#[tokio::test]
async fn each_cell_of_a_column_has_its_own_form_but_one_unit() {
    let noon = "2026-11-30T12:00:00";
    let mixed = stored(
        "DATETIME",
        &["'2026-11-30 12:00'", "1796040000", "'2026-11-30T12:00:00Z'", "0", "NULL"],
    );
    assert_eq!(mixed.await.unwrap(), [noon, noon, noon, "1970-01-01T00:00:00", "-"]);
    // The column holds julian days, so a whole one is told from seconds.
    let julian = stored("DATETIME", &["2461375", "2461375.25"]).await.unwrap();
    assert_eq!(julian, [noon, "2026-11-30T18:00:00"]);
    for values in [
        ["1796040000", "1796040000000"],
        ["1796040000000", "1796040000"],
        ["2461375.25", "1796040000"],
    ] {
        let error = stored("DATETIME", &values).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{values:?}");
        assert!(error.message().contains("among"), "{error:?}");
    }
}

#[tokio::test]
async fn mixed_forms_in_a_cursor_are_refused_by_name() {
    for (values, names) in [
        ("('2026-11-30 12:00:00'), (1796040000)", ["text", "seconds"]),
        ("(1796040000), (1796040000000)", ["seconds", "milliseconds"]),
        ("(2461375.25), (1796040000)", ["julian", "seconds"]),
        ("('2026-11-30'), (x'00')", ["blob", "no time"]),
        ("('2026-11-30'), ('soon')", ["text", "no time"]),
        ("(2461375), (2461376)", ["julian", "seconds"]),
    ] {
        for index in ["", "CREATE INDEX by_v ON t (v);"] {
            let statements =
                format!("CREATE TABLE t (v DATETIME); {index} INSERT INTO t VALUES {values}");
            let database = Database::new(&statements).await;
            let range = window(Kind::Datetime, None, Some("2027-01-01"));
            let read = database.by("t", "v", range).await;
            let request = HighestRequest {
                table: read.table.clone(),
                cursor: read.cursor.clone().unwrap(),
                effort: Effort::Scan,
                count: None,
                count_nulls: false,
            };
            let looked_up = database.source.highest(&request).await.unwrap_err();
            let split = database.split(&read).await.err().unwrap();
            for error in [looked_up, split] {
                assert_eq!(error.kind(), ErrorKind::Data, "{values}");
                assert!(names.iter().all(|name| error.message().contains(name)), "{error:?}");
                assert!(error.hint().unwrap().contains("one form"), "{error:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_infinite_number_hides_no_row_below_it() {
    for declaration in ["DECIMAL(10,2)", "NUMERIC"] {
        for index in ["", "CREATE INDEX by_v ON t (v);"] {
            let statements = format!(
                "CREATE TABLE t (v {declaration}); {index} INSERT INTO t VALUES (1.5), (9e999), \
                 (-9e999), (2.25), (NULL), (9e999)"
            );
            let database = Database::new(&statements).await;
            let range = window(Kind::Number, None, Some("9"));
            let read = database.by("t", "v", range).await;
            let request = HighestRequest {
                table: read.table.clone(),
                cursor: read.cursor.clone().unwrap(),
                effort: Effort::Scan,
                count: None,
                count_nulls: false,
            };
            let found = database.source.highest(&request).await.unwrap();
            let highest = found.value.unwrap().map(|highest| highest.to_string());
            assert_eq!(highest.as_deref(), Some("2.25"), "{declaration} {index}");
            assert_eq!(found.unreachable, Some(2), "{declaration} {index}");
            // A first window holds -infinity, which a NULL in the lake would hide.
            let error = database.rows(&read).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
            assert!(error.hint().unwrap().contains("choose another cursor"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn strangers_in_a_cursor_are_refused() {
    for (declaration, kind, values) in [
        ("INTEGER", Kind::Integer, "(1), ('x')"),
        ("DECIMAL(10,2)", Kind::Number, "(1.5), ('x')"),
        ("TEXT", Kind::Text, "('a'), (x'00')"),
        ("BLOB", Kind::Binary, "(x'00'), (1)"),
    ] {
        let statements = format!("CREATE TABLE t (v {declaration}); INSERT INTO t VALUES {values}");
        let database = Database::new(&statements).await;
        let mut read = database.whole("t").await;
        read.cursor =
            Some(CursorRead { cursor: Cursor::Single("v".to_owned()), kinds: vec![kind] });
        let error = database.split(&read).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Data, "{declaration}");
        assert!(error.message().contains("as well"), "{error:?}");
        assert!(error.hint().unwrap().contains("typeof"), "{error:?}");
    }
}

#[tokio::test]
async fn the_catalogue_says_types_before_any_row() {
    let database = Database::new(
        "CREATE TABLE t (a INTEGER, b DATETIME, c TIMESTAMPTZ, d DECIMAL(10,2), e JSON, f, g MONEY)",
    )
    .await;
    let table = database.table("t").await;
    let types: Vec<_> =
        table.columns.iter().map(|column| column.field.data_type().clone()).collect();
    assert_eq!(
        types,
        [
            DataType::Int64,
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            DataType::Decimal128(10, 2),
            DataType::Utf8,
            DataType::Utf8,
            DataType::Utf8,
        ]
    );
    let json = table.columns[4].field.metadata();
    assert_eq!(json["ARROW:extension:name"], "arrow.json");
    let warned = table.columns.iter().filter(|column| column.warning.is_some());
    assert_eq!(warned.map(|column| column.name()).collect::<Vec<_>>(), ["f", "g"]);
}
