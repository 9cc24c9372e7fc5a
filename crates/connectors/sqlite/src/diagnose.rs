//! What would make a run fail or go slowly, as the file itself tells it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};
use tidelake_connector::{
    DiagnosedTable, Effort, Finding, HighestRequest, Verdict, cursor_findings, missing_finding,
    null_finding, size_finding,
};
use tidelake_model::{CursorRead, ErrorKind, Result, TableName};
use tidelake_watermark::Cursor;

use crate::catalogue::{Described, describe};
use crate::connection::{failure, open};
use crate::dialect::quote;
use crate::highest::highest;

/// Rows at the end of a table in which it is looked whether a column rises.
const SAMPLE: u32 = 1_000;

/// Looks at the file and at each table.
pub(crate) fn diagnose(path: &Path, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
    let connection = open(path)?;
    let mut findings = file(&connection)?;
    for diagnosed in tables {
        let name = &diagnosed.table.name;
        match describe(&connection, name) {
            Ok(described) => findings.extend(table(&connection, diagnosed, &described)?),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                findings.push(missing_finding(name));
            }
            Err(error) => findings.push(Finding::of_error("table", &error).of_table(name)),
        }
    }
    Ok(findings)
}

fn file(connection: &Connection) -> Result<Vec<Finding>> {
    let failed = |error| failure(error, "the file cannot be diagnosed");
    let pragma = |name: &str| -> rusqlite::Result<String> {
        connection.query_row(&format!("SELECT * FROM pragma_{name}"), [], |row| row.get(0))
    };
    let version = rusqlite::version();
    let mode = pragma("journal_mode").map_err(failed)?;
    let journal = if mode.eq_ignore_ascii_case("wal") {
        Finding::new(Verdict::Fine, "journal", "WAL: readers and writers do not wait")
    } else {
        Finding::new(
            Verdict::Warning,
            "journal",
            format!("{mode}: while a sync reads, writers wait, and the other way round"),
        )
        .with_hint("PRAGMA journal_mode=WAL, set once by a program that writes")
    };
    Ok(vec![
        Finding::new(Verdict::Fine, "server", format!("SQLite {version}, the file can be read")),
        journal,
        Finding::new(Verdict::Fine, "fence", "writers are serialised, no fence is needed"),
    ])
}

fn table(
    connection: &Connection,
    diagnosed: &DiagnosedTable,
    described: &Described,
) -> Result<Vec<Finding>> {
    let table = &described.table;
    let mut findings = vec![size_finding(table)];
    let Some(cursor) = &diagnosed.cursor else { return Ok(findings) };
    findings.extend(cursor_findings(table, cursor));
    if findings.iter().any(|finding| finding.verdict == Verdict::Failure) {
        return Ok(findings);
    }
    match looked_up(connection, table.name.clone(), cursor) {
        Ok(nulls) => {
            let names = cursor.cursor.columns();
            let nullable =
                |name: &String| table.column(name).is_none_or(|column| column.field.is_nullable());
            let may_be_null = match cursor.cursor {
                Cursor::Fallback(_) => names.iter().all(nullable),
                _ => names.iter().any(nullable),
            };
            if may_be_null {
                findings.push(null_finding(&table.name, cursor, nulls));
            }
        }
        // Mixed forms of times, for example.
        Err(error) => findings.push(Finding::of_error("cursor", &error).of_table(&table.name)),
    }
    if let (Cursor::Single(column), Some(row_number)) = (&cursor.cursor, described.row_number) {
        findings.push(origin(connection, &table.name, column)?);
        findings.push(order(connection, &table.name, column, row_number)?);
    }
    Ok(findings)
}

/// The cursor's values can be read in one form; rows without one, where counted.
fn looked_up(
    connection: &Connection,
    table: TableName,
    cursor: &CursorRead,
) -> Result<Option<u64>> {
    let cursor = cursor.clone();
    let effort = Effort::Cheap;
    let request = HighestRequest { table, cursor, effort, count: None, count_nulls: true };
    Ok(highest(connection, &request)?.nulls)
}

/// Where the column's values come from.
fn origin(connection: &Connection, table: &TableName, column: &str) -> Result<Finding> {
    let failed = |error| failure(error, "the table cannot be diagnosed").in_table(table);
    let default: Option<String> = connection
        .query_row(
            "SELECT dflt_value FROM pragma_table_xinfo(?1, 'main') WHERE name = ?2",
            [&table.table, column],
            |row| row.get(0),
        )
        .optional()
        .map_err(failed)?
        .flatten();
    let triggers: Option<String> = connection
        .query_row(
            "SELECT group_concat(name, ', ') FROM sqlite_schema
             WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE",
            [&table.table],
            |row| row.get(0),
        )
        .map_err(failed)?;
    let message = match (default, triggers) {
        (None, None) => format!("{column} has no default: the application sets it"),
        (Some(default), None) => {
            format!("{column} is {default} in a new row; an update changes it only if it says so")
        }
        (default, Some(triggers)) => format!(
            "{column} is {} in a new row, and may be set by the triggers {triggers}",
            default.as_deref().unwrap_or("not set")
        ),
    };
    Ok(Finding::new(Verdict::Fine, "origin", message).of_table(table))
}

/// Whether the newest rows have rising values.
fn order(
    connection: &Connection,
    table: &TableName,
    column: &str,
    row_number: &str,
) -> Result<Finding> {
    let (quoted, row_number) = (quote(column), quote(row_number));
    let statement = format!(
        "SELECT count(*), coalesce(sum(c < before), 0) FROM (
             SELECT c, lag(c) OVER (ORDER BY r) AS before FROM (
                 SELECT {row_number} AS r, {quoted} AS c FROM main.{}
                 WHERE {quoted} IS NOT NULL ORDER BY {row_number} DESC LIMIT {SAMPLE}))",
        quote(&table.table)
    );
    let (rows, falls): (i64, i64) = connection
        .query_row(&statement, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(|error| failure(error, "the table cannot be diagnosed").in_table(table))?;
    let finding = match (rows, falls) {
        (0 | 1, _) => Finding::new(
            Verdict::Fine,
            "order",
            format!("whether {column} rises is not known: there are too few rows"),
        ),
        (rows, 0) => Finding::new(
            Verdict::Fine,
            "order",
            format!("{column} rises in the newest {rows} rows"),
        ),
        (rows, falls) => Finding::new(
            Verdict::Warning,
            "order",
            format!(
                "{column} is lower than in the row before {falls} times in the newest {rows} rows: \
                 rows may be written below the watermark"
            ),
        )
        .with_hint("check that a new or changed row gets a higher value; see --lookback"),
    };
    Ok(finding.of_table(table))
}
