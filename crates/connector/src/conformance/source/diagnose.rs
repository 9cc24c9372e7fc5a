//! What a doctor is told.

use tidelake_model::{CursorRead, TableName};
use tidelake_watermark::Cursor;

use super::SourceCase;
use crate::conformance::harness::{ensure, ensure_same};
use crate::conformance::subject::{Subject, stamped};
use crate::conformance::{ColumnSpec, ColumnType, Need, Outcome, SourceFixture, TableSpec};
use crate::source::{DiagnosedTable, Finding, Verdict};

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("diagnoses_no_failure_where_there_is_none", Need::Nothing, |fixture| {
            Box::pin(healthy(fixture))
        }),
        case("diagnoses_a_cursor_without_an_index_and_one_of_days", Need::Nothing, |fixture| {
            Box::pin(weak(fixture))
        }),
        case("diagnoses_a_table_and_a_cursor_that_are_gone", Need::Nothing, |fixture| {
            Box::pin(gone(fixture))
        }),
    ]
}

fn verdict(findings: &[Finding], table: &TableName, topic: &str) -> Option<Verdict> {
    let is_meant =
        |finding: &&Finding| finding.table.as_ref() == Some(table) && finding.topic == topic;
    findings.iter().find(is_meant).map(|finding| finding.verdict)
}

fn cursor(subject: &Subject, name: &str) -> Outcome<CursorRead> {
    Ok(CursorRead { cursor: Cursor::Single(name.to_owned()), kinds: vec![subject.kind(name)?] })
}

fn spec(fixture: &dyn SourceFixture, name: &str) -> TableSpec {
    TableSpec {
        name: TableName::new(fixture.schema(), name),
        columns: vec![
            ColumnSpec::new("id", ColumnType::Integer).key(0),
            ColumnSpec::new("at", ColumnType::Timestamp).required().indexed(),
            ColumnSpec::new("later", ColumnType::Timestamp),
            ColumnSpec::new("day", ColumnType::Date).required().indexed(),
        ],
    }
}

async fn healthy(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::make(fixture, spec(fixture, "healthy"), &[]).await?;
    let other = Subject::make(fixture, stamped(fixture, "healthy_too"), &[]).await?;
    let tables = [
        DiagnosedTable { table: subject.table.clone(), cursor: Some(cursor(&subject, "at")?) },
        DiagnosedTable { table: other.table.clone(), cursor: None },
    ];
    let findings = fixture.source().diagnose(&tables).await?;
    for finding in &findings {
        ensure(finding.verdict != Verdict::Failure, || format!("{finding:?}"))?;
        ensure(!finding.topic.is_empty() && !finding.message.is_empty(), || {
            format!("{finding:?}")
        })?;
        let known = finding
            .table
            .as_ref()
            .is_none_or(|table| *table == subject.table.name || *table == other.table.name);
        ensure(known, || format!("a table that was not asked for: {finding:?}"))?;
        ensure(finding.verdict == Verdict::Fine || finding.hint.is_some(), || {
            format!("no remedy: {finding:?}")
        })?;
    }
    let indexed = verdict(&findings, &subject.table.name, "index");
    ensure_same("the index", &indexed, &Some(Verdict::Fine))?;
    ensure_same("an index of no cursor", &verdict(&findings, &other.table.name, "index"), &None)
}

async fn weak(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::make(fixture, spec(fixture, "weak"), &[]).await?;
    let diagnose = async |name: &str| {
        let table =
            DiagnosedTable { table: subject.table.clone(), cursor: Some(cursor(&subject, name)?) };
        Outcome::Ok(fixture.source().diagnose(&[table]).await?)
    };
    let later = diagnose("later").await?;
    let found = verdict(&later, &subject.table.name, "index");
    ensure_same("without an index", &found, &Some(Verdict::Warning))?;
    let day = diagnose("day").await?;
    let found = verdict(&day, &subject.table.name, "days");
    ensure_same("a cursor of days", &found, &Some(Verdict::Warning))?;
    let at = diagnose("at").await?;
    ensure_same("a cursor of times", &verdict(&at, &subject.table.name, "days"), &None)
}

async fn gone(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::make(fixture, spec(fixture, "gone"), &[]).await?;
    let mut table = subject.table.clone();
    table.name.table.push_str("_and_away");
    let mut lost = cursor(&subject, "at")?;
    lost.cursor = Cursor::Single("nowhere".to_owned());
    let tables = [
        DiagnosedTable { table: table.clone(), cursor: None },
        DiagnosedTable { table: subject.table.clone(), cursor: Some(lost) },
    ];
    let findings = fixture.source().diagnose(&tables).await?;
    let missing = verdict(&findings, &table.name, "table");
    ensure_same("the table", &missing, &Some(Verdict::Failure))?;
    let missing = verdict(&findings, &subject.table.name, "cursor");
    ensure_same("the cursor", &missing, &Some(Verdict::Failure))
}
