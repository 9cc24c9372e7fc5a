//! `verify`: the lake against the source.

use std::sync::Arc;
use std::time::Instant;

use tidelake_model::{ErrorKind, Result};
use tidelake_sync::run::ErrorReport;
use tidelake_sync::verify::{
    ColumnDifference, Counts, Difference, Finding, Shown, TableVerification, Verified,
    VerifyReport, VerifyRequest, verify as compare,
};
use tidelake_sync::{Event, Events};

use super::Session;
use crate::args::VerifyArgs;
use crate::exit::{Exit, report_text};
use crate::output::{counted, fields, milliseconds};
use crate::progress::Progress;
use crate::terminal::Terminal;
use crate::wiring;

/// Bars while it reads; what becomes of a table stands in the result.
struct Reading(Arc<Progress>, bool);

impl Events for Reading {
    fn event(&self, event: &Event) {
        if self.1 || !matches!(event, Event::TableFinished { .. }) {
            self.0.event(event);
        }
    }
}

/// Verifies, and shows what was found.
pub(super) async fn verify(session: &Session, args: VerifyArgs) -> Result<Exit> {
    let app = session.application().await?;
    let terminal = &session.output.terminal;
    let has_bars = terminal.bars().is_some();
    let progress = Arc::new(Progress::new(terminal));
    let request = VerifyRequest {
        env: session.env().to_owned(),
        sync_id: args.sync_id,
        tables: args.table,
        limit: usize::try_from(args.limit).unwrap_or(usize::MAX),
        values: !args.no_values,
        checksums: args.files,
        repair: args.repair,
        cores: wiring::cores(),
        cancel: session.interrupt.clone(),
        events: Arc::new(Reading(progress, has_bars)),
    };
    let started = Instant::now();
    let report = compare(&app, request).await?;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    session.output.emit(&report, |terminal| described(&report, millis, terminal))?;
    for error in report.tables.iter().filter_map(|table| table.error.as_ref()) {
        terminal.talk(&report_text(error));
    }
    Ok(exit_of(&report))
}

/// A difference is a failure, whatever else could not be looked at.
fn exit_of(report: &VerifyReport) -> Exit {
    let is = |outcome| move |table: &&TableVerification| table.outcome == outcome;
    let count = |outcome| report.tables.iter().filter(is(outcome)).count();
    let failed = count(Verified::Failed);
    let errors: Vec<_> = report.tables.iter().filter_map(|table| table.error.as_ref()).collect();
    let all_are = |kind| {
        let is_kind = |error: &&ErrorReport| error.error_kind == kind;
        !errors.is_empty() && errors.iter().all(is_kind)
    };
    if all_are(ErrorKind::Interrupted) {
        Exit::Interrupted
    } else if count(Verified::Differs) > 0 {
        Exit::Failed
    } else if failed == 0 {
        Exit::Done
    } else if all_are(ErrorKind::Mismatch) {
        Exit::Mismatch
    } else if all_are(ErrorKind::Locked) {
        Exit::Locked
    } else if failed < report.tables.len() {
        Exit::Partial
    } else {
        Exit::Failed
    }
}

fn described(report: &VerifyReport, millis: u64, terminal: &Terminal) -> String {
    let mut text: String =
        report.tables.iter().map(|table| table_text(table, terminal) + "\n").collect();
    let count = |outcome| report.tables.iter().filter(|table| table.outcome == outcome).count();
    let tables = |number: usize| counted(u64::try_from(number).unwrap_or(u64::MAX), "table");
    let mut parts = vec![format!("{} the same", tables(count(Verified::Same)))];
    for (outcome, word) in [
        (Verified::Differs, "different"),
        (Verified::Nothing, "with nothing to compare"),
        (Verified::Failed, "not verified"),
    ] {
        if count(outcome) > 0 {
            parts.push(format!("{} {word}", tables(count(outcome))));
        }
    }
    text.push_str(&format!("{}, in {}\n", parts.join(", "), milliseconds(millis)));
    text
}

