//! Our encoder beside the Parquet crate's: the same rows, and the same of what a footer
//! says about them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(clippy::cast_precision_loss)]

#[allow(unreachable_pub)]
mod arrays;

use std::sync::Arc;

use arrays::{NULLS, Nulls, PATTERNS, Pattern, Random, Seeds};
use arrow::array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::Encoding;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use proptest::prelude::*;
use tidelake_lake::fuzzing::encoded;
use tidelake_model::{Compression, ErrorKind};

const CODECS: [Compression; 5] = [
    Compression::Zstd,
    Compression::Snappy,
    Compression::Gzip,
    Compression::Lz4,
    Compression::None,
];

fn columns(columns: Vec<(String, ArrayRef)>, nullable: bool) -> RecordBatch {
    let field = |(name, array): &(String, ArrayRef)| {
        Field::new(name.as_str(), array.data_type().clone(), nullable)
    };
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(schema, arrays).unwrap()
}

/// Rows of all types.
fn rows(random: &mut Random, count: usize, pattern: Pattern, nulls: Nulls) -> RecordBatch {
    let all = Seeds::new(random, count, pattern, nulls).all();
    let all = all.into_iter().map(|(name, array)| (name.to_owned(), array)).collect();
    columns(all, nulls != Nulls::Never)
}

/// The rows in pieces of all sizes.
fn cut(random: &mut Random, rows: &RecordBatch) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    let mut from = 0;
    while from < rows.num_rows() {
        let count = (1 << random.below(17)).min(rows.num_rows() - from);
        batches.push(rows.slice(from, count));
        from += count;
    }
    batches
}

fn theirs(schema: &SchemaRef, batches: &[RecordBatch]) -> Bytes {
    let properties =
        WriterProperties::builder().set_statistics_enabled(EnabledStatistics::Chunk).build();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap().into()
}

fn reader(file: &Bytes) -> ParquetRecordBatchReaderBuilder<Bytes> {
    let options = ArrowReaderOptions::new()
        .with_page_index_policy(PageIndexPolicy::Optional)
        .with_encoding_stats_as_mask(false);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap()
}

