//! The stored form of a column's values, found in the data.
//!
//! SQLite sorts by storage class first: NULL, numbers, text, bytes. The lowest
//! and the highest value of a column therefore tell, by an index and at once,
//! whether all of them are of one class.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use tidelake_connector::sql::qualified;
use tidelake_model::{Column, CursorRead, Error, ErrorKind, Result, Table, TableKind, TableName};
use tidelake_watermark::Kind;

use crate::catalogue::Described;
use crate::connection::failure;
use crate::dialect::{Plain, kind_of, quote};
use crate::times::{Form, Guess, decode};

/// Rows at either end of a table at which its times are looked at.
const SAMPLE: u32 = 100;

/// The units that the slices of one snapshot found for columns that hold times as
/// numbers, by column: the numbers of a column are of one unit, whichever slice they
/// are in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Units(Arc<Mutex<BTreeMap<String, Form>>>);

impl Units {
    /// The unit of a column, where a slice found it.
    pub(crate) fn known(&self, column: &str) -> Option<Form> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(column).copied()
    }

    /// Tells a unit that was found, and gives the one that was found first.
    pub(crate) fn agree(&self, column: &str, found: Form) -> Form {
        let mut units = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *units.entry(column.to_owned()).or_insert(found)
    }
}

/// The stored form of the times among the cursor's columns. Fails where a
/// column holds values that do not sort together, because some would be left
/// out of every window.
pub(crate) fn cursor_forms(
    connection: &Connection,
    table: &Table,
    cursor: &CursorRead,
) -> Result<BTreeMap<String, Form>> {
    let mut forms = BTreeMap::new();
    for name in cursor.cursor.columns() {
        let Some(column) = table.column(name) else {
            let message = format!("there is no column {name:?}");
            return Err(Error::new(ErrorKind::Data, message).in_table(&table.name));
        };
        let kind = kind_of(cursor, name).unwrap_or(Kind::Text);
        let extremes = extremes(connection, table, column)
            .map_err(|error| failure(error, "cannot look up the lowest and highest value"))
            .map_err(|error| error.in_table(&table.name))?;
        let Some((lowest, highest)) = extremes else { continue };
        let (lowest, highest) = (ValueRef::from(&lowest), ValueRef::from(&highest));
        if kind.is_time() {
            let form =
                common_form(lowest, highest).map_err(|mixed| mixed_error(table, name, &mixed))?;
            forms.insert(name.clone(), form);
        } else if let Some(stranger) =
            [lowest, highest].into_iter().find(|cell| !is_of_kind(*cell, kind))
        {
            let message = format!(
                "cursor column {name:?} is of kind {kind} and holds {} as well",
                class(stranger)
            );
            return Err(Error::new(ErrorKind::Data, message)
                .with_hint(format!(
                    "find the rows by typeof({}), and correct them or choose another cursor",
                    quote(name)
                ))
                .in_table(&table.name));
        }
    }
    Ok(forms)
}

fn mixed_error(table: &Table, name: &str, what: &str) -> Error {
    Error::new(ErrorKind::Data, format!("cursor column {name:?} holds {what}"))
        .with_hint(
            "times in different forms do not sort together: write all of them in one form, or \
             choose another cursor",
        )
        .in_table(&table.name)
}

/// The lowest and highest value that is not NULL.
fn extremes(
    connection: &Connection,
    table: &Table,
    column: &Column,
) -> rusqlite::Result<Option<(Value, Value)>> {
    let (from, name) = (qualified(&Plain, &table.name), quote(column.name()));
    let (lowest, highest) = if column.indexed {
        // Each of two statements is answered by an index; one for both is not.
        let end = |function: &str| {
            let statement = format!("SELECT {function}({name}) FROM {from}");
            connection.query_row(&statement, [], |row| row.get(0))
        };
        (end("min")?, end("max")?)
    } else {
        let statement = format!("SELECT min({name}), max({name}) FROM {from}");
        connection.query_row(&statement, [], |row| Ok((row.get(0)?, row.get(1)?)))?
    };
    Ok((highest != Value::Null).then_some((lowest, highest)))
}

