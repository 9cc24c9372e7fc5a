//! PostgreSQL as a source.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use serde::Deserialize;
use tidelake_connector::sql::{check, quote_text};
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, Counters, DiagnosedTable, FindRequest, Finding,
    Highest, HighestRequest, Reading, Slices, Source, SplitRequest, TableFilter,
};
use tidelake_model::{Again, Error, ErrorKind, Result, Slice, Table};

use crate::clock::clock;
use crate::copy::CopyDecoder;
use crate::diagnose::diagnose;
use crate::failure::{ServerError, failure};
use crate::find::find;
use crate::highest::highest;
use crate::internal;
use crate::pool::Pool;
use crate::reader::CopyReader;
use crate::split::{Part, split, statement};
use crate::stall::watched;
use crate::{catalogue, session::Session};

/// A database that is read from.
pub(crate) struct PostgresSource {
    pool: Arc<Pool>,
}

impl PostgresSource {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self { pool }
    }

    async fn read_part(&self, slice: &Slice) -> Result<Reading> {
        check(&slice.read)?;
        let part = Part::deserialize(&slice.part).map_err(|error| {
            internal("the slice is not one of this source's").with_source(error)
        })?;
        if part.database != self.pool.config.database {
            let message = format!("the slice belongs to the database {:?}", part.database);
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        let schema = slice.read.schema();
        let counters = Counters::default();
        let decoder = CopyDecoder::new(
            &schema,
            &part.wires,
            slice.read.policies,
            slice.read.batch_bytes,
            counters.clone(),
        )?;
        let decoder = match (&slice.read.cursor, &slice.read.range) {
            (Some(read), Some(_)) => decoder.with_cursor(read.cursor.columns()),
            _ => decoder,
        };
        let statement =
            format!("COPY ({}) TO STDOUT (FORMAT binary)", statement(&slice.read, Some(&part)));
        let parked = self.pool.unpark(&part.snapshot);
        let is_own = parked.is_some();
        let session = match parked {
            Some(session) => session,
            None => {
                let session = self.pool.get().await?;
                enter(&session, &part.snapshot).await?;
                session
            }
        };
        tracing::debug!(slice = slice.number, %statement, "reading");
        // The snapshot is lost with the connection that keeps it.
        let lost = move |error: Error| match error.again() {
            Again::Same if is_own => error.with_again(Again::Afresh),
            _ => error,
        };
        let reader = CopyReader::start(session, Arc::clone(&self.pool), &statement, decoder).await;
        let batches = reader.map_err(lost)?.into_stream().map_err(lost);
        Ok(Reading { schema, batches: Box::pin(batches), counters })
    }
}

/// Begins a transaction in a snapshot that another session exported.
async fn enter(session: &Session, snapshot: &str) -> Result<()> {
    let statements = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {}",
        quote_text(snapshot)
    );
    let doing = "the snapshot cannot be entered";
    session.run_pinned(&statements).await.map_err(|error| match error.as_db_error() {
        // It ended with the transaction that exported it.
        Some(server) if matches!(server.code().code(), "22023" | "55000" | "42704" | "58P01") => {
            Error::new(ErrorKind::Unavailable, "the snapshot of this read has ended")
                .with_again(Again::Afresh)
                .with_source(ServerError::from(server))
        }
        _ => failure(error, doing),
    })?
}

#[async_trait]
impl Source for PostgresSource {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rows_commit_out_of_order: true,
            has_fence: true,
            parallel_slices: true,
            composite_cursor: true,
            fallback_cursor: true,
            schemas: true,
            open_time_digits: false,
            decimals_of_floats: false,
            bytes_of_texts: false,
        }
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>> {
        watched(&self.pool, Duration::ZERO, async {
            let session = self.pool.get().await?;
            let found = catalogue::tables(&session, filter).await;
            self.pool.put(session);
            let (tables, known): (Vec<_>, Vec<_>) = found?.into_iter().unzip();
            let names = tables.iter().map(|table: &Table| table.name.clone());
            self.pool.remember(names.zip(known));
            Ok(tables)
        })
        .await
    }

    async fn clock(&self, request: &ClockRequest) -> Result<ClockReading> {
        watched(&self.pool, request.wait, clock(&self.pool, request)).await
    }

    async fn highest(&self, request: &HighestRequest) -> Result<Highest> {
        watched(&self.pool, Duration::ZERO, highest(&self.pool, request)).await
    }

    async fn split(&self, request: &SplitRequest) -> Result<Slices> {
        watched(&self.pool, Duration::ZERO, split(&self.pool, request)).await
    }

    async fn read(&self, slice: &Slice) -> Result<Reading> {
        let reading = self.read_part(slice).await;
        reading.map_err(|error| error.in_table(&slice.read.table).in_slice(slice.number))
    }

    async fn find(&self, request: &FindRequest) -> Result<Reading> {
        let found = find(&self.pool, request).await;
        found.map_err(|error| error.in_table(&request.read.table))
    }

    async fn diagnose(&self, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
        watched(&self.pool, Duration::ZERO, diagnose(&self.pool, tables)).await
    }

    fn statement(&self, slice: &Slice) -> String {
        statement(&slice.read, Part::deserialize(&slice.part).ok().as_ref())
    }

    fn round_trips(&self) -> u64 {
        self.pool.trips.count()
    }
}
