//! A statement with its parameters.

use super::Cell;
use tidelake_model::{Error, ErrorKind, Result, RunId};

/// SQL text, and the values that are bound to its numbered parameters. Values
/// never become part of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) cells: Vec<Cell>,
    pub(crate) conflict: Option<Conflict>,
}

/// What becomes of a row that is there already. It is the last part of the text, in
/// the words of most; a store that has others finds here where it begins and what it
/// says.
#[derive(Debug, Clone)]
pub(crate) struct Conflict {
    /// How much of the text comes before it.
    pub(crate) at: usize,
    /// The columns by which a row is the same.
    pub(crate) key: Vec<String>,
    /// The columns that take the new values; without any the row stays as it is.
    pub(crate) updates: Vec<String>,
}

impl Statement {
    pub(crate) fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), cells: vec![], conflict: None }
    }

    /// Ends an insertion into these columns: a row of the same key is replaced.
    #[must_use]
    pub(crate) fn or_replace(mut self, columns: &str, key: &str) -> Self {
        let names = |list: &str| list.split(", ").map(str::to_owned).collect::<Vec<_>>();
        let mut updates = names(columns);
        let key = names(key);
        updates.retain(|column| !key.contains(column));
        let at = self.sql.len();
        self.sql.push_str(&format!(" ON CONFLICT ({}) DO UPDATE SET ", key.join(", ")));
        let set = |column: &String| format!("{column} = excluded.{column}");
        self.sql.push_str(&updates.iter().map(set).collect::<Vec<_>>().join(", "));
        self.conflict = Some(Conflict { at, key, updates });
        self
    }

    /// Ends an insertion: a row of the same key stays as it is.
    #[must_use]
    pub(crate) fn or_nothing(mut self, key: &str) -> Self {
        let at = self.sql.len();
        self.sql.push_str(" ON CONFLICT DO NOTHING");
        let key = key.split(", ").map(str::to_owned).collect();
        self.conflict = Some(Conflict { at, key, updates: vec![] });
        self
    }

    /// Adds text.
    #[must_use]
    pub(crate) fn sql(mut self, sql: &str) -> Self {
        self.sql.push_str(sql);
        self
    }

    /// Adds the next parameter.
    #[must_use]
    pub(crate) fn bind(mut self, cell: impl Into<Cell>) -> Self {
        self.cells.push(cell.into());
        self.sql.push_str(&format!("${}", self.cells.len()));
        self
    }

    /// Adds `($1, $2, …)`.
    #[must_use]
    pub(crate) fn tuple(mut self, cells: Vec<Cell>) -> Self {
        for (at, cell) in cells.into_iter().enumerate() {
            self = self.sql(if at == 0 { "(" } else { ", " }).bind(cell);
        }
        self.sql(")")
    }

    /// Adds tuples separated by commas.
    #[must_use]
    pub(crate) fn tuples(mut self, tuples: impl IntoIterator<Item = Vec<Cell>>) -> Self {
        for (at, tuple) in tuples.into_iter().enumerate() {
            self = self.sql(if at == 0 { "" } else { ", " }).tuple(tuple);
        }
        self
    }

    /// Adds `AND column = $n` where a value is wanted.
    #[must_use]
    pub(crate) fn filter(self, column: &str, wanted: Option<impl Into<Cell>>) -> Self {
        match wanted {
            Some(wanted) => self.sql(" AND ").sql(column).sql(" = ").bind(wanted),
            None => self,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<RunId> for Cell {
    fn from(run_id: RunId) -> Self {
        Self::Text(Some(run_id.to_string()))
    }
}

impl From<i128> for Cell {
    fn from(time: i128) -> Self {
        Self::Time(Some(time))
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Boolean(Some(value))
    }
}

impl Cell {
    /// A count; no database here has an unsigned type of 64 bits.
    pub(crate) fn count(number: u64) -> Result<Self> {
        i64::try_from(number).map(|number| Self::Integer(Some(number))).map_err(|_| {
            let message = format!("{number} is too large for the state store");
            Error::new(ErrorKind::Internal, message)
        })
    }

    /// A document.
    pub(crate) fn json(document: &impl serde::Serialize) -> Result<Self> {
        serde_json::to_string(document).map(|text| Self::Json(Some(text))).map_err(|error| {
            Error::new(ErrorKind::Internal, "a record cannot be written as JSON").with_source(error)
        })
    }

    /// A document that may be absent.
    pub(crate) fn optional_json(document: Option<&impl serde::Serialize>) -> Result<Self> {
        document.map_or(Ok(Self::Json(None)), Self::json)
    }
}
