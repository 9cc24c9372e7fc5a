//! The codecs. What they need to work is kept from page to page.

use std::io::Write;

use ::parquet::basic::{Compression as ParquetCodec, GzipLevel, ZstdLevel};
use flate2::write::GzEncoder;
use tidelake_model::{Compression, Error, ErrorKind, Result};

use super::super::failed;

/// Level at which Zstandard is about as fast as what is faster, and much smaller.
const ZSTD_LEVEL: i32 = 1;

/// Room that is not kept for the next page.
const LARGE: usize = 4 << 20;

/// The codec as Parquet names it.
pub(in super::super) fn parquet_codec(compression: Compression) -> Result<ParquetCodec> {
    Ok(match compression {
        Compression::Zstd => {
            let level = ZstdLevel::try_new(ZSTD_LEVEL);
            ParquetCodec::ZSTD(level.map_err(|error| failed("set the codec", error))?)
        }
        Compression::Snappy => ParquetCodec::SNAPPY,
        Compression::Gzip => ParquetCodec::GZIP(GzipLevel::default()),
        Compression::Lz4 => ParquetCodec::LZ4_RAW,
        Compression::None => ParquetCodec::UNCOMPRESSED,
    })
}

enum Method {
    None,
    Zstd(zstd::bulk::Compressor<'static>),
    Snappy(Box<snap::raw::Encoder>),
    Gzip(flate2::Compression),
    Lz4,
}

/// A codec at work.
pub(in super::super) struct Codec {
    name: ParquetCodec,
    method: Method,
    compressed: Vec<u8>,
}

fn refused(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Internal, "cannot compress a page").with_source(source)
}

impl Codec {
    pub(in super::super) fn new(compression: Compression) -> Result<Self> {
        let name = parquet_codec(compression)?;
        let method = match name {
            ParquetCodec::ZSTD(level) => {
                let compressor = zstd::bulk::Compressor::new(level.compression_level());
                Method::Zstd(compressor.map_err(refused)?)
            }
            ParquetCodec::SNAPPY => Method::Snappy(Box::new(snap::raw::Encoder::new())),
            ParquetCodec::GZIP(level) => {
                Method::Gzip(flate2::Compression::new(level.compression_level()))
            }
            ParquetCodec::LZ4_RAW => Method::Lz4,
            _ => Method::None,
        };
        Ok(Self { name, method, compressed: Vec::new() })
    }

    /// As Parquet names it.
    pub(super) fn name(&self) -> ParquetCodec {
        self.name
    }

    /// Whether it leaves bytes as they are.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.method, Method::None)
    }

    /// Compresses bytes, which are to be taken from what it returns before the next ones.
    pub(super) fn compress(&mut self, bytes: &[u8]) -> Result<&[u8]> {
        let compressed = &mut self.compressed;
        if compressed.capacity() > LARGE {
            *compressed = Vec::new();
        }
        compressed.clear();
        match &mut self.method {
            Method::None => compressed.extend_from_slice(bytes),
            Method::Zstd(compressor) => {
                compressed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
                compressor.compress_to_buffer(bytes, compressed).map_err(refused)?;
            }
            Method::Snappy(encoder) => {
                compressed.resize(snap::raw::max_compress_len(bytes.len()), 0);
                let length = encoder.compress(bytes, compressed).map_err(refused)?;
                compressed.truncate(length);
            }
            Method::Gzip(level) => {
                let mut encoder = GzEncoder::new(&mut *compressed, *level);
                encoder.write_all(bytes).map_err(refused)?;
                encoder.try_finish().map_err(refused)?;
            }
            Method::Lz4 => {
                compressed.resize(lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
                let length = lz4_flex::block::compress_into(bytes, compressed).map_err(refused)?;
                compressed.truncate(length);
            }
        }
        Ok(compressed)
    }
}
