//! Where a dictionary finds a value again: a table of hashes with open addressing.

/// Slots that are tried. Values that were chosen to collide end the dictionary, which
/// costs less than looking at all of them.
const TRIES: usize = 64;

const EMPTY: u32 = u32::MAX;

const FIRST_SLOTS: usize = 256;

/// Multiplier without a pattern in its bits.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash whose highest bits depend on all bits.
#[inline]
pub(super) fn spread(bits: u64) -> u64 {
    let mixed = (bits ^ bits >> 32).wrapping_mul(MIX);
    (mixed ^ mixed >> 29).wrapping_mul(MIX)
}

#[derive(Clone, Copy)]
struct Slot<K> {
    key: K,
    index: u32,
}

/// Indices by keys.
pub(super) struct Slots<K> {
    slots: Vec<Slot<K>>,
    filled: usize,
    /// What is left of a hash when it is shifted by so much is a place.
    shift: u32,
}

impl<K: Copy + Default> Default for Slots<K> {
    fn default() -> Self {
        Self { slots: Vec::new(), filled: 0, shift: 64 }
    }
}

impl<K: Copy + Default> Slots<K> {
    pub(super) fn memory(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        usize::try_from(hash.checked_shr(self.shift).unwrap_or(0)).unwrap_or(0)
    }

    /// The index of a key that is the same; or else the free place for it, if there
    /// is one nearby.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        is_same: impl Fn(&K, u16) -> bool,
    ) -> Result<u16, Option<usize>> {
        let mut place = self.place(hash);
        for _ in 0..TRIES {
            let Some(slot) = self.slots.get(place) else {
                // Nothing was put into it yet, or the last place was tried.
                return Err(self.slots.is_empty().then_some(place));
            };
            match u16::try_from(slot.index) {
                Ok(index) if is_same(&slot.key, index) => return Ok(index),
                Ok(_) => {}
                Err(_) => return Err(Some(place)),
            }
            place += 1;
            if place == self.slots.len() {
                place = 0;
            }
        }
        Err(None)
    }

    /// Fills the free place that was found for a key.
    pub(super) fn fill(&mut self, place: usize, key: K, index: u16, hash: impl Fn(&K) -> u64) {
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Slot { key, index: u32::from(index) };
            self.filled += 1;
            if self.filled * 2 > self.slots.len() {
                self.grow(self.slots.len() * 2, &hash);
            }
        } else {
            self.grow(FIRST_SLOTS, &hash);
            self.put(Slot { key, index: u32::from(index) }, &hash);
            self.filled += 1;
        }
    }

    fn grow(&mut self, count: usize, hash: &impl Fn(&K) -> u64) {
        let empty = vec![Slot { key: K::default(), index: EMPTY }; count];
        let before = std::mem::replace(&mut self.slots, empty);
        self.shift = 64 - count.trailing_zeros();
        for slot in before.into_iter().filter(|slot| slot.index != EMPTY) {
            self.put(slot, hash);
        }
    }

    fn put(&mut self, slot: Slot<K>, hash: &impl Fn(&K) -> u64) {
        let first = self.place(hash(&slot.key)).min(self.slots.len());
        let (before, after) = self.slots.split_at_mut(first);
        let free = after.iter_mut().chain(before).find(|slot| slot.index == EMPTY);
        if let Some(free) = free {
            *free = slot;
        }
    }
}
