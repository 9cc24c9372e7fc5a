//! A number for each cell of a column: the same for the same value, whatever the
//! encoding of the array, and another one for NULL.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, GenericByteArray, OffsetSizeTrait, types::ByteArrayType,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{ArrowNativeType, DataType, i256};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidelake_model::{Error, ErrorKind, Result};

const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
const SECOND: u64 = 0xBF58_476D_1CE4_E5B9;
const THIRD: u64 = 0x94D0_49BB_1331_11EB;
/// What stands for NULL before it is mixed with the column's seed.
const NULL: u64 = 0xD6E8_FEB8_6659_FD93;

/// A permutation of the 64-bit numbers that leaves no bit where it was.
#[inline]
pub(super) fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(SECOND);
    number = (number ^ (number >> 27)).wrapping_mul(THIRD);
    number ^ (number >> 31)
}

/// Adds one hash to others before it; the order counts.
#[inline]
pub(super) fn joined(hash: u64, next: u64) -> u64 {
    (hash ^ next).wrapping_mul(FIRST).rotate_left(29)
}

/// The two halves of the product of two numbers, folded into one.
#[inline]
fn folded(left: u64, right: u64) -> u64 {
    let product = u128::from(left).wrapping_mul(u128::from(right));
    let high = u64::try_from(product >> 64).unwrap_or(0);
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
    high ^ low
}

/// The hash of some bytes.
fn of_bytes(bytes: &[u8], seed: u64) -> u64 {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut hash = seed ^ length.wrapping_mul(FIRST);
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        let [low, high] = words(pair);
        hash = folded(low ^ SECOND ^ hash, high ^ THIRD);
    }
    let mut last = [0; 16];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let [low, high] = words(&last);
    mixed(folded(low ^ FIRST ^ hash, high ^ SECOND))
}

#[inline]
fn words(pair: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*pair);
    let low = u64::try_from(both & u128::from(u64::MAX)).unwrap_or(0);
    [low, u64::try_from(both >> 64).unwrap_or(0)]
}

/// One hash per row. Two columns of different seeds have nothing in common.
pub(super) fn column_hashes(column: &ArrayRef, seed: u64) -> Result<Vec<u64>> {
    let seed = mixed(seed ^ FIRST);
    let mut hashes = values(column, seed)?;
    // The hashes of nested values carry their NULLs, those of this level do not.
    if let Some(nulls) = column.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        for (hash, is_valid) in hashes.iter_mut().zip(nulls.iter()) {
            if !is_valid {
                *hash = mixed(seed ^ NULL);
            }
        }
    }
    Ok(hashes)
}

