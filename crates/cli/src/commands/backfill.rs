//! `backfill`: read a range below the watermark, in pieces.

use std::sync::Arc;

use tidelake_model::{ErrorKind, Result, RunStatus};
use tidelake_sync::backfill::PieceState;
use tidelake_sync::{Backfill, BackfillRequest, TableRequest, backfill};

use super::Session;
use crate::args::BackfillArgs;
use crate::exit::{Exit, report_text};
use crate::output::{count, counted, or_dash, size, table};
use crate::progress::Progress;
use crate::settings::house;
use crate::wiring;

/// Pieces shown one by one.
const SHOWN: usize = 60;

/// Reads the range, or shows what it would read.
pub(super) async fn run(session: &Session, args: &BackfillArgs) -> Result<Exit> {
    let app = session.application().await?;
    let progress = Arc::new(Progress::new(&session.output.terminal));
    let request = BackfillRequest {
        table: TableRequest {
            env: session.env().to_owned(),
            sync_id: args.sync_id.clone(),
            table: args.table.clone(),
            cores: wiring::cores(),
            cancel: session.interrupt.clone(),
            events: progress.clone(),
        },
        from: args.from.clone(),
        to: args.to.clone(),
        cut: house::cut(args),
        restart: args.restart,
        dry_run: args.dry_run,
    };
    let report = backfill(&app, request).await?;
    for notice in &report.notices {
        progress.tell(&report.table, notice);
    }
    session.output.emit(&report, |_| described(&report, args.dry_run))?;
    let error = report.error.as_ref();
    if let Some(error) = error.filter(|error| error.error_kind != ErrorKind::Interrupted) {
        session.output.terminal.talk(&report_text(error));
    }
    if report.status != RunStatus::Completed {
        let hint = "hint: run the same command again, it goes on where it stopped\n";
        session.output.terminal.talk(hint);
    }
    Ok(match (report.status, error) {
        (RunStatus::Completed, _) => Exit::Done,
        (RunStatus::Cancelled, _) => Exit::Interrupted,
        (_, Some(error)) if error.error_kind == ErrorKind::Mismatch => Exit::Mismatch,
        (_, Some(error)) if error.error_kind == ErrorKind::Configuration => Exit::Usage,
        (RunStatus::Partial, _) => Exit::Partial,
        _ => Exit::Failed,
    })
}

fn described(report: &Backfill, dry_run: bool) -> String {
    let state = |state| match state {
        PieceState::Pending if dry_run => "to be read",
        PieceState::Pending => "not begun",
        PieceState::DoneBefore => "done before",
        PieceState::Done => "done",
        PieceState::Failed => "failed",
    };
    let rows = report.pieces.iter().take(SHOWN).map(|piece| {
        let is_read = matches!(piece.state, PieceState::Done | PieceState::DoneBefore);
        vec![
            piece.number.to_string(),
            piece.range.clone(),
            state(piece.state).to_owned(),
            if is_read { count(piece.rows) } else { "-".to_owned() },
            or_dash(piece.run_id),
        ]
    });
    let mut text = table(&[">PIECE", "RANGE", "STATE", ">ROWS", "RUN"], rows.collect());
    let more = report.pieces.len().saturating_sub(SHOWN);
    if more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    if dry_run {
        let touches = &report.touches;
        text.push_str(&format!(
            "\n{}: {}, touching {} with {}, {}\n",
            report.table,
            counted(u64::try_from(report.pieces.len()).unwrap_or(u64::MAX), "piece"),
            counted(touches.files, "file"),
            counted(touches.rows, "row"),
            size(touches.bytes)
        ));
        return text;
    }
    let status = match report.status {
        RunStatus::Completed => "completed",
        RunStatus::Cancelled => "interrupted",
        RunStatus::Partial => "partly done",
        RunStatus::Failed | RunStatus::Running => "failed",
    };
    text.push_str(&format!("\nbackfill {status}: {}\n", counted(report.rows, "row")));
    if let Some(stitch) = &report.stitch {
        let verdict = if stitch.matches() { "the pieces make the whole" } else { "they differ" };
        text.push_str(&format!(
            "checked: {} in the lake, {} in the source, {verdict}\n",
            counted(stitch.lake_rows, "row"),
            count(stitch.source_rows)
        ));
    }
    text
}
