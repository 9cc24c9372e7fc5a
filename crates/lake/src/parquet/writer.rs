//! Writing a slice of a table into files that are staged.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tidelake_model::{Compression, DataFile, Error, ErrorKind, Result, RunId, StagedObject};

use super::FileExtent;
use super::file::{ParquetFile, check_batch, check_schema};
use super::upload::{ObjectUpload, UploadRecorder, abort};
use crate::lake::TableLake;
use crate::layout::data_key;

/// Size at which a file ends and the next begins, unless set otherwise.
pub const FILE_BYTES: u64 = 256 << 20;

/// Most bytes that a store takes as one object, with room to spare.
const LARGEST_FILE: u64 = 1 << 40;

/// What a writer needs to know.
#[derive(Clone)]
pub struct WriterSettings {
    /// The run.
    pub run_id: RunId,
    /// The fencing token of the attempt.
    pub attempt: u64,
    /// The slice; no other writer of the attempt may have its number.
    pub slice: u32,
    /// Schema of every file, from the catalogue.
    pub schema: SchemaRef,
    /// Codec.
    pub compression: Compression,
    /// Size at which a file ends and the next begins.
    pub file_bytes: u64,
    /// Bytes that the writer may hold.
    pub memory_bytes: usize,
    /// Is told of uploads as they begin.
    pub recorder: Option<Arc<dyn UploadRecorder>>,
}

impl WriterSettings {
    /// Usual settings for a slice.
    pub fn new(run_id: RunId, attempt: u64, slice: u32, schema: SchemaRef) -> Self {
        Self {
            run_id,
            attempt,
            slice,
            schema,
            compression: Compression::default(),
            file_bytes: FILE_BYTES,
            memory_bytes: 64 << 20,
            recorder: None,
        }
    }
}

/// Writes rows into Parquet files that stay invisible until they are completed.
///
/// Every error gives up what was uploaded so far; after one, and after
/// [`abort`](Self::abort), nothing is left behind. Dropped without either, the
/// uploads stay for a successor to give up.
pub struct TableWriter {
    table: TableLake,
    settings: WriterSettings,
    current: Option<OpenFile>,
    finished: Vec<(DataFile, StagedObject)>,
    next_number: u32,
    rows: u64,
    failed: bool,
}

struct OpenFile {
    key: String,
    file: ParquetFile,
    upload: ObjectUpload,
    rows: u64,
    extent: FileExtent,
}

impl TableWriter {
    pub(crate) fn new(table: TableLake, settings: WriterSettings) -> Result<Self> {
        check_schema(&settings.schema)?;
        Ok(Self {
            table,
            settings,
            current: None,
            finished: Vec::new(),
            next_number: 0,
            rows: 0,
            failed: false,
        })
    }

    /// Schema of the files.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.settings.schema)
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes a batch, whose cursor has that extent.
    pub async fn write(&mut self, batch: &RecordBatch, extent: FileExtent) -> Result<()> {
        let written = self.try_write(batch, extent).await;
        self.end(written).await
    }

    async fn try_write(&mut self, batch: &RecordBatch, extent: FileExtent) -> Result<()> {
        if self.failed {
            return Err(Error::new(ErrorKind::Internal, "the writer failed before"));
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        check_batch(&self.settings.schema, batch)?;
        let rows = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        let file_bytes = self.settings.file_bytes.min(LARGEST_FILE);
        let mut open = match self.current.take() {
            Some(open) => open,
            None => self.open(batch)?,
        };
        let written = open.write(batch, extent).await;
        let is_full = open.file.bytes() >= file_bytes;
        // Kept even when it failed, so that its upload is given up.
        self.current = Some(open);
        written?;
        self.rows = self.rows.saturating_add(rows);
        if is_full { self.close().await } else { Ok(()) }
    }

    fn open(&mut self, first: &RecordBatch) -> Result<OpenFile> {
        let WriterSettings { run_id, attempt, slice, .. } = self.settings;
        let key = data_key(run_id, attempt, slice, self.next_number);
        self.next_number = self.next_number.saturating_add(1);
        let schema = Arc::clone(&self.settings.schema);
        let memory = self.settings.memory_bytes;
        let file = ParquetFile::new(schema, self.settings.compression, memory, first)?;
        let recorder = self.settings.recorder.clone();
        let upload = ObjectUpload::new(self.table.clone(), key.clone(), recorder);
        Ok(OpenFile { key, file, upload, rows: 0, extent: FileExtent::default() })
    }

    async fn close(&mut self) -> Result<()> {
        let Some(OpenFile { key, file, mut upload, rows, extent }) = self.current.take() else {
            return Ok(());
        };
        let finished = finish(file, &mut upload).await;
        let object = match finished {
            Ok(object) => object,
            Err(error) => {
                upload.abort().await;
                return Err(error);
            }
        };
        let file = DataFile {
            key,
            rows,
            bytes: object.bytes,
            sha256: object.sha256.clone(),
            cursor_min: extent.min,
            cursor_max: extent.max,
            cursor_nulls: extent.nulls,
        };
        self.finished.push((file, object));
        Ok(())
    }

    /// Ends the last file. All of them are durable and none is visible. Without a
    /// row there is no file.
    pub async fn finish(mut self) -> Result<Vec<(DataFile, StagedObject)>> {
        let closed = self.close().await;
        self.end(closed).await?;
        Ok(std::mem::take(&mut self.finished))
    }

    /// Gives up all that was written.
    pub async fn abort(mut self) {
        self.give_up().await;
    }

    async fn end(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Ok(()) => Ok(()),
            Err(error) => {
                self.give_up().await;
                Err(self.table.name(error).in_slice(self.settings.slice))
            }
        }
    }

    async fn give_up(&mut self) {
        self.failed = true;
        if let Some(mut open) = self.current.take() {
            open.upload.abort().await;
        }
        for (_, object) in std::mem::take(&mut self.finished) {
            abort(&self.table, &object.upload).await;
        }
    }
}

impl OpenFile {
    async fn write(&mut self, batch: &RecordBatch, extent: FileExtent) -> Result<()> {
        for slice in self.file.slices(batch)? {
            self.file.write(&slice)?;
            while let Some(part) = self.file.take_full() {
                self.upload.put(part).await?;
            }
            // Encoding is work for the processor; others may want it too.
            tokio::task::yield_now().await;
        }
        self.rows = self.rows.saturating_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX));
        self.extent = std::mem::take(&mut self.extent).join(extent)?;
        Ok(())
    }
}

async fn finish(file: ParquetFile, upload: &mut ObjectUpload) -> Result<StagedObject> {
    let mut sink = file.finish()?;
    while let Some(part) = sink.take_full() {
        upload.put(part).await?;
    }
    let rest = sink.take_rest();
    upload.finish(rest, sink.bytes(), sink.sha256()).await
}
