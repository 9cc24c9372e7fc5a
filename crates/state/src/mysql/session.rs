//! Statements in one transaction.

use std::borrow::Cow;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};
use tidelake_model::{Error, ErrorKind, Result};

use super::INEXACT;
use super::error::{self, Failure, understood};
use crate::backend::Counts;
use crate::sql::reader::parse_time;
use crate::sql::{Cell, Session, Statement};
use crate::time::time_text;

pub(super) struct MysqlSession<'a> {
    connection: &'a mut Conn,
    /// Where the store is, for messages.
    location: &'a str,
    counts: &'a Counts,
    /// What went wrong last.
    pub(super) failure: Option<Failure>,
    /// What tables are made with, once it is known.
    pub(super) collation: Option<String>,
}

impl<'a> MysqlSession<'a> {
    pub(super) fn new(connection: &'a mut Conn, location: &'a str, counts: &'a Counts) -> Self {
        Self { connection, location, counts, failure: None, collation: None }
    }

    fn failed(&mut self, error: mysql_async::Error) -> Error {
        self.failure = Some(error::failure(&error));
        understood(error, self.location)
    }

    async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>> {
        self.counts.asked();
        let found = self.connection.exec(text(statement), parameters(statement)?).await;
        found.map_err(|error| self.failed(error))
    }
}

fn damaged(what: &str) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("the state store holds {what}, which was never written"),
    )
}

/// The statement as this server writes it: parameters without numbers, and its own
/// words for a row that is there already.
pub(super) fn text(statement: &Statement) -> String {
    let (standard, conflict) = match &statement.conflict {
        Some(conflict) => (statement.sql.get(..conflict.at), Some(conflict)),
        None => (None, None),
    };
    let standard = standard.unwrap_or(&statement.sql);
    let mut text = String::with_capacity(statement.sql.len());
    let mut rest = standard.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '$' {
            text.push(character);
            continue;
        }
        // They are numbered in the order in which they appear.
        text.push('?');
        while rest.next_if(char::is_ascii_digit).is_some() {}
    }
    let Some(conflict) = conflict else { return text };
    text.push_str(" ON DUPLICATE KEY UPDATE ");
    let set: Vec<_> = if conflict.updates.is_empty() {
        conflict.key.iter().map(|column| format!("{column} = {column}")).collect()
    } else {
        // The server does not ask which key it is that exists already. Where it is
        // another one, the row of somebody else must not be overwritten: NULL is
        // refused in a key.
        let guard = |column: &String| {
            format!("{column} = IF({column} <=> VALUES({column}), {column}, NULL)")
        };
        let update = |column: &String| format!("{column} = VALUES({column})");
        conflict.key.iter().map(guard).chain(conflict.updates.iter().map(update)).collect()
    };
    text.push_str(&set.join(", "));
    text
}

fn parameters(statement: &Statement) -> Result<Params> {
    if statement.cells.is_empty() {
        return Ok(Params::Empty);
    }
    statement.cells.iter().map(value).collect::<Result<_>>().map(Params::Positional)
}

fn value(cell: &Cell) -> Result<Value> {
    Ok(match cell {
        Cell::Text(Some(text)) | Cell::Json(Some(text)) => Value::Bytes(text.as_bytes().to_vec()),
        Cell::Integer(Some(number)) => Value::Int(*number),
        Cell::Boolean(Some(value)) => Value::Int(i64::from(*value)),
        Cell::Time(Some(nanos)) => moment(&time_text(*nanos))
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a time cannot be stored"))?,
        _ => Value::NULL,
    })
}

/// A time of `time_text` in the parts that the server takes.
fn moment(text: &str) -> Option<Value> {
    let part = |from: usize, to: usize| text.get(from..to);
    // A year of five digits moves everything, and the server has none.
    if text.len() != "1970-01-01T00:00:00.000000Z".len() {
        return None;
    }
    Some(Value::Date(
        part(0, 4)?.parse().ok()?,
        part(5, 7)?.parse().ok()?,
        part(8, 10)?.parse().ok()?,
        part(11, 13)?.parse().ok()?,
        part(14, 16)?.parse().ok()?,
        part(17, 19)?.parse().ok()?,
        part(20, 26)?.parse().ok()?,
    ))
}

fn cell(value: Value) -> Result<Cell> {
    Ok(match value {
        Value::NULL => Cell::Text(None),
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cell::Text(Some(text)),
            Err(error) => return Err(damaged("bytes that are no text").with_source(error)),
        },
        Value::Int(number) => Cell::Integer(Some(number)),
        Value::UInt(number) => match i64::try_from(number) {
            Ok(number) => Cell::Integer(Some(number)),
            Err(error) => return Err(damaged("a number that is too large").with_source(error)),
        },
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let text = format!(
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
            );
            Cell::Time(Some(parse_time(&text)?))
        }
        Value::Float(_) | Value::Double(_) | Value::Time(..) => {
            return Err(damaged("a value of another type"));
        }
    })
}

#[async_trait]
impl Session for MysqlSession<'_> {
    async fn query(&mut self, statement: &Statement) -> Result<Vec<Vec<Cell>>> {
        let rows = self.rows(statement).await?;
        rows.into_iter().map(|row| row.unwrap().into_iter().map(cell).collect()).collect()
    }

    async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        self.counts.asked();
        let done = self.connection.exec_drop(text(statement), parameters(statement)?).await;
        done.map_err(|error| self.failed(error))?;
        Ok(self.connection.affected_rows())
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        let sql = match &self.collation {
            Some(exact) => Cow::Owned(sql.replace(INEXACT, exact)),
            None => Cow::Borrowed(sql),
        };
        self.counts.asked();
        self.connection.query_drop(&*sql).await.map_err(|error| self.failed(error))
    }

    async fn now(&mut self) -> Result<i128> {
        let found = self.query(&Statement::new("SELECT UTC_TIMESTAMP(6)")).await?;
        match found.into_iter().flatten().next() {
            Some(Cell::Time(Some(now))) => Ok(now),
            _ => Err(Error::new(ErrorKind::Internal, "the state store's server has no clock")),
        }
    }

    async fn has_table(&mut self, name: &str) -> Result<bool> {
        let statement = Statement::new(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE()",
        )
        .filter("table_name", Some(name));
        Ok(!self.query(&statement).await?.is_empty())
    }

    fn for_update(&self) -> &'static str {
        " FOR UPDATE"
    }

    fn has_value_lists(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_goes_there_and_back() {
        for nanos in [0, 1_796_000_000_123_456_000, 1_000, -1_000] {
            let stored = value(&Cell::Time(Some(nanos))).unwrap();
            assert_eq!(cell(stored).unwrap(), Cell::Time(Some(nanos)));
        }
        assert!(value(&Cell::Time(Some(i128::from(i64::MAX) * 1_000))).is_err());
    }

    #[test]
    fn an_insertion_that_meets_another_row_says_what_becomes_of_it() {
        let insert = || Statement::new("INSERT INTO t (a, b) VALUES ").tuple(vec!["x".into(); 2]);
        let replaced = text(&insert().or_replace("a, b", "a"));
        assert_eq!(
            replaced,
            "INSERT INTO t (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE \
            a = IF(a <=> VALUES(a), a, NULL), b = VALUES(b)"
        );
        let kept = text(&insert().or_nothing("a"));
        assert_eq!(kept, "INSERT INTO t (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = a");
    }
}
