//! Rows by their keys.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tidelake_connector::sql::{qualified, quote_text};
use tidelake_connector::{FindRequest, Reading};
use tidelake_model::{Column, CursorRead, Error, ErrorKind, Result, Slice, TableRead};
use tidelake_watermark::{Cursor, Kind, Value};

use crate::catalogue::{Described, check_columns, describe};
use crate::connection::{failure, open};
use crate::dialect::{Plain, TIME_FUNCTION, literal, quote};
use crate::forms::{Units, cursor_forms, units};
use crate::reader::read_by;
use crate::source::time_columns;
use crate::statement::Part;
use crate::times::Form;

/// Reads the rows that have these keys, in a snapshot of its own.
pub(crate) fn find(path: &Path, request: &FindRequest) -> Result<Reading> {
    let connection = open(path)?;
    // The range and the cursor of the read do not count.
    let read = TableRead { cursor: None, range: None, null_cursors: false, ..request.read.clone() };
    connection.execute_batch("BEGIN").map_err(|error| failure(error, "cannot take a snapshot"))?;
    let described = describe(&connection, &read.table)?;
    check_columns(&described.table, &read.columns)?;
    let times = time_columns(&read.columns, &BTreeSet::new());
    let part = Part {
        row_number: described.row_number.map(str::to_owned),
        units: units(&connection, &described, &times)?,
        ..Part::default()
    };
    let condition = condition(&connection, &described, request)?;
    let mut columns: Vec<_> = read.columns.iter().map(|column| quote(column.name())).collect();
    columns.extend(part.row_number.clone());
    let statement = format!(
        "SELECT {} FROM {} WHERE {condition}",
        columns.join(", "),
        qualified(&Plain, &read.table)
    );
    let slice = Slice { number: 0, read, part: serde_json::Value::Null };
    let connection = Arc::new(Mutex::new(connection));
    Ok(read_by((connection, Units::default()), slice, part, statement))
}

/// One column of the key, and how its values are compared.
struct KeyColumn<'a> {
    column: &'a Column,
    /// The form of its times that are numbers.
    form: Option<Form>,
}

fn condition(
    connection: &Connection,
    described: &Described,
    request: &FindRequest,
) -> Result<String> {
    let table = &described.table;
    let mut key = vec![];
    for name in &request.key {
        let column = table.column(name).ok_or_else(|| {
            let names: Vec<_> = table.columns.iter().map(Column::name).collect();
            Error::new(ErrorKind::Configuration, format!("there is no column {name:?}"))
                .with_hint(format!("the columns are: {}", names.join(", ")))
        })?;
        key.push(KeyColumn { column, form: form_of(connection, described, column)? });
    }
    let mut rows = vec![];
    for values in &request.values {
        if values.len() != key.len() || values.is_empty() {
            continue;
        }
        let cells: Result<Vec<_>> =
            key.iter().zip(values).map(|(column, value)| column.holds(value.as_deref())).collect();
        rows.push(format!("({})", cells?.join(" AND ")));
    }
    Ok(if rows.is_empty() { "0".to_owned() } else { rows.join(" OR ") })
}

/// The stored form of a column of times; `None` for others, and where the column
/// holds several forms, of which text alone is then looked for.
fn form_of(
    connection: &Connection,
    described: &Described,
    column: &Column,
) -> Result<Option<Form>> {
    let Some(kind) = column.cursor.map(|cursor| cursor.kind).filter(|kind| kind.is_time()) else {
        return Ok(None);
    };
    let name = column.name().to_owned();
    let cursor = CursorRead { cursor: Cursor::Single(name.clone()), kinds: vec![kind] };
    match cursor_forms(connection, &described.table, &cursor) {
        Ok(forms) => Ok(Some(forms.get(&name).copied().unwrap_or(Form::Text))),
        Err(error) if error.kind() == ErrorKind::Data => Ok(Some(Form::Text)),
        Err(error) => Err(error),
    }
}

impl KeyColumn<'_> {
    /// True where the column holds the value.
    fn holds(&self, value: Option<&str>) -> Result<String> {
        let name = quote(self.column.name());
        let Some(text) = value else { return Ok(format!("{name} IS NULL")) };
        let kind = self.column.cursor.map(|cursor| cursor.kind);
        let parsed = match kind {
            None | Some(Kind::Text) => return Ok(format!("{name} = {}", quoted(text))),
            Some(kind) => Value::parse(kind, text),
        };
        let Ok(value) = parsed else {
            // The text as it is stored may be of no form that is understood.
            if kind.is_some_and(Kind::is_time) {
                return Ok(format!("{name} = {}", quoted(text)));
            }
            let message = format!("{text:?} is no value of column {:?}", self.column.name());
            return Err(Error::new(ErrorKind::Configuration, message)
                .with_hint("give the value as the database itself prints it"));
        };
        Ok(match self.form {
            None => format!("{name} = {}", literal(&value)),
            Some(form) => format!(
                "({name} = {} OR {TIME_FUNCTION}({name}, '{}') = {})",
                quoted(text),
                form.name(),
                literal(&value)
            ),
        })
    }
}

fn quoted(text: &str) -> String {
    // A statement ends at a NUL character.
    if text.contains('\0') { literal(&Value::Text(text.to_owned())) } else { quote_text(text) }
}
