//! Statements in one transaction. They are sent with the types of their values
//! and are not prepared, which takes one round trip and suits poolers. What nobody
//! waits for, the beginning and most writes, goes with the next statement.

use async_trait::async_trait;
use bytes::BytesMut;
use futures::future::BoxFuture;
use tidelake_model::{Error, ErrorKind, Result};
use tokio_postgres::Client;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::error::{self, Failure, understood};
use crate::backend::Counts;
use crate::sql::{Cell, Session, Statement};

type Cause = Box<dyn std::error::Error + Sync + Send>;

/// The server counts microseconds from the year 2000.
const EPOCH_MICROS: i128 = 946_684_800_000_000;
const NANOS_PER_MICRO: i128 = 1_000;

type Sent<'a> = BoxFuture<'a, Result<(), tokio_postgres::Error>>;

pub(super) struct PostgresSession<'a> {
    client: &'a Client,
    /// Where the store is, for messages.
    location: &'a str,
    counts: &'a Counts,
    /// Statements that were sent and whose answers are still to come, in order.
    sent: Vec<Sent<'a>>,
    /// The time after the last lock.
    now: Option<i128>,
    /// What went wrong last.
    pub(super) failure: Option<Failure>,
}

impl<'a> PostgresSession<'a> {
    pub(super) fn new(client: &'a Client, location: &'a str, counts: &'a Counts) -> Self {
        Self { client, location, counts, sent: vec![], now: None, failure: None }
    }

    fn failed(&mut self, error: tokio_postgres::Error) -> Error {
        self.failure = Some(error::failure(&error));
        understood(error, self.location)
    }

    /// Sends something; its answer is waited for with the next one.
    async fn post(&mut self, mut sent: Sent<'a>) -> Result<()> {
        // A statement is on its way once it was polled.
        match futures::poll!(&mut sent) {
            std::task::Poll::Pending => {
                self.sent.push(sent);
                Ok(())
            }
            std::task::Poll::Ready(done) => done.map_err(|error| self.failed(error)),
        }
    }

    /// Waits for an answer and for all before it. The first error is the cause of
    /// those that follow.
    async fn answer<T>(
        &mut self,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        self.counts.asked();
        let mut asked = std::pin::pin!(asked);
        let early = futures::poll!(&mut asked);
        let mut first = None;
        for sent in std::mem::take(&mut self.sent) {
            if let Err(error) = sent.await {
                first = first.or(Some(error));
            }
        }
        let answer = match early {
            std::task::Poll::Ready(answer) => answer,
            std::task::Poll::Pending => asked.await,
        };
        match first {
            Some(error) => Err(self.failed(error)),
            None => answer.map_err(|error| self.failed(error)),
        }
    }

    pub(super) async fn begin(&mut self, statements: String) -> Result<()> {
        let client = self.client;
        self.post(Box::pin(async move { client.batch_execute(&statements).await })).await
    }

    /// Commits; with the failure where that was not done. A connection that is lost
    /// on the way leaves open what became of it, and nothing is run again then.
    pub(super) async fn commit(&mut self) -> Result<(), (Error, Option<Failure>)> {
        self.failure = None;
        let client = self.client;
        match self.answer(client.batch_execute("COMMIT")).await {
            Ok(()) => Ok(()),
            Err(error) if self.failure == Some(Failure::Cut) => {
                let error = Error::new(
                    ErrorKind::Unavailable,
                    "the connection to the state store was lost during a commit, whose outcome is unknown",
                )
                .with_hint("run it again; what was not finished is taken up")
                .with_source(error);
                Err((error, None))
            }
            Err(error) => Err((error, self.failure)),
        }
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

const CLOCK: &str = "SELECT clock_timestamp()";

fn time_of(found: Vec<Vec<Cell>>) -> Result<i128> {
    match found.into_iter().flatten().next() {
        Some(Cell::Time(Some(now))) => Ok(now),
        _ => Err(Error::new(ErrorKind::Internal, "the state store's server has no clock")),
    }
}

impl PostgresSession<'_> {
    fn cells(&mut self, rows: &[tokio_postgres::Row]) -> Result<Vec<Vec<Cell>>> {
        let cells = |row: &tokio_postgres::Row| {
            (0..row.len()).map(|at| row.try_get(at)).collect::<Result<Vec<Cell>, _>>()
        };
        rows.iter().map(cells).collect::<Result<_, _>>().map_err(|error| self.failed(error))
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
        let (client, parameters) = (self.client, typed(&statement.cells));
        let rows = self.answer(client.query_typed(&statement.sql, &parameters)).await?;
        self.cells(&rows)
    }

    async fn execute(&mut self, statement: &Statement) -> Result<u64> {
        let (client, parameters) = (self.client, typed(&statement.cells));
        self.answer(client.execute_typed(&statement.sql, &parameters)).await
    }

    async fn lock(&mut self, statement: &Statement) -> Result<Vec<Vec<Cell>>> {
        let (client, parameters) = (self.client, typed(&statement.cells));
        let asked = async {
            let (rows, clock) = futures::join!(
                client.query_typed(&statement.sql, &parameters),
                client.query_typed(CLOCK, &[]),
            );
            Ok((rows?, clock?))
        };
        let (rows, clock) = self.answer(asked).await?;
        let clock = self.cells(&clock)?;
        self.now = Some(time_of(clock)?);
        self.cells(&rows)
    }

    async fn send(&mut self, statement: Statement) -> Result<()> {
        let client = self.client;
        self.post(Box::pin(async move {
            client.execute_typed(&statement.sql, &typed(&statement.cells)).await.map(drop)
        }))
        .await
    }

    async fn batch(&mut self, sql: &str) -> Result<()> {
        let client = self.client;
        self.answer(client.batch_execute(sql)).await
    }

    async fn now(&mut self) -> Result<i128> {
        if let Some(now) = self.now {
            return Ok(now);
        }
        time_of(self.query(&Statement::new(CLOCK)).await?)
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
