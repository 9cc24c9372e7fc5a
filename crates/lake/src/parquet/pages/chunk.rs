//! A column chunk: its pages, which are held until their row group is complete.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

use ::parquet::basic::{Compression, Encoding};
use ::parquet::column::page::{CompressedPage, Page, PageWriter};
use ::parquet::column::writer::ColumnCloseResult;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{
    ColumnChunkMetaData, LevelHistogram, OffsetIndexBuilder, PageEncodingStats,
};
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::statistics::Statistics;
use ::parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use ::parquet::schema::types::ColumnDescPtr;
use bytes::{Buf, Bytes};
use tidelake_model::{Error, ErrorKind, Result};

use super::super::failed;
use super::codec::Codec;
use super::coding::PageValues;

/// Pages after which one is compressed again to see, in a chunk that is not.
const PROBE: usize = 8;

/// Whether the pages of a chunk are compressed: all are, or none is.
enum Packing {
    /// There is no page yet.
    Open,
    /// They are.
    Packed,
    /// They would not become much smaller.
    Raw,
}

struct StoredPage {
    bytes: Vec<u8>,
    uncompressed: usize,
    rows: usize,
    values: PageValues,
}

/// A column chunk that is being filled.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    packing: Packing,
    pages: Vec<StoredPage>,
    bytes: usize,
}

impl Chunk {
    pub(super) fn new(column: ColumnDescPtr) -> Self {
        Self { column, packing: Packing::Open, pages: Vec::new(), bytes: 0 }
    }

    /// Bytes of the pages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a page.
    pub(super) fn add(
        &mut self,
        codec: &mut Codec,
        raw: &[u8],
        rows: usize,
        values: PageValues,
    ) -> Result<()> {
        let is_probe = match self.packing {
            _ if codec.is_none() => false,
            Packing::Open | Packing::Packed => true,
            Packing::Raw => self.pages.len().is_multiple_of(PROBE),
        };
        let mut bytes = None;
        if is_probe {
            let packed = codec.compress(raw)?;
            match self.packing {
                Packing::Open if packed.len() * 10 > raw.len() * 9 => self.packing = Packing::Raw,
                Packing::Raw if packed.len() * 4 > raw.len() * 3 => {}
                Packing::Raw => {
                    bytes = Some(packed.to_vec());
                    self.pack(codec)?;
                }
                Packing::Open | Packing::Packed => {
                    self.packing = Packing::Packed;
                    bytes = Some(packed.to_vec());
                }
            }
        }
        let bytes = bytes.unwrap_or_else(|| raw.to_vec());
        self.bytes += bytes.len();
        self.pages.push(StoredPage { bytes, uncompressed: raw.len(), rows, values });
        Ok(())
    }

    /// Compresses what was not.
    fn pack(&mut self, codec: &mut Codec) -> Result<()> {
        self.packing = Packing::Packed;
        self.bytes = 0;
        for page in &mut self.pages {
            page.bytes = codec.compress(&page.bytes)?.to_vec();
            self.bytes += page.bytes.len();
        }
        Ok(())
    }

    /// Ends the chunk.
    pub(super) fn finish(
        mut self,
        codec: &mut Codec,
        dictionary: Option<(Vec<u8>, usize)>,
        statistics: Statistics,
        nulls: u64,
    ) -> Result<FinishedChunk> {
        let mut writer = PagesWriter::default();
        if let Some((raw, count)) = dictionary {
            let mut bytes = None;
            if !codec.is_none() {
                let packed = codec.compress(&raw)?.to_vec();
                // A large dictionary may be what is worth it.
                let saved = raw.len().saturating_sub(packed.len());
                if matches!(self.packing, Packing::Raw) && saved * 10 > self.bytes + raw.len() {
                    self.pack(codec)?;
                }
                bytes = matches!(self.packing, Packing::Packed).then_some(packed);
            }
            let uncompressed = raw.len();
            writer.dictionary(bytes.unwrap_or(raw), uncompressed, count)?;
        }
        let is_packed = matches!(self.packing, Packing::Packed);
        let name = if is_packed { codec.name() } else { Compression::UNCOMPRESSED };
        for page in self.pages.drain(..) {
            writer.data(page)?;
        }
        writer.finish(self.column, name, statistics, nulls)
    }
}

/// Puts headers before pages and takes note of what stands where.
struct PagesWriter {
    sink: TrackedWrite<Vec<u8>>,
    pages: VecDeque<Bytes>,
    bytes: u64,
    uncompressed: usize,
    rows: usize,
    dictionary_bytes: u64,
    unencoded_bytes: Option<i64>,
    encodings: Vec<PageEncodingStats>,
    offsets: OffsetIndexBuilder,
}

impl Default for PagesWriter {
    fn default() -> Self {
        Self {
            sink: TrackedWrite::new(Vec::new()),
            pages: VecDeque::new(),
            bytes: 0,
            uncompressed: 0,
            rows: 0,
            dictionary_bytes: 0,
            unencoded_bytes: None,
            encodings: Vec::new(),
            offsets: OffsetIndexBuilder::new(),
        }
    }
}

