//! Statements in one transaction. They are sent with the types of their values
//! and are not prepared, which takes one round trip and suits poolers.

use async_trait::async_trait;
use bytes::BytesMut;
use tidelake_model::{Error, ErrorKind, Result};
use tokio_postgres::Client;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::error::{self, Failure, understood};
use crate::sql::{Cell, Session, Statement};

type Cause = Box<dyn std::error::Error + Sync + Send>;

/// The server counts microseconds from the year 2000.
const EPOCH_MICROS: i128 = 946_684_800_000_000;
const NANOS_PER_MICRO: i128 = 1_000;

pub(super) struct PostgresSession<'a> {
    client: &'a Client,
    /// Where the store is, for messages.
    location: &'a str,
    /// What went wrong last.
    pub(super) failure: Option<Failure>,
}

impl<'a> PostgresSession<'a> {
    pub(super) fn new(client: &'a Client, location: &'a str) -> Self {
        Self { client, location, failure: None }
    }

    fn failed(&mut self, error: tokio_postgres::Error) -> Error {
        self.failure = Some(error::failure(&error));
        understood(error, self.location)
    }
}

fn type_of(cell: &Cell) -> Type {
    match cell {
        Cell::Text(_) => Type::TEXT,
        Cell::Integer(_) => Type::INT8,
        Cell::Boolean(_) => Type::BOOL,
        Cell::Time(_) => Type::TIMESTAMPTZ,
        Cell::Json(_) => Type::JSON,
    }
}

impl ToSql for Cell {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Cause> {
        match self {
            Self::Text(Some(text)) | Self::Json(Some(text)) => {
                out.extend_from_slice(text.as_bytes());
            }
            Self::Integer(Some(number)) => out.extend_from_slice(&number.to_be_bytes()),
            Self::Boolean(Some(value)) => out.extend_from_slice(&[u8::from(*value)]),
            Self::Time(Some(nanos)) => {
                let micros = i64::try_from(nanos.div_euclid(NANOS_PER_MICRO) - EPOCH_MICROS)?;
                out.extend_from_slice(&micros.to_be_bytes());
            }
            _ => return Ok(IsNull::Yes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(type_: &Type, raw: &'a [u8]) -> Result<Self, Cause> {
        Ok(match *type_ {
            Type::INT4 => Self::Integer(Some(i32::from_be_bytes(raw.try_into()?).into())),
            Type::INT8 => Self::Integer(Some(i64::from_be_bytes(raw.try_into()?))),
            Type::BOOL => Self::Boolean(Some(raw.first() == Some(&1))),
            Type::TIMESTAMPTZ => {
                let micros = i128::from(i64::from_be_bytes(raw.try_into()?)) + EPOCH_MICROS;
                Self::Time(Some(micros * NANOS_PER_MICRO))
            }
            _ => Self::Text(Some(std::str::from_utf8(raw)?.to_owned())),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Cause> {
        Ok(Self::Text(None))
    }

    fn accepts(type_: &Type) -> bool {
        matches!(
            *type_,
            Type::INT4
                | Type::INT8
                | Type::BOOL
                | Type::TIMESTAMPTZ
                | Type::TEXT
                | Type::VARCHAR
                | Type::JSON
        )
    }
}

fn typed(cells: &[Cell]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    cells
        .iter()
        .map(|cell| {
            let value: &(dyn ToSql + Sync) = cell;
            (value, type_of(cell))
        })
        .collect()
}

#[async_trait]
impl Session for PostgresSession<'_> {
    async fn query(&mut self, statement: &Statement) -> Result<Vec<Vec<Cell>>> {
        let found = self.client.query_typed(&statement.sql, &typed(&statement.cells)).await;
        let rows = found.map_err(|error| self.failed(error))?;
        let cells = |row: &tokio_postgres::Row| {
            (0..row.len()).map(|at| row.try_get(at)).collect::<Result<Vec<Cell>, _>>()
        };
        rows.iter().map(cells).collect::<Result<_, _>>().map_err(|error| self.failed(error))
    }

    async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        let touched = self.client.execute_typed(&statement.sql, &typed(&statement.cells)).await;
        touched.map_err(|error| self.failed(error))
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.map_err(|error| self.failed(error))
    }

    async fn now(&mut self) -> Result<i128> {
        let found = self.query(&Statement::new("SELECT clock_timestamp()")).await?;
        match found.into_iter().flatten().next() {
            Some(Cell::Time(Some(now))) => Ok(now),
            _ => Err(Error::new(ErrorKind::Internal, "the state store's server has no clock")),
        }
    }

    async fn has_table(&mut self, name: &str) -> Result<bool> {
        let statement = Statement::new(
            "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema()",
        )
        .filter("tablename", Some(name));
        Ok(!self.query(&statement).await?.is_empty())
    }

    fn for_update(&self) -> &'static str {
        " FOR UPDATE"
    }
}
