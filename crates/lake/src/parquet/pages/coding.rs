//! Values of a column chunk: with a dictionary as long as it pays, plain after that.

use ::parquet::basic::Encoding;

use super::hybrid::{index_bits, write_indices};
use super::trial::{Trial, Verdict};

/// The different values of a column chunk.
pub(super) trait Dictionary {
    /// How many they are.
    fn len(&self) -> usize;

    /// Bytes of its page.
    fn bytes(&self) -> usize;

    /// Bytes that it holds.
    fn memory(&self) -> usize;

    /// Writes the values with those indices, plain.
    fn write_values(&self, indices: &[u16], out: &mut Vec<u8>);

    /// All values, plain.
    fn page(&self) -> Vec<u8>;
}

/// What stands in a page.
pub(super) struct PageValues {
    pub(super) encoding: Encoding,
    /// Bytes of the values themselves, where their length varies.
    pub(super) unencoded_bytes: Option<i64>,
}

/// The values that are not in a page yet, and the dictionary.
pub(super) struct Coding<D> {
    /// As long as values are put into it.
    dictionary: Option<D>,
    /// The page of a dictionary that was given up after pages had referred to it.
    closed: Option<(Vec<u8>, usize)>,
    has_pages: bool,
    trial: Trial,
    indices: Vec<u16>,
    plain: Vec<u8>,
}

impl<D: Dictionary> Coding<D> {
    pub(super) fn new(dictionary: D) -> Self {
        Self {
            dictionary: Some(dictionary),
            closed: None,
            has_pages: false,
            trial: Trial::default(),
            indices: Vec::new(),
            plain: Vec::new(),
        }
    }

    /// The dictionary, the indices into it, and how many to add before [`indexed`](Self::indexed).
    pub(super) fn indexing(&mut self) -> Option<(&mut D, &mut Vec<u16>, usize)> {
        let dictionary = self.dictionary.as_mut()?;
        Some((dictionary, &mut self.indices, self.trial.stride()))
    }

    /// Takes note of indices that were added. Returns the dictionary if it is given up.
    pub(super) fn indexed(&mut self, count: usize, is_full: bool) -> Option<D> {
        let distinct = self.dictionary.as_ref().map_or(0, Dictionary::len);
        let verdict = self.trial.add(count, distinct);
        (is_full || verdict == Verdict::DoesNotPay).then(|| self.give_up()).flatten()
    }

    /// Decides on the dictionary before a page refers to it.
    pub(super) fn settle(&mut self) -> Option<D> {
        let distinct = self.dictionary.as_ref()?.len();
        (self.trial.end(distinct) == Verdict::DoesNotPay).then(|| self.give_up()).flatten()
    }

    /// From here on values are plain, those of the page that is being filled included.
    fn give_up(&mut self) -> Option<D> {
        let dictionary = self.dictionary.take()?;
        dictionary.write_values(&self.indices, &mut self.plain);
        self.indices = Vec::new();
        if self.has_pages {
            self.closed = Some((dictionary.page(), dictionary.len()));
        }
        Some(dictionary)
    }

    /// Where plain values go, once there is no dictionary.
    pub(super) fn plain(&mut self) -> &mut Vec<u8> {
        &mut self.plain
    }

    /// Bytes of the page that is being filled, about.
    pub(super) fn pending(&self) -> usize {
        let bits = self.dictionary.as_ref().map_or(0, |dictionary| index_bits(dictionary.len()));
        self.plain.len() + (self.indices.len() * bits).div_ceil(8)
    }

    /// Bytes of the dictionary's page, if it ended here.
    pub(super) fn dictionary_bytes(&self) -> usize {
        self.dictionary.as_ref().map_or(0, Dictionary::bytes)
            + self.closed.as_ref().map_or(0, |(page, _)| page.len())
    }

    /// Bytes that are held.
    pub(super) fn memory(&self) -> usize {
        self.plain.len()
            + self.indices.len() * 2
            + self.dictionary.as_ref().map_or(0, Dictionary::memory)
            + self.closed.as_ref().map_or(0, |(page, _)| page.len())
    }

    /// Ends the page that is being filled.
    pub(super) fn write_page(&mut self, out: &mut Vec<u8>) -> PageValues {
        let encoding = if let Some(dictionary) = &self.dictionary {
            let bits = index_bits(dictionary.len());
            out.push(u8::try_from(bits).unwrap_or(16));
            write_indices(&self.indices, bits, out);
            self.indices.clear();
            self.has_pages = true;
            Encoding::RLE_DICTIONARY
        } else {
            if out.is_empty() {
                std::mem::swap(out, &mut self.plain);
            } else {
                out.extend_from_slice(&self.plain);
            }
            self.plain.clear();
            Encoding::PLAIN
        };
        PageValues { encoding, unencoded_bytes: None }
    }

    /// The page of the dictionary, with how many values are in it, and the dictionary
    /// if values were put into it until the end.
    pub(super) fn finish(&mut self) -> (Option<(Vec<u8>, usize)>, Option<D>) {
        let dictionary = self.dictionary.take();
        let page =
            dictionary.as_ref().filter(|_| self.has_pages).map(|found| (found.page(), found.len()));
        (page.or_else(|| self.closed.take()), dictionary)
    }
}
