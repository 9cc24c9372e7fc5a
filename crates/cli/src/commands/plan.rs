//! `plan`: what the next sync would do.

use tidelake_model::Result;
use tidelake_sync::TablePlan;

use super::Session;
use crate::exit::{Exit, report_text};
use crate::output::{counted, fields, one_line, size};
use crate::terminal::Terminal;
use crate::wiring;

/// Shows the plan of every table.
pub(super) async fn plan(session: &Session, sync_id: &str) -> Result<Exit> {
    let app = session.application().await?;
    let plan = tidelake_sync::plan(&app, session.env(), sync_id, wiring::cores()).await?;
    session.output.emit(&plan, |terminal| {
        let tables: Vec<_> = plan.tables.iter().map(|table| described(table, terminal)).collect();
        tables.join("\n")
    })?;
    let mut exit = Exit::Done;
    for error in plan.tables.iter().filter_map(|table| table.error.as_ref()) {
        session.output.terminal.talk(&report_text(error));
        exit = Exit::Failed;
    }
    Ok(exit)
}

fn described(plan: &TablePlan, terminal: &Terminal) -> String {
    let how = match &plan.cursor {
        Some(cursor) => format!("{} by {cursor}", plan.mode),
        None => plan.mode.to_owned(),
    };
    let mut rows = vec![(
        "window",
        match &plan.window {
            Some(window) => window.clone(),
            None => "nothing to read".to_owned(),
        },
    )];
    if let Some(estimate) = plan.estimated_rows {
        let bytes = plan.estimated_bytes.map(|bytes| format!(", about {}", size(bytes)));
        let bytes = bytes.unwrap_or_default();
        rows.push(("table", format!("about {}{bytes}", counted(estimate, "row"))));
    }
    if plan.slices > 0 {
        rows.push(("slices", plan.slices.to_string()));
    }
    rows.push(("target", plan.target.clone()));
    if let Some(lease) = &plan.lease {
        let holder = &lease.holder;
        let state = if lease.expired { "expired lease of" } else { "held by" };
        let who = format!("process {} on {}", holder.process_id, holder.host);
        rows.push(("lease", format!("{state} run {}, {who}", lease.run_id)));
    }
    // The slices of a table differ in their bounds only: the first one tells.
    match plan.sql.as_slice() {
        [] => {}
        [only] => rows.push(("sql", only.clone())),
        [first, others @ ..] => {
            let others = u64::try_from(others.len()).unwrap_or(u64::MAX);
            rows.push(("sql", format!("{first}\n(and {} like it)", counted(others, "statement"))));
        }
    }
    for notice in &plan.notices {
        rows.push(("note", notice.message.clone()));
    }
    if let Some(error) = &plan.error {
        rows.push(("error", error.message.clone()));
    }
    let name = one_line(&plan.table.to_string());
    format!("{name}: {}\n{}", one_line(&how), fields(2, &rows, terminal.width()))
}
