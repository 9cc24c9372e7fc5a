//! How long it takes to decode rows as the server sends them, without the server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tidelake_connector::Counters;
use tidelake_model::Policies;
use tidelake_postgres::{CopyDecoder, Wire};

const ROWS: u32 = 30_000;
/// What is read from the socket at once.
const BUFFER: usize = 256 << 10;

/// A table, and the messages in which a server sends its rows.
struct Sample {
    name: &'static str,
    schema: SchemaRef,
    wires: Vec<Wire>,
    messages: Vec<u8>,
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
        let mut messages = vec![];
        for row in 0..ROWS {
            let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
            for place in 0..columns.len() {
                let mut bytes = vec![];
                if cell(row, place, &mut bytes) {
                    body.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                    body.extend(bytes);
                } else {
                    body.extend((-1i32).to_be_bytes());
                }
            }
            messages.push(b'd');
            messages.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            messages.extend(body);
        }
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let wires = columns.iter().map(|(wire, _)| *wire).collect();
        Self { name, schema, wires, messages }
    }

    fn decode(&self) -> u64 {
        let (policies, counters) = (Policies::default(), Counters::default());
        let batch_bytes = 8 << 20;
        let mut decoder =
            CopyDecoder::new(&self.schema, &self.wires, policies, batch_bytes, counters).unwrap();
        let mut header = b"PGCOPY\n\xff\r\n\0".to_vec();
        header.extend([0; 8]);
        decoder.feed(&header).unwrap();
        let (mut start, mut end) = (0, 0);
        loop {
            let used = decoder.feed_messages(&self.messages[start..end]).unwrap();
            start += used;
            if let Some(batch) = decoder.next_batch() {
                black_box(batch);
            } else if used == 0 {
                if end == self.messages.len() {
                    break;
                }
                end = self.messages.len().min(start + BUFFER);
            }
        }
        decoder.feed(&[0xff, 0xff]).unwrap();
        decoder.finish().unwrap();
        while let Some(batch) = decoder.next_batch() {
            black_box(batch);
        }
        decoder.rows()
    }
}

/// A number of hundredths, as the server sends it.
fn numeric(hundredths: u32, out: &mut Vec<u8>) {
    let (whole, fraction) = (hundredths / 100, hundredths % 100 * 100);
    let mut groups = vec![whole / 10_000, whole % 10_000, fraction];
    let mut weight = 1i16;
    while groups.first() == Some(&0) {
        groups.remove(0);
        weight -= 1;
    }
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let count = i16::try_from(groups.len()).unwrap();
    let weight = if count == 0 { 0 } else { weight };
    for number in [count, weight, 0, 2] {
        out.extend(number.to_be_bytes());
    }
    groups.iter().for_each(|group| out.extend(u16::try_from(*group).unwrap().to_be_bytes()));
}

/// The columns of the table that everybody measures with.
fn lineitem() -> Sample {
    let money = (Wire::Numeric, DataType::Decimal128(15, 2));
    let text = (Wire::Text, DataType::Utf8);
    let columns = [
        (Wire::Int8, DataType::Int64),
        (Wire::Int4, DataType::Int32),
        (Wire::Int4, DataType::Int32),
        (Wire::Int4, DataType::Int32),
        money.clone(),
        money.clone(),
        money.clone(),
        money,
        text.clone(),
        text.clone(),
        (Wire::Date, DataType::Date32),
        (Wire::Date, DataType::Date32),
        (Wire::Date, DataType::Date32),
        text.clone(),
        text.clone(),
        text,
    ];
    let words = b"furiously express deposits sleep quickly across the ironic requests";
    Sample::new("lineitem", &columns, move |row, place, out| {
        let mixed = row.wrapping_mul(2_654_435_761) >> 8;
        match place {
            0 => out.extend(u64::from(row).to_be_bytes()),
            1..=3 | 10..=12 => out.extend((mixed % 10_000).to_be_bytes()),
            4 => numeric(mixed % 50 * 100, out),
            5 => numeric(90_000 + mixed % 10_000_000, out),
            6 | 7 => numeric(mixed % 11, out),
            8 | 9 => out.push(b'A' + u8::try_from(mixed % 3).unwrap()),
            13 => out.extend(b"DELIVER IN PERSON        "),
            14 => out.extend(b"REG AIR   "),
            _ => {
                let from = usize::try_from(mixed % 20).unwrap();
                out.extend(&words[from..from + 10 + from]);
            }
        }
        true
    })
}

/// Many columns, of which every third value is missing.
fn sparse() -> Sample {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let kinds = [
        (Wire::Int4, DataType::Int32),
        (Wire::Timestamp, micros),
        (Wire::Text, DataType::Utf8),
        (Wire::Float8, DataType::Float64),
    ];
    let columns: Vec<_> = kinds.iter().cycle().take(60).cloned().collect();
    Sample::new("sparse", &columns, |row, place, out| {
        match place % 4 {
            0 => out.extend(row.to_be_bytes()),
            1 => out.extend(u64::from(row).to_be_bytes()),
            2 => out.extend(format!("text {row}").as_bytes()),
            _ => out.extend(f64::from(row).to_be_bytes()),
        }
        !(row as usize + place).is_multiple_of(3)
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