fn read(file: &Bytes) -> RecordBatch {
    let builder = reader(file);
    let schema = Arc::clone(builder.schema());
    let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn assert_same_rows(read: &RecordBatch, written: &RecordBatch, what: &str) {
    assert_eq!(read.schema(), written.schema(), "{what}");
    for (place, field) in written.schema().fields().iter().enumerate() {
        assert!(read.column(place) == written.column(place), "{what}: {} differs", field.name());
    }
}

/// What a footer says about a column, apart from where and how it is stored.
fn said(column: &ColumnChunkMetaData) -> String {
    let statistics = column.statistics().map(|statistics| {
        // In bytes: zeros of two signs are equal.
        let ends = (statistics.min_bytes_opt(), statistics.max_bytes_opt());
        let exact = (statistics.min_is_exact(), statistics.max_is_exact());
        let old = statistics.is_min_max_backwards_compatible();
        format!("{ends:?} {exact:?} {old} {:?}", statistics.null_count_opt())
    });
    format!(
        "{statistics:?} {} values, levels {:?}, {:?} bytes",
        column.num_values(),
        column.definition_level_histogram(),
        column.unencoded_byte_array_data_bytes(),
    )
}

fn assert_same_footer(ours: &ParquetMetaData, theirs: &ParquetMetaData, what: &str) {
    let (our_file, their_file) = (ours.file_metadata(), theirs.file_metadata());
    assert_eq!(our_file.schema_descr(), their_file.schema_descr(), "{what}");
    assert_eq!(our_file.key_value_metadata(), their_file.key_value_metadata(), "{what}");
    assert_eq!(our_file.column_orders(), their_file.column_orders(), "{what}");
    assert_eq!(our_file.num_rows(), their_file.num_rows(), "{what}");
    assert_eq!((ours.num_row_groups(), theirs.num_row_groups()), (1, 1), "{what}");
    let (our_group, their_group) = (ours.row_group(0), theirs.row_group(0));
    for (ours, theirs) in our_group.columns().iter().zip(their_group.columns()) {
        assert_eq!(said(ours), said(theirs), "{what}: {}", ours.column_path());
    }
}

/// Sizes and places add up, so that a reader finds each page.
fn assert_pages_add_up(metadata: &ParquetMetaData, what: &str) {
    let indices = metadata.column_index().into_iter().flatten().flatten();
    assert!(indices.into_iter().all(|index| *index == ColumnIndexMetaData::NONE), "{what}");
    let pages = metadata.offset_index().unwrap();
    for (group, pages) in metadata.row_groups().iter().zip(pages) {
        for (column, pages) in group.columns().iter().zip(pages) {
            let what = format!("{what}: {}", column.column_path());
            let (start, length) = column.byte_range();
            let locations = pages.page_locations();
            let first = locations[0].offset;
            assert_eq!(first, column.data_page_offset(), "{what}");
            let sizes: i64 =
                locations.iter().map(|page| i64::from(page.compressed_page_size)).sum();
            assert_eq!(first + sizes, (start + length) as i64, "{what}");
            assert!(locations.is_sorted_by_key(|page| page.first_row_index), "{what}");
            let kinds = column.page_encoding_stats().unwrap();
            let data = kinds.iter().filter(|kind| kind.encoding != Encoding::PLAIN).count();
            assert!(data <= 1, "{what}: {kinds:?}");
        }
    }
}

#[test]
fn every_type_and_pattern_is_read_as_written_and_described_alike() {
    let mut random = Random(1);
    let mut codecs = CODECS.iter().cycle();
    for pattern in PATTERNS {
        for nulls in NULLS {
            let codec = *codecs.next().unwrap();
            let what = format!("{pattern:?}, nulls {nulls:?}, {codec:?}");
            let count = 1_000 + random.below(2_000);
            let rows = rows(&mut random, count, pattern, nulls);
            let batches = cut(&mut random, &rows);
            let schema = rows.schema();
            let ours = Bytes::from(encoded(&schema, &batches, codec, 64 << 20).unwrap());
            assert_same_rows(&read(&ours), &rows, &what);
            let theirs = theirs(&schema, &batches);
            assert_same_footer(reader(&ours).metadata(), reader(&theirs).metadata(), &what);
            assert_pages_add_up(reader(&ours).metadata(), &what);
        }
    }
}

/// Columns whose pages, dictionaries and row groups end somewhere in the middle.
fn long(random: &mut Random, pattern: Pattern, nulls: Nulls) -> RecordBatch {
    let some = ["boolean", "int16", "int64", "float64", "decimal 18", "uuid", "text", "list"];
    let all = Seeds::new(random, 90_000, pattern, nulls).all();
    let all = all.into_iter().filter(|(name, _)| some.contains(name));
    columns(all.map(|(name, array)| (name.to_owned(), array)).collect(), nulls != Nulls::Never)
}

#[test]
fn long_columns_are_read_as_written_with_little_memory() {
    let mut random = Random(2);
    for (pattern, nulls) in [
        (Pattern::Thousands, Nulls::Runs),
        (Pattern::Sorted, Nulls::Rare),
        (Pattern::Turning, Nulls::Never),
        (Pattern::Any, Nulls::Half),
    ] {
        let rows = long(&mut random, pattern, nulls);
        let batches = cut(&mut random, &rows);
        for memory in [2 << 20, 64 << 20] {
            let what = format!("{pattern:?}, nulls {nulls:?}, {memory} bytes");
            let ours = encoded(&rows.schema(), &batches, Compression::Zstd, memory).unwrap();
            let ours = Bytes::from(ours);
            let metadata = Arc::clone(reader(&ours).metadata());
            let groups = metadata.num_row_groups();
            match (memory < 4 << 20, pattern) {
                (false, _) => assert_eq!(groups, 1, "{what}"),
                (true, Pattern::Any) => assert!(groups > 1, "{what}"),
                _ => {}
            }
            assert_same_rows(&read(&ours), &rows, &what);
            assert_pages_add_up(&metadata, &what);
            // By the offset index alone, into the middle of pages.
            let selected = RowSelection::from(vec![
                RowSelector::skip(44_444),
                RowSelector::select(1_111),
                RowSelector::skip(30_000),
                RowSelector::select(11),
            ]);
            let selected = reader(&ours).with_row_selection(selected).build().unwrap();
            let selected: Vec<_> = selected.map(Result::unwrap).collect();
            let wanted = [rows.slice(44_444, 1_111), rows.slice(75_555, 11)];
            let wanted = concat_batches(&rows.schema(), &wanted).unwrap();
            let selected = concat_batches(&rows.schema(), &selected).unwrap();
            assert_same_rows(&selected, &wanted, &what);
        }
    }
}

fn encodings(file: &Bytes) -> Vec<Vec<Encoding>> {
    let metadata = Arc::clone(reader(file).metadata());
    let kinds = |column: &ColumnChunkMetaData| {
        column.page_encoding_stats().unwrap().iter().map(|kind| kind.encoding).collect()
    };
    metadata.row_group(0).columns().iter().map(kinds).collect()
}

#[test]
fn a_dictionary_is_kept_where_it_pays_and_given_up_where_it_grows() {
    let mut random = Random(3);
    let kinds = |pattern, random: &mut Random| {
        let rows = long(random, pattern, Nulls::None);
        let file = encoded(&rows.schema(), &[rows], Compression::Zstd, 64 << 20).unwrap();
        let all = encodings(&file.into());
        // The columns "int64" and "text".
        [all[2].clone(), all[6].clone()]
    };
    let dictionary = vec![Encoding::PLAIN, Encoding::RLE_DICTIONARY];
    let both = vec![Encoding::PLAIN, Encoding::RLE_DICTIONARY, Encoding::PLAIN];
    assert_eq!(kinds(Pattern::Few, &mut random), [dictionary.clone(), dictionary.clone()]);
    assert_eq!(kinds(Pattern::Thousands, &mut random), [dictionary.clone(), dictionary]);
    assert_eq!(kinds(Pattern::Any, &mut random), [vec![Encoding::PLAIN], vec![Encoding::PLAIN]]);
    assert_eq!(kinds(Pattern::Turning, &mut random), [both.clone(), both]);
}

#[test]
fn what_would_not_become_smaller_is_not_compressed() {
    let mut random = Random(4);
    let count = 300_000;
    let noise: Vec<i64> = (0..count).map(|_| random.any() as i64).collect();
    // Noise at first, so that nothing is compressed; later what is worth it.
    let late = noise.iter().zip(0..).map(|(noise, row)| if row < 40_000 { *noise } else { row });
    let late: ArrayRef = Arc::new(Int64Array::from_iter_values(late));
    let noise: ArrayRef = Arc::new(Int64Array::from(noise));
    let text = (0..count).map(|row| format!("nearly the same, {row}"));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(text));
    let rows = columns(
        vec![("noise".to_owned(), noise), ("text".to_owned(), text), ("late".to_owned(), late)],
        false,
    );
    for codec in CODECS {
        let file = Bytes::from(
            encoded(&rows.schema(), std::slice::from_ref(&rows), codec, 64 << 20).unwrap(),
        );
        assert_same_rows(&read(&file), &rows, &format!("{codec:?}"));
        let metadata = Arc::clone(reader(&file).metadata());
        let is_packed = |column: usize| {
            let column = metadata.row_group(0).column(column);
            column.compression() != parquet::basic::Compression::UNCOMPRESSED
        };
        let packs = codec != Compression::None;
        assert_eq!([is_packed(0), is_packed(1), is_packed(2)], [false, packs, packs], "{codec:?}");
        let late = metadata.row_group(0).column(2).compressed_size();
        assert!(!packs || late < 1_800_000, "{codec:?}: {late}");
    }
}

