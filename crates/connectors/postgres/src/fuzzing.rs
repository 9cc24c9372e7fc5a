//! What the fuzzer looks at; no part of the crate's interface.

use arrow::array::RecordBatch;
use tidelake_connector::sql::Dialect;
use tidelake_model::Result;
use tidelake_watermark::Value;

use crate::ddl::mapped;
use crate::encode::{Rows, header, trailer};
use crate::literal::PostgresDialect;

/// The rows as a whole copy, as a publisher sends it into a table of its own.
pub fn copied(batch: &RecordBatch) -> Result<Vec<u8>> {
    let schema = batch.schema();
    let mapping: Vec<_> = schema.fields().iter().map(|field| mapped(field, None)).collect();
    let rows = Rows::new(batch, &mapping)?;
    let mut bytes = header();
    for row in 0..rows.count() {
        rows.write(row, &mut bytes)?;
    }
    bytes.extend(trailer());
    Ok(bytes)
}

/// A value as it stands in a statement.
pub fn literal(value: &Value) -> String {
    PostgresDialect.literal(value)
}
