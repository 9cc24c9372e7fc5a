//! Our own encoder of the common types: rows become pages with as little work as the
//! format allows. What it does not know goes through the Parquet crate's encoder.

mod bits;
mod booleans;
mod chunk;
mod codec;
mod coding;
mod column;
mod convert;
mod fixed;
mod hybrid;
mod numbers;
mod slots;
mod statistics;
mod texts;
mod trial;

use ::parquet::basic::Type;
use ::parquet::schema::types::ColumnDescPtr;
use arrow::array::Array;
use arrow::datatypes::{
    BinaryType, DataType, Date32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type,
    Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use tidelake_model::Result;

pub(super) use chunk::FinishedChunk;
pub(super) use codec::{Codec, parquet_codec};

use booleans::Booleans;
use column::{Column, Values};
use convert::{decimals, same, widened};
use fixed::{Decimals, Fixed, RawBytes};
use numbers::{Convert, Number, Numbers};
use texts::Texts;

/// Most rows of a page: those of a batch.
const PAGE_ROWS: usize = 32_768;

/// Most bytes of a page before it is compressed, and of a dictionary.
const PAGE_BYTES: usize = 1 << 20;

/// Where pages end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    page_rows: usize,
    page_bytes: usize,
    dictionary_bytes: usize,
}

impl Limits {
    /// Limits with which so many columns leave most of the memory of a row group to
    /// pages that are complete. What is in a dictionary is in no page, so it may have a
    /// column's whole share.
    pub(super) fn new(row_group_bytes: usize, columns: usize) -> Self {
        let share = row_group_bytes / columns.max(1);
        Self {
            page_rows: PAGE_ROWS,
            page_bytes: (share / 4).clamp(16 << 10, PAGE_BYTES),
            dictionary_bytes: share.clamp(16 << 10, PAGE_BYTES),
        }
    }
}

/// A column chunk that is being encoded.
pub(super) trait ColumnEncoder: Send {
    /// Adds the rows of an array.
    fn write(&mut self, array: &dyn Array, codec: &mut Codec) -> Result<()>;

    /// Bytes that are held.
    fn memory(&self) -> usize;

    /// Bytes that the chunk would have if it ended here, about.
    fn encoded(&self) -> usize;

    /// Ends the chunk.
    fn finish(self: Box<Self>, codec: &mut Codec) -> Result<FinishedChunk>;
}

/// An encoder for a column, unless its type is left to the Parquet crate.
pub(super) fn column_encoder(
    data_type: &DataType,
    column: &ColumnDescPtr,
    limits: Limits,
) -> Option<Box<dyn ColumnEncoder>> {
    // A column inside another one has levels of more kinds.
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return None;
    }
    let make = Make { column, limits };
    let physical = column.physical_type();
    Some(match (data_type, physical) {
        (DataType::Boolean, Type::BOOLEAN) => make.column(Booleans::default()),
        (DataType::Int8, Type::INT32) => make.numbers::<i32>(widened::<Int8Type, _>),
        (DataType::Int16, Type::INT32) => make.numbers::<i32>(widened::<Int16Type, _>),
        (DataType::Int32, Type::INT32) => make.numbers(same::<Int32Type>),
        (DataType::Int64, Type::INT64) => make.numbers(same::<Int64Type>),
        (DataType::UInt8, Type::INT32) => make.numbers::<u32>(widened::<UInt8Type, _>),
        (DataType::UInt16, Type::INT32) => make.numbers::<u32>(widened::<UInt16Type, _>),
        (DataType::UInt32, Type::INT32) => make.numbers(same::<UInt32Type>),
        (DataType::UInt64, Type::INT64) => make.numbers(same::<UInt64Type>),
        (DataType::Float32, Type::FLOAT) => make.numbers(same::<Float32Type>),
        (DataType::Float64, Type::DOUBLE) => make.numbers(same::<Float64Type>),
        (DataType::Date32, Type::INT32) => make.numbers(same::<Date32Type>),
        (DataType::Time32(TimeUnit::Millisecond), Type::INT32) => {
            make.numbers(same::<Time32MillisecondType>)
        }
        (DataType::Time64(TimeUnit::Microsecond), Type::INT64) => {
            make.numbers(same::<Time64MicrosecondType>)
        }
        (DataType::Time64(TimeUnit::Nanosecond), Type::INT64) => {
            make.numbers(same::<Time64NanosecondType>)
        }
        (DataType::Timestamp(unit, _), Type::INT64) => match unit {
            TimeUnit::Millisecond => make.numbers(same::<TimestampMillisecondType>),
            TimeUnit::Microsecond => make.numbers(same::<TimestampMicrosecondType>),
            TimeUnit::Nanosecond => make.numbers(same::<TimestampNanosecondType>),
            TimeUnit::Second => return None,
        },
        (DataType::Decimal64(..), Type::INT32) => make.numbers::<i32>(decimals::<Decimal64Type, _>),
        (DataType::Decimal64(..), Type::INT64) => make.numbers(same::<Decimal64Type>),
        (DataType::Decimal128(..), Type::INT32) => {
            make.numbers::<i32>(decimals::<Decimal128Type, _>)
        }
        (DataType::Decimal128(..), Type::INT64) => {
            make.numbers::<i64>(decimals::<Decimal128Type, _>)
        }
        (DataType::Decimal128(..), Type::FIXED_LEN_BYTE_ARRAY) => {
            make.column(Fixed::new(Decimals::<Decimal128Type>::new(make.width()?)))
        }
        (DataType::Decimal256(..), Type::FIXED_LEN_BYTE_ARRAY) => {
            make.column(Fixed::new(Decimals::<Decimal256Type>::new(make.width()?)))
        }
        (DataType::FixedSizeBinary(_), Type::FIXED_LEN_BYTE_ARRAY) if make.width()? > 0 => {
            make.column(Fixed::new(RawBytes::new(column.clone())))
        }
        (DataType::Utf8, Type::BYTE_ARRAY) => make.texts::<Utf8Type>(),
        (DataType::LargeUtf8, Type::BYTE_ARRAY) => make.texts::<LargeUtf8Type>(),
        (DataType::Binary, Type::BYTE_ARRAY) => make.texts::<BinaryType>(),
        (DataType::LargeBinary, Type::BYTE_ARRAY) => make.texts::<LargeBinaryType>(),
        _ => return None,
    })
}

struct Make<'a> {
    column: &'a ColumnDescPtr,
    limits: Limits,
}

impl Make<'_> {
    fn column<V: Values + 'static>(&self, values: V) -> Box<dyn ColumnEncoder> {
        Box::new(Column::new(values, self.column.clone(), self.limits))
    }

    fn numbers<N: Number>(&self, convert: Convert<N>) -> Box<dyn ColumnEncoder> {
        self.column(Numbers::new(convert, self.limits.dictionary_bytes))
    }

    fn texts<T: arrow::datatypes::ByteArrayType>(&self) -> Box<dyn ColumnEncoder> {
        let Limits { page_bytes, dictionary_bytes, .. } = self.limits;
        self.column(Texts::<T>::new(self.column.clone(), page_bytes, dictionary_bytes))
    }

    /// Bytes of a value, where all have the same.
    fn width(&self) -> Option<usize> {
        usize::try_from(self.column.type_length()).ok()
    }
}
