//! What was found, in words and values.

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow::array::RecordBatch;
use serde::Serialize;
use tidelake_model::{CursorRead, DataFile, Result, RunId};
use tidelake_watermark::Cursor;

use super::cell::cell_text;
use super::collect::{Entry, Kept};
use super::hash::column_hashes;
use super::matching::{Case, Difference};
use super::rows::RowHasher;
use super::sides::Side;

/// Characters of a value that are shown.
const MOST_SHOWN: usize = 200;

/// A row that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// In which way.
    pub class: Difference,
    /// Values of the key's columns, or of all where there is no key.
    pub key: serde_json::Map<String, serde_json::Value>,
    /// Cursor value.
    pub cursor: Option<String>,
    /// Rows of this key and cursor in the source.
    pub in_source: u64,
    /// Rows of this key and cursor in the lake.
    pub in_lake: u64,
    /// Columns that differ.
    pub columns: Vec<ColumnDifference>,
    /// Files of the lake that hold it.
    pub files: Vec<FilePlace>,
    /// What else is known.
    pub remark: Option<String>,
}

/// A column in which a row differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnDifference {
    /// The column.
    pub column: String,
    /// Value in the source; absent where values are not to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Shown>,
    /// Value in the lake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lake: Option<Shown>,
}

/// A value as it is shown; `None` is NULL.
pub type Shown = Option<String>;

/// A file, and the run that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePlace {
    /// Where it is.
    pub file: String,
    /// The run.
    pub run_id: Option<RunId>,
}

/// Makes findings of cases.
pub(super) struct Describer<'a> {
    pub(super) hasher: &'a RowHasher,
    pub(super) files: &'a [DataFile],
    pub(super) location: &'a dyn Fn(&str) -> String,
    pub(super) values: bool,
    by_entry: HashMap<Entry, &'a Kept>,
    by_key: HashMap<u64, Vec<&'a Kept>>,
}

impl<'a> Describer<'a> {
    pub(super) fn new(
        hasher: &'a RowHasher,
        files: &'a [DataFile],
        location: &'a dyn Fn(&str) -> String,
        values: bool,
        kept: &'a [Kept],
    ) -> Self {
        let by_entry = kept.iter().map(|kept| (kept.entry, kept)).collect();
        let mut by_key: HashMap<u64, Vec<&Kept>> = HashMap::new();
        for kept in kept {
            by_key.entry(kept.entry.key).or_default().push(kept);
        }
        Self { hasher, files, location, values, by_entry, by_key }
    }

    fn row(&self, entry: Option<&Entry>) -> Option<&'a RecordBatch> {
        self.by_entry.get(entry?).map(|kept| &kept.row)
    }

    /// A row of the case, from whichever side has one.
    pub(super) fn any_row(&self, case: &Case) -> Option<&'a RecordBatch> {
        self.row(case.source.as_ref()).or_else(|| self.row(case.lake.as_ref()))
    }

    pub(super) fn finding(&self, case: &Case) -> Result<Finding> {
        let row = self.any_row(case);
        let none = vec![];
        let others = self.by_key.get(&case.key).unwrap_or(&none);
        let in_lake = others.iter().filter(|kept| {
            matches!(kept.entry.side, Side::Lake(_)) && kept.entry.identity == case.identity
        });
        let mut files: Vec<FilePlace> = vec![];
        for place in in_lake.filter_map(|kept| self.place(kept.entry.side)) {
            if !files.contains(&place) {
                files.push(place);
            }
        }
        let columns = match (self.row(case.source.as_ref()), self.row(case.lake.as_ref())) {
            (Some(source), Some(lake)) => self.columns(source, lake)?,
            _ => vec![],
        };
        Ok(Finding {
            class: case.class,
            key: row.map(|row| self.key(row)).unwrap_or_default(),
            cursor: row.and_then(|row| cursor_text(row, self.hasher.cursor()?)),
            in_source: case.in_source,
            in_lake: case.in_lake,
            columns,
            files,
            remark: self.remark(case, others),
        })
    }

    pub(super) fn place(&self, side: Side) -> Option<FilePlace> {
        let Side::Lake(number) = side else { return None };
        let file = self.files.get(usize::try_from(number).ok()?)?;
        Some(FilePlace { file: (self.location)(&file.key), run_id: run_of(&file.key) })
    }

    fn key(&self, row: &RecordBatch) -> serde_json::Map<String, serde_json::Value> {
        let names =
            if self.hasher.key().is_empty() { self.hasher.names() } else { self.hasher.key() };
        let value =
            |name: &String| row.column_by_name(name).and_then(|column| cell_text(column, 0));
        names
            .iter()
            .map(|name| (name.clone(), value(name).map(|text| shown(&text)).into()))
            .collect()
    }

    fn columns(&self, source: &RecordBatch, lake: &RecordBatch) -> Result<Vec<ColumnDifference>> {
        let mut columns = vec![];
        for name in self.hasher.names() {
            let (Some(in_source), Some(in_lake)) =
                (source.column_by_name(name), lake.column_by_name(name))
            else {
                continue;
            };
            if column_hashes(in_source, 0)? != column_hashes(in_lake, 0)? {
                let value =
                    |column| self.values.then(|| cell_text(column, 0).map(|text| shown(&text)));
                columns.push(ColumnDifference {
                    column: name.clone(),
                    source: value(in_source),
                    lake: value(in_lake),
                });
            }
        }
        Ok(columns)
    }

    fn remark(&self, case: &Case, others: &[&Kept]) -> Option<String> {
        if case.class != Difference::Missing {
            return None;
        }
        let cursor = self.hasher.cursor()?;
        let other = others.iter().find(|kept| {
            matches!(kept.entry.side, Side::Lake(_)) && kept.entry.identity != case.identity
        })?;
        let at = cursor_text(&other.row, cursor).unwrap_or_else(|| "NULL".to_owned());
        Some(format!("the lake has this key at {at}"))
    }
}

/// The cursor's value in the first row; values of a composite one joined by commas.
pub(crate) fn cursor_text(row: &RecordBatch, cursor: &CursorRead) -> Option<String> {
    let columns = cursor.cursor.columns();
    let mut texts =
        columns.iter().map(|name| row.column_by_name(name).and_then(|column| cell_text(column, 0)));
    match cursor.cursor {
        Cursor::Fallback(_) => texts.flatten().next(),
        _ => texts.by_ref().collect::<Option<Vec<_>>>().map(|texts| texts.join(",")),
    }
}

/// The run in a data file's name.
pub(crate) fn run_of(key: &str) -> Option<RunId> {
    key.split('-').next()?.parse().ok()
}

/// As much of a value as is worth a look.
fn shown(text: &str) -> String {
    if text.chars().count() <= MOST_SHOWN {
        return text.to_owned();
    }
    let length = text.chars().count();
    let start: String = text.chars().take(MOST_SHOWN).collect();
    format!("{start}… ({length} characters)")
}

/// Errors first, then by key, numbers as numbers.
pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|left, right| {
        left.class.cmp(&right.class).then_with(|| {
            let pairs = left.key.values().zip(right.key.values());
            pairs
                .map(|(left, right)| compared(left, right))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    });
}

fn compared(left: &serde_json::Value, right: &serde_json::Value) -> Ordering {
    let (left, right) = (left.as_str().unwrap_or(""), right.as_str().unwrap_or(""));
    match (left.parse::<i128>(), right.parse::<i128>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        _ => left.cmp(right),
    }
}
