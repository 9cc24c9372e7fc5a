//! `cleanup`: what runs left behind goes.

use tidelake_model::Result;
use tidelake_sync::{Cleanup, CleanupRequest, cleanup};

use super::Session;
use crate::args::CleanupArgs;
use crate::exit::{Exit, report_text};
use crate::output::{counted, table};
use crate::settings::house;

/// Cleans up, or shows what would go.
pub(super) async fn run(session: &Session, args: &CleanupArgs) -> Result<Exit> {
    let (older_than, statuses) = house::old(args)?;
    let app = session.application().await?;
    let request = CleanupRequest {
        env: session.env().to_owned(),
        sync_id: args.sync_id.clone(),
        older_than,
        statuses,
        dry_run: args.dry_run,
        cancel: session.interrupt.clone(),
    };
    let done = cleanup(&app, &request).await?;
    for table in &done.tables {
        if let Some(reason) = &table.skipped {
            let text = format!("note: {} is passed over: {reason}\n", table.table);
            session.output.terminal.talk(&text);
        }
    }
    session.output.emit(&done, |_| described(&done))?;
    let errors: Vec<_> = done.tables.iter().filter_map(|table| table.error.as_ref()).collect();
    for error in &errors {
        session.output.terminal.talk(&report_text(error));
    }
    Ok(match errors.as_slice() {
        [] => Exit::Done,
        [only] if done.tables.len() == 1 => Exit::of_error(only.error_kind),
        _ => Exit::Partial,
    })
}

fn described(done: &Cleanup) -> String {
    let mut rows = vec![];
    let mut counts = [0_u64; 3];
    for table in &done.tables {
        let kinds =
            [("file", &table.files), ("document", &table.documents), ("upload", &table.uploads)];
        for ((kind, keys), total) in kinds.into_iter().zip(&mut counts) {
            *total = total.saturating_add(u64::try_from(keys.len()).unwrap_or(u64::MAX));
            let place = |key: &String| vec![kind.to_owned(), format!("{}/{key}", table.location)];
            rows.extend(keys.iter().map(place));
        }
    }
    for run in &done.runs {
        let name = serde_json::to_value(run.status).ok();
        let status = name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        let sync = if run.scope.is_empty() { "-" } else { &run.scope };
        rows.push(vec!["run".to_owned(), format!("{} of {sync}, {status}", run.run_id)]);
    }
    let [files, documents, uploads] = counts;
    let runs = u64::try_from(done.runs.len()).unwrap_or(u64::MAX);
    let total = [
        counted(files, "file"),
        counted(documents, "document"),
        counted(uploads, "upload"),
        counted(runs, "run record"),
    ];
    let verb = if done.dry_run { "would go" } else { "gone" };
    let total = format!("{verb}: {}\n", total.join(", "));
    if rows.is_empty() { total } else { format!("{}\n{total}", table(&["WHAT", "WHICH"], rows)) }
}