fn number<T, N: TryFrom<T>>(number: T) -> Result<N> {
    N::try_from(number).map_err(|_| Error::new(ErrorKind::Data, "a value is too long for a page"))
}

impl PagesWriter {
    fn dictionary(&mut self, bytes: Vec<u8>, uncompressed: usize, count: usize) -> Result<()> {
        let page = Page::DictionaryPage {
            buf: bytes.into(),
            num_values: number(count)?,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        self.dictionary_bytes = self.write(page, uncompressed)?;
        Ok(())
    }

    fn data(&mut self, page: StoredPage) -> Result<()> {
        let StoredPage { bytes, uncompressed, rows, values } = page;
        let PageValues { encoding, unencoded_bytes } = values;
        let page = Page::DataPage {
            buf: bytes.into(),
            num_values: number(rows)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let offset = number(self.bytes)?;
        let written = self.write(page, uncompressed)?;
        self.offsets.append_row_count(number(rows)?);
        self.offsets.append_offset_and_size(offset, number(written)?);
        self.offsets.append_unencoded_byte_array_data_bytes(unencoded_bytes);
        if let Some(bytes) = unencoded_bytes {
            *self.unencoded_bytes.get_or_insert(0) += bytes;
        }
        self.rows += rows;
        Ok(())
    }

    fn write(&mut self, page: Page, uncompressed: usize) -> Result<u64> {
        let (page_type, encoding) = (page.page_type(), page.encoding());
        match self.encodings.last_mut() {
            Some(last) if last.page_type == page_type && last.encoding == encoding => {
                last.count += 1;
            }
            _ => self.encodings.push(PageEncodingStats { page_type, encoding, count: 1 }),
        }
        let page = CompressedPage::new(page, uncompressed);
        // Room for the page and, before it, its header.
        self.sink.inner_mut().reserve_exact(page.compressed_size() + 64);
        let mut writer = SerializedPageWriter::new(&mut self.sink);
        let written = writer
            .write_page(page)
            .and_then(|written| writer.close().map(|()| written))
            .map_err(|error| failed("write a page", error))?;
        self.pages.push_back(std::mem::take(self.sink.inner_mut()).into());
        self.bytes += written.bytes_written;
        self.uncompressed += written.uncompressed_size;
        Ok(written.bytes_written)
    }

    fn finish(
        self,
        column: ColumnDescPtr,
        codec: Compression,
        statistics: Statistics,
        nulls: u64,
    ) -> Result<FinishedChunk> {
        let rows: u64 = number(self.rows)?;
        let mut encodings = vec![Encoding::RLE];
        for stats in &self.encodings {
            if !encodings.contains(&stats.encoding) {
                encodings.push(stats.encoding);
            }
        }
        let histogram = LevelHistogram::try_new(column.max_def_level()).map(|mut levels| {
            let nulls = i64::try_from(nulls).unwrap_or(i64::MAX);
            levels.increment_by(0, nulls);
            levels.increment_by(1, i64::try_from(rows).unwrap_or(i64::MAX) - nulls);
            levels
        });
        let has_dictionary = self.dictionary_bytes > 0;
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(codec)
            .set_encodings(encodings)
            .set_page_encoding_stats(self.encodings)
            .set_total_compressed_size(number(self.bytes)?)
            .set_total_uncompressed_size(number(self.uncompressed)?)
            .set_num_values(number(rows)?)
            .set_data_page_offset(number(self.dictionary_bytes)?)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_statistics(statistics)
            .set_unencoded_byte_array_data_bytes(self.unencoded_bytes)
            .set_definition_level_histogram(histogram)
            .build()
            .map_err(|error| failed("describe a column chunk", error))?;
        let close = ColumnCloseResult {
            bytes_written: self.bytes,
            rows_written: rows,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(self.offsets.build()),
        };
        Ok(FinishedChunk {
            pages: PageSource { pages: Mutex::new(self.pages), bytes: self.bytes },
            close,
        })
    }
}

/// A column chunk that is complete.
pub(in super::super) struct FinishedChunk {
    pub(in super::super) pages: PageSource,
    pub(in super::super) close: ColumnCloseResult,
}

/// The bytes of a chunk, to be read once: what was read is not held any longer.
pub(in super::super) struct PageSource {
    pages: Mutex<VecDeque<Bytes>>,
    bytes: u64,
}

impl Length for PageSource {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for PageSource {
    type T = PagesReader;

    fn get_read(&self, start: u64) -> Result<PagesReader, ParquetError> {
        if start > 0 {
            return Err(ParquetError::General("a chunk is read from its beginning".to_owned()));
        }
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(PagesReader(std::mem::take(&mut pages)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = Vec::with_capacity(length);
        self.get_read(start)?.take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Reads pages one after another.
pub(in super::super) struct PagesReader(VecDeque<Bytes>);

impl Read for PagesReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(page) = self.0.front_mut() else { return Ok(0) };
        let count = page.as_ref().read(out)?;
        page.advance(count);
        if page.is_empty() {
            self.0.pop_front();
        }
        Ok(count)
    }
}
