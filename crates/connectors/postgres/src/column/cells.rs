//! Cells of any length, one behind the other.

use arrow::buffer::{Buffer, OffsetBuffer};

use super::values::Odd;

/// The bytes of all cells, and where each begins and ends.
pub(super) struct Cells {
    data: Vec<u8>,
    /// One more than there are cells; the first is zero.
    offsets: Vec<i32>,
}

impl Default for Cells {
    fn default() -> Self {
        Self { data: vec![], offsets: vec![0] }
    }
}

impl Cells {
    /// Adds cells, until one is refused or the offsets would overflow. Tells
    /// whether there was a NULL.
    #[inline]
    pub(super) fn store<'a>(
        &mut self,
        cells: impl Iterator<Item = Option<&'a [u8]>>,
        read: impl Fn(&'a [u8]) -> Result<&'a [u8], Odd>,
    ) -> Result<bool, Odd> {
        self.offsets.reserve(cells.size_hint().0);
        let mut nulls = false;
        for cell in cells {
            match cell {
                Some(cell) => {
                    let cell = read(cell)?;
                    let end = self.data.len().saturating_add(cell.len());
                    let end = i32::try_from(end).map_err(|_| Odd::Malformed)?;
                    match cell {
                        // Flags of one letter are many, and not worth a call.
                        [byte] => self.data.push(*byte),
                        _ => self.data.extend_from_slice(cell),
                    }
                    self.offsets.push(end);
                }
                None => {
                    nulls = true;
                    self.offsets.push(self.end());
                }
            }
        }
        Ok(nulls)
    }

    fn end(&self) -> i32 {
        self.offsets.last().copied().unwrap_or(0)
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows.saturating_add(1));
        self.data.truncate(usize::try_from(self.end()).unwrap_or(0));
    }

    /// All cells, with space for as many again left in their place.
    pub(super) fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let mut offsets = Vec::with_capacity(self.offsets.len());
        offsets.push(0);
        let fresh = Self { data: Vec::with_capacity(self.data.len()), offsets };
        let full = std::mem::replace(self, fresh);
        (OffsetBuffer::new(full.offsets.into()), full.data.into())
    }
}
