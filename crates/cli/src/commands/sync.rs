//! `sync`: one run, and what became of it.

use std::sync::Arc;
use std::time::Instant;

use tidelake_model::{Error, ErrorKind, Result, RunId, RunStatus, TableRunStatus};
use tidelake_state::RunFilter;
use tidelake_sync::{Application, RunReport, RunRequest, TableReport};

use super::Session;
use crate::exit::{Exit, report_text};
use crate::output::{Output, count, counted, milliseconds, or_dash, size, table};
use crate::progress::Progress;
use crate::settings::{Resume, SyncSettings};
use crate::wiring;

/// Runs the sync.
pub(super) async fn sync(session: &Session, settings: SyncSettings) -> Result<Exit> {
    let mut app = session.application().await?;
    app.leases = settings.leases;
    let report = run_in(session, &app, settings).await?;
    Ok(Exit::of_report(&report))
}

/// Runs the sync in an application that is there, and shows the report.
pub(super) async fn run_in(
    session: &Session,
    app: &Application,
    settings: SyncSettings,
) -> Result<RunReport> {
    let env = session.env();
    let resume = match settings.resume {
        Resume::No => None,
        Resume::Run(run) => Some(run),
        Resume::Newest => Some(newest(app, env, &settings.sync_id).await?),
    };
    let progress = Arc::new(Progress::new(&session.output.terminal));
    let request = RunRequest {
        env: env.to_owned(),
        sync_id: settings.sync_id,
        mode: settings.mode,
        resume,
        on_mismatch: settings.on_mismatch,
        reset_watermarks: settings.reset_watermarks,
        cores: wiring::cores(),
        cancel: session.interrupt.clone(),
        events: progress.clone(),
    };
    let started = Instant::now();
    let report = tidelake_sync::run(app, request).await?;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    for table in &report.tables {
        for notice in &table.notices {
            progress.tell(&table.table, notice);
        }
    }
    show(&session.output, &report, millis)?;
    Ok(report)
}

/// The newest run of the sync, if there is anything to take up.
async fn newest(app: &Application, env: &str, sync_id: &str) -> Result<RunId> {
    let filter = RunFilter {
        env: Some(env.to_owned()),
        scope: Some(sync_id.to_owned()),
        limit: 1,
        ..RunFilter::default()
    };
    let newest = app.state.runs(&filter).await?.into_iter().next();
    match newest {
        Some(run) if run.status != RunStatus::Completed => Ok(run.run_id),
        _ => Err(Error::new(
            ErrorKind::NotFound,
            format!("no run of {sync_id:?} is left to take up"),
        )
        .with_hint("leave out --resume to run all its tables")),
    }
}

fn show(output: &Output, report: &RunReport, millis: u64) -> Result<()> {
    output.notices(&report.notices);
    output.emit(report, |_| described(report, millis))?;
    let errors = report.tables.iter().filter_map(|table| table.error.as_ref());
    // That the user stopped it, the user knows.
    for error in errors.filter(|error| error.error_kind != ErrorKind::Interrupted) {
        output.terminal.talk(&report_text(error));
    }
    if report.status == RunStatus::Cancelled {
        output.terminal.talk("hint: run the same command again, it goes on where it stopped\n");
    }
    Ok(())
}

fn described(report: &RunReport, millis: u64) -> String {
    let rows = report.tables.iter().map(|table| {
        let files = table.files > 0;
        vec![
            table.table.to_string(),
            outcome(table).to_owned(),
            count(table.rows),
            if files { size(table.bytes) } else { "-".to_owned() },
            or_dash(table.watermark_after.as_ref().or(table.watermark_before.as_ref())),
        ]
    });
    let headers = ["TABLE", "RESULT", ">ROWS", ">SIZE", "WATERMARK"];
    let mut text = table(&headers, rows.collect());
    let total = |amount: fn(&TableReport) -> u64| report.tables.iter().map(amount).sum::<u64>();
    let status = match report.status {
        RunStatus::Completed => "completed",
        RunStatus::Partial => "partly failed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "interrupted",
        RunStatus::Running => "is running",
    };
    text.push_str(&format!(
        "\nrun {} {status}: {}, {}, {}, in {}\n",
        report.run_id,
        counted(total(|table| table.rows), "row"),
        counted(total(|table| table.files), "file"),
        size(total(|table| table.bytes)),
        milliseconds(millis),
    ));
    text
}

/// What became of a table, in a word or two.
fn outcome(report: &TableReport) -> &'static str {
    match report.status {
        Some(TableRunStatus::Cancelled) => "interrupted",
        _ if report.error.is_some() => "failed",
        None => "not started",
        Some(TableRunStatus::Committed) => "not published",
        Some(TableRunStatus::Completed) if report.rows == 0 => "nothing new",
        Some(TableRunStatus::Completed) => report.mode,
        Some(TableRunStatus::Failed) => "failed",
        Some(TableRunStatus::Reading | TableRunStatus::Committing) => "unfinished",
    }
}
