//! Writing, rolling, giving up, reading back and taking rows out.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

#[allow(unreachable_pub)]
mod common;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{Array, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use async_trait::async_trait;
use bytes::Bytes;
use common::*;
use futures::TryStreamExt;
use sha2::{Digest, Sha256};
use tidelake_lake::{
    FileExtent, FoundUpload, Lake, MemoryStorage, PartPlace, Storage, TableLake, UploadRecorder,
    Version, WriterSettings, memory,
};
use tidelake_model::{
    Compression, Error, ErrorKind, Result, RunId, StagedObject, UploadPart, UploadRef,
};

#[tokio::test]
async fn without_a_row_there_is_no_file() {
    let (storage, table) = lake();
    let mut writer = table.writer(settings(run(1))).unwrap();
    writer.write(&batch([]), FileExtent::default()).await.unwrap();
    assert_eq!(writer.rows(), 0);
    assert!(writer.finish().await.unwrap().is_empty());
    assert!(storage.keys().is_empty() && storage.pending().is_empty());
}

#[tokio::test]
async fn what_is_written_is_read_back_with_every_codec() {
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    for compression in [Zstd, Snappy, Gzip, Lz4, None] {
        let (storage, table) = lake();
        let settings = WriterSettings { compression, ..settings(run(1)) };
        let mut writer = table.writer(settings).unwrap();
        let rows = batch(0..1000);
        writer.write(&rows, extent(&rows)).await.unwrap();
        let files = writer.finish().await.unwrap();
        let [(file, object)] = files.as_slice() else { panic!("one file") };
        table.complete(object).await.unwrap();
        let read: Vec<_> = table.rows(vec![file.clone()], schema()).try_collect().await.unwrap();
        assert_eq!(arrow::compute::concat_batches(&schema(), &read).unwrap(), rows);

        let key = format!("public/orders/{}", file.key);
        let (bytes, _) = storage.get(&key).await.unwrap().unwrap();
        assert_eq!(bytes.len() as u64, file.bytes);
        let hash: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, file.sha256, "{compression:?}");
    }
}

#[tokio::test]
async fn files_end_at_their_size_and_each_knows_its_extent() {
    let (_, table) = lake();
    let settings =
        WriterSettings { file_bytes: 20_000, compression: Compression::None, ..settings(run(1)) };
    let mut writer = table.writer(settings).unwrap();
    for start in 0..20 {
        let rows = batch(start * 1000..start * 1000 + 1000);
        writer.write(&rows, extent(&rows)).await.unwrap();
    }
    assert_eq!(writer.rows(), 20_000);
    let files = writer.finish().await.unwrap();
    assert!(files.len() > 5, "{}", files.len());
    let mut next = 0;
    for (number, (file, object)) in files.iter().enumerate() {
        assert_eq!(file.key, TableLake::data_key(run(1), 1, 0, u32::try_from(number).unwrap()));
        assert_eq!(object.upload.key, file.key);
        assert_eq!(file.cursor_min, Some(at(next)));
        next += i64::try_from(file.rows).unwrap();
        assert_eq!(file.cursor_max, Some(at(next - 1)));
        table.complete(object).await.unwrap();
    }
    assert_eq!(next, 20_000);
}

/// Remembers what it is told, and refuses from some call on.
#[derive(Default)]
struct Recorder {
    begun: Mutex<Vec<UploadRef>>,
    refuses: bool,
}

#[async_trait]
impl UploadRecorder for Recorder {
    async fn begun(&self, upload: &UploadRef) -> Result<()> {
        self.begun.lock().unwrap().push(upload.clone());
        if self.refuses { Err(Error::new(ErrorKind::Conflict, "lease lost")) } else { Ok(()) }
    }
}

fn noise(rows: usize, bytes: usize) -> RecordBatch {
    let mut state = 1_u64;
    let cells: Vec<Vec<u8>> = (0..rows)
        .map(|_| {
            (0..bytes)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect()
        })
        .collect();
    let schema = Arc::new(Schema::new(vec![Field::new("cell", DataType::Binary, false)]));
    let cells = BinaryArray::from_iter_values(cells);
    RecordBatch::try_new(schema, vec![Arc::new(cells)]).unwrap()
}

#[tokio::test]
async fn large_uploads_are_told_before_their_first_part_and_small_ones_are_not() {
    let (storage, table) = lake();
    let recorder = Arc::new(Recorder::default());
    let rows = noise(30, 1 << 20);
    let large = WriterSettings {
        schema: rows.schema(),
        memory_bytes: 8 << 20,
        recorder: Some(recorder.clone()),
        ..settings(run(1))
    };
    let mut writer = table.writer(large.clone()).unwrap();
    writer.write(&rows, FileExtent::default()).await.unwrap();
    let begun = recorder.begun.lock().unwrap().clone();
    let [upload] = begun.as_slice() else { panic!("one upload: {begun:?}") };
    assert_eq!(upload.key, TableLake::data_key(run(1), 1, 0, 0));
    let files = writer.finish().await.unwrap();
    let [(file, object)] = files.as_slice() else { panic!("one file") };
    assert!(object.parts.len() >= 3, "{}", object.parts.len());
    assert_eq!(&object.upload, upload);
    table.complete(object).await.unwrap();
    let read: Vec<_> = table.rows(vec![file.clone()], rows.schema()).try_collect().await.unwrap();
    assert_eq!(arrow::compute::concat_batches(&rows.schema(), &read).unwrap(), rows);

    let small = WriterSettings { slice: 1, ..large };
    let mut writer = table.writer(small).unwrap();
    writer.write(&rows.slice(0, 1), FileExtent::default()).await.unwrap();
    writer.finish().await.unwrap();
    assert_eq!(recorder.begun.lock().unwrap().len(), 1);
    assert_eq!(storage.pending().len(), 1);
}