fn table_text(table: &TableVerification, terminal: &Terminal) -> String {
    let verdict = match table.outcome {
        Verified::Same => "the same",
        Verified::Differs => "DIFFERS",
        Verified::Nothing => "nothing to compare",
        Verified::Failed => "not verified",
    };
    let mut rows = vec![];
    if let Some(compared) = &table.compared {
        rows.push(("compared", compared.clone()));
        let columns = u64::try_from(table.columns.len()).unwrap_or(u64::MAX);
        rows.push((
            "rows",
            format!(
                "{} in the source, {} in the lake, {}",
                counted(table.source_rows, "row"),
                counted(table.lake_rows, "row"),
                counted(columns, "column"),
            ),
        ));
    }
    if table.beyond_rows > 0 {
        rows.push((
            "beyond",
            format!("{} of the lake outside of it", counted(table.beyond_rows, "row")),
        ));
    }
    let different: Vec<_> =
        table.columns.iter().filter(|column| !column.same).map(|column| &*column.column).collect();
    if table.outcome == Verified::Differs && !different.is_empty() {
        rows.push(("checksums", format!("differ in {}", different.join(", "))));
    }
    for line in counts(&table.counts) {
        rows.push(("found", line));
    }
    for finding in &table.findings {
        rows.push((class_name(finding.class), finding_text(finding, table)));
    }
    for fault in &table.file_faults {
        let run = fault.run_id.map(|run| format!(" (run {run})")).unwrap_or_default();
        let lost = counted(fault.rows, "row");
        rows.push(("file", format!("{}{run}, {lost}: {}", fault.file, fault.message)));
    }
    if let Some(repair) = &table.repair {
        for piece in &repair.pieces {
            let read = counted(piece.rows, "row");
            rows.push((
                "repaired",
                format!("{} read again, {read}, run {}", piece.range, piece.run_id),
            ));
        }
        let before = counts(&repair.before).join("; ");
        rows.push(("before", before));
    }
    for notice in &table.notices {
        rows.push(("note", notice.message.clone()));
    }
    if let Some(error) = &table.error {
        rows.push(("error", error.message.clone()));
    }
    format!("{}: {verdict}\n{}", table.table, fields(2, &rows, terminal.width()))
}

/// What was counted, errors in one line and the rest in another.
fn counts(counts: &Counts) -> Vec<String> {
    let line = |parts: &[(u64, &str)]| {
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let texts: Vec<_> =
            parts.map(|(count, word)| format!("{} {word}", counted(*count, "row"))).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let errors = [
        (counts.missing, "missing in the lake"),
        (counts.doubled, "too often in the lake"),
        (counts.differs, "with other values"),
    ];
    let others = [
        (counts.changed, "replaced by a later version"),
        (counts.deleted, "deleted in the source"),
        (counts.unknown, "in the lake alone, not looked up"),
        (counts.without_cursor, "without a cursor value that came after the first run"),
    ];
    let others = line(&others).map(|text| format!("{text} (no errors)"));
    line(&errors).into_iter().chain(others).collect()
}

fn class_name(class: Difference) -> &'static str {
    match class {
        Difference::Missing => "missing",
        Difference::Doubled => "doubled",
        Difference::Differs => "differs",
        Difference::Changed => "changed",
        Difference::Deleted => "deleted",
        Difference::Unknown => "unknown",
    }
}

fn finding_text(finding: &Finding, table: &TableVerification) -> String {
    let key: Vec<_> = finding
        .key
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("NULL")))
        .collect();
    let mut text = if key.is_empty() { "a row".to_owned() } else { key.join(", ") };
    if let (Some(cursor), "incremental") = (&finding.cursor, table.mode) {
        text.push_str(&format!(" at {cursor}"));
    }
    if finding.class == Difference::Doubled {
        let (lake, source) = (finding.in_lake, finding.in_source);
        text.push_str(&format!(": {lake} times in the lake, {source} in the source"));
    }
    if !finding.columns.is_empty() {
        let columns: Vec<_> = finding.columns.iter().map(column_text).collect();
        text.push_str(&format!(": {}", columns.join("; ")));
    }
    if let Some(remark) = &finding.remark {
        text.push_str(&format!(" ({remark})"));
    }
    for place in &finding.files {
        let run = place.run_id.map(|run| format!(" of run {run}")).unwrap_or_default();
        text.push_str(&format!("\nin {}{run}", place.file));
    }
    text
}

fn column_text(column: &ColumnDifference) -> String {
    let shown = |value: &Shown| match value {
        Some(text) => format!("{text:?}"),
        None => "NULL".to_owned(),
    };
    match (&column.source, &column.lake) {
        (Some(source), Some(lake)) => {
            format!(
                "{} is {} in the source, {} in the lake",
                column.column,
                shown(source),
                shown(lake)
            )
        }
        _ => format!("{} differs", column.column),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_in_two_lines() {
        let found = Counts { missing: 1, doubled: 2, changed: 3, ..Counts::default() };
        assert_eq!(
            counts(&found),
            [
                "1 row missing in the lake, 2 rows too often in the lake",
                "3 rows replaced by a later version (no errors)"
            ]
        );
        assert!(counts(&Counts::default()).is_empty());
    }
}
