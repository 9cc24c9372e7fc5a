//! Cells of any length, one behind the other.

use arrow::buffer::{Buffer, OffsetBuffer};

/// The bytes of all cells, and where each ends.
#[derive(Default)]
pub(super) struct Cells {
    data: Vec<u8>,
    ends: Vec<i32>,
}

impl Cells {
    /// Adds a cell; false where the offsets would overflow.
    pub(super) fn push(&mut self, cell: &[u8]) -> bool {
        let end = self.data.len().saturating_add(cell.len());
        let Ok(end) = i32::try_from(end) else { return false };
        self.ends.push(end);
        self.data.extend_from_slice(cell);
        true
    }

    pub(super) fn push_null(&mut self) {
        self.ends.push(self.ends.last().copied().unwrap_or(0));
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        let end = self.ends.last().copied().unwrap_or(0);
        self.data.truncate(usize::try_from(end).unwrap_or(0));
    }

    /// All cells, with space for as many again left in their place.
    pub(super) fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let fresh = Self {
            data: Vec::with_capacity(self.data.len()),
            ends: Vec::with_capacity(self.ends.len()),
        };
        let full = std::mem::replace(self, fresh);
        let mut offsets = Vec::with_capacity(full.ends.len() + 1);
        offsets.push(0);
        offsets.extend(full.ends);
        (OffsetBuffer::new(offsets.into()), full.data.into())
    }
}
