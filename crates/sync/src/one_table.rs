//! Work on one table of a sync outside its ordinary runs: each piece of work is
//! a run of its own, under a lease of its own.

use std::sync::Arc;

use tidelake_lake::TableLake;
use tidelake_model::{Error, ErrorKind, Result, RunId, Step, TableName};
use tokio_util::sync::CancellationToken;

use crate::application::Application;
use crate::events::{Event, Events};
use crate::metadata;
use crate::run::{
    OnMismatch, RunMode, RunReport, RunRequest, Systems, begin, connect, connect_source, context,
    renew_leases, status_of,
};
use crate::table_run::{Task, run_table};
use crate::tables::{SelectedTable, tables_of};
use crate::timeline::Timeline;

/// Which table is worked on, and for whom.
#[derive(Clone)]
pub struct TableRequest {
    /// Environment.
    pub env: String,
    /// The sync.
    pub sync_id: String,
    /// The table, as `schema.table` or, where only one schema has it, `table`.
    pub table: String,
    /// Cores of the machine, for the automatic number of readers.
    pub cores: u32,
    /// Cancelled when the user interrupts.
    pub cancel: CancellationToken,
    /// Takes progress.
    pub events: Arc<dyn Events>,
}

/// A table of a sync with the systems it lies between.
pub(crate) struct OneTable<'a> {
    pub(crate) app: &'a Application,
    pub(crate) request: TableRequest,
    pub(crate) systems: Systems,
    pub(crate) selected: SelectedTable,
    /// All tables of the sync.
    names: Vec<TableName>,
}

impl<'a> OneTable<'a> {
    /// Connects and finds the table.
    pub(crate) async fn open(app: &'a Application, request: TableRequest) -> Result<Self> {
        let sync = app.state.sync(&request.env, &request.sync_id).await?;
        let timeline = Timeline::new(app.began);
        timeline.started();
        // A range below the watermark needs no fence.
        let systems = Box::pin(connect(app, sync, &timeline, false));
        let systems = timeline.of(None, "connect", systems).await?;
        let tables = tables_of(&systems.sync, systems.source.as_ref()).await?;
        let names = tables.iter().filter_map(name_of).collect();
        let selected = find(tables, &request.table)?;
        Ok(Self { app, request, systems, selected, names })
    }

    pub(crate) fn name(&self) -> &TableName {
        &self.selected.table.name
    }

    pub(crate) fn lake(&self) -> TableLake {
        let Systems { lake, sync, .. } = &self.systems;
        lake.table(sync.target.sub_path.as_deref(), self.name())
    }

    /// One run: lease, work, end.
    pub(crate) async fn run(&self, task: &Task) -> Result<RunReport> {
        self.run_as(self.app.host.new_run_id(), task).await
    }

    /// The same, as a run whose id is known already.
    pub(crate) async fn run_as(&self, run_id: RunId, task: &Task) -> Result<RunReport> {
        let Self { app, request, systems, selected, names } = self;
        let begun = begin(app, &systems.sync, run_id, std::slice::from_ref(selected)).await?;
        app.faults.after(Step::Lease, None).await?;
        request
            .events
            .event(&Event::RunStarted { run_id, tables: vec![selected.table.name.clone()] });
        let run_request = RunRequest {
            env: request.env.clone(),
            sync_id: request.sync_id.clone(),
            mode: RunMode::Whole,
            resume: None,
            on_mismatch: OnMismatch::Refuse,
            reset_watermarks: false,
            cores: request.cores,
            cancel: request.cancel.clone(),
            events: Arc::clone(&request.events),
        };
        let context = context(app, run_request, systems.clone(), &begun);
        let state = begun.tables.into_iter().next().ok_or_else(|| {
            Error::new(ErrorKind::Internal, "a lease was given for no table").in_run(run_id)
        })?;
        let work = Box::pin(run_table(&context, selected.clone(), state, task));
        let report = tokio::select! {
            biased;
            report = work => report,
            never = renew_leases(&context) => match never {},
        };
        let tables = vec![report];
        let notices = metadata::renew(&context, &tables, names).await;
        let status = status_of(&tables, request.cancel.is_cancelled());
        let error = tables.iter().find_map(|table| table.error.as_ref());
        app.state.finish_run(run_id, status, error.map(|error| error.message.as_str())).await?;
        app.faults.after(Step::Finished, None).await?;
        context.tell_timeline(&systems.objects);
        let sync_id = request.sync_id.clone();
        Ok(RunReport { run_id, sync_id, status, tables, notices })
    }
}

/// The tables of a sync.
pub(crate) async fn table_names(app: &Application, request: &TableRequest) -> Result<Vec<String>> {
    let sync = app.state.sync(&request.env, &request.sync_id).await?;
    let source = connect_source(app, &sync).await?;
    let tables = tables_of(&sync, source.as_ref()).await?;
    Ok(tables.iter().filter_map(name_of).map(|name| name.to_string()).collect())
}

fn name_of(table: &Result<SelectedTable>) -> Option<TableName> {
    match table {
        Ok(table) => Some(table.table.name.clone()),
        Err(error) => error.table().cloned(),
    }
}

/// The table of that name, with its schema or without.
pub(crate) fn find(tables: Vec<Result<SelectedTable>>, wanted: &str) -> Result<SelectedTable> {
    let mut names = vec![];
    let mut exact = vec![];
    let mut alike = vec![];
    for table in tables {
        let Some(name) = name_of(&table) else { continue };
        if name.to_string() == wanted {
            exact.push(table);
        } else if name.table == wanted {
            alike.push(table);
        }
        names.push(name.to_string());
    }
    let mut found = if exact.is_empty() { alike } else { exact };
    match (found.pop(), found.len()) {
        (Some(only), 0) => only,
        (None, _) => Err(Error::new(
            ErrorKind::NotFound,
            format!("the table {wanted} is not among the tables of the sync"),
        )
        .with_hint(format!("there are: {}", names.join(", ")))),
        (Some(_), _) => Err(Error::new(
            ErrorKind::Configuration,
            format!("several schemas have a table {wanted}"),
        )
        .with_hint("name it with its schema, as schema.table")),
    }
}