fn values(column: &ArrayRef, seed: u64) -> Result<Vec<u64>> {
    use DataType as T;
    Ok(match column.data_type() {
        T::Null => vec![mixed(seed ^ NULL); column.len()],
        T::Boolean => booleans(column.as_boolean(), seed),
        T::Int8 | T::UInt8 => fixed::<u8>(column, |value| mixed(u64::from(value) ^ seed)),
        T::Int16 | T::UInt16 | T::Float16 => {
            fixed::<u16>(column, |value| mixed(u64::from(value) ^ seed))
        }
        T::Int32 | T::UInt32 | T::Float32 | T::Date32 | T::Time32(_) | T::Decimal32(..) => {
            fixed::<u32>(column, |value| mixed(u64::from(value) ^ seed))
        }
        T::Int64
        | T::UInt64
        | T::Float64
        | T::Date64
        | T::Time64(_)
        | T::Timestamp(..)
        | T::Duration(_)
        | T::Decimal64(..) => fixed::<u64>(column, |value| mixed(value ^ seed)),
        T::Decimal128(..) => fixed::<i128>(column, |value| of_bytes(&value.to_le_bytes(), seed)),
        T::Decimal256(..) => fixed::<i256>(column, |value| of_bytes(&value.to_le_bytes(), seed)),
        T::Utf8 => strings(column.as_string::<i32>(), seed),
        T::LargeUtf8 => strings(column.as_string::<i64>(), seed),
        T::Binary => strings(column.as_binary::<i32>(), seed),
        T::LargeBinary => strings(column.as_binary::<i64>(), seed),
        T::Utf8View => {
            let array = column.as_string_view();
            (0..array.len()).map(|row| of_bytes(array.value(row).as_bytes(), seed)).collect()
        }
        T::BinaryView => {
            let array = column.as_binary_view();
            (0..array.len()).map(|row| of_bytes(array.value(row), seed)).collect()
        }
        T::FixedSizeBinary(_) => {
            let array = column.as_fixed_size_binary();
            (0..array.len()).map(|row| of_bytes(array.value(row), seed)).collect()
        }
        T::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let hashes = column_hashes(dictionary.values(), 0)?;
            let keys = dictionary.normalized_keys();
            let of = |key: &usize| hashes.get(*key).copied().unwrap_or(NULL);
            keys.iter().map(|key| mixed(joined(seed, of(key)))).collect()
        }
        T::List(_) => {
            let list = column.as_list::<i32>();
            lists(list.offsets(), list.values(), seed)?
        }
        T::LargeList(_) => {
            let list = column.as_list::<i64>();
            lists(list.offsets(), list.values(), seed)?
        }
        T::Map(..) => {
            let map = column.as_map();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            lists(map.offsets(), &entries, seed)?
        }
        T::FixedSizeList(_, length) => {
            let list = column.as_fixed_size_list();
            let hashes = column_hashes(list.values(), 0)?;
            let length = usize::try_from(*length).unwrap_or(0);
            let start = list.offset().saturating_mul(length);
            let of = |row: usize| {
                let from = start + row * length;
                sequence(hashes.get(from..from + length).unwrap_or_default(), seed)
            };
            (0..list.len()).map(of).collect()
        }
        T::Struct(_) => {
            let mut hashes = vec![seed; column.len()];
            for (place, child) in (0..).zip(column.as_struct().columns()) {
                for (hash, next) in hashes.iter_mut().zip(column_hashes(child, place)?) {
                    *hash = joined(*hash, next);
                }
            }
            hashes.into_iter().map(mixed).collect()
        }
        _ => printed(column, seed)?,
    })
}

fn booleans(array: &BooleanArray, seed: u64) -> Vec<u64> {
    let (no, yes) = (mixed(seed), mixed(seed ^ 1));
    array.values().iter().map(|value| if value { yes } else { no }).collect()
}

/// Values of a fixed width, read as numbers of that width.
fn fixed<T: ArrowNativeType>(column: &ArrayRef, hash: impl Fn(T) -> u64) -> Vec<u64> {
    let data = column.to_data();
    data.buffer::<T>(0).iter().take(column.len()).map(|value| hash(*value)).collect()
}

fn strings<T: ByteArrayType>(array: &GenericByteArray<T>, seed: u64) -> Vec<u64> {
    let value = |row| AsRef::<[u8]>::as_ref(array.value(row));
    (0..array.len()).map(|row| of_bytes(value(row), seed)).collect()
}

fn lists<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    values: &ArrayRef,
    seed: u64,
) -> Result<Vec<u64>> {
    let hashes = column_hashes(values, 0)?;
    let ends = offsets.iter().zip(offsets.iter().skip(1));
    let list = |(from, to): (&O, &O)| {
        sequence(hashes.get(from.as_usize()..to.as_usize()).unwrap_or_default(), seed)
    };
    Ok(ends.map(list).collect())
}

fn sequence(hashes: &[u64], seed: u64) -> u64 {
    let length = u64::try_from(hashes.len()).unwrap_or(u64::MAX);
    mixed(hashes.iter().fold(joined(seed, length), |hash, next| joined(hash, *next)))
}

