//! `status`: runs, and what became of their tables.

use std::time::Duration;

use tidelake_model::{Result, RunStatus, TableRun, TableRunStatus};
use tidelake_state::RunFilter;
use tidelake_sync::RunDetails;

use super::Session;
use crate::args::StatusArgs;
use crate::exit::Exit;
use crate::output::{count, duration, one_line, or_dash, second, size, table};
use crate::settings::run_id;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// Shows the runs, once or until told to stop.
pub(super) async fn status(session: &Session, args: &StatusArgs) -> Result<Exit> {
    let filter = RunFilter {
        env: Some(session.env().to_owned()),
        scope: args.sync_id.clone(),
        run_id: args.run_id.as_deref().map(run_id).transpose()?,
        status: None,
        limit: args.limit,
    };
    let verbose = args.verbose || filter.run_id.is_some();
    let app = session.application().await?;
    let mut shown: Option<Vec<RunDetails>> = None;
    loop {
        let runs = tidelake_sync::status(&app, &filter).await?;
        if let (Some(run_id), true) = (filter.run_id, runs.is_empty()) {
            return Err(tidelake_model::Error::new(
                tidelake_model::ErrorKind::NotFound,
                format!("there is no run {run_id}"),
            )
            .with_hint("'tidelake status' lists the runs with their ids"));
        }
        if shown.as_ref() != Some(&runs) {
            session.output.emit(&runs, |_| described(&runs, verbose))?;
        }
        let ended = filter.run_id.is_some()
            && runs.iter().all(|details| details.run.status != RunStatus::Running);
        if !args.watch || ended {
            return Ok(Exit::Done);
        }
        shown = Some(runs);
        tokio::time::sleep(PAUSE).await;
    }
}

fn described(runs: &[RunDetails], verbose: bool) -> String {
    if runs.is_empty() {
        return "there are no runs yet\n".to_owned();
    }
    if verbose {
        let runs: Vec<_> = runs.iter().map(with_tables).collect();
        return runs.join("\n");
    }
    let rows = runs.iter().map(|RunDetails { run, tables }| {
        vec![
            run.run_id.to_string(),
            run.scope.clone(),
            run_status(run.status).to_owned(),
            second(&run.started_at),
            count(tables.iter().map(|table| table.rows).sum()),
        ]
    });
    table(&["RUN", "SYNC", "STATUS", "STARTED", ">ROWS"], rows.collect())
}

fn with_tables(details: &RunDetails) -> String {
    let RunDetails { run, tables } = details;
    let took = run.finished_at.as_deref().and_then(|end| duration(&run.started_at, end));
    let mut text = format!(
        "run {} of {}: {}, started {}{}\n",
        run.run_id,
        run.scope,
        run_status(run.status),
        second(&run.started_at),
        took.map(|took| format!(", took {took}")).unwrap_or_default(),
    );
    let rows = tables.iter().map(|table| {
        let took = table.finished_at.as_deref().and_then(|end| duration(&table.started_at, end));
        vec![
            table.table.to_string(),
            table_status(table).to_owned(),
            count(table.rows),
            size(table.bytes),
            or_dash(took),
        ]
    });
    text.push_str(&table(&["TABLE", "STATUS", ">ROWS", ">SIZE", ">TOOK"], rows.collect()));
    for table in tables {
        for notice in &table.notices {
            let note = format!("{}: {}", table.table, notice.message);
            text.push_str(&format!("note: {}\n", one_line(&note)));
        }
    }
    for table in tables {
        if let Some(error) = &table.error {
            text.push_str(&format!("error: {}\n", one_line(error)));
        }
    }
    match &run.error {
        Some(error) if tables.iter().all(|table| table.error.is_none()) => {
            text.push_str(&format!("error: {}\n", one_line(error)));
        }
        _ => {}
    }
    text
}

fn run_status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Completed => "completed",
        RunStatus::Partial => "partial",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "interrupted",
    }
}

fn table_status(table: &TableRun) -> &'static str {
    match table.status {
        TableRunStatus::Reading => "reading",
        TableRunStatus::Committing => "committing",
        TableRunStatus::Committed => "not published",
        TableRunStatus::Completed => "completed",
        TableRunStatus::Failed => "failed",
        TableRunStatus::Cancelled => "interrupted",
    }
}
