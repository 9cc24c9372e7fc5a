//! Columns whose values all have one length: UUIDs, and decimals too long for a number.

use ::parquet::basic::Encoding;
use ::parquet::file::statistics::Statistics;
use ::parquet::schema::types::ColumnDescPtr;
use arrow::array::{Array, AsArray, FixedSizeBinaryArray};
use arrow::datatypes::{Decimal128Type, Decimal256Type, DecimalType, i256};
use tidelake_model::{Error, ErrorKind, Result};

use super::coding::PageValues;
use super::column::Values;
use super::statistics::{fixed_bytes, fixed_decimal};

/// What a kind of values of one length is made of.
pub(super) trait Kind: Send {
    /// Appends the values of some rows, none of which is NULL.
    fn append(
        &mut self,
        array: &dyn Array,
        rows: std::ops::Range<usize>,
        plain: &mut Vec<u8>,
    ) -> Result<()>;

    fn statistics(&self, nulls: u64) -> Statistics;
}

/// The values of such a column.
pub(super) struct Fixed<K> {
    kind: K,
    plain: Vec<u8>,
}

impl<K: Kind> Fixed<K> {
    pub(super) fn new(kind: K) -> Self {
        Self { kind, plain: Vec::new() }
    }
}

impl<K: Kind> Values for Fixed<K> {
    fn append(&mut self, array: &dyn Array) -> Result<()> {
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => self.kind.append(array, 0..array.len(), &mut self.plain),
            Some(nulls) => nulls
                .valid_slices()
                .try_for_each(|(start, end)| self.kind.append(array, start..end, &mut self.plain)),
        }
    }

    fn pending(&self) -> usize {
        self.plain.len()
    }

    fn memory(&self) -> usize {
        self.plain.len()
    }

    fn write_page(&mut self, out: &mut Vec<u8>) -> PageValues {
        out.extend_from_slice(&self.plain);
        self.plain.clear();
        PageValues { encoding: Encoding::PLAIN, unencoded_bytes: None }
    }

    fn finish(&mut self) -> Option<(Vec<u8>, usize)> {
        None
    }

    fn statistics(&self, nulls: u64) -> Statistics {
        self.kind.statistics(nulls)
    }
}

/// Bytes, in the order of their values without a sign.
pub(super) struct RawBytes {
    column: ColumnDescPtr,
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl RawBytes {
    pub(super) fn new(column: ColumnDescPtr) -> Self {
        Self { column, ends: None }
    }
}

impl Kind for RawBytes {
    fn append(
        &mut self,
        array: &dyn Array,
        rows: std::ops::Range<usize>,
        plain: &mut Vec<u8>,
    ) -> Result<()> {
        let array: &FixedSizeBinaryArray = array.as_fixed_size_binary();
        let width = usize::try_from(array.value_length()).unwrap_or(0).max(1);
        let bytes =
            array.value_data().get(rows.start * width..rows.end * width).unwrap_or_default();
        plain.extend_from_slice(bytes);
        let values = bytes.chunks_exact(width);
        let (Some(lowest), Some(highest)) = (values.clone().min(), values.max()) else {
            return Ok(());
        };
        let (min, max) = self.ends.get_or_insert_with(|| (lowest.to_vec(), highest.to_vec()));
        if lowest < min.as_slice() {
            *min = lowest.to_vec();
        }
        if highest > max.as_slice() {
            *max = highest.to_vec();
        }
        Ok(())
    }

    fn statistics(&self, nulls: u64) -> Statistics {
        fixed_bytes(&self.column, self.ends.clone(), nulls)
    }
}

/// A decimal number of Arrow's, as bytes with the highest first.
pub(super) trait Wide: DecimalType {
    type Bytes: AsRef<[u8]>;
    fn bytes(value: Self::Native) -> Self::Bytes;
}

impl Wide for Decimal128Type {
    type Bytes = [u8; 16];
    fn bytes(value: i128) -> [u8; 16] {
        value.to_be_bytes()
    }
}

impl Wide for Decimal256Type {
    type Bytes = [u8; 32];
    fn bytes(value: i256) -> [u8; 32] {
        value.to_be_bytes()
    }
}

/// Decimals as bytes with the highest first.
pub(super) struct Decimals<T: Wide> {
    width: usize,
    ends: Option<(T::Native, T::Native)>,
}

impl<T: Wide> Decimals<T> {
    pub(super) fn new(width: usize) -> Self {
        Self { width, ends: None }
    }
}

/// The lowest bytes of a number, if the others say nothing but its sign.
fn shortened(bytes: &[u8], width: usize) -> Option<&[u8]> {
    let (head, tail) = bytes.split_at_checked(bytes.len().checked_sub(width)?)?;
    let sign = if tail.first()? & 0x80 == 0 { 0 } else { 0xff };
    head.iter().all(|byte| *byte == sign).then_some(tail)
}

impl<T: Wide> Kind for Decimals<T>
where
    T::Native: Ord,
{
    fn append(
        &mut self,
        array: &dyn Array,
        rows: std::ops::Range<usize>,
        plain: &mut Vec<u8>,
    ) -> Result<()> {
        let values = array.as_primitive::<T>().values().get(rows).unwrap_or_default();
        plain.reserve(values.len() * self.width);
        for value in values {
            let bytes = T::bytes(*value);
            let Some(bytes) = shortened(bytes.as_ref(), self.width) else {
                return Err(Error::new(ErrorKind::Data, "a number is too long for its column"));
            };
            plain.extend_from_slice(bytes);
            let (min, max) = self.ends.get_or_insert((*value, *value));
            *min = (*min).min(*value);
            *max = (*max).max(*value);
        }
        Ok(())
    }

    fn statistics(&self, nulls: u64) -> Statistics {
        let end = |value: T::Native| {
            let bytes = T::bytes(value);
            shortened(bytes.as_ref(), self.width).unwrap_or_default().to_vec()
        };
        fixed_decimal(self.ends.map(|(min, max)| (end(min), end(max))), nulls)
    }
}
