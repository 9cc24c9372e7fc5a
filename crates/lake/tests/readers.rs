//! Files read by other readers than the one that wrote them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(clippy::cast_precision_loss)]

#[allow(unreachable_pub)]
mod arrays;
#[allow(unreachable_pub)]
mod common;

use std::collections::HashMap;
use std::env;
use std::process::Command;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal64Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array, ListArray,
    RecordBatch, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, i256};
use common::*;
use parquet::arrow::ArrowWriter;
use tidelake_lake::{FileExtent, Lake, WriterSettings, fuzzing, local};
use tidelake_model::Compression;

fn extension(field: Field, name: &str, metadata: &str) -> Field {
    field.with_metadata(HashMap::from([
        ("ARROW:extension:name".to_owned(), name.to_owned()),
        ("ARROW:extension:metadata".to_owned(), metadata.to_owned()),
    ]))
}

/// Two rows, the second all NULL, of every type that connectors write.
fn rows() -> RecordBatch {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None, Some(3)]),
        None,
    ]);
    let uuid = [Some([0xAB_u8; 16]), None];
    let uuid = FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuid.into_iter(), 16).unwrap();
    let plain =
        |name: &str, array: ArrayRef| (Field::new(name, array.data_type().clone(), true), array);
    let decimal = |digits: i128| Decimal128Array::from(vec![Some(digits), None]);
    let columns: Vec<(Field, ArrayRef)> = vec![
        plain("bool", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        plain("int8", Arc::new(Int8Array::from(vec![Some(-128), None]))),
        plain("int64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
        plain("uint64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
        plain("double", Arc::new(Float64Array::from(vec![Some(0.1), None]))),
        plain("price", Arc::new(decimal(-12345).with_precision_and_scale(10, 2).unwrap())),
        plain(
            "small",
            Arc::new(
                Decimal64Array::from(vec![Some(5), None]).with_precision_and_scale(18, 3).unwrap(),
            ),
        ),
        plain(
            "wide",
            Arc::new(
                Decimal256Array::from(vec![Some(i256::from_i128(42)), None])
                    .with_precision_and_scale(50, 10)
                    .unwrap(),
            ),
        ),
        plain("day", Arc::new(Date32Array::from(vec![Some(20_787), None]))),
        plain("time", Arc::new(Time64MicrosecondArray::from(vec![Some(1), None]))),
        plain("naive", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_500_000), None]))),
        plain(
            "instant",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(1_500_000), None]).with_timezone("UTC"),
            ),
        ),
        plain("nanos", Arc::new(TimestampNanosecondArray::from(vec![Some(1), None]))),
        plain("text", Arc::new(StringArray::from(vec![Some("grün\0x"), None]))),
        plain("bytes", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\x00\xff"), None]))),
        (
            extension(Field::new("uuid", DataType::FixedSizeBinary(16), true), "arrow.uuid", ""),
            Arc::new(uuid),
        ),
        (
            extension(Field::new("doc", DataType::Utf8, true), "arrow.json", ""),
            Arc::new(StringArray::from(vec![Some(r#"{"a": 1}"#), None])),
        ),
        plain("list", Arc::new(list)),
        plain("empty", Arc::new(StringArray::from(vec![None::<&str>, None]))),
    ];
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

const CHECK: &str = r#"
import datetime, decimal, sys, uuid
import duckdb, pyarrow as pa, pyarrow.parquet as pq

for path in sys.argv[1:]:
    file = pq.ParquetFile(path)
    assert file.metadata.created_by.startswith("tidelake "), file.metadata.created_by
    logical = {c.name: str(c.logical_type) for c in file.schema}
    assert "isAdjustedToUTC=true" in logical["instant"], logical["instant"]
    assert "isAdjustedToUTC=false" in logical["naive"], logical["naive"]
    assert logical["uuid"] == "UUID" and logical["doc"] == "JSON", logical
    assert "isSigned=false" in logical["uint64"], logical["uint64"]
    assert file.metadata.row_group(0).column(2).statistics.null_count == 1

    table = file.read()
    types = {f.name: str(f.type) for f in table.schema}
    assert types["instant"] == "timestamp[us, tz=UTC]", types
    assert types["naive"] == "timestamp[us]", types
    assert types["empty"] == "string", types
    assert types["wide"] == "decimal256(50, 10)", types
    assert table["nanos"][0].value == 1 and types["nanos"] == "timestamp[ns]", types
    first, second = table.drop_columns(["nanos"]).to_pylist()
    assert all(value is None for value in second.values()), second
    assert first["uint64"] == 2**64 - 1 and first["int64"] == -2**63, first
    assert first["price"] == decimal.Decimal("-123.45"), first
    assert first["small"] == decimal.Decimal("0.005"), first
    assert first["text"] == "grün\0x" and first["bytes"] == b"\x00\xff", first
    assert uuid.UUID(bytes=bytes(first["uuid"])) if isinstance(first["uuid"], bytes) else first["uuid"] == uuid.UUID(bytes=b"\xab" * 16)
    assert first["list"] == [1, None, 3], first

    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    described = {name: kind for name, kind, *_ in duck.execute(f"DESCRIBE SELECT * FROM read_parquet('{path}')").fetchall()}
    expected = {
        "bool": "BOOLEAN", "int8": "TINYINT", "int64": "BIGINT", "uint64": "UBIGINT",
        "double": "DOUBLE", "price": "DECIMAL(10,2)", "small": "DECIMAL(18,3)", "day": "DATE",
        "time": "TIME", "naive": "TIMESTAMP", "instant": "TIMESTAMP WITH TIME ZONE",
        "nanos": "TIMESTAMP_NS", "text": "VARCHAR", "bytes": "BLOB", "uuid": "UUID",
        "doc": "JSON", "list": "INTEGER[]", "empty": "VARCHAR",
    }
    wrong = {name: (described[name], kind) for name, kind in expected.items() if described[name] != kind}
    assert not wrong, wrong
    row = duck.execute(f"SELECT uuid::text, doc->>'a', instant::text, naive::text, uint64::text FROM read_parquet('{path}') WHERE int64 IS NOT NULL").fetchone()
    assert row == ("abababab-abab-abab-abab-abababababab", "1", "1970-01-01 00:00:01.5+00", "1970-01-01 00:00:01.5", str(2**64 - 1)), row
print("ok")
"#;

/// The interpreter that has the readers.
fn python() -> Option<String> {
    if let Ok(python) = env::var("TIDELAKE_TEST_PYTHON") {
        return Some(python);
    }
    assert!(
        env::var("TIDELAKE_TEST_REQUIRE_SERVERS").as_deref() != Ok("1"),
        "TIDELAKE_TEST_PYTHON is not set"
    );
    println!("not run: TIDELAKE_TEST_PYTHON is not set");
    None
}

#[tokio::test]
async fn duckdb_and_pyarrow_read_what_is_written() {
    let Some(python) = python() else { return };
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    let folder = tempfile::tempdir().unwrap();
    let table = Lake::new(local(folder.path()).unwrap()).table(Option::None, &table_name());
    let rows = rows();
    let mut paths = Vec::new();
    for (slice, compression) in (0..).zip([Zstd, Snappy, Gzip, Lz4, None]) {
        let settings =
            WriterSettings { compression, ..WriterSettings::new(run(1), 1, slice, rows.schema()) };
        let mut writer = table.writer(settings).unwrap();
        writer.write(&rows, FileExtent::default()).await.unwrap();
        for (file, object) in writer.finish().await.unwrap() {
            table.complete(&object).await.unwrap();
            paths.push(table.file_location(&file.key));
        }
    }
    let output = Command::new(python).arg("-c").arg(CHECK).args(&paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const COMPARE: &str = r#"
import sys
import duckdb, pyarrow.parquet as pq

duck = duckdb.connect()
duck.execute("SET TimeZone = 'UTC'")
compared = 0

def asked(path, column):
    try:
        # Within DuckDB: Python has no such dates.
        ask = f'SELECT min("{column}")::VARCHAR, max("{column}")::VARCHAR, count("{column}"), list(hash("{column}"))::VARCHAR FROM read_parquet(?)'
        return repr(duck.execute(ask, [path]).fetchall())
    except duckdb.Error as error:
        return type(error).__name__

for ours, theirs in zip(sys.argv[1::2], sys.argv[2::2]):
    mine, other = pq.read_table(ours), pq.read_table(theirs)
    assert mine.schema.equals(other.schema, check_metadata=True), ours
    for column in mine.schema.names:
        if column in ("float32", "float64", "nan", "zeros"):
            same = repr(mine[column].to_pylist()) == repr(other[column].to_pylist())
        else:
            same = mine[column].equals(other[column])
        assert same, (ours, column)
        answer = asked(ours, column)
        assert answer == asked(theirs, column), (ours, column, answer[:300])
        compared += answer.startswith("[")
assert compared > 500, compared
"#;

#[test]
fn duckdb_and_pyarrow_read_the_same_from_both_encoders() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut random = arrays::Random(5);
    let mut paths = Vec::new();
    for (number, pattern) in arrays::PATTERNS.into_iter().enumerate() {
        for nulls in [arrays::Nulls::Never, arrays::Nulls::Half] {
            let all = arrays::Seeds::new(&mut random, 2_000, pattern, nulls).all();
            let field = |(name, array): &(&str, ArrayRef)| {
                let nullable = nulls != arrays::Nulls::Never;
                Field::new(*name, array.data_type().clone(), nullable)
            };
            let schema = Arc::new(Schema::new(all.iter().map(field).collect::<Vec<_>>()));
            let columns = all.into_iter().map(|(_, array)| array).collect();
            let rows = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
            let batches = std::slice::from_ref(&rows);
            let ours = fuzzing::encoded(&schema, batches, Compression::Zstd, 8 << 20).unwrap();
            let mut theirs = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
            theirs.write(&rows).unwrap();
            for (whose, bytes) in [("ours", ours), ("theirs", theirs.into_inner().unwrap())] {
                let path = folder.path().join(format!("{number}-{nulls:?}-{whose}.parquet"));
                std::fs::write(&path, bytes).unwrap();
                paths.push(path);
            }
        }
    }
    let output = Command::new(python).arg("-c").arg(COMPARE).args(&paths).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {told}", output.status);
}
