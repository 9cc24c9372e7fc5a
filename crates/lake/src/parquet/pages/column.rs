//! A column that is cut into pages.

use ::parquet::file::statistics::Statistics;
use ::parquet::schema::types::ColumnDescPtr;
use arrow::array::Array;
use tidelake_model::Result;

use super::bits::Bits;
use super::chunk::{Chunk, FinishedChunk};
use super::codec::Codec;
use super::coding::PageValues;
use super::{ColumnEncoder, Limits};

/// Room that is not kept for the next page.
const LARGE: usize = 4 << 20;

/// The values of a column chunk. NULLs have no value.
pub(super) trait Values: Send {
    /// Rows from one on that have room in the page, about.
    fn fitting(&self, array: &dyn Array, from: usize) -> usize {
        array.len() - from
    }

    /// Appends the values of some rows.
    fn append(&mut self, array: &dyn Array) -> Result<()>;

    /// Bytes of the page that is being filled, about.
    fn pending(&self) -> usize;

    /// Bytes of the dictionary, if there is one.
    fn dictionary_bytes(&self) -> usize {
        0
    }

    /// Bytes that are held.
    fn memory(&self) -> usize;

    /// Ends the page that is being filled.
    fn write_page(&mut self, out: &mut Vec<u8>) -> PageValues;

    /// The page of the dictionary and how many values are in it, if pages refer to one.
    fn finish(&mut self) -> Option<(Vec<u8>, usize)>;

    /// Statistics of the chunk, once it is finished.
    fn statistics(&self, nulls: u64) -> Statistics;
}

/// A column chunk that is being encoded.
pub(super) struct Column<V> {
    values: V,
    /// Which rows of the page have a value, in a column that may hold NULLs.
    levels: Option<Bits>,
    /// Rows of the page.
    rows: usize,
    nulls: usize,
    page: Vec<u8>,
    chunk: Chunk,
    limits: Limits,
}

impl<V: Values> Column<V> {
    pub(super) fn new(values: V, column: ColumnDescPtr, limits: Limits) -> Self {
        let levels = (column.max_def_level() > 0).then(Bits::default);
        let chunk = Chunk::new(column);
        Self { values, levels, rows: 0, nulls: 0, page: Vec::new(), chunk, limits }
    }

    fn append(&mut self, array: &dyn Array) -> Result<()> {
        if let Some(levels) = &mut self.levels {
            match array.nulls() {
                Some(nulls) => levels.push(nulls.inner()),
                None => levels.push_ones(array.len()),
            }
        }
        self.nulls += array.null_count();
        self.rows += array.len();
        self.values.append(array)
    }

    fn end_page(&mut self, codec: &mut Codec) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        if self.page.capacity() > LARGE {
            self.page = Vec::new();
        }
        self.page.clear();
        if let Some(levels) = &mut self.levels {
            let mut bytes = Vec::new();
            levels.write_levels(&mut bytes);
            levels.clear();
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            self.page.extend_from_slice(&length.to_le_bytes());
            self.page.extend_from_slice(&bytes);
        }
        let values = self.values.write_page(&mut self.page);
        self.chunk.add(codec, &self.page, std::mem::take(&mut self.rows), values)
    }
}

impl<V: Values> ColumnEncoder for Column<V> {
    fn write(&mut self, array: &dyn Array, codec: &mut Codec) -> Result<()> {
        let mut from = 0;
        while from < array.len() {
            let room = self.limits.page_rows.saturating_sub(self.rows);
            let fitting = self.values.fitting(array, from).min(room);
            let count = fitting.clamp(1, array.len() - from);
            if count == array.len() {
                self.append(array)?;
            } else {
                self.append(&array.slice(from, count))?;
            }
            from += count;
            let is_full = self.values.pending() >= self.limits.page_bytes;
            if is_full || self.rows >= self.limits.page_rows {
                self.end_page(codec)?;
            }
        }
        Ok(())
    }

    fn memory(&self) -> usize {
        let levels = self.levels.as_ref().map_or(0, Bits::bytes);
        self.chunk.bytes() + self.values.memory() + levels
    }

    fn encoded(&self) -> usize {
        self.chunk.bytes() + self.values.dictionary_bytes() + self.values.pending()
    }

    fn finish(mut self: Box<Self>, codec: &mut Codec) -> Result<FinishedChunk> {
        self.end_page(codec)?;
        let dictionary = self.values.finish();
        let nulls = self.nulls as u64;
        self.chunk.finish(codec, dictionary, self.values.statistics(nulls), nulls)
    }
}