/// Types that no source gives so far, by what they look like.
fn printed(column: &ArrayRef, seed: u64) -> Result<Vec<u64>> {
    let failed = |error| {
        let message = format!("values of type {} cannot be compared", column.data_type());
        Error::new(ErrorKind::Unsupported, message).with_source(error)
    };
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).map_err(failed)?;
    (0..column.len())
        .map(|row| {
            let text = formatter.value(row).try_to_string().map_err(failed)?;
            Ok(of_bytes(text.as_bytes(), seed))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use arrow::array::{
        DictionaryArray, Int32Array, Int64Array, LargeStringArray, ListArray, StringArray,
        StringViewArray, StructArray,
    };
    use arrow::datatypes::{Field, Int32Type};
    use proptest::prelude::*;

    use super::*;

    fn of(column: impl Array + 'static) -> Vec<u64> {
        column_hashes(&(Arc::new(column) as ArrayRef), 7).unwrap()
    }

    #[test]
    fn the_encoding_does_not_count_and_the_place_in_the_array_neither() {
        let texts = [Some("a"), None, Some(""), Some("Grüße 🌊 and more than sixteen bytes")];
        let plain = of(StringArray::from(texts.to_vec()));
        assert_eq!(of(LargeStringArray::from(texts.to_vec())), plain);
        assert_eq!(of(StringViewArray::from(texts.to_vec())), plain);
        let longer: Vec<_> = [Some("before")].into_iter().chain(texts).collect();
        assert_eq!(of(StringArray::from(longer).slice(1, 4)), plain);
        let numbers = Int64Array::from(vec![Some(1), None, Some(-1), Some(0)]);
        assert_eq!(of(numbers.slice(1, 2)), of(numbers)[1..3]);
    }

    #[test]
    fn dictionaries_agree_with_one_another_however_their_keys_are_numbered() {
        let of_keys = |keys: Vec<Option<i32>>, values: Vec<&str>| {
            let values = Arc::new(StringArray::from(values));
            of(DictionaryArray::<Int32Type>::new(Int32Array::from(keys), values))
        };
        assert_eq!(
            of_keys(vec![Some(0), Some(1), None], vec!["a", "b"]),
            of_keys(vec![Some(1), Some(0), None], vec!["b", "a"])
        );
    }

    #[test]
    fn nested_values_differ_where_anything_in_them_does() {
        let list = |rows: Vec<Option<Vec<Option<i32>>>>| {
            of(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
        };
        let hashes = list(vec![
            Some(vec![]),
            None,
            Some(vec![None]),
            Some(vec![Some(0)]),
            Some(vec![Some(1), Some(2)]),
            Some(vec![Some(2), Some(1)]),
            Some(vec![Some(1), Some(2), None]),
        ]);
        assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), hashes.len());
        assert_eq!(list(vec![Some(vec![Some(1), Some(2)])]), hashes[4..5]);
        let pair = |left: i32, right: i32| {
            let column = |value| Arc::new(Int32Array::from(vec![value])) as ArrayRef;
            let field = |name| Arc::new(Field::new(name, DataType::Int32, true));
            of(StructArray::from(vec![(field("a"), column(left)), (field("b"), column(right))]))
        };
        assert_ne!(pair(1, 2), pair(2, 1));
    }

    proptest! {
        #[test]
        fn different_values_have_different_hashes(
            texts in proptest::collection::btree_set(proptest::option::of("\\PC{0,40}"), 1..200),
            numbers in proptest::collection::btree_set(proptest::option::of(any::<i64>()), 1..200),
        ) {
            let texts: Vec<_> = texts.iter().map(Option::as_deref).collect();
            let hashes: BTreeSet<_> = of(StringArray::from(texts.clone())).into_iter().collect();
            prop_assert_eq!(hashes.len(), texts.len());
            let numbers: Vec<_> = numbers.into_iter().collect();
            let hashes: BTreeSet<_> = of(Int64Array::from(numbers.clone())).into_iter().collect();
            prop_assert_eq!(hashes.len(), numbers.len());
        }

        #[test]
        fn mixing_is_a_permutation(left: u64, right: u64) {
            prop_assert_eq!(mixed(left) == mixed(right), left == right);
        }
    }
}
