//! `verify`: the committed files are read back and compared with the source.
//!
//! Both sides are read once and folded into sums, by column and by buckets of
//! keys. Where all sums agree nothing else is done. Rows of buckets that differ
//! are read once more and put against each other, and named.

mod bounds;
pub(crate) mod cell;
mod collect;
mod comparison;
mod digest;
mod files;
pub(crate) mod finding;
mod hash;
mod lookup;
mod matching;
mod repair;
mod report;
mod rows;
mod sides;
mod table;

use std::sync::Arc;

use tidelake_connector::Source;
use tidelake_lake::Lake;
use tidelake_model::{
    Error, ErrorKind, Notice, NoticeCode, Result, SyncConfig, TableName, TableRunStatus,
};
use tokio_util::sync::CancellationToken;

use crate::application::Application;
use crate::events::{Event, Events};
use crate::run::{connect_source, readers};
use crate::tables::{SelectedTable, tables_of};

pub use files::FileFinding;
pub use finding::{ColumnDifference, FilePlace, Finding, Shown};
pub use matching::{Counts, Difference};
pub use repair::{Repair, RepairedPiece};
pub use report::{ColumnChecksum, TableVerification, Verified, VerifyReport};

use table::{Outcome, Work};

/// What a user asks of a verification.
#[derive(Clone)]
pub struct VerifyRequest {
    /// Environment.
    pub env: String,
    /// The sync.
    pub sync_id: String,
    /// Tables, as `schema.table` or `table`; all of the sync when empty.
    pub tables: Vec<String>,
    /// How many rows that differ are named, errors and others each.
    pub limit: usize,
    /// Whether the values of a row that differs are shown.
    pub values: bool,
    /// Whether the checksum of every file is compared with its manifest.
    pub checksums: bool,
    /// Whether what differs is read again.
    pub repair: bool,
    /// Cores of the machine.
    pub cores: u32,
    /// Cancelled when the user interrupts.
    pub cancel: CancellationToken,
    /// Takes progress.
    pub events: Arc<dyn Events>,
}

/// What all tables of a verification share.
struct Context<'a> {
    app: &'a Application,
    request: &'a VerifyRequest,
    sync: &'a SyncConfig,
    source: Arc<dyn Source>,
    lake: Lake,
    degree: u32,
    readers: u32,
}

/// Verifies the tables of a sync, one after another. An error is one of the sync
/// as a whole; what is wrong with a table stands in the report.
pub async fn verify(app: &Application, request: VerifyRequest) -> Result<VerifyReport> {
    let sync = app.state.sync(&request.env, &request.sync_id).await?;
    let source = connect_source(app, &sync).await?;
    let lake = Lake::new(app.storages.open(&sync.target.location).await?);
    let selected = choose(tables_of(&sync, source.as_ref()).await?, &request.tables)?;
    let (degree, readers) = readers(&sync, request.cores);
    let context = Context { app, request: &request, sync: &sync, source, lake, degree, readers };
    let mut tables = vec![];
    for table in selected {
        if request.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Interrupted, "the verification was interrupted"));
        }
        tables.push(match table {
            Ok(table) => context.table(&table).await,
            Err(error) => {
                let name = error.table().cloned().unwrap_or_else(|| TableName::new("", ""));
                failed(TableVerification::unstarted(&name, "incremental"), &error)
            }
        });
    }
    if request.cancel.is_cancelled() {
        return Err(Error::new(ErrorKind::Interrupted, "the verification was interrupted"));
    }
    tables.sort_by(|left, right| left.table.cmp(&right.table));
    Ok(VerifyReport { sync_id: sync.sync_id.clone(), tables })
}

impl Context<'_> {
    async fn table(&self, selected: &SelectedTable) -> TableVerification {
        let name = &selected.table.name;
        let events = &self.request.events;
        let estimated_rows = selected.table.estimated_rows.map(|rows| rows.saturating_mul(2));
        events.event(&Event::TableStarted { table: name.clone(), estimated_rows });
        let lake = self.lake.table(self.sync.target.sub_path.as_deref(), name);
        let work = Work { context: self, selected, lake };
        let empty = TableVerification::new(selected, &work.lake);
        // Boxed: a run inside a verification makes large futures.
        let mut report = match Box::pin(work.verify()).await {
            Ok(outcome) => Box::pin(self.mend(&work, outcome)).await,
            Err(error) => failed(empty, &error.in_table(name)),
        };
        report.notices.dedup();
        let (status, rows) = (TableRunStatus::Completed, report.source_rows);
        events.event(&Event::TableFinished { table: name.clone(), status, rows });
        report
    }

    /// Repairs what differs where that was asked for, and verifies again.
    async fn mend(&self, work: &Work<'_>, outcome: Outcome) -> TableVerification {
        let Outcome { report, repair: plan } = outcome;
        if !self.request.repair || report.outcome != Verified::Differs {
            return report;
        }
        let name = &work.selected.table.name;
        let mended = match repair::repair(self, work.selected, &plan, report.counts).await {
            Ok(mended) => mended,
            Err(error) => return failed(report, &error.in_table(name)),
        };
        let mut after = match Box::pin(work.verify()).await {
            Ok(outcome) => outcome.report,
            Err(error) => failed(report, &error.in_table(name)),
        };
        if plan.without_cursor > 0 {
            after.notices.push(Notice::new(
                NoticeCode::NullCursor,
                format!(
                    "{} row(s) without a cursor value differ and lie in no range; reset the \
                     watermark to read the table anew",
                    plan.without_cursor
                ),
            ));
        }
        after.repair = Some(mended);
        after
    }
}

fn failed(report: TableVerification, error: &Error) -> TableVerification {
    TableVerification { outcome: Verified::Failed, error: Some(error.into()), ..report }
}

/// The tables of these names; all where none is named.
fn choose(
    tables: Vec<Result<SelectedTable>>,
    wanted: &[String],
) -> Result<Vec<Result<SelectedTable>>> {
    let name_of = |table: &Result<SelectedTable>| match table {
        Ok(table) => Some(table.table.name.clone()),
        Err(error) => error.table().cloned(),
    };
    let names: Vec<_> = tables.iter().filter_map(name_of).collect();
    for wanted in wanted {
        if !names.iter().any(|name| is_named(name, wanted)) {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("the table {wanted} is not among the tables of the sync"),
            )
            .with_hint(format!("there are: {}", names.join(", "))));
        }
    }
    let is_wanted = |table: &Result<SelectedTable>| {
        wanted.is_empty()
            || name_of(table).is_some_and(|name| wanted.iter().any(|text| is_named(&name, text)))
    };
    Ok(tables.into_iter().filter(is_wanted).collect())
}

fn is_named(name: &TableName, text: &str) -> bool {
    name.to_string() == text || name.table == text
}
