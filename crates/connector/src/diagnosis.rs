//! Findings that every source makes alike, from its own catalogue.

use tidelake_model::{Column, CursorRead, Error, Table, TableName};
use tidelake_watermark::{Cursor, Kind};

use crate::source::{Finding, Verdict};

impl Finding {
    /// A finding with a lowercase sentence without a full stop.
    pub fn new(verdict: Verdict, topic: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { verdict, topic: topic.to_owned(), table: None, message, hint: None }
    }

    /// Says which table it is about.
    #[must_use]
    pub fn of_table(mut self, table: &TableName) -> Self {
        self.table = Some(table.clone());
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What cannot be looked at would make a run fail as well.
    pub fn of_error(topic: &str, error: &Error) -> Self {
        let mut message = error.chain();
        // The table stands in a field of its own.
        if let Some(rest) =
            error.table().and_then(|table| message.strip_prefix(&format!("{table}: ")))
        {
            message = rest.to_owned();
        }
        Self {
            verdict: Verdict::Failure,
            topic: topic.to_owned(),
            table: error.table().cloned(),
            message,
            hint: error.hint().map(str::to_owned),
        }
    }
}

/// What the catalogue says of a cursor: whether its columns are there, whether an
/// index leads with it, and whether it counts in whole days. `table` is as the
/// source's own catalogue has it now.
pub fn cursor_findings(table: &Table, cursor: &CursorRead) -> Vec<Finding> {
    let names = cursor.cursor.columns();
    let columns: Vec<&Column> = names.iter().filter_map(|name| table.column(name)).collect();
    let mut findings = vec![];
    for name in names.iter().filter(|name| table.column(name).is_none()) {
        findings.push(
            Finding::new(Verdict::Failure, "cursor", format!("there is no column {name:?}"))
                .with_hint("make the sync anew with a cursor that the table has"),
        );
    }
    let name = &cursor.cursor;
    let is_fallback = matches!(name, Cursor::Fallback(names) if names.len() > 1);
    let is_indexed = !is_fallback && columns.first().is_some_and(|column| column.indexed);
    findings.push(match (is_fallback, is_indexed) {
        (_, true) => Finding::new(Verdict::Fine, "index", format!("an index leads with {name}")),
        (true, _) => Finding::new(
            Verdict::Warning,
            "index",
            format!("no index of columns serves the fallback {name}: each sync reads the table"),
        )
        .with_hint("one column with an index is cheaper, where every row has a value in it"),
        (false, _) => Finding::new(
            Verdict::Warning,
            "index",
            format!("no index leads with {name}: each sync reads the whole table"),
        )
        .with_hint("make an index that begins with the cursor"),
    });
    if cursor.kinds.first() == Some(&Kind::Date) {
        findings.push(
            Finding::new(
                Verdict::Warning,
                "days",
                format!("{name} counts in whole days: rows of a day arrive once it is over"),
            )
            .with_hint("a column of times brings rows sooner"),
        );
    }
    if cursor.kinds.first() == Some(&Kind::Datetime) {
        findings.push(Finding::new(
            Verdict::Fine,
            "time zone",
            format!("{name} has no time zone; it is taken as --cursor-zone or the server's zone"),
        ));
    }
    let of_table = |finding: Finding| finding.of_table(&table.name);
    findings.into_iter().map(of_table).collect()
}

/// How many rows have no value in a cursor that may be NULL, as far as that is
/// known.
pub fn null_finding(table: &TableName, cursor: &CursorRead, nulls: Option<u64>) -> Finding {
    let name = &cursor.cursor;
    match nulls {
        Some(0) => Finding::new(Verdict::Fine, "NULLs", format!("every row has a value in {name}")),
        Some(nulls) => Finding::new(
            Verdict::Warning,
            "NULLs",
            format!("{nulls} row(s) have no value in {name}"),
        )
        .with_hint("--null-cursor decides what becomes of them; the first run carries them"),
        None => Finding::new(
            Verdict::Warning,
            "NULLs",
            format!("{name} may be NULL; no index counts how often"),
        )
        .with_hint("declare it NOT NULL where every row has a value, or choose --null-cursor"),
    }
    .of_table(table)
}

/// How large the catalogue takes the table to be.
pub fn size_finding(table: &Table) -> Finding {
    let message = match (table.estimated_rows, table.estimated_bytes) {
        (Some(rows), Some(bytes)) => format!("about {rows} rows, {bytes} bytes"),
        (Some(rows), None) => format!("about {rows} rows"),
        (None, _) => "the catalogue has no estimate of its rows".to_owned(),
    };
    Finding::new(Verdict::Fine, "size", message).of_table(&table.name)
}

/// A table that is not there.
pub fn missing_finding(table: &TableName) -> Finding {
    Finding::new(Verdict::Failure, "table", "the table does not exist, or may not be seen")
        .with_hint("check its name, and the user's right to use its schema")
        .of_table(table)
}
