//! What the fuzzer looks at; no part of the crate's interface.

use std::fmt::Debug;

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidelake_model::{Compression, Error, ErrorKind, Latest, Manifest, Owner, Result};

use crate::documents::{Checkpoint, parse, print};

/// The Parquet file that a writer makes of some batches.
pub fn encoded(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    compression: Compression,
    memory_bytes: usize,
) -> Result<Vec<u8>> {
    let parts = crate::parquet::encode(schema, batches, compression, memory_bytes)?;
    Ok(parts.concat())
}

/// The rows of such a file, as the Parquet crate reads them.
pub fn encoded_and_read(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    compression: Compression,
    memory_bytes: usize,
) -> Result<Vec<RecordBatch>> {
    let file = encoded(schema, batches, compression, memory_bytes)?;
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |source| Error::new(ErrorKind::Data, "cannot be read").with_source(source);
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).map_err(failed)?;
    let batches = reader.build().map_err(failed)?;
    let wrong = |source| Error::new(ErrorKind::Data, "cannot be read").with_source(source);
    batches.map(|batch| batch.map_err(wrong)).collect()
}

/// Reads bytes as each of the lake's documents. Those that they are come printed,
/// and with whether what was printed is read as the same.
pub fn documents(bytes: &[u8]) -> Result<Vec<(Vec<u8>, bool)>> {
    let all = [
        round_trip::<Manifest>(bytes)?,
        round_trip::<Latest>(bytes)?,
        round_trip::<Checkpoint>(bytes)?,
        round_trip::<Owner>(bytes)?,
    ];
    Ok(all.into_iter().flatten().collect())
}

fn round_trip<T>(bytes: &[u8]) -> Result<Option<(Vec<u8>, bool)>>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let Ok(document) = parse::<T>(bytes, "a document") else { return Ok(None) };
    let printed = print(&document)?;
    let same = parse::<T>(&printed, "a document").is_ok_and(|again| again == document);
    Ok(Some((printed.to_vec(), same)))
}
