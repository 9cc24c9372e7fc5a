//! How long it takes to decode rows as the server sends them, without the server.

#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tidelake_connector::Counters;
use tidelake_model::Policies;
use tidelake_mysql::fuzzing::{DecodePlan, RowDecoder, Wire};

const ROWS: u32 = 30_000;

/// A table, and its rows as a server sends them.
struct Sample {
    name: &'static str,
    plan: DecodePlan,
    rows: Vec<Vec<u8>>,
}

impl Sample {
    fn new(
        name: &'static str,
        columns: &[(Wire, DataType)],
        cell: impl Fn(u32, usize, &mut Vec<u8>) -> bool,
    ) -> Self {
        let fields = columns.iter().enumerate().map(|(place, (_, data_type))| {
            Field::new(format!("column {place}"), data_type.clone(), true)
        });
        let plan = DecodePlan {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            wires: columns.iter().map(|(wire, _)| *wire).collect(),
            policies: Policies::default(),
            batch_bytes: 8 << 20,
            cursor: vec![],
            counters: Counters::default(),
        };
        let rows = (0..ROWS).map(|row| {
            let mut packet = vec![0; 1 + (columns.len() + 9) / 8];
            for place in 0..columns.len() {
                if !cell(row, place, &mut packet) {
                    *packet.get_mut(1 + (place + 2) / 8).unwrap() |= 1 << ((place + 2) % 8);
                }
            }
            packet
        });
        let rows = rows.collect();
        Self { name, plan, rows }
    }

    fn decode(&self) -> u64 {
        let mut decoder = RowDecoder::new(&self.plan).unwrap();
        for row in &self.rows {
            decoder.row(row).unwrap();
            if let Some(batch) = decoder.full_batch().unwrap() {
                black_box(batch);
            }
        }
        black_box(decoder.last_batch().unwrap());
        decoder.rows()
    }
}

fn text(text: &[u8], out: &mut Vec<u8>) {
    out.push(u8::try_from(text.len()).unwrap());
    out.extend(text);
}

/// A number of hundredths, as the server sends it.
fn money(hundredths: u32, out: &mut Vec<u8>) {
    text(format!("{}.{:02}", hundredths / 100, hundredths % 100).as_bytes(), out);
}

/// The columns of the table that everybody measures with.
fn lineitem() -> Sample {
    let number = (Wire::Long, DataType::Int32);
    let amount = (Wire::Decimal, DataType::Decimal128(15, 2));
    let words = (Wire::Text, DataType::Utf8);
    let date = (Wire::Date, DataType::Date32);
    let columns: Vec<_> = [(number, 4), (amount, 4), (words.clone(), 2), (date, 3), (words, 3)]
        .into_iter()
        .flat_map(|(column, count)| std::iter::repeat_n(column, count))
        .collect();
    let words = b"furiously express deposits sleep quickly across the ironic requests";
    Sample::new("lineitem", &columns, move |row, place, out| {
        let mixed = row.wrapping_mul(2_654_435_761) >> 8;
        let small = |limit: u32| u8::try_from(mixed % limit).unwrap();
        match place {
            0 => out.extend(row.to_le_bytes()),
            1..=3 => out.extend((mixed % 10_000).to_le_bytes()),
            4 => money(mixed % 50 * 100, out),
            5 => money(90_000 + mixed % 10_000_000, out),
            6 | 7 => money(mixed % 11, out),
            8 | 9 => text(&[b'A' + small(3)], out),
            10..=12 => out.extend([4, 0xCA + small(6), 7, 1 + small(12), 1 + small(28)]),
            13 => text(b"DELIVER IN PERSON", out),
            14 => text(b"REG AIR", out),
            _ => {
                let from = usize::from(small(20));
                text(words.get(from..from + 10 + from).unwrap(), out);
            }
        }
        true
    })
}

/// Many columns, of which every third value is missing.
fn sparse() -> Sample {
    let kinds = [
        (Wire::Long, DataType::Int32),
        (Wire::Datetime, DataType::Timestamp(TimeUnit::Microsecond, None)),
        (Wire::Text, DataType::Utf8),
        (Wire::Double, DataType::Float64),
    ];
    let columns: Vec<_> = kinds.iter().cycle().take(60).cloned().collect();
    Sample::new("sparse", &columns, |row, place, out| {
        if (row as usize + place).is_multiple_of(3) {
            return false;
        }
        match place % 4 {
            0 => out.extend(row.to_le_bytes()),
            1 => out.extend([7, 0xD0, 7, 2, 29, 23, 59, 58]),
            2 => text(format!("text {row}").as_bytes(), out),
            _ => out.extend(f64::from(row).to_le_bytes()),
        }
        true
    })
}

/// How long this thread has worked, so that others on the machine do not count.
fn worked() -> Duration {
    let known = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = known.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap(), Duration::from_nanos)
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.sample_size(20);
    for sample in [lineitem(), sparse()] {
        group.throughput(Throughput::Elements(u64::from(ROWS)));
        group.bench_function(sample.name, |bencher| {
            bencher.iter_custom(|count| {
                let start = worked();
                (0..count).for_each(|_| assert_eq!(sample.decode(), u64::from(ROWS)));
                worked() - start
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
