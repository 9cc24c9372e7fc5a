//! Lowest and highest values that are bytes, shortened where they are long.

use ::parquet::basic::{ConvertedType, LogicalType};
use ::parquet::data_type::{ByteArray, FixedLenByteArray};
use ::parquet::file::statistics::{Statistics, ValueStatistics};
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

/// Longest value that statistics hold.
const LONGEST: usize = 64;

type Ends = Option<(Vec<u8>, Vec<u8>)>;

/// Statistics of texts and bytes.
pub(super) fn byte_array(column: &ColumnDescPtr, ends: Ends, nulls: u64) -> Statistics {
    let Some(((min, min_exact), (max, max_exact))) = shortened(column, ends) else {
        return Statistics::byte_array(None, None, None, Some(nulls), false);
    };
    Statistics::ByteArray(
        ValueStatistics::new(
            Some(ByteArray::from(min)),
            Some(ByteArray::from(max)),
            None,
            Some(nulls),
            false,
        )
        .with_min_is_exact(min_exact)
        .with_max_is_exact(max_exact),
    )
}

/// Statistics of bytes of one length.
pub(super) fn fixed_bytes(column: &ColumnDescPtr, ends: Ends, nulls: u64) -> Statistics {
    let Some(((min, min_exact), (max, max_exact))) = shortened(column, ends) else {
        return Statistics::fixed_len_byte_array(None, None, None, Some(nulls), false);
    };
    Statistics::FixedLenByteArray(
        ValueStatistics::new(
            Some(FixedLenByteArray::from(min)),
            Some(FixedLenByteArray::from(max)),
            None,
            Some(nulls),
            false,
        )
        .with_min_is_exact(min_exact)
        .with_max_is_exact(max_exact),
    )
}

/// Statistics of decimals in bytes: shortened they would be other numbers.
pub(super) fn fixed_decimal(ends: Ends, nulls: u64) -> Statistics {
    let (min, max) = ends.unzip();
    let end = |end: Option<Vec<u8>>| end.map(FixedLenByteArray::from);
    Statistics::FixedLenByteArray(
        ValueStatistics::new(end(min), end(max), None, Some(nulls), false)
            .with_backwards_compatible_min_max(true),
    )
}

type End = (Vec<u8>, bool);

/// Both ends, and whether each is a value itself or only beyond all values.
fn shortened(column: &ColumnDescriptor, ends: Ends) -> Option<(End, End)> {
    let is_text = column.logical_type_ref() == Some(&LogicalType::String)
        || column.converted_type() == ConvertedType::UTF8;
    let (min, max) = ends?;
    let lower = below(&min, is_text);
    let upper = above(&max, is_text);
    Some((
        lower.map_or((min, true), |lower| (lower, false)),
        upper.map_or((max, true), |upper| (upper, false)),
    ))
}

fn as_text(value: &[u8], is_text: bool) -> Option<&str> {
    if is_text { std::str::from_utf8(value).ok() } else { None }
}

/// A short value that is not above a long one.
fn below(value: &[u8], is_text: bool) -> Option<Vec<u8>> {
    if value.len() <= LONGEST {
        return None;
    }
    let end = as_text(value, is_text).map_or(LONGEST, |text| text.floor_char_boundary(LONGEST));
    value.get(..end).filter(|lower| !lower.is_empty()).map(<[u8]>::to_vec)
}

/// A short value that is above a long one, if there is one.
fn above(value: &[u8], is_text: bool) -> Option<Vec<u8>> {
    if value.len() <= LONGEST {
        return None;
    }
    match as_text(value, is_text) {
        Some(text) => next_text(text.get(..text.floor_char_boundary(LONGEST))?),
        None => next_bytes(value.get(..LONGEST)?),
    }
}

/// The text with its last character that has a next one of the same length replaced by
/// that, and nothing after it.
fn next_text(text: &str) -> Option<Vec<u8>> {
    text.char_indices().rev().find_map(|(start, last)| {
        let next = char::from_u32(u32::from(last) + 1)?;
        let before = text.get(..start)?;
        (next.len_utf8() == last.len_utf8()).then(|| format!("{before}{next}").into_bytes())
    })
}

/// The bytes, counted up by one.
fn next_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut next = bytes.to_vec();
    for byte in next.iter_mut().rev() {
        let (counted, carries) = byte.overflowing_add(1);
        *byte = counted;
        if !carries {
            return Some(next);
        }
    }
    None
}
