//! Record batches to Parquet: our encoder beside the Parquet crate's.
//!
//! `cargo bench -p tidelake-lake` runs all of it; a part of a name after `--` runs some.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use arrow::datatypes::{DataType, Field, Schema};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use tidelake_lake::fuzzing::encoded;
use tidelake_model::Compression;

const MEMORY: usize = 64 << 20;

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((u128::from(self.0) * u128::from(limit)) >> 64) as u64
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Rows like those of TPC-H's largest table.
fn lineitem(batches: usize, rows: usize) -> Vec<RecordBatch> {
    let money = DataType::Decimal128(15, 2);
    let types = [
        DataType::Int64,
        DataType::Int32,
        DataType::Int32,
        DataType::Int32,
        money.clone(),
        money.clone(),
        money.clone(),
        money,
        DataType::Utf8,
        DataType::Utf8,
        DataType::Date32,
        DataType::Date32,
        DataType::Date32,
        DataType::Utf8,
        DataType::Utf8,
        DataType::Utf8,
    ];
    let field = |(number, data_type): (usize, &DataType)| {
        Field::new(format!("l_{number}"), data_type.clone(), false)
    };
    let schema = Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()));
    let words: Vec<&str> = "furiously quickly carefully blithely slyly ironic final regular express \
        special pending bold even silent deposits requests accounts packages instructions theodolites \
        foxes ideas platelets pinto beans asymptotes dependencies excuses sleep wake are cajole haggle \
        nag use boost affix detect integrate among across against along above about the according to"
        .split_whitespace()
        .collect();
    let mut random = Random(1);
    let mut key = 0;
    let batch = |_| {
        let mut numbers = |limit: u64, from: i64| -> Vec<i64> {
            (0..rows).map(|_| from + random.below(limit) as i64).collect()
        };
        let small = |numbers: Vec<i64>| numbers.into_iter().map(|n| n as i32).collect::<Vec<_>>();
        let decimals = |numbers: Vec<i64>| -> ArrayRef {
            let numbers = Decimal128Array::from_iter_values(numbers.into_iter().map(i128::from));
            Arc::new(numbers.with_precision_and_scale(15, 2).unwrap())
        };
        let keys = numbers(4, 0).into_iter().map(|step| {
            key += i64::from(step == 0);
            key
        });
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(keys)),
            Arc::new(Int32Array::from(small(numbers(200_000, 1)))),
            Arc::new(Int32Array::from(small(numbers(10_000, 1)))),
            Arc::new(Int32Array::from(small(numbers(7, 1)))),
            decimals(numbers(50, 1).into_iter().map(|n| n * 100).collect()),
            decimals(numbers(9_400_000, 90_000)),
            decimals(numbers(11, 0)),
            decimals(numbers(9, 0)),
        ];
        let dates = [numbers(2_526, 8_036), numbers(2_466, 8_066), numbers(2_554, 8_037)];
        let mut texts = |from: &[&str]| -> ArrayRef {
            Arc::new(StringArray::from_iter_values((0..rows).map(|_| random.pick(from))))
        };
        columns.extend([texts(&["A", "N", "R", "N"]), texts(&["F", "O"])]);
        let date = |days: Vec<i64>| Arc::new(Date32Array::from(small(days))) as ArrayRef;
        columns.extend(dates.map(date));
        columns.push(texts(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]));
        columns.push(texts(&["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]));
        let comments = (0..rows).map(|_| {
            let mut text = String::new();
            let length = 10 + random.below(34) as usize;
            while text.len() < length {
                text.push_str(random.pick(&words));
                text.push(' ');
            }
            text.truncate(length);
            text
        });
        columns.push(Arc::new(StringArray::from_iter_values(comments)));
        RecordBatch::try_new(schema.clone(), columns).unwrap()
    };
    (0..batches).map(batch).collect()
}

/// Many columns that may be NULL.
fn wide(rows: usize) -> Vec<RecordBatch> {
    let mut random = Random(2);
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for number in 0..200_u64 {
        let nulls = number % 10;
        let mut cell = |limit: u64| {
            let value = random.below(limit);
            (random.below(10) >= nulls).then_some(value)
        };
        let column: ArrayRef = match number % 4 {
            0 => Arc::new(Int64Array::from_iter((0..rows).map(|_| Some(cell(1 << 40)? as i64)))),
            1 => Arc::new(Int32Array::from_iter((0..rows).map(|_| Some(cell(100)? as i32)))),
            2 => {
                let texts = (0..rows).map(|_| Some(format!("name {}", cell(1 << 30)?)));
                Arc::new(StringArray::from_iter(texts))
            }
            _ => {
                let texts = (0..rows).map(|_| Some(format!("kind {}", cell(20)?)));
                Arc::new(StringArray::from_iter(texts))
            }
        };
        fields.push(Field::new(format!("c{number}"), column.data_type().clone(), true));
        columns.push(column);
    }
    vec![RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()]
}

/// Cells of a megabyte.
fn cells(rows: usize) -> Vec<RecordBatch> {
    let mut random = Random(3);
    let cells = (0..rows).map(|_| (0..1 << 20).map(|_| random.below(30) as u8).collect::<Vec<_>>());
    let schema = Arc::new(Schema::new(vec![Field::new("cell", DataType::Binary, false)]));
    let cells = Arc::new(BinaryArray::from_iter_values(cells));
    vec![RecordBatch::try_new(schema, vec![cells]).unwrap()]
}

/// As the Parquet crate encodes them.
fn theirs(batches: &[RecordBatch]) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(Codec::ZSTD(ZstdLevel::try_new(1).unwrap()))
        .set_max_row_group_row_count(Some(1_000_000))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build();
    let schema = batches[0].schema();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
        if writer.memory_size() >= MEMORY / 2 {
            writer.flush().unwrap();
        }
    }
    writer.into_inner().unwrap()
}

fn encode(criterion: &mut Criterion) {
    for (name, batches) in
        [("lineitem", lineitem(8, 65_536)), ("wide", wide(8_192)), ("cells", cells(24))]
    {
        let schema = batches[0].schema();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let ours = |compression| encoded(&schema, &batches, compression, MEMORY).unwrap();
        let sizes = (ours(Compression::Zstd).len(), theirs(&batches).len());
        eprintln!("{name}: {rows} rows, {} bytes ours, {} theirs", sizes.0, sizes.1);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).throughput(Throughput::Elements(rows as u64));
        group.bench_function("ours", |bencher| bencher.iter(|| ours(Compression::Zstd)));
        group.bench_function("ours without codec", |bencher| {
            bencher.iter(|| ours(Compression::None));
        });
        group.bench_function("theirs", |bencher| bencher.iter(|| theirs(black_box(&batches))));
        group.finish();
    }
}

criterion_group!(benches, encode);
criterion_main!(benches);
