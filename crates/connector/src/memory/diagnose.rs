//! What would make a run fail or go slowly.

use tidelake_model::Result;

use super::cursor::Located;
use super::database::MemoryDatabase;
use crate::diagnosis::{cursor_findings, missing_finding, null_finding, size_finding};
use crate::source::{DiagnosedTable, Finding, Verdict};

/// Looks at open transactions and at each table.
pub(super) fn diagnose(
    database: &MemoryDatabase,
    tables: &[DiagnosedTable],
) -> Result<Vec<Finding>> {
    let state = database.lock();
    let mut findings = vec![match state.open.len() {
        0 => Finding::new(Verdict::Fine, "transactions", "none is open"),
        open => Finding::new(Verdict::Warning, "transactions", format!("{open} are open"))
            .with_hint("rows are read up to the start of the oldest one"),
    }];
    for DiagnosedTable { table, cursor } in tables {
        let Ok(stored) = state.table(&table.name) else {
            findings.push(missing_finding(&table.name));
            continue;
        };
        findings.push(size_finding(&stored.table));
        let Some(cursor) = cursor else { continue };
        findings.extend(cursor_findings(&stored.table, cursor));
        let Ok(located) = Located::new(&stored.table, cursor) else { continue };
        let nulls = stored.rows.iter().filter(|row| located.position(row).is_none()).count();
        let nulls = u64::try_from(nulls).ok();
        findings.push(null_finding(&table.name, cursor, nulls));
    }
    Ok(findings)
}
