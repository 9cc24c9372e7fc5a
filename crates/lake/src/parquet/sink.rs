//! Where encoded bytes go: hashed once, and cut into parts.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::layout::hex;

/// Size of the first parts. Object stores want at least 5 MiB.
pub(super) const PART_BYTES: usize = 8 << 20;

/// Parts after which their size doubles. With the 10,000 parts that a store takes
/// at most, an object could so reach 8 TiB, more than the stores allow.
const PARTS_PER_SIZE: u32 = 1000;

/// Size from which a part gets all its room at once.
const LARGE: usize = 1 << 20;

fn part_bytes(index: u32) -> usize {
    PART_BYTES.checked_shl(index / PARTS_PER_SIZE).unwrap_or(usize::MAX)
}

#[derive(Default)]
pub(super) struct Sink {
    current: Vec<u8>,
    full: VecDeque<Bytes>,
    parts: u32,
    hash: Sha256,
    bytes: u64,
}

impl Sink {
    /// The next part that is full.
    pub(super) fn take_full(&mut self) -> Option<Bytes> {
        self.full.pop_front()
    }

    /// What is left at the end.
    pub(super) fn take_rest(&mut self) -> Option<Bytes> {
        let rest = std::mem::take(&mut self.current);
        (!rest.is_empty()).then(|| rest.into())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// SHA-256 of everything written.
    pub(super) fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = part_bytes(self.parts).saturating_sub(self.current.len());
            let (fits, after) = rest.split_at(room.min(rest.len()));
            if self.current.len() + fits.len() > LARGE {
                // Growing by doubling would copy the part several times.
                self.current.reserve_exact(room);
            }
            self.current.extend_from_slice(fits);
            rest = after;
            if self.current.len() >= part_bytes(self.parts) {
                self.full.push_back(std::mem::take(&mut self.current).into());
                self.parts = self.parts.saturating_add(1);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn parts_grow_before_a_store_runs_out_of_them() {
        assert_eq!(part_bytes(0), PART_BYTES);
        assert_eq!(part_bytes(1000), 2 * PART_BYTES);
        let most: u128 = (0..10_000).map(|index| part_bytes(index) as u128).sum();
        assert!(most > 5 << 40, "an object of 5 TiB fits into 10,000 parts");
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut sink = Sink::default();
        let block: Vec<u8> = (0..=250).collect();
        let mut expected = Vec::new();
        while expected.len() < 2 * PART_BYTES + 17 {
            sink.write_all(&block).unwrap();
            expected.extend_from_slice(&block);
        }
        let mut parts: Vec<Bytes> = std::iter::from_fn(|| sink.take_full()).collect();
        assert!(parts.iter().all(|part| part.len() == PART_BYTES));
        parts.extend(sink.take_rest());
        assert_eq!(parts.concat(), expected);
        assert_eq!(sink.bytes(), expected.len() as u64);
        assert_eq!(sink.sha256(), hex(&Sha256::digest(&expected)));
    }
}
