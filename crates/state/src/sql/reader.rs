//! Reads a row's cells in the order of the columns.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::{Kind, Value};

use super::Cell;

pub(super) struct Reader(std::vec::IntoIter<Cell>);

/// What is stored cannot be understood: another program wrote it, or a bug.
pub(super) fn damaged(what: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("the state store holds a row that makes no sense: {what}"),
    )
}

/// Reads a time as [`time_text`](crate::time::time_text) writes it.
pub(crate) fn parse_time(text: &str) -> Result<i128> {
    match Value::parse(Kind::Timestamp, text) {
        Ok(Value::Timestamp(nanos)) => Ok(nanos),
        _ => Err(damaged(format!("{text:?} is no time"))),
    }
}

impl Reader {
    pub(super) fn new(cells: Vec<Cell>) -> Self {
        Self(cells.into_iter())
    }

    fn next(&mut self) -> Result<Cell> {
        self.0.next().ok_or_else(|| damaged("a column is missing"))
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>> {
        match self.next()? {
            Cell::Text(text) | Cell::Json(text) => Ok(text),
            other => Err(damaged(format!("{other:?} is no text"))),
        }
    }

    pub(super) fn text(&mut self) -> Result<String> {
        self.optional_text()?.ok_or_else(|| damaged("a text is missing"))
    }

    pub(super) fn optional_count(&mut self) -> Result<Option<u64>> {
        match self.next()? {
            Cell::Integer(Some(number)) => u64::try_from(number).map(Some).map_err(damaged),
            Cell::Integer(None) | Cell::Text(None) => Ok(None),
            other => Err(damaged(format!("{other:?} is no number"))),
        }
    }

    pub(super) fn count(&mut self) -> Result<u64> {
        self.optional_count()?.ok_or_else(|| damaged("a number is missing"))
    }

    pub(super) fn boolean(&mut self) -> Result<bool> {
        match self.next()? {
            Cell::Boolean(Some(value)) => Ok(value),
            Cell::Integer(Some(number)) => Ok(number != 0),
            other => Err(damaged(format!("{other:?} is neither true nor false"))),
        }
    }

    pub(super) fn optional_time(&mut self) -> Result<Option<i128>> {
        match self.next()? {
            Cell::Time(time) => Ok(time),
            Cell::Text(Some(text)) => parse_time(&text).map(Some),
            Cell::Text(None) => Ok(None),
            other => Err(damaged(format!("{other:?} is no time"))),
        }
    }

    pub(super) fn time(&mut self) -> Result<i128> {
        self.optional_time()?.ok_or_else(|| damaged("a time is missing"))
    }

    pub(super) fn optional_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        match self.optional_text()? {
            Some(text) => serde_json::from_str(&text).map(Some).map_err(damaged),
            None => Ok(None),
        }
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.optional_json()?.ok_or_else(|| damaged("a document is missing"))
    }

    /// A text that is the name of something.
    pub(super) fn parse<T: FromStr<Err: std::fmt::Display>>(&mut self) -> Result<T> {
        self.text()?.parse().map_err(damaged)
    }

    /// The same, where it may be absent.
    pub(super) fn optional_parse<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
    ) -> Result<Option<T>> {
        self.optional_text()?.map(|text| text.parse().map_err(damaged)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::time_text;

    #[test]
    fn a_time_is_read_back() {
        for nanos in [0, -1_000, 1_796_000_000_123_456_000] {
            assert_eq!(parse_time(&time_text(nanos)).unwrap(), nanos);
        }
        assert!(parse_time("yesterday").is_err());
    }
}
