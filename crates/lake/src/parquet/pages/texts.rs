//! Columns of texts and bytes.

use ::parquet::file::statistics::Statistics;
use ::parquet::schema::types::ColumnDescPtr;
use arrow::array::{Array, AsArray, GenericByteArray};
use arrow::datatypes::{ArrowNativeType, ByteArrayType};
use tidelake_model::Result;

use super::coding::{Coding, Dictionary, PageValues};
use super::column::Values;
use super::slots::{Slots, spread};
use super::statistics::byte_array;

/// Longest value that its key holds whole.
const SHORT: usize = 16;

/// What a dictionary compares first: the ends of a value, or a hash of it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
    len: usize,
}

impl Key {
    #[inline]
    fn of(value: &[u8]) -> Self {
        let len = value.len();
        let (first, last) = match (value.first_chunk(), value.last_chunk()) {
            (Some(first), Some(last)) if len <= SHORT => {
                (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
            }
            (Some(_), Some(last)) => {
                let (words, _) = value.as_chunks();
                let mixed = words.iter().fold(0, |mixed, word| {
                    spread(mixed ^ u64::from_le_bytes(*word)).rotate_left(23)
                });
                (mixed, u64::from_le_bytes(*last))
            }
            _ => match (value.first_chunk(), value.last_chunk()) {
                (Some(first), Some(last)) => {
                    (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
                }
                _ => {
                    let all = value.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
                    (all, 0)
                }
            },
        };
        Self { first, last, len }
    }

    #[inline]
    fn hash(&self) -> u64 {
        spread(self.first ^ self.last.rotate_left(31) ^ (self.len as u64) << 56)
    }
}

struct TextDictionary {
    /// The values as they stand in its page: each after its length.
    page: Vec<u8>,
    /// Where each begins.
    starts: Vec<usize>,
    slots: Slots<Key>,
    most_bytes: usize,
}

impl TextDictionary {
    fn entry(&self, index: usize) -> &[u8] {
        let start = self.starts.get(index).copied().unwrap_or(self.page.len());
        let end = self.starts.get(index + 1).copied().unwrap_or(self.page.len());
        self.page.get(start..end).unwrap_or_default()
    }

    fn value(&self, index: usize) -> &[u8] {
        self.entry(index).get(4..).unwrap_or_default()
    }

    /// The index of a value, unless there is no room for it.
    #[inline]
    fn index(&mut self, value: &[u8]) -> Option<u16> {
        let key = Key::of(value);
        let found = self.slots.find(key.hash(), |other, index| {
            *other == key && (key.len <= SHORT || self.value(usize::from(index)) == value)
        });
        match found {
            Ok(index) => Some(index),
            Err(place) => self.add(place?, key, value),
        }
    }

    fn add(&mut self, place: usize, key: Key, value: &[u8]) -> Option<u16> {
        let index = u16::try_from(self.starts.len()).ok()?;
        if self.page.len() + 4 + value.len() > self.most_bytes {
            return None;
        }
        self.starts.push(self.page.len());
        push_value(value, &mut self.page);
        self.slots.fill(place, key, index, Key::hash);
        Some(index)
    }
}

impl Dictionary for TextDictionary {
    fn len(&self) -> usize {
        self.starts.len()
    }

    fn bytes(&self) -> usize {
        self.page.len()
    }

    fn memory(&self) -> usize {
        self.page.len() + size_of_val(self.starts.as_slice()) + self.slots.memory()
    }

    fn write_values(&self, indices: &[u16], out: &mut Vec<u8>) {
        for index in indices {
            out.extend_from_slice(self.entry(usize::from(*index)));
        }
    }

    fn page(&self) -> Vec<u8> {
        self.page.clone()
    }
}

#[inline]
fn push_value(value: &[u8], out: &mut Vec<u8>) {
    // No array holds a longer one: Arrow's offsets of 32 bits, and a page's own size.
    let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(value);
}

/// Lowest and highest value so far.
#[derive(Default)]
struct Range {
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl Range {
    fn widen(&mut self, value: &[u8]) {
        match &mut self.ends {
            None => self.ends = Some((value.to_vec(), value.to_vec())),
            Some((min, _)) if value < min.as_slice() => *min = value.to_vec(),
            Some((_, max)) if value > max.as_slice() => *max = value.to_vec(),
            Some(_) => {}
        }
    }
}

/// The first bytes of a value; two that differ are in the order of their values.
#[inline]
fn prefix(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            for (place, byte) in first.iter_mut().zip(value) {
                *place = *byte;
            }
            u64::from_be_bytes(first)
        }
    }
}

/// The values of a column of texts or bytes.
pub(super) struct Texts<T> {
    column: ColumnDescPtr,
    range: Range,
    /// Bytes of the values in the page that is being filled.
    unencoded_bytes: usize,
    page_bytes: usize,
    coding: Coding<TextDictionary>,
    kind: std::marker::PhantomData<fn() -> T>,
}

impl<T: ByteArrayType> Texts<T> {
    pub(super) fn new(column: ColumnDescPtr, page_bytes: usize, dictionary_bytes: usize) -> Self {
        let dictionary = TextDictionary {
            page: Vec::new(),
            starts: Vec::new(),
            slots: Slots::default(),
            most_bytes: dictionary_bytes,
        };
        Self {
            column,
            range: Range::default(),
            unencoded_bytes: 0,
            page_bytes,
            coding: Coding::new(dictionary),
            kind: std::marker::PhantomData,
        }
    }