#[tokio::test]
async fn a_recorder_that_refuses_leaves_no_upload() {
    let (storage, table) = lake();
    let rows = noise(20, 1 << 20);
    let recorder = Arc::new(Recorder { refuses: true, ..Recorder::default() });
    let settings = WriterSettings {
        schema: rows.schema(),
        memory_bytes: 8 << 20,
        recorder: Some(recorder),
        ..settings(run(1))
    };
    let mut writer = table.writer(settings).unwrap();
    let error = writer.write(&rows, FileExtent::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(storage.pending().is_empty(), "{:?}", storage.pending());
    assert!(writer.write(&rows, FileExtent::default()).await.is_err(), "and stays failed");
}

/// Fails the nth call that changes something.
struct Failing {
    inner: Arc<MemoryStorage>,
    calls: AtomicUsize,
    fails_at: usize,
}

impl Failing {
    fn step(&self) -> Result<()> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.fails_at {
            return Err(Error::new(ErrorKind::Unavailable, "cut"));
        }
        Ok(())
    }
}

#[async_trait]
impl Storage for Failing {
    fn location(&self) -> String {
        self.inner.location()
    }
    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        self.inner.get(key).await
    }
    async fn head(&self, key: &str) -> Result<Option<u64>> {
        self.inner.head(key).await
    }
    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        self.inner.range(key, range).await
    }
    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.inner.list(folder).await
    }
    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.inner.put_new(key, bytes).await
    }
    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        self.inner.put_if(key, bytes, version).await
    }
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.inner.put(key, bytes).await
    }
    async fn begin(&self, key: &str) -> Result<UploadRef> {
        self.step()?;
        self.inner.begin(key).await
    }
    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        self.step()?;
        self.inner.put_part(upload, place, bytes).await
    }
    async fn persist(&self, upload: &UploadRef) -> Result<()> {
        self.step()?;
        self.inner.persist(upload).await
    }
    async fn complete(&self, object: &StagedObject) -> Result<()> {
        self.inner.complete(object).await
    }
    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        self.inner.abort(upload).await
    }
    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>> {
        self.inner.uploads(folder).await
    }
    async fn abort_attempts(&self, folder: &str, run: RunId, below: u64) -> Result<u64> {
        self.inner.abort_attempts(folder, run, below).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }
}

#[tokio::test]
async fn every_error_path_gives_its_uploads_up() {
    let rows = noise(10, 1 << 20);
    let mut failures = 0;
    for fails_at in 0.. {
        let inner = memory();
        let failing =
            Arc::new(Failing { inner: inner.clone(), calls: AtomicUsize::new(0), fails_at });
        let table = Lake::new(failing).table(None, &table_name());
        let settings = WriterSettings {
            schema: rows.schema(),
            memory_bytes: 4 << 20,
            file_bytes: 20 << 20,
            ..settings(run(1))
        };
        let mut writer = table.writer(settings).unwrap();
        let written = async {
            for _ in 0..5 {
                writer.write(&rows, FileExtent::default()).await?;
            }
            writer.finish().await
        };
        match written.await {
            Ok(files) => {
                assert_eq!(inner.pending().len(), files.len());
                break;
            }
            Err(error) => {
                failures += 1;
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert_eq!(error.table(), Some(&table_name()));
                assert!(inner.pending().is_empty(), "call {fails_at}: {:?}", inner.pending());
            }
        }
    }
    assert!(failures > 10, "{failures}");
}

#[tokio::test]
async fn aborting_a_writer_leaves_nothing() {
    let (storage, table) = lake();
    let rows = noise(20, 1 << 20);
    let settings = WriterSettings {
        schema: rows.schema(),
        memory_bytes: 4 << 20,
        file_bytes: 10 << 20,
        ..settings(run(1))
    };
    let mut writer = table.writer(settings).unwrap();
    writer.write(&rows, FileExtent::default()).await.unwrap();
    writer.write(&rows, FileExtent::default()).await.unwrap();
    assert!(!storage.pending().is_empty());
    writer.abort().await;
    assert!(storage.pending().is_empty());
}

#[tokio::test]
async fn earlier_attempts_of_a_run_are_given_up_alone() {
    let (storage, table) = lake();
    for (number, attempt) in [(1, 1), (1, 2), (1, 3), (2, 1)] {
        let settings = WriterSettings { attempt, ..settings(run(number)) };
        let mut writer = table.writer(settings).unwrap();
        writer.write(&batch(0..1), FileExtent::default()).await.unwrap();
        writer.finish().await.unwrap();
    }
    assert_eq!(table.abort_attempts(run(1), 3).await.unwrap(), 2);
    assert_eq!(storage.pending().len(), 2);
}

