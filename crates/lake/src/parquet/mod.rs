//! Parquet files: written in a bounded amount of memory, and read back.

mod file;
mod pages;
mod reader;
mod row_group;
mod sink;
mod upload;
mod widen;
mod writer;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use tidelake_model::{Compression, Error, ErrorKind, Result};
use tidelake_watermark::Position;

pub(crate) use reader::read_files;
pub use upload::UploadRecorder;
pub use widen::widens;
pub use writer::{FILE_BYTES, TableWriter, WriterSettings};

/// Cursor values of some rows: of a batch, or of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileExtent {
    /// Lowest value, NULLs aside; `None` where there is none or nobody but the
    /// source can compare.
    pub min: Option<Position>,
    /// Highest value.
    pub max: Option<Position>,
    /// Rows whose cursor is NULL.
    pub nulls: u64,
}

impl FileExtent {
    /// Joins the extents of two sets of rows.
    pub fn join(self, other: Self) -> Result<Self> {
        Ok(Self {
            min: pick(self.min, other.min, Ordering::Less)?,
            max: pick(self.max, other.max, Ordering::Greater)?,
            nulls: self.nulls.saturating_add(other.nulls),
        })
    }
}

fn pick(
    left: Option<Position>,
    right: Option<Position>,
    wanted: Ordering,
) -> Result<Option<Position>> {
    let (Some(first), Some(second)) = (&left, &right) else {
        return Ok(left.or(right));
    };
    let order = second.compare(first).map_err(|error| {
        Error::new(ErrorKind::Data, "cursor values cannot be compared").with_source(error)
    })?;
    Ok(if order == wanted { right } else { left })
}

/// A whole file in memory, encoded as a writer does it.
pub(crate) fn encode(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    compression: Compression,
    memory_bytes: usize,
) -> Result<Vec<Bytes>> {
    file::check_schema(schema)?;
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let mut file = file::ParquetFile::new(Arc::clone(schema), compression, memory_bytes, first)?;
    let mut parts = Vec::new();
    for batch in batches {
        file::check_batch(schema, batch)?;
        for slice in file.slices(batch)? {
            file.write(&slice)?;
            parts.extend(std::iter::from_fn(|| file.take_full()));
        }
    }
    let mut sink = file.finish()?;
    parts.extend(std::iter::from_fn(|| sink.take_full()));
    parts.extend(sink.take_rest());
    Ok(parts)
}

/// What a failed Parquet operation means; an error of ours inside it comes out.
pub(super) fn failed(action: &str, error: ::parquet::errors::ParquetError) -> Error {
    match error {
        ::parquet::errors::ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => {
                Error::new(ErrorKind::Internal, format!("cannot {action}")).with_source(other)
            }
        },
        error => Error::new(ErrorKind::Internal, format!("cannot {action}")).with_source(error),
    }
}
