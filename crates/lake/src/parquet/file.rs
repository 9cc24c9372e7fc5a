//! One Parquet file being encoded.

use std::sync::Arc;

use ::parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use ::parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::ColumnPath;
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use bytes::Bytes;
use tidelake_model::{Compression, Error, ErrorKind, Result};

use super::failed;
use super::pages::{Codec, parquet_codec};
use super::row_group::RowGroup;
use super::sink::Sink;

/// Most rows of a row group.
const ROW_GROUP_ROWS: usize = 1_000_000;

/// Most bytes of a row group, in memory.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Most bytes of rows that are encoded at once: the encoder looks at what it
/// holds only between calls.
const SLICE_BYTES: usize = 8 << 20;

/// Average size of a value from which a column gets no dictionary, where the Parquet
/// crate encodes it.
const WIDE_VALUE: usize = 512;

/// A file being encoded.
pub(super) struct ParquetFile {
    writer: SerializedFileWriter<Sink>,
    schema: SchemaRef,
    factory: ArrowRowGroupWriterFactory,
    codec: Codec,
    row_group: Option<RowGroup>,
    row_groups: usize,
    row_group_bytes: usize,
}

impl ParquetFile {
    /// Begins a file. The first batch tells which columns are too wide for
    /// dictionaries.
    pub(super) fn new(
        schema: SchemaRef,
        compression: Compression,
        memory_bytes: usize,
        first: &RecordBatch,
    ) -> Result<Self> {
        let begin = |error| failed("begin a Parquet file", error);
        let mut properties = properties(compression, &schema, first)?;
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let converter = ArrowSchemaConverter::new().with_coerce_types(properties.coerce_types());
        let root = converter.convert(&schema).map_err(begin)?.root_schema_ptr();
        let writer = SerializedFileWriter::new(Sink::default(), root, Arc::new(properties));
        let writer = writer.map_err(begin)?;
        Ok(Self {
            factory: ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema)),
            writer,
            schema,
            codec: Codec::new(compression)?,
            row_group: None,
            row_groups: 0,
            // A row group is held twice for a moment, while it goes to the sink.
            row_group_bytes: (memory_bytes / 2).clamp(1 << 20, ROW_GROUP_BYTES),
        })
    }

    /// Bytes that the file would have if it ended here, about.
    pub(super) fn bytes(&self) -> u64 {
        let encoded = self.row_group.as_ref().map_or(0, RowGroup::encoded);
        (self.writer.bytes_written() + encoded) as u64
    }

    /// Encodes some rows.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < rows.num_rows() {
            let group = match &mut self.row_group {
                Some(group) => group,
                none => none.insert(RowGroup::new(
                    &self.schema,
                    self.writer.schema_descr(),
                    &self.factory,
                    self.row_groups,
                    self.row_group_bytes,
                )?),
            };
            let room = ROW_GROUP_ROWS.saturating_sub(group.rows()).max(1);
            let count = room.min(rows.num_rows() - from);
            group.write(&rows.slice(from, count), &mut self.codec)?;
            from += count;
            if group.rows() >= ROW_GROUP_ROWS || group.memory() >= self.row_group_bytes {
                self.end_row_group()?;
            }
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<()> {
        if let Some(group) = self.row_group.take() {
            self.row_groups += 1;
            group.finish(&mut self.writer, &mut self.codec)?;
        }
        Ok(())
    }

    /// The next part that is full.
    pub(super) fn take_full(&mut self) -> Option<Bytes> {
        self.writer.inner_mut().take_full()
    }

    /// Writes the footer; the sink is to be emptied afterwards.
    pub(super) fn finish(mut self) -> Result<Sink> {
        self.end_row_group()?;
        self.writer.into_inner().map_err(|error| failed("end a Parquet file", error))
    }

    /// Cuts a batch so that little is encoded at once.
    pub(super) fn slices(&self, batch: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let limit = SLICE_BYTES.min(self.row_group_bytes / 4).max(1);
        let rows = batch.num_rows();
        let pieces = slice_memory(batch)?.div_ceil(limit).clamp(1, rows.max(1));
        let length = rows.div_ceil(pieces).max(1);
        let starts = (0..rows).step_by(length);
        Ok(starts.map(|start| batch.slice(start, length.min(rows - start))).collect())
    }
}

/// Bytes of the rows of a batch, whatever larger buffers they lie in.
fn slice_memory(batch: &RecordBatch) -> Result<usize> {
    let sizes = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size());
    sizes.sum::<Result<usize, _>>().map_err(|error| {
        Error::new(ErrorKind::Internal, "the size of rows is not known").with_source(error)
    })
}

fn properties(
    compression: Compression,
    schema: &SchemaRef,
    first: &RecordBatch,
) -> Result<WriterProperties> {
    let builder = WriterProperties::builder()
        .set_compression(parquet_codec(compression)?)
        .set_created_by(format!("tidelake {}", env!("CARGO_PKG_VERSION")))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    let columns = schema.fields().iter().zip(first.columns());
    let wide = columns.filter(|(field, column)| {
        let is_bytes = matches!(
            field.data_type(),
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
        );
        let bytes = column.to_data().get_slice_memory_size().unwrap_or(usize::MAX);
        let values = column.len() - column.null_count();
        is_bytes && bytes / values.max(1) >= WIDE_VALUE
    });
    let builder = wide.fold(builder, |builder, (field, _)| {
        let path = ColumnPath::new(vec![field.name().clone()]);
        builder.set_column_dictionary_enabled(path, false)
    });
    Ok(builder.build())
}

/// Refuses types that Parquet has no type for, before a row is read. Written all
/// the same they would come back as bare numbers.
pub(super) fn check_schema(schema: &SchemaRef) -> Result<()> {
    for field in schema.fields() {
        if let Some(without) = without_type(field.data_type()) {
            let message = format!(
                "the column {:?} is of type {without}, for which Parquet has none",
                field.name()
            );
            return Err(Error::new(ErrorKind::Data, message));
        }
    }
    Ok(())
}

fn without_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, _)
        | DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Union(..)
        | DataType::Date64
        | DataType::Time32(TimeUnit::Second) => Some(data_type),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => without_type(field.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|field| without_type(field.data_type())),
        _ => None,
    }
}

/// Whether rows of one schema can be written into a file of another.
pub(super) fn check_batch(schema: &SchemaRef, batch: &RecordBatch) -> Result<()> {
    let given = batch.schema();
    let matches = schema.fields().len() == given.fields().len()
        && schema.fields().iter().zip(given.fields()).all(|(expected, given)| {
            expected.name() == given.name() && expected.data_type() == given.data_type()
        });
    if !matches {
        return Err(Error::new(ErrorKind::Internal, "rows of another schema than the file's"));
    }
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if !field.is_nullable() && column.null_count() > 0 {
            let message = format!("the column {:?} is not nullable and holds NULL", field.name());
            return Err(Error::new(ErrorKind::Data, message));
        }
    }
    Ok(())
}
