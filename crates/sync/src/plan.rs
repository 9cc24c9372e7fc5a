//! What the next sync would do. Reads, never writes.

use serde::Serialize;
use tidelake_connector::{Source, SplitRequest};
use tidelake_lake::{Lake, TableLake};
use tidelake_model::{HeldLease, Notice, NoticeCode, Result, SyncConfig, TableName};
use tidelake_state::LockFilter;
use tidelake_watermark::Progress;

use crate::application::Application;
use crate::columns::{Shares, column_notices, table_read};
use crate::create::watermark_settings;
use crate::drift::as_planned;
use crate::primary::connect_primary;
use crate::run::{ErrorReport, connect_source, degree_of, readers};
use crate::tables::{SelectedTable, tables_of};
use crate::watermarks::stored;
use crate::window::{Fixed, Fixer, describe, whole};

/// What a sync would do now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The sync.
    pub sync_id: String,
    /// Its tables, by name.
    pub tables: Vec<TablePlan>,
}

/// What a sync would do with a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TablePlan {
    /// The table.
    pub table: TableName,
    /// `incremental` or `full`.
    pub mode: &'static str,
    /// The cursor, as it is written on the command line.
    pub cursor: Option<String>,
    /// The window in words; `None` where nothing would be read.
    pub window: Option<String>,
    /// The statements that would read it.
    pub sql: Vec<String>,
    /// Rows of the table as the catalogue estimates them.
    pub estimated_rows: Option<u64>,
    /// Bytes of the table as the catalogue estimates them.
    pub estimated_bytes: Option<u64>,
    /// Pieces that would be read side by side.
    pub slices: u32,
    /// The table's folder.
    pub target: String,
    /// Who holds the table now.
    pub lease: Option<HeldLease>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// Why it cannot be planned.
    pub error: Option<ErrorReport>,
}

/// Plans every table of a sync.
pub async fn plan(app: &Application, env: &str, sync_id: &str, cores: u32) -> Result<Plan> {
    let sync = app.state.sync(env, sync_id).await?;
    let source = connect_source(app, &sync).await?;
    let primary = connect_primary(app, &sync).await?;
    let lake = Lake::new(app.storages.open(&sync.target.location).await?);
    let filter =
        LockFilter { env: Some(env.into()), scope: Some(sync_id.into()), ..Default::default() };
    let locks = app.state.locks(&filter).await?;
    let sources = (source.as_ref(), primary.as_deref());
    let mut tables = vec![];
    for table in tables_of(&sync, source.as_ref()).await? {
        let selected = match table {
            Ok(selected) => selected,
            Err(error) => {
                let name = error.table().cloned().unwrap_or_else(|| TableName::new("", ""));
                let mut plan = empty_plan(&name, "incremental");
                plan.error = Some((&error).into());
                tables.push(plan);
                continue;
            }
        };
        let name = selected.table.name.clone();
        let mut plan = empty_plan(&name, selected.mode());
        plan.cursor = selected.cursor.as_ref().map(|found| found.settings.cursor.to_string());
        plan.estimated_rows = selected.table.estimated_rows;
        plan.estimated_bytes = selected.table.estimated_bytes;
        let folder = lake.table(sync.target.sub_path.as_deref(), &name);
        plan.target = folder.location();
        plan.lease = locks.iter().find(|lock| lock.key.table.as_ref() == Some(&name)).cloned();
        plan.notices = column_notices(&selected);
        if let Err(error) =
            plan_table(app, &sync, sources, &folder, &selected, cores, &mut plan).await
        {
            plan.error = Some((&error.in_table(&name)).into());
        }
        tables.push(plan);
    }
    Ok(Plan { sync_id: sync.sync_id, tables })
}

fn empty_plan(table: &TableName, mode: &'static str) -> TablePlan {
    TablePlan {
        table: table.clone(),
        mode,
        cursor: None,
        window: None,
        sql: vec![],
        estimated_rows: None,
        estimated_bytes: None,
        slices: 0,
        target: String::new(),
        lease: None,
        notices: vec![],
        error: None,
    }
}

async fn plan_table(
    app: &Application,
    sync: &SyncConfig,
    (source, primary): (&dyn Source, Option<&dyn Source>),
    lake: &TableLake,
    selected: &SelectedTable,
    cores: u32,
    plan: &mut TablePlan,
) -> Result<()> {
    let name = &selected.table.name;
    let window = match &selected.cursor {
        None => whole(),
        Some(cursor) => {
            let settings = watermark_settings(&cursor.settings)?;
            let stored = stored(app, sync, name, &settings.column).await?;
            let progress: Progress = stored.map_or(settings.initial, |record| record.progress);
            let fixer = Fixer { sync, source, primary, table: name, cursor, may_wait: false };
            let Fixed { window, notices, .. } = fixer.fix(&progress, None, false).await?;
            plan.notices.extend(notices);
            match window {
                None => return Ok(()),
                Some(window) => window,
            }
        }
    };
    plan.window = Some(describe(&window));
    if window.range.as_ref().is_some_and(|range| range.is_empty().unwrap_or(false)) {
        plan.notices.push(Notice::new(NoticeCode::Setting, "the window is empty"));
        return Ok(());
    }
    let (selected, notices) = as_planned(sync.schema_drift, lake, selected, &window).await?;
    let selected = &selected;
    plan.notices.extend(notices);
    let (degree, readers) = readers(sync, cores);
    let request = SplitRequest {
        read: table_read(sync, selected, &window, Shares::of(sync.memory_limit, readers)),
        degree: degree_of(sync, selected, &window, degree),
        method: selected.read.method,
        key: selected.read.key.clone(),
    };
    let slices = source.split(&request).await?;
    plan.slices = u32::try_from(slices.slices.len()).unwrap_or(u32::MAX);
    plan.sql = slices.slices.iter().map(|slice| source.statement(slice)).collect();
    Ok(())
}