#[tokio::test]
async fn rows_of_another_schema_and_nulls_where_none_may_be_are_refused() {
    let (_, table) = lake();
    let mut writer = table.writer(settings(run(1))).unwrap();
    let error = writer.write(&noise(1, 1), FileExtent::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);

    let loose = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
    ]));
    let columns = batch([1]).columns().to_vec();
    let ids = Arc::new(Int64Array::from(vec![None]));
    let rows = RecordBatch::try_new(loose, vec![ids, columns[1].clone()]).unwrap();
    let mut writer = table.writer(settings(run(1))).unwrap();
    let error = writer.write(&rows, FileExtent::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.message().contains("\"id\""), "{error:?}");
}

#[tokio::test]
async fn types_that_parquet_has_not_are_refused_before_a_row_is_read() {
    let (_, table) = lake();
    for data_type in [
        DataType::Timestamp(TimeUnit::Second, None),
        DataType::Duration(TimeUnit::Microsecond),
        DataType::List(Arc::new(Field::new("item", DataType::Duration(TimeUnit::Second), true))),
    ] {
        let schema = Arc::new(Schema::new(vec![Field::new("odd", data_type, true)]));
        let refused = table.writer(WriterSettings::new(run(1), 1, 0, schema));
        let error = refused.err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().contains("\"odd\""), "{error:?}");
    }
}

#[tokio::test]
async fn rows_are_read_as_the_newer_schema() {
    let (_, table) = lake();
    let old = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        Field::new("gone", DataType::Int32, true),
    ]));
    let columns: Vec<arrow::array::ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![1, 2])), Arc::new(Int32Array::from(vec![3, 4]))];
    let rows = RecordBatch::try_new(old.clone(), columns).unwrap();
    let mut writer = table.writer(WriterSettings::new(run(1), 1, 0, old)).unwrap();
    writer.write(&rows, FileExtent::default()).await.unwrap();
    let (files, objects): (Vec<_>, Vec<_>) = writer.finish().await.unwrap().into_iter().unzip();
    table.complete(&objects[0]).await.unwrap();
    let read: Vec<_> = table.rows(files, schema()).try_collect().await.unwrap();
    assert_eq!(ids(&read[0]), [1, 2]);
    assert_eq!(read[0].column(1).null_count(), 2);
}

#[tokio::test]
async fn only_the_named_files_are_read() {
    let (_, table) = lake();
    let first = append(&table, None, 1, 0..5).await;
    let second = append(&table, Some(&first), 2, 5..8).await;
    let files = table.live_files(&second).await.unwrap();
    let read: Vec<_> = table.rows(vec![files[1].clone()], schema()).try_collect().await.unwrap();
    assert_eq!(read.iter().flat_map(ids).collect::<Vec<_>>(), [5, 6, 7]);

    let mut changed = files[0].clone();
    changed.rows += 1;
    let read: Result<Vec<_>> = table.rows(vec![changed], schema()).try_collect().await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Mismatch);
}

#[tokio::test]
async fn a_range_is_taken_out_of_the_live_files() {
    let (storage, table) = lake();
    let mut latest = append(&table, None, 1, 0..10).await;
    latest = append(&table, Some(&latest), 2, 10..20).await;
    latest = append(&table, Some(&latest), 3, 20..30).await;
    let files = table.live_files(&latest).await.unwrap();

    // Rows from 5 to 19 are replaced: one file straddles, one lies inside.
    let mut writer = table.writer(WriterSettings { slice: 9, ..settings(run(4)) }).unwrap();
    let keep = |batch: &RecordBatch| {
        Ok(BooleanArray::from_iter(ids(batch).iter().map(|id| Some(!(5..20).contains(id)))))
    };
    let extent_of = |batch: &RecordBatch| Ok(extent(batch));
    let gone = table.take_out(&files[0], &keep, &mut writer, &extent_of).await.unwrap();
    assert_eq!((gone.key.as_str(), gone.rows), (files[0].key.as_str(), 5));
    let rows = batch(100..103);
    writer.write(&rows, extent(&rows)).await.unwrap();
    let (added, objects) = writer.finish().await.unwrap().into_iter().unzip();
    let mut edited = manifest(run(4), 0, added);
    edited.taken_out = vec![gone, taken_out(&files[1])];
    let commit_of = pending(Some(&latest), edited, objects, false);
    let latest = commit(&table, &commit_of).await;

    let expected: Vec<_> = (20..30).chain(0..5).chain(100..103).collect();
    assert_eq!(read(&table, &latest).await, expected);
    assert_eq!(table.clean(&latest, 0).await.unwrap(), 2);
    assert_eq!(table.clean(&latest, 0).await.unwrap(), 2, "done twice, it is fine");
    assert_eq!(read(&table, &latest).await, expected);
    let parquet = storage.keys().into_iter().filter(|key| key.ends_with(".parquet"));
    assert_eq!(parquet.count(), 2);
}
