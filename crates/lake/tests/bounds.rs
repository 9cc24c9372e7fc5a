//! Memory stays within bounds whatever the rows are like.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![cfg(target_os = "linux")]

#[allow(unreachable_pub)]
mod common;

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use common::*;
use tidelake_lake::{FileExtent, Lake, WriterSettings, local};

/// Most memory that this process ever had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

/// A number without a pattern.
fn mix(seed: i64) -> i64 {
    let mut bits = seed as u64;
    bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ (bits >> 31)) as i64
}

fn narrow(start: i64, rows: i64) -> RecordBatch {
    let range = || start..start + rows;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(range())),
        Arc::new(Int64Array::from_iter_values(range().map(mix))),
        Arc::new(Date32Array::from_iter_values(range().map(|id| (id % 3000) as i32))),
        Arc::new(StringArray::from_iter_values(range().map(|id| format!("{:016x}", mix(id))))),
        Arc::new(StringArray::from_iter_values(
            range().map(|id| ["a", "bc", "def"][(id % 3) as usize]),
        )),
    ];
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("mixed", DataType::Int64, false),
        Field::new("day", DataType::Date32, false),
        Field::new("text", DataType::Utf8, false),
        Field::new("flag", DataType::Utf8, false),
    ]);
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

/// Cells of a mebibyte that no codec makes smaller, after some short ones, so
/// that nothing tells at the beginning how wide the column is.
fn wide(start: i64, rows: i64, bytes: usize) -> RecordBatch {
    let cell = |seed: i64| {
        let mut state = mix(seed);
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            state = mix(state);
            text.push_str(&format!("{state:016x}"));
        }
        text
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(start..start + rows)),
        Arc::new(StringArray::from_iter_values((start..start + rows).map(cell))),
    ];
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("cell", DataType::Utf8, false),
    ]);
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

#[tokio::test]
async fn memory_is_bounded_by_the_budget_and_not_by_rows_or_cells() {
    const BUDGET: usize = 32 << 20;
    // The allocator's own waste, the batches and a part on its way come on top.
    const BOUND: u64 = 32 + 48;
    let folder = tempfile::tempdir().unwrap();
    let table = Lake::new(local(folder.path()).unwrap()).table(None, &table_name());
    let settings = |slice, schema| WriterSettings {
        memory_bytes: BUDGET,
        ..WriterSettings::new(run(1), 1, slice, schema)
    };

    let before = peak();
    let mut writer = table.writer(settings(0, narrow(0, 1).schema())).unwrap();
    for start in 0..92 {
        writer.write(&narrow(start * 65_536, 65_536), FileExtent::default()).await.unwrap();
    }
    assert_eq!(writer.rows(), 92 * 65_536);
    let files = writer.finish().await.unwrap();
    assert!(files.iter().map(|(file, _)| file.bytes).sum::<u64>() > 100 << 20);
    let after = peak() - before;
    println!("6 million narrow rows: {after} MiB more");
    assert!(after < BOUND, "{after} MiB for a budget of 32");

    let before = peak();
    let mut writer = table.writer(settings(1, wide(0, 1, 10).schema())).unwrap();
    writer.write(&wide(0, 100, 10), FileExtent::default()).await.unwrap();
    for start in 0..40 {
        writer.write(&wide(100 + start * 8, 8, 1 << 20), FileExtent::default()).await.unwrap();
    }
    writer.finish().await.unwrap();
    let after = peak() - before;
    println!("320 cells of a mebibyte: {after} MiB more");
    assert!(after < BOUND, "{after} MiB for a budget of 32");
}
