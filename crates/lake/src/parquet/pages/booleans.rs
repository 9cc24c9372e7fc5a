//! Columns of booleans.

use ::parquet::basic::Encoding;
use ::parquet::file::statistics::Statistics;
use arrow::array::{Array, AsArray};
use tidelake_model::Result;

use super::bits::Bits;
use super::coding::PageValues;
use super::column::Values;

/// The values of a column of booleans.
#[derive(Default)]
pub(super) struct Booleans {
    bits: Bits,
    has_false: bool,
    has_true: bool,
}

impl Values for Booleans {
    fn append(&mut self, array: &dyn Array) -> Result<()> {
        let values = array.as_boolean().values();
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => self.bits.push(values),
            Some(nulls) => {
                for (start, end) in nulls.valid_slices() {
                    self.bits.push(&values.slice(start, end - start));
                }
            }
        }
        Ok(())
    }

    fn pending(&self) -> usize {
        self.bits.bytes()
    }

    fn memory(&self) -> usize {
        self.bits.bytes()
    }

    fn write_page(&mut self, out: &mut Vec<u8>) -> PageValues {
        self.has_false |= self.bits.zeros() > 0;
        self.has_true |= self.bits.ones() > 0;
        self.bits.write_plain(out);
        self.bits.clear();
        PageValues { encoding: Encoding::PLAIN, unencoded_bytes: None }
    }

    fn finish(&mut self) -> Option<(Vec<u8>, usize)> {
        None
    }

    fn statistics(&self, nulls: u64) -> Statistics {
        let has_any = self.has_false || self.has_true;
        let (min, max) = (has_any.then_some(!self.has_false), has_any.then_some(self.has_true));
        Statistics::boolean(min, max, None, Some(nulls), false)
    }
}
