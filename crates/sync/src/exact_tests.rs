use arrow::array::{Decimal128Array, Float64Array, Int32Array};
use arrow::datatypes::{Schema, TimeUnit};

use super::*;

fn cast(array: ArrayRef, to: Field) -> Result<ArrayRef> {
    let from = Field::new(to.name(), array.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![from])), vec![array]).unwrap();
    let schema: SchemaRef = Arc::new(Schema::new(vec![to]));
    in_schema(batch, &schema).map(|batch| Arc::clone(batch.column(0)))
}

fn field(to: DataType) -> Field {
    Field::new("c", to, true)
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// The value as text after a cast of text; `None` where it is refused.
fn read(text: &str, to: DataType) -> Option<String> {
    let cast = cast(texts(&[None, Some(text)]), field(to)).ok()?;
    assert!(cast.is_null(0));
    Some(shown(&cast, 1))
}

#[test]
fn text_is_read_strictly() {
    let micros = TimeUnit::Microsecond;
    for (text, to, wanted) in [
        ("-128", DataType::Int8, Some("-128")),
        ("128", DataType::Int8, None),
        ("18446744073709551615", DataType::UInt64, Some("18446744073709551615")),
        ("-1", DataType::UInt64, None),
        ("007", DataType::Int64, None),
        ("1.0", DataType::Int64, None),
        (" 1", DataType::Int64, None),
        ("", DataType::Int64, None),
        ("t", DataType::Boolean, Some("true")),
        ("yes", DataType::Boolean, None),
        ("-12.5", DataType::Decimal128(5, 2), Some("-12.50")),
        ("0.00", DataType::Decimal128(2, 2), Some("0.00")),
        ("12.500", DataType::Decimal128(5, 2), Some("12.50")),
        ("12.505", DataType::Decimal128(5, 2), None),
        ("1000", DataType::Decimal128(5, 2), None),
        ("1e2", DataType::Decimal128(5, 2), None),
        ("NaN", DataType::Decimal128(5, 2), None),
        ("2026-11-30", DataType::Date32, Some("2026-11-30")),
        ("2026-02-30", DataType::Date32, None),
        (
            "2026-11-30 09:15:00.123456",
            DataType::Timestamp(micros, None),
            Some("2026-11-30T09:15:00.123456"),
        ),
        ("2026-11-30 09:15:00.1234567", DataType::Timestamp(micros, None), None),
        ("2026-11-30 09:15:00Z", DataType::Timestamp(micros, None), None),
        (
            "2026-11-30 09:15:00+02",
            DataType::Timestamp(micros, Some("UTC".into())),
            Some("2026-11-30T07:15:00Z"),
        ),
        ("2026-11-30 09:15:00", DataType::Timestamp(micros, Some("UTC".into())), None),
        ("23:59:59.999999", DataType::Time64(micros), Some("23:59:59.999999")),
        ("24:00:00", DataType::Time64(micros), None),
        ("09:15:00+02", DataType::Time64(micros), None),
        ("é", DataType::Binary, Some("c3a9")),
        (
            "A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11",
            DataType::FixedSizeBinary(16),
            Some("a0eebc999c0b4ef8bb6d6bb9bd380a11"),
        ),
        ("a0eebc999c0b4ef8bb6d6bb9bd380a11", DataType::FixedSizeBinary(16), None),
        ("+0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", DataType::FixedSizeBinary(16), None),
    ] {
        assert_eq!(read(text, to.clone()).as_deref(), wanted, "{text:?} as {to}");
    }
    let wide = DataType::Decimal256(76, 38);
    let long = format!("-{}.{}", "9".repeat(38), "9".repeat(38));
    assert_eq!(read(&long, wide.clone()).as_deref(), Some(long.as_str()));
    assert_eq!(read(&format!("{}.5", "9".repeat(39)), wide), None);
}

#[test]
fn numbers_survive_the_way_back_or_are_refused() {
    let whole = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![None, Some(value)])) };
    let shown = |array: ArrayRef, to: DataType| {
        cast(array, field(to)).ok().map(|cast| array_value_to_string(&cast, 1).unwrap())
    };
    for (value, to, wanted) in [
        (i64::MAX, DataType::Int32, None),
        (-1, DataType::UInt8, None),
        (255, DataType::UInt8, Some("255")),
        (2, DataType::Boolean, None),
        (1, DataType::Boolean, Some("true")),
        ((1 << 53) + 1, DataType::Float64, None),
        (i64::MAX, DataType::Float64, None),
        (1 << 53, DataType::Float64, Some("9007199254740992.0")),
        (1_000, DataType::Decimal128(3, 0), None),
        (999, DataType::Decimal128(4, 1), Some("999.0")),
        (1_000, DataType::Decimal128(4, 1), None),
    ] {
        assert_eq!(shown(whole(value), to.clone()).as_deref(), wanted, "{value} as {to}");
    }
    let decimals = |value: i128| -> ArrayRef {
        let array = Decimal128Array::from(vec![None, Some(value)]);
        Arc::new(array.with_precision_and_scale(10, 2).unwrap())
    };
    assert_eq!(shown(decimals(1_200), DataType::Int32).as_deref(), Some("12"));
    assert_eq!(shown(decimals(1_250), DataType::Int32), None);
    let booleans: ArrayRef = Arc::new(BooleanArray::from(vec![None, Some(true)]));
    assert_eq!(shown(booleans, DataType::Int8).as_deref(), Some("1"));
}

