//! `compact`: the small files of a table become few.

use std::sync::Arc;

use tidelake_model::Result;
use tidelake_sync::{CompactRequest, Compacted, TableRequest, compact};

use super::Session;
use crate::args::CompactArgs;
use crate::exit::{Exit, report_text};
use crate::output::{count, size, table};
use crate::progress::Progress;
use crate::settings::house;
use crate::wiring;

/// Merges the files, or shows which.
pub(super) async fn run(session: &Session, args: &CompactArgs) -> Result<Exit> {
    let compaction = house::compaction(args)?;
    let app = session.application().await?;
    let progress = Arc::new(Progress::new(&session.output.terminal));
    let request = CompactRequest {
        table: TableRequest {
            env: session.env().to_owned(),
            sync_id: args.sync_id.clone(),
            table: args.table.clone().unwrap_or_default(),
            cores: wiring::cores(),
            cancel: session.interrupt.clone(),
            events: progress.clone(),
        },
        compaction,
        dry_run: args.dry_run,
    };
    let tables = compact(&app, request).await?;
    for done in &tables {
        for notice in &done.notices {
            progress.tell(&done.table, notice);
        }
    }
    session.output.emit(&tables, |_| described(&tables, args.dry_run))?;
    let errors: Vec<_> = tables.iter().filter_map(|table| table.error.as_ref()).collect();
    for error in &errors {
        session.output.terminal.talk(&report_text(error));
    }
    Ok(match errors.as_slice() {
        [] => Exit::Done,
        errors if errors.len() < tables.len() => Exit::Partial,
        [only] => Exit::of_error(only.error_kind),
        _ => Exit::Failed,
    })
}

fn described(tables: &[Compacted], dry_run: bool) -> String {
    let rows = tables.iter().map(|done| {
        let result = match (&done.error, done.files, dry_run) {
            (Some(_), ..) => "failed",
            (None, 0, _) => "nothing to merge",
            (None, _, true) => "to be merged",
            (None, _, false) => "merged",
        };
        let small = if done.files > 0 { count(done.files) } else { "-".to_owned() };
        let merged = if done.files > 0 { count(done.merged_files) } else { "-".to_owned() };
        let bytes = if done.merged_bytes > 0 { size(done.merged_bytes) } else { "-".to_owned() };
        let before = if done.files > 0 { size(done.bytes) } else { "-".to_owned() };
        vec![
            done.table.to_string(),
            result.to_owned(),
            small,
            before,
            merged,
            bytes,
            count(done.rows),
        ]
    });
    let headers = ["TABLE", "RESULT", ">SMALL", ">SIZE", ">MERGED", ">SIZE", ">ROWS"];
    table(&headers, rows.collect())
}
