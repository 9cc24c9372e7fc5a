//! MySQL or MariaDB as a source.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tidelake_connector::sql::check;
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, Counters, DiagnosedTable, FindRequest, Finding,
    Highest, HighestRequest, Reading, Slices, Source, SplitRequest, TableFilter,
};
use tidelake_model::{Result, Slice, Table};

use crate::catalogue;
use crate::clock::clock;
use crate::decode::DecodePlan;
use crate::diagnose::diagnose;
use crate::find::find;
use crate::highest::highest;
use crate::internal;
use crate::pool::Pool;
use crate::snapshot::Snapshots;
use crate::split::{Part, split, statement};

/// A server that is read from.
pub(crate) struct MysqlSource {
    pool: Arc<Pool>,
    snapshots: Arc<Snapshots>,
}

impl MysqlSource {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self { pool, snapshots: Arc::default() }
    }

    async fn read_part(&self, slice: &Slice) -> Result<Reading> {
        check(&slice.read)?;
        let part = Part::deserialize(&slice.part).map_err(|error| {
            internal("the slice is not one of this source's").with_source(error)
        })?;
        let schema = slice.read.schema();
        let counters = Counters::default();
        let cursor = match (&slice.read.cursor, &slice.read.range) {
            (Some(read), Some(_)) => read.cursor.columns().to_vec(),
            _ => vec![],
        };
        let plan = DecodePlan {
            schema: Arc::clone(&schema),
            wires: part.sent.iter().map(|sent| sent.wire).collect(),
            policies: slice.read.policies,
            batch_bytes: slice.read.batch_bytes,
            cursor,
            counters: counters.clone(),
        };
        let statement = statement(&slice.read, Some(&part));
        let (session, lent) = self.snapshots.lend(&part.snapshot).await?;
        tracing::debug!(slice = slice.number, %statement, "reading");
        let batches =
            session.read(&statement, plan, move |session| lent.give_back(session)).await?;
        Ok(Reading { schema, batches, counters })
    }
}

#[async_trait]
impl Source for MysqlSource {
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
            bytes_of_texts: true,
        }
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>> {
        let mut session = self.pool.get().await?;
        let database = self.pool.config.database.as_deref();
        let tables = catalogue::tables(&mut session, filter, database).await?;
        self.pool.put(session);
        Ok(tables)
    }

    async fn clock(&self, request: &ClockRequest) -> Result<ClockReading> {
        clock(&self.pool, request).await
    }

    async fn highest(&self, request: &HighestRequest) -> Result<Highest> {
        highest(&self.pool, request).await
    }

    async fn split(&self, request: &SplitRequest) -> Result<Slices> {
        split(&self.pool, &self.snapshots, request).await
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
        diagnose(&self.pool, tables).await
    }

    fn statement(&self, slice: &Slice) -> String {
        statement(&slice.read, Part::deserialize(&slice.part).ok().as_ref())
    }

    fn round_trips(&self) -> u64 {
        self.pool.round_trips()
    }
}
