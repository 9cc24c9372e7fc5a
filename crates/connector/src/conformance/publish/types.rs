//! Every Arrow type on its way into a target.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, LargeStringArray, RecordBatch, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, i256};
use tidelake_model::{ErrorKind, Strategy};

use super::PublisherCase;
use super::target::{Run, Target};
use crate::conformance::{Failure, Need, Outcome, PublisherFixture};

pub(super) fn cases() -> Vec<PublisherCase> {
    let append = Need::Internal(Strategy::Append);
    vec![PublisherCase::new("carries_each_arrow_type", append, |fixture| {
        Box::pin(each_type(fixture))
    })]
}

/// A column, and whether every publisher has to take it. Others may be refused
/// as `Unsupported`, which is never silent.
struct Sample {
    name: &'static str,
    column: ArrayRef,
    required: bool,
}

fn sample(name: &'static str, column: ArrayRef, required: bool) -> Sample {
    Sample { name, column, required }
}

fn numbers() -> Vec<Sample> {
    let floats = [Some(1.5), None, Some(-0.25), Some(f64::INFINITY), Some(1e300)];
    vec![
        sample("boolean", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])), true),
        sample("int8", Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)])), true),
        sample("int16", Arc::new(Int16Array::from(vec![Some(i16::MIN), None])), true),
        sample("int32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None])), true),
        sample("int64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None])), true),
        sample("uint8", Arc::new(UInt8Array::from(vec![Some(u8::MAX), None])), false),
        sample("uint16", Arc::new(UInt16Array::from(vec![Some(u16::MAX), None])), false),
        sample("uint32", Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])), false),
        sample("uint64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])), false),
        sample("float32", Arc::new(Float32Array::from(vec![Some(1.5), None, Some(-0.25)])), true),
        sample("float64", Arc::new(floats.into_iter().collect::<Float64Array>()), true),
    ]
}

fn decimals() -> Outcome<Vec<Sample>> {
    let digits = 10i128.pow(38) - 1;
    let values = [Some(0), None, Some(-7), Some(digits), Some(-digits)];
    let decimal = |scale| {
        let array: Decimal128Array = values.into_iter().collect();
        array.with_precision_and_scale(38, scale)
    };
    let wide: Decimal256Array =
        [Some(i256::from_i128(digits)), None, Some(i256::from_i128(-7))].into_iter().collect();
    Ok(vec![
        sample("decimal128", Arc::new(decimal(10)?), true),
        sample("decimal128_whole", Arc::new(decimal(0)?), true),
        sample("decimal256", Arc::new(wide.with_precision_and_scale(60, 5)?), false),
    ])
}

/// Moments before and after the epoch, as counts of a unit; the last is in the
/// year 9999, the first in the year 1.
fn moments(per_second: i64) -> Vec<Option<i64>> {
    let edges = [Some(0), None, Some(-1), Some(-62_135_596_800), Some(253_402_300_799)];
    edges.into_iter().map(|seconds| Some(seconds? * per_second)).collect()
}

fn times() -> Vec<Sample> {
    let zone = "UTC";
    let micros = || TimestampMicrosecondArray::from(moments(1_000_000));
    let nanos = [Some(0), None, Some(-1_000), Some(1_796_030_100_123_456_000)];
    let days = [Some(0), None, Some(-1), Some(-719_162), Some(2_932_896)];
    vec![
        sample("date32", Arc::new(days.into_iter().collect::<Date32Array>()), true),
        sample("naive_us", Arc::new(micros()), true),
        sample("instant_us", Arc::new(micros().with_timezone(zone)), true),
        sample(
            "instant_s",
            Arc::new(TimestampSecondArray::from(moments(1)).with_timezone(zone)),
            false,
        ),
        sample("naive_ms", Arc::new(TimestampMillisecondArray::from(moments(1_000))), false),
        sample(
            "naive_ns",
            Arc::new(nanos.into_iter().collect::<TimestampNanosecondArray>()),
            false,
        ),
        sample(
            "time64",
            Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_399_999_999)])),
            false,
        ),
    ]
}

fn texts() -> Outcome<Vec<Sample>> {
    let words = ["", "a\tb\\n\n\r", "\\N", "Grüße 名前 🌊", "NULL", "\"'"];
    let texts = || words.into_iter().map(Some).chain([None]);
    let bytes: [Option<&[u8]>; 4] = [Some(b""), Some(b"\x00\xFF\\"), None, Some(b"abc")];
    let uuids = [Some([7u8; 16]), None, Some([0u8; 16])];
    let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids.into_iter(), 16)?;
    Ok(vec![
        sample("text", Arc::new(texts().collect::<StringArray>()), true),
        sample("large_text", Arc::new(texts().collect::<LargeStringArray>()), false),
        sample("binary", Arc::new(bytes.into_iter().collect::<BinaryArray>()), true),
        sample("fixed_binary", Arc::new(uuids), false),
    ])
}

async fn each_type(fixture: &dyn PublisherFixture) -> Outcome {
    let mut samples = numbers();
    samples.extend(decimals()?);
    samples.extend(times());
    samples.extend(texts()?);
    let mut failures = vec![];
    for sample in &samples {
        if let Err(failure) = carries(fixture, sample).await {
            failures.push(format!("{}: {failure}", sample.name));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::new(failures.join("; "))) }
}

async fn carries(fixture: &dyn PublisherFixture, sample: &Sample) -> Outcome {
    let target = Target::new(fixture, &format!("type_{}", sample.name));
    let data_type = sample.column.data_type().clone();
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("value", data_type, true),
    ]));
    let count = i64::try_from(sample.column.len())?;
    let ids = Arc::new((0..count).map(Some).collect::<Int64Array>());
    let batch = RecordBatch::try_new(schema.clone(), vec![ids, sample.column.clone()])?;
    let run = Run::new(1, batch.clone());
    match target.load(&run).await {
        Ok(rows) if rows == u64::try_from(count)? => target.holds(&schema, &[batch]).await,
        Ok(rows) => Err(Failure::new(format!("{rows} rows were loaded"))),
        Err(error) if error.kind() == ErrorKind::Unsupported && !sample.required => Ok(()),
        Err(error) => Err(error.into()),
    }
}
