//! Rows on their way into the pages of a Parquet file, and back.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    LargeStringArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array, UInt64Array,
};
use arrow::datatypes::{Field, Schema, i256};
use tidelake_lake::fuzzing;
use tidelake_model::Compression;

use crate::{pick, take};

/// Most rows of an input: enough for several pages, and for a dictionary to be judged.
const MOST_ROWS: usize = 40_000;

const CODECS: [Compression; 5] = [
    Compression::Zstd,
    Compression::None,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Gzip,
];

/// Rows of all columns, each of which makes a value of its own type of them.
type Cells = Vec<Option<u64>>;

fn number(bytes: &mut &[u8], length: usize) -> u64 {
    let (head, rest) = bytes.split_at(length.min(bytes.len()));
    *bytes = rest;
    head.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reads bytes as orders, each of which adds some rows.
fn cells(mut bytes: &[u8]) -> Cells {
    let mut cells = Cells::new();
    while let Some((order, rest)) = take(bytes) {
        bytes = rest;
        let room = MOST_ROWS - cells.len();
        let count = match order >> 6 {
            0 => 1,
            1 => number(&mut bytes, 1),
            _ => number(&mut bytes, 2),
        };
        let count = usize::try_from(count).unwrap_or(room).min(room);
        match order % 5 {
            0 => cells.extend(repeat_n(None, count)),
            1 => cells.extend(repeat_n(Some(number(&mut bytes, 1)), count)),
            2 => cells.extend(repeat_n(Some(number(&mut bytes, 8)), count)),
            3 => {
                let start = number(&mut bytes, 4);
                let step = number(&mut bytes, 1);
                let steps = (0..).map(|at: u64| Some(start.wrapping_add(at.wrapping_mul(step))));
                cells.extend(steps.take(count));
            }
            _ => {
                let mut state = number(&mut bytes, 2);
                let limit = number(&mut bytes, 3).max(1);
                cells.extend((0..count).map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                    Some((state >> 20) % limit)
                }));
            }
        }
    }
    cells
}

fn low<const N: usize>(cell: u64) -> [u8; N] {
    let mut low = [0; N];
    for (place, byte) in low.iter_mut().zip(cell.to_le_bytes().iter().cycle()) {
        *place = *byte;
    }
    low
}

fn text(cell: u64) -> String {
    let length = usize::from(cell.to_le_bytes()[1]) % 90;
    let letters = ["a", "ü", "\u{10ffff}", "", "zz"];
    let letter = pick(cell.to_le_bytes()[0], &letters).unwrap_or_default();
    format!("{}{cell}", letter.repeat(length))
}

fn column(kind: u8, cells: &[Option<u64>]) -> ArrayRef {
    let all = cells.iter().copied();
    let digits = |cell: u64, most: i128| i128::from(i64::from_le_bytes(low(cell))) % most;
    let decimals = |precision: u8| -> ArrayRef {
        let most = 10_i128.pow(u32::from(precision));
        let array = Decimal128Array::from_iter(all.clone().map(|cell| Some(digits(cell?, most))));
        Arc::new(array.with_precision_and_scale(precision, 1).expect("digits that fit"))
    };
    match kind % 18 {
        0 => Arc::new(BooleanArray::from_iter(all.map(|cell| Some(cell? % 2 == 1)))),
        1 => Arc::new(Int16Array::from_iter(all.map(|cell| Some(i16::from_le_bytes(low(cell?)))))),
        2 => Arc::new(Int32Array::from_iter(all.map(|cell| Some(i32::from_le_bytes(low(cell?)))))),
        3 => Arc::new(Int64Array::from_iter(all.map(|cell| Some(i64::from_le_bytes(low(cell?)))))),
        4 => Arc::new(UInt8Array::from_iter(all.map(|cell| Some(u8::from_le_bytes(low(cell?)))))),
        5 => Arc::new(UInt64Array::from_iter(all)),
        6 => {
            Arc::new(Float32Array::from_iter(all.map(|cell| Some(f32::from_le_bytes(low(cell?))))))
        }
        7 => {
            Arc::new(Float64Array::from_iter(all.map(|cell| Some(f64::from_le_bytes(low(cell?))))))
        }
        8 => Arc::new(Date32Array::from_iter(all.map(|cell| Some(i32::from_le_bytes(low(cell?)))))),
        9 => {
            let moments = all.map(|cell| Some(i64::from_le_bytes(low(cell?))));
            Arc::new(TimestampMicrosecondArray::from_iter(moments).with_timezone("UTC"))
        }
        10 => decimals(7),
        11 => decimals(18),
        12 => decimals(30),
        13 => {
            let wide = |cell: u64| i256::from_i128(digits(cell, i128::MAX)) << 60;
            let array = Decimal256Array::from_iter(all.map(|cell| Some(wide(cell?))));
            Arc::new(array.with_precision_and_scale(60, 5).expect("digits that fit"))
        }
        14 => {
            let values = all.map(|cell| Some(low::<16>(cell?)));
            let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 16);
            Arc::new(array.expect("16 bytes each"))
        }
        15 => Arc::new(StringArray::from_iter(all.map(|cell| Some(text(cell?))))),
        16 => Arc::new(LargeStringArray::from_iter(all.map(|cell| Some(text(cell?))))),
        _ => {
            let bytes = all.map(|cell| {
                let mut bytes = text(cell?).into_bytes();
                bytes.push(0xff);
                Some(bytes)
            });
            Arc::new(BinaryArray::from_iter(bytes))
        }
    }
}

pub(crate) fn target(bytes: &[u8]) {
    let Some((flags, bytes)) = take(bytes) else { return };
    let Some((piece, mut bytes)) = take(bytes) else { return };
    let mut kinds = vec![];
    for _ in 0..1 + flags % 3 {
        let Some((kind, rest)) = take(bytes) else { return };
        bytes = rest;
        kinds.push(kind);
    }
    let cells = cells(bytes);
    let nothing_missing: Cells = cells.iter().map(|cell| Some(cell.unwrap_or(0))).collect();
    let (mut fields, mut columns) = (vec![], vec![]);
    for (number, kind) in kinds.into_iter().enumerate() {
        let nullable = kind & 0x80 == 0;
        let cells = if nullable { &cells } else { &nothing_missing };
        let column = column(kind & 0x7f, cells);
        fields.push(Field::new(format!("{number}"), column.data_type().clone(), nullable));
        columns.push(column);
    }
    let schema = Arc::new(Schema::new(fields));
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns of one length");
    let piece = 1 + usize::from(piece) * 256;
    let pieces = (0..rows.num_rows()).step_by(piece);
    let batches: Vec<_> =
        pieces.map(|from| rows.slice(from, piece.min(rows.num_rows() - from))).take(400).collect();
    let codec = pick(flags >> 3, &CODECS).unwrap_or_default();
    let memory = if flags & 0x40 == 0 { 1 << 18 } else { 64 << 20 };
    let read =
        fuzzing::encoded_and_read(&schema, &batches, codec, memory).expect("rows are encoded");
    let mut from = 0;
    for batch in read {
        assert_eq!(batch.schema(), schema, "another schema is read");
        let written = rows.slice(from, batch.num_rows());
        assert!(batch.columns() == written.columns(), "other rows are read from row {from} on");
        from += batch.num_rows();
    }
    let written: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(from, written, "rows were lost");
}
