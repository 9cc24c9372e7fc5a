//! Reading data files back.

use std::ops::Range;
use std::sync::Arc;

use ::parquet::arrow::arrow_reader::{ArrowReaderBuilder, ArrowReaderOptions};
use ::parquet::arrow::async_reader::AsyncFileReader;
use ::parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use tidelake_model::{DataFile, Error, ErrorKind, Result};

use super::failed;
use super::widen::widens;
use crate::lake::TableLake;

/// Bytes of rows that a batch should have, about.
const BATCH_BYTES: u64 = 8 << 20;

/// Most rows of a batch.
const BATCH_ROWS: u64 = 65_536;

struct ObjectReader {
    table: TableLake,
    key: String,
    bytes: u64,
}

impl AsyncFileReader for ObjectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        let key = self.table.key(&self.key);
        async move {
            let read = self.table.storage.range(&key, range).await;
            read.map_err(|error| ParquetError::External(Box::new(error)))
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let bytes = self.bytes;
            let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
            Ok(Arc::new(reader.load_and_finish(self, bytes).await?))
        }
        .boxed()
    }
}

/// The rows of the files in order.
pub(crate) fn read_files(
    table: TableLake,
    files: Vec<DataFile>,
    schema: SchemaRef,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
    stream::iter(files)
        .then(move |file| read_file(table.clone(), file, Arc::clone(&schema)))
        .try_flatten()
}

async fn read_file(
    table: TableLake,
    file: DataFile,
    schema: SchemaRef,
) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + 'static> {
    let location = table.file_location(&file.key);
    let reader = ObjectReader { table, key: file.key.clone(), bytes: file.bytes };
    let begun = ParquetRecordBatchStreamBuilder::new(reader).await;
    let builder = begun.map_err(|error| failed(&format!("read {location}"), error))?;
    let rows = builder.metadata().file_metadata().num_rows();
    if u64::try_from(rows).ok() != Some(file.rows) {
        let message = format!("{location} holds {rows} rows, its manifest says {}", file.rows);
        return Err(Error::new(ErrorKind::Mismatch, message));
    }
    let batch_rows = batch_rows(builder.metadata());
    let columns = wanted(&builder, &schema);
    let begun = builder.with_batch_size(batch_rows).with_projection(columns).build();
    let batches = begun.map_err(|error| failed(&format!("read {location}"), error))?;
    Ok(batches.map(move |batch| {
        let batch = batch.map_err(|error| failed(&format!("read {location}"), error))?;
        conform(&batch, &schema)
    }))
}

/// The columns that the schema asks for; others are not even fetched.
fn wanted<T>(builder: &ArrowReaderBuilder<T>, schema: &SchemaRef) -> ProjectionMask {
    let fields = builder.schema().fields().iter().enumerate();
    let wanted = fields.filter(|(_, field)| schema.index_of(field.name()).is_ok());
    ProjectionMask::roots(builder.parquet_schema(), wanted.map(|(place, _)| place))
}

/// As many rows as make a batch of moderate size by the widest row group.
fn batch_rows(metadata: &ParquetMetaData) -> usize {
    let widest = metadata.row_groups().iter().map(|group| {
        let bytes = u64::try_from(group.total_byte_size()).unwrap_or(0);
        let rows = u64::try_from(group.num_rows()).unwrap_or(1).max(1);
        bytes.div_ceil(rows)
    });
    let widest = widest.max().unwrap_or(1).max(1);
    usize::try_from((BATCH_BYTES / widest).clamp(1, BATCH_ROWS)).unwrap_or(1)
}

/// The same rows under another schema of the same table.
fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let column = |field: &arrow::datatypes::FieldRef| -> Result<ArrayRef> {
        let Some(column) = batch.column_by_name(field.name()) else {
            return Ok(new_null_array(field.data_type(), rows));
        };
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        let failed = || {
            let message = format!(
                "the column {:?} cannot be read as {} from {}",
                field.name(),
                field.data_type(),
                column.data_type()
            );
            Error::new(ErrorKind::Data, message)
        };
        // Other casts would round, or lose what does not fit.
        if !widens(column.data_type(), field.data_type()) {
            return Err(failed());
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(column, field.data_type(), &options)
            .map_err(|error| failed().with_source(error))
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(|error| {
        Error::new(ErrorKind::Data, "the rows do not fit the table's schema").with_source(error)
    })
}
