//! What runs did.

use serde::Serialize;
use tidelake_model::{Result, RunRecord, TableRun};
use tidelake_state::RunFilter;

use crate::application::Application;

/// A run with its tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunDetails {
    /// The run.
    pub run: RunRecord,
    /// Its table runs, by table.
    pub tables: Vec<TableRun>,
}

/// The runs that a filter names, newest first, with their tables.
pub async fn status(app: &Application, filter: &RunFilter) -> Result<Vec<RunDetails>> {
    let mut details = vec![];
    for run in app.state.runs(filter).await? {
        let tables = app.state.table_runs(run.run_id).await?;
        details.push(RunDetails { run, tables });
    }
    Ok(details)
}