#[test]
fn days_and_midnights_are_one() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![None, Some(-1)]));
    let naive = DataType::Timestamp(TimeUnit::Microsecond, None);
    let moments = cast(days, field(naive.clone())).unwrap();
    assert_eq!(array_value_to_string(&moments, 1).unwrap(), "1969-12-31T00:00:00");
    let back = cast(moments, field(DataType::Date32)).unwrap();
    assert_eq!(back.as_primitive::<Date32Type>().value(1), -1);
    let far: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), Some(i32::MAX)]));
    let error = cast(far, field(naive.clone())).unwrap_err();
    assert!(error.message().contains("cannot become timestamp"), "{error}");
    let noon: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![43_200_000_000]));
    assert!(cast(noon, field(DataType::Date32)).is_err());
    let nanos: ArrayRef = Arc::new(arrow::array::TimestampNanosecondArray::from(vec![1_001]));
    assert!(cast(nanos, field(naive)).is_err());
}

#[test]
fn json_is_looked_at_and_kept_as_it_is() {
    let json = Field::new("c", DataType::Utf8, true).with_metadata(
        [("ARROW:extension:name".to_owned(), JSON.to_owned())].into_iter().collect(),
    );
    let kept = cast(texts(&[Some("{\"b\": 1,  \"a\": []}"), None]), json.clone()).unwrap();
    assert_eq!(kept.as_string::<i32>().value(0), "{\"b\": 1,  \"a\": []}");
    assert!(cast(texts(&[Some("{b: 1}")]), json).is_err());
}

#[test]
fn the_error_names_column_and_value() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(300), Some(400)]));
    let error = cast(array, field(DataType::Int8)).unwrap_err();
    assert_eq!(
        error.message(),
        "column \"c\" holds \"300\", which cannot become int8 without a loss"
    );
    let error = cast(texts(&[Some("1"), Some(&"x".repeat(100))]), field(DataType::Int8));
    assert!(error.unwrap_err().message().contains("xxx\"…"));
}

#[test]
fn columns_go_by_name_and_one_that_is_gone_is_null() {
    let schema = |fields: Vec<Field>| -> SchemaRef { Arc::new(Schema::new(fields)) };
    let given = schema(vec![
        Field::new("b", DataType::Float64, false),
        Field::new("a", DataType::Int32, false),
    ]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Float64Array::from(vec![0.5])), Arc::new(Int32Array::from(vec![7]))];
    let batch = RecordBatch::try_new(given, columns).unwrap();
    let wanted = schema(vec![
        Field::new("a", DataType::Int64, false),
        Field::new("gone", DataType::Utf8, true),
        Field::new("b", DataType::Float64, true),
    ]);
    let shaped = in_schema(batch, &wanted).unwrap();
    assert_eq!(shaped.schema(), wanted);
    assert_eq!(shaped.column(0).as_primitive::<arrow::datatypes::Int64Type>().value(0), 7);
    assert!(shaped.column(1).is_null(0));
}

#[test]
fn a_null_where_none_may_be_names_the_column() {
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new(vec![field(DataType::Utf8)])),
        vec![texts(&[None])],
    )
    .unwrap();
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("c", DataType::Utf8, false)]));
    let error = in_schema(batch, &schema).unwrap_err();
    assert_eq!(error.message(), "the column \"c\" is not nullable and holds NULL");
}
