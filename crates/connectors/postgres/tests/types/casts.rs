//! Columns that are asked for as another type.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Field};
use tidelake_model::{Error, ErrorKind};

use crate::common::{Database, collect, table, whole};

/// The columns read as other types.
async fn read_as(database: &Database, types: &[(&str, DataType)]) -> Result<RecordBatch, Error> {
    let source = database.source().await;
    let found = table(&source, "t").await;
    let mut read = whole(&found);
    read.columns.retain(|column| types.iter().any(|(name, _)| column.name() == *name));
    for column in &mut read.columns {
        let (_, data_type) = types.iter().find(|(name, _)| column.name() == *name).unwrap();
        column.field = Field::new(column.name(), data_type.clone(), true);
        column.chosen = true;
    }
    let request = tidelake_connector::SplitRequest {
        read,
        degree: 1,
        method: tidelake_model::ReadMethod::Auto,
        key: None,
    };
    let slices = source.split(&request).await?;
    Ok(collect(&source, &slices).await?.remove(0))
}

#[tokio::test]
async fn numbers_become_decimals_exactly() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE DOMAIN amount AS numeric; \
             CREATE TABLE t (n numeric, w numeric, d amount, p numeric(10,2), b numeric(80,2)); \
             INSERT INTO t VALUES (1.5, 1e60, 7, 99999999.99, 1e10), \
             (-0.0001, -1e-10, -0.5, -0.01, -1.25), ('NaN', 'NaN', 'Infinity', 'NaN', NULL)",
        )
        .await
        .unwrap();
    let decimal = DataType::Decimal128(38, 4);
    let types = [
        ("n", decimal.clone()),
        ("w", DataType::Decimal256(76, 10)),
        ("d", decimal.clone()),
        ("p", decimal.clone()),
        ("b", decimal.clone()),
    ];
    let batch = read_as(&database, &types).await.unwrap();
    let cells = |column: usize| -> Vec<_> {
        let column = batch.column(column);
        let cell = |row| match column.data_type() {
            DataType::Decimal256(..) => {
                column.as_primitive::<Decimal256Type>().value_as_string(row)
            }
            _ => column.as_primitive::<Decimal128Type>().value_as_string(row),
        };
        (0..3).map(|row| (!column.is_null(row)).then(|| cell(row))).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(cells(0), [some("1.5000"), some("-0.0001"), None]);
    let large = format!("1{}.0000000000", "0".repeat(60));
    assert_eq!(cells(1), [Some(large), some("-0.0000000001"), None]);
    assert_eq!(cells(2), [some("7.0000"), some("-0.5000"), None]);
    assert_eq!(cells(3), [some("99999999.9900"), some("-0.0100"), None]);
    assert_eq!(cells(4), [some("10000000000.0000"), some("-1.2500"), None]);
    database.drop_now().await;
}

#[tokio::test]
async fn a_number_that_does_not_fit_is_named_and_never_rounded() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE t (n numeric, l numeric, f float8); \
             INSERT INTO t VALUES (1, 1, 1), (-12345.6780, 1e5000, 1)",
        )
        .await
        .unwrap();
    for (column, data_type, shown) in [
        ("n", DataType::Decimal128(10, 2), "-12345.6780 "),
        ("n", DataType::Decimal128(7, 3), "-12345.6780 "),
        ("n", DataType::Decimal256(40, 1), "-12345.6780 "),
        ("l", DataType::Decimal256(76, 0), "00… "),
    ] {
        let error = read_as(&database, &[(column, data_type.clone())]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
        let text = error.to_string();
        for part in [&format!("column \"{column}\""), shown, "(row 2 of the slice)"] {
            assert!(text.contains(part) && text.len() < 250, "{column} as {data_type}: {text}");
        }
        assert!(error.hint().is_some());
    }
    // Exactly the digits that there are.
    read_as(&database, &[("n", DataType::Decimal128(8, 3))]).await.unwrap();
    let error = read_as(&database, &[("f", DataType::Decimal128(10, 2))]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    database.drop_now().await;
}
