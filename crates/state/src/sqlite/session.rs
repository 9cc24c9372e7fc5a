//! Statements on one connection. Nothing here waits: every future is ready when
//! it is first polled.

use async_trait::async_trait;
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use tidelake_model::{Error, ErrorKind, Result};

use super::error::understood;
use crate::sql::reader::parse_time;
use crate::sql::{Cell, Session, Statement};
use crate::time::time_text;

pub(super) struct SqliteSession<'a> {
    pub(super) connection: &'a mut Connection,
    /// Where the store is, for messages.
    pub(super) location: &'a str,
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text(Some(text)) | Self::Json(Some(text)) => text.as_str().into(),
            Self::Integer(Some(number)) => (*number).into(),
            Self::Boolean(Some(value)) => (*value).into(),
            Self::Time(Some(time)) => ToSqlOutput::Owned(Value::Text(time_text(*time))),
            _ => ToSqlOutput::Owned(Value::Null),
        })
    }
}

fn read(value: ValueRef<'_>) -> Result<Cell> {
    match value {
        ValueRef::Null => Ok(Cell::Text(None)),
        ValueRef::Integer(number) => Ok(Cell::Integer(Some(number))),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cell::Text(Some(text.to_owned()))),
            Err(error) => Err(damaged().with_source(error)),
        },
        ValueRef::Real(_) | ValueRef::Blob(_) => Err(damaged()),
    }
}

fn damaged() -> Error {
    Error::new(
        ErrorKind::Internal,
        "the state store holds a value of a type that was never written",
    )
}

impl SqliteSession<'_> {
    fn select(&mut self, statement: &Statement) -> Result<Vec<Vec<Cell>>> {
        let failed = |error| understood(error, self.location);
        let mut prepared = self.connection.prepare_cached(&statement.sql).map_err(failed)?;
        let columns = prepared.column_count();
        let parameters = rusqlite::params_from_iter(&statement.cells);
        let mut rows = prepared.query(parameters).map_err(failed)?;
        let mut found = vec![];
        while let Some(row) = rows.next().map_err(failed)? {
            let cell = |at| read(row.get_ref(at).map_err(failed)?);
            found.push((0..columns).map(cell).collect::<Result<Vec<_>>>()?);
        }
        Ok(found)
    }
}

#[async_trait]
impl Session for SqliteSession<'_> {
    async fn query(&mut self, statement: &Statement) -> Result<Vec<Vec<Cell>>> {
        self.select(statement)
    }

    async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        let failed = |error| understood(error, self.location);
        let mut prepared = self.connection.prepare_cached(&statement.sql).map_err(failed)?;
        let parameters = rusqlite::params_from_iter(&statement.cells);
        let touched = prepared.execute(parameters).map_err(failed)?;
        Ok(u64::try_from(touched).unwrap_or(u64::MAX))
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|error| understood(error, self.location))
    }

    async fn now(&mut self) -> Result<i128> {
        let statement = Statement::new("SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now')");
        match self.select(&statement)?.pop().and_then(|mut cells| cells.pop()) {
            Some(Cell::Text(Some(text))) => parse_time(&text),
            _ => Err(damaged()),
        }
    }

    async fn has_table(&mut self, name: &str) -> Result<bool> {
        let statement = Statement::new("SELECT 1 FROM sqlite_master WHERE type = 'table'")
            .filter("name", Some(name));
        Ok(!self.select(&statement)?.is_empty())
    }

    fn for_update(&self) -> &'static str {
        ""
    }
}