#[test]
fn a_number_too_long_for_its_column_is_refused() {
    for (precision, number) in [(4, i128::from(i32::MAX) + 1), (12, i128::MAX), (20, i128::MAX)] {
        let numbers = Decimal128Array::from(vec![Some(1), Some(number)]);
        let numbers = numbers.with_data_type(DataType::Decimal128(precision, 0));
        let rows = columns(vec![("number".to_owned(), Arc::new(numbers))], true);
        let error = encoded(&rows.schema(), &[rows], Compression::Zstd, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{precision}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_columns_in_any_pieces_are_read_as_written(
        seed: u64,
        count in prop_oneof![1_usize..80, 1_usize..40_000],
        codec in 0_usize..5,
        memory in 18_u32..26,
    ) {
        let mut random = Random(seed);
        let mut chosen = Vec::new();
        for number in 0..1 + random.below(4) {
            let pattern = PATTERNS[random.below(PATTERNS.len())];
            // A column that may not be NULL stands beside those that may.
            let nulls = NULLS[1 + random.below(NULLS.len() - 1)];
            let mut all = Seeds::new(&mut random, count, pattern, nulls).all();
            let (name, array) = all.swap_remove(random.below(all.len()));
            chosen.push((format!("{number} {name}"), array));
        }
        let rows = columns(chosen, true);
        // A part of larger arrays, as a reader may cut them.
        let from = random.below(count);
        let rows = rows.slice(from, count - from);
        let batches = cut(&mut random, &rows);
        let file = encoded(&rows.schema(), &batches, CODECS[codec], 1 << memory).unwrap();
        assert_same_rows(&read(&file.into()), &rows, &format!("seed {seed}"));
    }
}
