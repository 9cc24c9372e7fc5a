//! Columns of numbers.

use ::parquet::data_type::{DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::file::statistics::{Statistics, ValueStatistics};
use arrow::array::Array;
use arrow::datatypes::{ArrowNativeType, ToByteSlice};
use tidelake_model::Result;

use super::coding::{Coding, Dictionary, PageValues};
use super::column::Values;
use super::slots::{Slots, spread};

// Plain numbers are written as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"), "Parquet's numbers are little-endian");

/// A number as Parquet stores it.
pub(super) trait Number: ArrowNativeType {
    /// Bits that tell values apart.
    fn bits(self) -> u64;

    /// Statistics with the order that the values have.
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics;
}

fn signed<T: DataType>(range: Option<(T::T, T::T)>, nulls: u64) -> ValueStatistics<T::T> {
    let (min, max) = range.unzip();
    // Readers of old look for the order of signed numbers in other fields.
    ValueStatistics::new(min, max, None, Some(nulls), false).with_backwards_compatible_min_max(true)
}

impl Number for i32 {
    fn bits(self) -> u64 {
        u64::from(self.cast_unsigned())
    }
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics {
        Statistics::Int32(signed::<Int32Type>(range, nulls))
    }
}

impl Number for i64 {
    fn bits(self) -> u64 {
        self.cast_unsigned()
    }
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics {
        Statistics::Int64(signed::<Int64Type>(range, nulls))
    }
}

impl Number for u32 {
    fn bits(self) -> u64 {
        u64::from(self)
    }
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics {
        let (min, max) = range.map(|(min, max)| (min.cast_signed(), max.cast_signed())).unzip();
        Statistics::int32(min, max, None, Some(nulls), false)
    }
}

impl Number for u64 {
    fn bits(self) -> u64 {
        self
    }
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics {
        let (min, max) = range.map(|(min, max)| (min.cast_signed(), max.cast_signed())).unzip();
        Statistics::int64(min, max, None, Some(nulls), false)
    }
}

impl Number for f32 {
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics {
        // Whichever zero it was: readers may not tell them apart.
        let range = range.map(|(min, max)| {
            (if min == 0.0 { -0.0 } else { min }, if max == 0.0 { 0.0 } else { max })
        });
        Statistics::Float(signed::<FloatType>(range, nulls))
    }
}

impl Number for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics {
        let range = range.map(|(min, max)| {
            (if min == 0.0 { -0.0 } else { min }, if max == 0.0 { 0.0 } else { max })
        });
        Statistics::Double(signed::<DoubleType>(range, nulls))
    }
}

/// Widens a range so that it holds the values, NaN aside.
fn widen<N: Number>(range: &mut Option<(N, N)>, values: &[N]) {
    let is_number = |value: &N| value.partial_cmp(value).is_some();
    let start =
        range.or_else(|| values.iter().copied().find(is_number).map(|value| (value, value)));
    let Some((mut min, mut max)) = start else { return };
    for value in values {
        if *value < min {
            min = *value;
        }
        if *value > max {
            max = *value;
        }
    }
    *range = Some((min, max));
}

struct NumberDictionary<N> {
    values: Vec<N>,
    slots: Slots<u64>,
    most: usize,
}

impl<N: Number> NumberDictionary<N> {
    /// Adds the indices of values until one has no room in the dictionary, and tells
    /// how many they were.
    fn index(&mut self, values: &[N], indices: &mut Vec<u16>) -> usize {
        let before = indices.len();
        for value in values {
            let bits = value.bits();
            let index = match self.slots.find(spread(bits), |key, _| *key == bits) {
                Ok(index) => index,
                Err(None) => break,
                Err(Some(place)) => {
                    let room = self.values.len() < self.most;
                    let Ok(index) = u16::try_from(self.values.len()) else { break };
                    if !room {
                        break;
                    }
                    self.values.push(*value);
                    self.slots.fill(place, bits, index, |key| spread(*key));
                    index
                }
            };
            indices.push(index);
        }
        indices.len() - before
    }
}

impl<N: Number> Dictionary for NumberDictionary<N> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice())
    }

    fn memory(&self) -> usize {
        self.bytes() + self.slots.memory()
    }

    fn write_values(&self, indices: &[u16], out: &mut Vec<u8>) {
        out.reserve(indices.len() * size_of::<N>());
        for index in indices {
            if let Some(value) = self.values.get(usize::from(*index)) {
                out.extend_from_slice(value.to_byte_slice());
            }
        }
    }

    fn page(&self) -> Vec<u8> {
        self.values.as_slice().to_byte_slice().to_vec()
    }
}

/// Turns an array into numbers as Parquet stores them; those of NULLs are anything.
pub(super) type Convert<N> = for<'a> fn(&'a dyn Array, &'a mut Vec<N>) -> Result<&'a [N]>;

/// The values of a column of numbers.
pub(super) struct Numbers<N> {
    convert: Convert<N>,
    converted: Vec<N>,
    dense: Vec<N>,
    range: Option<(N, N)>,
    coding: Coding<NumberDictionary<N>>,
}

impl<N: Number> Numbers<N> {
    pub(super) fn new(convert: Convert<N>, dictionary_bytes: usize) -> Self {
        let dictionary = NumberDictionary {
            values: Vec::new(),
            slots: Slots::default(),
            most: dictionary_bytes / size_of::<N>(),
        };
        Self {
            convert,
            converted: Vec::new(),
            dense: Vec::new(),
            range: None,
            coding: Coding::new(dictionary),
        }
    }
}

impl<N: Number> Values for Numbers<N> {
    fn append(&mut self, array: &dyn Array) -> Result<()> {
        let mut rest = (self.convert)(array, &mut self.converted)?;
        if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
            self.dense.clear();
            for (start, end) in nulls.valid_slices() {
                self.dense.extend_from_slice(rest.get(start..end).unwrap_or_default());
            }
            rest = &self.dense;
        }
        while !rest.is_empty() {
            let Some((dictionary, indices, stride)) = self.coding.indexing() else { break };
            let wanted = rest.get(..stride).unwrap_or(rest);
            let count = dictionary.index(wanted, indices);
            let is_full = count < wanted.len();
            rest = rest.get(count..).unwrap_or_default();
            if let Some(given_up) = self.coding.indexed(count, is_full) {
                widen(&mut self.range, &given_up.values);
            }
        }
        widen(&mut self.range, rest);
        self.coding.plain().extend_from_slice(rest.to_byte_slice());
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
            + size_of_val(self.dense.as_slice())
            + size_of_val(self.converted.as_slice())
    }

    fn write_page(&mut self, out: &mut Vec<u8>) -> PageValues {
        if let Some(given_up) = self.coding.settle() {
            widen(&mut self.range, &given_up.values);
        }
        self.coding.write_page(out)
    }

    fn finish(&mut self) -> Option<(Vec<u8>, usize)> {
        let (page, dictionary) = self.coding.finish();
        if let Some(dictionary) = dictionary {
            widen(&mut self.range, &dictionary.values);
        }
        page
    }

    fn statistics(&self, nulls: u64) -> Statistics {
        N::statistics(self.range, nulls)
    }
}
