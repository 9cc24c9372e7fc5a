//! A row group being encoded: each column by our own encoder, or by the Parquet crate's.

use std::io::Write;

use ::parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::SchemaDescriptor;
use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use tidelake_model::Result;

use super::failed;
use super::pages::{Codec, ColumnEncoder, Limits, column_encoder};

enum Encoder {
    Ours(Box<dyn ColumnEncoder>),
    /// One for each leaf of the column.
    Theirs(FieldRef, Vec<ArrowColumnWriter>),
}

/// A row group that is being encoded.
pub(super) struct RowGroup {
    columns: Vec<Encoder>,
    rows: usize,
}

impl RowGroup {
    pub(super) fn new(
        schema: &Schema,
        columns: &SchemaDescriptor,
        factory: &ArrowRowGroupWriterFactory,
        number: usize,
        row_group_bytes: usize,
    ) -> Result<Self> {
        let limits = Limits::new(row_group_bytes, columns.num_columns());
        let mut theirs = None;
        let mut leaf = 0;
        let mut encoders = Vec::new();
        for (root, field) in schema.fields().iter().enumerate() {
            let leaves = (leaf..columns.num_columns())
                .take_while(|leaf| columns.get_column_root_idx(*leaf) == root)
                .count();
            let ours = match leaves {
                1 => column_encoder(field.data_type(), &columns.column(leaf), limits),
                _ => None,
            };
            leaf += leaves;
            encoders.push(if let Some(ours) = ours {
                if let Some(writers) = &mut theirs {
                    skip(writers, leaves);
                }
                Encoder::Ours(ours)
            } else {
                let writers = match &mut theirs {
                    Some(writers) => writers,
                    none => {
                        let made = factory.create_column_writers(number);
                        let made = made.map_err(|error| failed("begin a row group", error))?;
                        let mut writers = made.into_iter();
                        skip(&mut writers, leaf - leaves);
                        none.insert(writers)
                    }
                };
                Encoder::Theirs(field.clone(), writers.take(leaves).collect())
            });
        }
        Ok(Self { columns: encoders, rows: 0 })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that are held.
    pub(super) fn memory(&self) -> usize {
        let bytes = self.columns.iter().map(|column| match column {
            Encoder::Ours(column) => column.memory(),
            Encoder::Theirs(_, leaves) => leaves.iter().map(ArrowColumnWriter::memory_size).sum(),
        });
        bytes.sum()
    }

    /// Bytes that it would have in the file if it ended here, about.
    pub(super) fn encoded(&self) -> usize {
        let bytes = self.columns.iter().map(|column| match column {
            Encoder::Ours(column) => column.encoded(),
            Encoder::Theirs(_, leaves) => {
                leaves.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
            }
        });
        bytes.sum()
    }

    /// Encodes some rows.
    pub(super) fn write(&mut self, rows: &RecordBatch, codec: &mut Codec) -> Result<()> {
        let encode = |error| failed("encode rows", error);
        for (encoder, column) in self.columns.iter_mut().zip(rows.columns()) {
            match encoder {
                Encoder::Ours(encoder) => encoder.write(column, codec)?,
                Encoder::Theirs(field, writers) => {
                    let leaves = compute_leaves(field, column).map_err(encode)?;
                    for (writer, leaf) in writers.iter_mut().zip(&leaves) {
                        writer.write(leaf).map_err(encode)?;
                    }
                }
            }
        }
        self.rows += rows.num_rows();
        Ok(())
    }

    /// Writes the row group into its file.
    pub(super) fn finish<W: Write + Send>(
        self,
        file: &mut SerializedFileWriter<W>,
        codec: &mut Codec,
    ) -> Result<()> {
        let end = |error| failed("end a row group", error);
        let mut group = file.next_row_group().map_err(end)?;
        for column in self.columns {
            match column {
                Encoder::Ours(column) => {
                    let chunk = column.finish(codec)?;
                    group.append_column(&chunk.pages, chunk.close).map_err(end)?;
                }
                Encoder::Theirs(_, leaves) => {
                    for leaf in leaves {
                        let chunk = leaf.close().map_err(end)?;
                        chunk.append_to_row_group(&mut group).map_err(end)?;
                    }
                }
            }
        }
        group.close().map(|_| ()).map_err(end)
    }
}

fn skip(writers: &mut impl Iterator<Item = ArrowColumnWriter>, count: usize) {
    for _ in 0..count {
        drop(writers.next());
    }
}
