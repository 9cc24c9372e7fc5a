//! Bits one after another: of a column of booleans, or telling which rows hold a value.

use arrow::buffer::BooleanBuffer;

use super::hybrid::push_varint;

const WORD: usize = 64;

/// Equal words from which they become a run of their own.
const RUN_WORDS: usize = 4;

/// Bits, the first ones lowest, and how many of them are set.
#[derive(Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
    ones: usize,
}

impl Bits {
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
        self.ones = 0;
    }

    pub(super) fn ones(&self) -> usize {
        self.ones
    }

    pub(super) fn zeros(&self) -> usize {
        self.len - self.ones
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    pub(super) fn push(&mut self, bits: &BooleanBuffer) {
        let chunks = bits.bit_chunks();
        for word in chunks.iter() {
            self.push_word(word, WORD);
        }
        if chunks.remainder_len() > 0 {
            self.push_word(chunks.remainder_bits(), chunks.remainder_len());
        }
    }

    pub(super) fn push_ones(&mut self, mut count: usize) {
        while count > 0 {
            let now = count.min(WORD);
            self.push_word(u64::MAX >> (WORD - now), now);
            count -= now;
        }
    }

    /// Adds the lowest bits of a word whose others are not set.
    fn push_word(&mut self, word: u64, count: usize) {
        let used = self.len % WORD;
        match self.words.last_mut() {
            Some(last) if used > 0 => {
                *last |= word << used;
                if used + count > WORD {
                    self.words.push(word >> (WORD - used));
                }
            }
            _ => self.words.push(word),
        }
        self.len += count;
        self.ones += word.count_ones() as usize;
    }

    /// The bits as they are.
    pub(super) fn write_plain(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.len.div_ceil(8);
        for word in &self.words {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.truncate(end);
    }

    /// The bits as levels: long runs of one value, and between them bits as they are.
    pub(super) fn write_levels(&self, out: &mut Vec<u8>) {
        if self.ones == self.len || self.ones == 0 {
            if self.len > 0 {
                push_run(self.len, self.ones > 0, out);
            }
            return;
        }
        let (whole, tail) = self.words.split_at((self.len / WORD).min(self.words.len()));
        let mut rest = whole;
        // Where what is not written yet begins.
        let mut begun = whole;
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|word| *word == first).count();
            let after = rest.get(same..).unwrap_or_default();
            if matches!(*first, 0 | u64::MAX) && same >= RUN_WORDS {
                let waiting = begun.get(..begun.len() - rest.len()).unwrap_or_default();
                push_literal(waiting, &[], 0, out);
                push_run(same * WORD, *first != 0, out);
                begun = after;
            }
            rest = after;
        }
        push_literal(begun, tail, self.len % WORD, out);
    }
}

fn push_run(count: usize, bit: bool, out: &mut Vec<u8>) {
    push_varint(count << 1, out);
    out.push(u8::from(bit));
}

/// Whole words and some bits of another one, filled up to a byte.
fn push_literal(words: &[u64], tail: &[u64], tail_bits: usize, out: &mut Vec<u8>) {
    let bytes = words.len() * 8 + tail_bits.div_ceil(8);
    if bytes == 0 {
        return;
    }
    push_varint(bytes << 1 | 1, out);
    let end = out.len() + bytes;
    for word in words.iter().chain(tail) {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(end);
}