    /// Appends the values of some rows, none of which is NULL.
    fn append_values(&mut self, offsets: &[T::Offset], data: &[u8]) {
        let mut rest = offsets;
        let value = |pair: &[T::Offset; 2]| {
            let [start, end] = pair.map(ArrowNativeType::as_usize);
            data.get(start..end).unwrap_or_default()
        };
        while rest.len() > 1 {
            let Some((dictionary, indices, stride)) = self.coding.indexing() else { break };
            let before = indices.len();
            let wanted = rest.get(..=stride).unwrap_or(rest);
            for pair in wanted.array_windows() {
                let Some(index) = dictionary.index(value(pair)) else { break };
                indices.push(index);
            }
            let count = indices.len() - before;
            let is_full = count + 1 < wanted.len();
            rest = rest.get(count..).unwrap_or_default();
            if let Some(given_up) = self.coding.indexed(count, is_full) {
                self.widen(&given_up);
            }
        }
        let [first, .., last] = rest else { return };
        let plain = self.coding.plain();
        plain.reserve(last.as_usize() - first.as_usize() + 4 * rest.len());
        let (lowest, highest) = match &self.range.ends {
            Some((min, max)) => (prefix(min), prefix(max)),
            None => (u64::MAX, 0),
        };
        let (mut lowest, mut highest) = (lowest, highest);
        for pair in rest.array_windows() {
            let value = value(pair);
            let prefix = prefix(value);
            if prefix <= lowest || prefix >= highest {
                self.range.widen(value);
                lowest = lowest.min(prefix);
                highest = highest.max(prefix);
            }
            push_value(value, plain);
        }
    }

    fn widen(&mut self, dictionary: &TextDictionary) {
        for index in 0..dictionary.len() {
            self.range.widen(dictionary.value(index));
        }
    }
}

impl<T: ByteArrayType> Values for Texts<T> {
    fn fitting(&self, array: &dyn Array, from: usize) -> usize {
        let array: &GenericByteArray<T> = array.as_bytes();
        let room = self.page_bytes.saturating_sub(self.pending());
        let offsets = array.value_offsets().get(from..).unwrap_or_default();
        let Some(first) = offsets.first() else { return 0 };
        offsets
            .partition_point(|offset| offset.as_usize() - first.as_usize() < room)
            .saturating_sub(1)
    }

    fn append(&mut self, array: &dyn Array) -> Result<()> {
        let array: &GenericByteArray<T> = array.as_bytes();
        let (offsets, data) = (array.value_offsets(), array.value_data());
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                if let [first, .., last] = offsets {
                    self.unencoded_bytes += last.as_usize() - first.as_usize();
                }
                self.append_values(offsets, data);
            }
            Some(nulls) => {
                for (start, end) in nulls.valid_slices() {
                    let offsets = offsets.get(start..=end).unwrap_or_default();
                    if let [first, .., last] = offsets {
                        self.unencoded_bytes += last.as_usize() - first.as_usize();
                    }
                    self.append_values(offsets, data);
                }
            }
        }
        Ok(())
    }

    fn pending(&self) -> usize {
        self.coding.pending()
    }

    fn dictionary_bytes(&self) -> usize {
        self.coding.dictionary_bytes()
    }

    fn memory(&self) -> usize {
        self.coding.memory()
    }

    fn write_page(&mut self, out: &mut Vec<u8>) -> PageValues {
        if let Some(given_up) = self.coding.settle() {
            self.widen(&given_up);
        }
        let bytes = std::mem::take(&mut self.unencoded_bytes);
        PageValues {
            unencoded_bytes: Some(i64::try_from(bytes).unwrap_or(i64::MAX)),
            ..self.coding.write_page(out)
        }
    }

    fn finish(&mut self) -> Option<(Vec<u8>, usize)> {
        let (page, dictionary) = self.coding.finish();
        if let Some(dictionary) = dictionary {
            self.widen(&dictionary);
        }
        page
    }

    fn statistics(&self, nulls: u64) -> Statistics {
        byte_array(&self.column, self.range.ends.clone(), nulls)
    }
}
