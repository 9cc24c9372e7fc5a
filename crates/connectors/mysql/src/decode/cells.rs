//! Cells of any length, one behind the other.

use arrow::buffer::{Buffer, OffsetBuffer};

/// The bytes of all cells, and where each begins and ends.
pub(super) struct Cells {
    data: Vec<u8>,
    offsets: Vec<i32>,
}

impl Default for Cells {
    fn default() -> Self {
        Self { data: vec![], offsets: vec![0] }
    }
}

impl Cells {
    /// Adds a cell; `None` where the offsets would overflow.
    #[inline]
    pub(super) fn push(&mut self, cell: &[u8]) -> Option<()> {
        let end = i32::try_from(self.data.len().saturating_add(cell.len())).ok()?;
        self.offsets.push(end);
        self.data.extend_from_slice(cell);
        Some(())
    }

    pub(super) fn push_null(&mut self) {
        self.offsets.push(self.offsets.last().copied().unwrap_or(0));
    }

    /// Bytes of all cells.
    pub(super) fn size(&self) -> usize {
        self.data.len()
    }

    /// All cells, with space for as many again left in their place.
    pub(super) fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let mut fresh = Self {
            data: Vec::with_capacity(self.data.len()),
            offsets: Vec::with_capacity(self.offsets.len()),
        };
        fresh.offsets.push(0);
        let full = std::mem::replace(self, fresh);
        (OffsetBuffer::new(full.offsets.into()), full.data.into())
    }
}

/// The first cell that is no UTF-8.
pub(super) fn first_that_is_no_text(offsets: &OffsetBuffer<i32>, data: &[u8]) -> Option<usize> {
    let edge = |offset: i32| usize::try_from(offset).unwrap_or(0);
    offsets.windows(2).position(|ends| match ends {
        [start, end] => {
            let cell = data.get(edge(*start)..edge(*end)).unwrap_or(&[]);
            std::str::from_utf8(cell).is_err()
        }
        _ => false,
    })
}
