//! Where the cells of rows lie, before they are decoded.
//!
//! A row is looked through once, and only when all of it is there; its cells are
//! decoded afterwards, some rows of a column at a time, so that what differs from
//! column to column is decided once for all of these rows.

use tidelake_model::{Error, ErrorKind, Result};

/// A cell where it lies; `None` is NULL.
pub(crate) type Cell<'a> = Option<&'a [u8]>;

/// Cells that are looked through before they are decoded: few enough to stay in
/// the processor's nearest cache.
const MOST_CELLS: usize = 1_024;
/// However many columns there are.
const LEAST_ROWS: usize = 16;
/// Type byte and length of a message of the server.
const HEAD: usize = 5;
/// Number of fields of a row, and length of a field.
const COUNT: usize = 2;
const LENGTH: usize = 4;

/// What bytes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The stream of a copy, cut anywhere.
    Stream,
    /// Messages of the server, of which usually each holds one row.
    Messages,
}

/// What was found at the front of some bytes.
enum Found<'a> {
    /// A row, the bytes of its cells of variable width, and what follows it.
    Row(usize, &'a [u8]),
    /// The end of the rows, and what follows it.
    End(&'a [u8]),
    /// The beginning of a row, or a message that is none.
    Other,
}

/// Why looking through rows came to an end.
pub(crate) enum Stopped {
    /// There may be more; what was found is to be decoded first.
    Full,
    /// Enough rows for a batch.
    Batch,
    /// The rest is the beginning of a row, or a message that is none.
    Other,
    /// The stream's own end.
    End,
    /// What follows is no row.
    Failed(Error),
}

/// How rows are laid out, and how many make a batch.
pub(crate) struct Shape {
    /// For each column whether its cells take bytes beyond the fixed width, as a mask.
    masks: Vec<usize>,
    /// Bytes of a row beside these.
    row_width: usize,
    pub(crate) batch_rows: usize,
    pub(crate) batch_bytes: usize,
}

/// Rows that were found.
pub(crate) struct Run<'a> {
    /// Cells, row by row.
    pub(crate) cells: Vec<Cell<'a>>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) rest: &'a [u8],
}

impl Shape {
    pub(crate) fn new(is_variable: impl Iterator<Item = bool>, row_width: usize) -> Self {
        let masks = is_variable.map(|is_variable| if is_variable { usize::MAX } else { 0 });
        Self { masks: masks.collect(), row_width, batch_rows: 1, batch_bytes: 1 }
    }

    /// A place for the rows at the front of some bytes.
    pub(crate) fn run<'a>(&self, bytes: &'a [u8]) -> Run<'a> {
        let columns = self.masks.len().max(1);
        let most = (MOST_CELLS / columns).max(LEAST_ROWS);
        // The end of the rows is shorter than a row.
        let rows = most.min(1 + bytes.len() / (COUNT + LENGTH * self.masks.len()));
        Run { cells: vec![None; rows * columns], rows: 0, bytes: 0, rest: bytes }
    }

    /// Looks through the next rows, where a batch has some already.
    pub(crate) fn look(
        &self,
        run: &mut Run<'_>,
        form: Form,
        batch_rows: usize,
        batch_bytes: usize,
    ) -> Stopped {
        (run.rows, run.bytes) = (0, 0);
        let Run { cells, rows, bytes, rest } = run;
        for row in cells.chunks_exact_mut(self.masks.len().max(1)) {
            let found = match form {
                Form::Stream => self.row(rest, row),
                Form::Messages => self.message(rest, row),
            };
            match found {
                Ok(Found::Row(variable, after)) => {
                    *rest = after;
                    *rows += 1;
                    *bytes += self.row_width + variable;
                }
                Ok(Found::End(after)) => {
                    *rest = after;
                    return Stopped::End;
                }
                Ok(Found::Other) => return Stopped::Other,
                Err(error) => return Stopped::Failed(error),
            }
            if batch_rows + *rows >= self.batch_rows || batch_bytes + *bytes >= self.batch_bytes {
                return Stopped::Batch;
            }
        }
        Stopped::Full
    }

    /// A message that holds one row and nothing else.
    #[inline]
    fn message<'a>(&self, bytes: &'a [u8], row: &mut [Cell<'a>]) -> Result<Found<'a>> {
        let Some(([b'd', length @ ..], body)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(Found::Other);
        };
        // The length counts itself.
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let body = length.and_then(|length| body.split_at_checked(length.checked_sub(LENGTH)?));
        let Some((body, after)) = body else { return Ok(Found::Other) };
        match self.row(body, row)? {
            Found::Row(variable, []) => Ok(Found::Row(variable, after)),
            _ => Ok(Found::Other),
        }
    }

    #[inline]
    fn row<'a>(&self, bytes: &'a [u8], row: &mut [Cell<'a>]) -> Result<Found<'a>> {
        let Some((count, mut rest)) = bytes.split_first_chunk::<COUNT>() else {
            return Ok(Found::Other);
        };
        let count = i16::from_be_bytes(*count);
        if count == -1 {
            return Ok(Found::End(rest));
        }
        if usize::try_from(count) != Ok(self.masks.len()) {
            return Err(malformed("a row has another number of fields"));
        }
        let mut variable = 0;
        for (cell, mask) in row.iter_mut().zip(&self.masks) {
            let Some((length, after)) = rest.split_first_chunk::<LENGTH>() else {
                return Ok(Found::Other);
            };
            rest = after;
            let length = i32::from_be_bytes(*length);
            let Ok(length) = usize::try_from(length) else {
                if length != -1 {
                    return Err(malformed("a field has a negative length"));
                }
                *cell = None;
                continue;
            };
            let Some((bytes, after)) = rest.split_at_checked(length) else {
                return Ok(Found::Other);
            };
            rest = after;
            variable += length & mask;
            *cell = Some(bytes);
        }
        Ok(Found::Row(variable, rest))
    }
}

pub(crate) fn malformed(why: &str) -> Error {
    Error::new(ErrorKind::Data, format!("the server's binary copy cannot be read: {why}"))
}