/// The one form of both cells, or in words what they hold.
fn common_form(lowest: ValueRef<'_>, highest: ValueRef<'_>) -> Result<Form, String> {
    let form = match (Guess::of(lowest), Guess::of(highest)) {
        (Guess::None, _) => return Err(format!("{} that is no time", class(lowest))),
        (_, Guess::None) => return Err(format!("{} that is no time", class(highest))),
        (Guess::One(low), Guess::One(high)) if low == high => low,
        (Guess::One(low), Guess::One(high)) => return Err(format!("both {low} and {high}")),
        (Guess::One(form), other) | (other, Guess::One(form)) if other.allows(form) => form,
        (Guess::AnyUnit, Guess::AnyUnit | Guess::SecondsOrJulianDay)
        | (Guess::SecondsOrJulianDay, Guess::AnyUnit) => Form::Seconds,
        (Guess::SecondsOrJulianDay, Guess::SecondsOrJulianDay) => {
            return Err("numbers that may be julian days or epoch seconds".to_owned());
        }
        _ => return Err("both text and numbers, or numbers of different units".to_owned()),
    };
    for cell in [lowest, highest] {
        if decode(cell, form).is_none() {
            return Err(format!("{} that is no time", class(cell)));
        }
    }
    Ok(form)
}

fn is_of_kind(cell: ValueRef<'_>, kind: Kind) -> bool {
    match cell {
        ValueRef::Integer(_) => matches!(kind, Kind::Integer | Kind::Number),
        // A float among integers is told when its row is read.
        ValueRef::Real(_) => matches!(kind, Kind::Integer | Kind::Number),
        ValueRef::Text(_) => kind == Kind::Text,
        ValueRef::Blob(_) => kind == Kind::Binary,
        ValueRef::Null => true,
    }
}

/// A cell's storage class in words.
pub(crate) fn class(cell: ValueRef<'_>) -> &'static str {
    match cell {
        ValueRef::Null => "NULL",
        ValueRef::Integer(_) => "an integer",
        ValueRef::Real(_) => "a real number",
        ValueRef::Text(_) => "a text",
        ValueRef::Blob(_) => "a blob",
    }
}

/// The unit in which the named columns hold times as numbers, by a look at both
/// ends of the table. A column without such numbers is left out; a view is not
/// looked at, since that may cost as much as reading it.
pub(crate) fn units(
    connection: &Connection,
    described: &Described,
    names: &[&str],
) -> Result<BTreeMap<String, Form>> {
    let table = &described.table;
    if table.kind == TableKind::View {
        return Ok(BTreeMap::new());
    }
    let mut units = BTreeMap::new();
    look(connection, &table.name, described.row_number, names, |name, cell| {
        // The first unit that is found stays; a cell of another one is told
        // when its row is read.
        if let Guess::One(form) = Guess::of(cell)
            && form != Form::Text
        {
            units.entry(name.to_owned()).or_insert(form);
        }
    })
    .map_err(|error| failure(error, "cannot look at the stored times").in_table(&table.name))?;
    Ok(units)
}

fn look(
    connection: &Connection,
    table: &TableName,
    row_number: Option<&str>,
    names: &[&str],
    mut see: impl FnMut(&str, ValueRef<'_>),
) -> rusqlite::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let columns: Vec<_> = names.iter().map(|name| quote(name)).collect();
    let (columns, from) = (columns.join(", "), qualified(&Plain, table));
    let first = format!("SELECT {columns} FROM {from} LIMIT {SAMPLE}");
    let last = row_number.map(|number| {
        format!("SELECT {columns} FROM {from} ORDER BY {number} DESC LIMIT {SAMPLE}")
    });
    for statement in std::iter::once(first).chain(last) {
        let mut statement = connection.prepare(&statement)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for (place, name) in names.iter().enumerate() {
                see(name, row.get_ref(place)?);
            }
        }
    }
    Ok(())
}
