//! Rows by their keys.

use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::Value;

use super::Row;
use super::arrow_rows::kind_of;
use super::cursor::place;
use super::database::Stored;
use crate::source::FindRequest;

/// Whether each of the stored rows is looked for.
pub(super) fn wanted(stored: &Stored, request: &FindRequest) -> Result<impl Fn(&Row) -> bool> {
    let mut places = vec![];
    for name in &request.key {
        let place = place(&stored.table, name).map_err(|_| {
            Error::new(ErrorKind::Configuration, format!("there is no column {name:?}"))
                .in_table(&stored.table.name)
        })?;
        places.push(place);
    }
    let mut keys = vec![];
    for values in &request.values {
        let mut key: Row = vec![];
        for (place, text) in places.iter().zip(values) {
            key.push(match text {
                None => None,
                Some(text) => Some(parsed(stored, *place, text)?),
            });
        }
        if key.len() == places.len() && values.len() == places.len() {
            keys.push(key);
        }
    }
    Ok(move |row: &Row| {
        keys.iter().any(|key| {
            let cells = places.iter().map(|place| row.get(*place).and_then(Option::as_ref));
            cells.eq(key.iter().map(Option::as_ref))
        })
    })
}

fn parsed(stored: &Stored, place: usize, text: &str) -> Result<Value> {
    let missing = || Error::new(ErrorKind::Internal, "a column without a place");
    let column = stored.table.columns.get(place).ok_or_else(missing)?;
    Value::parse(kind_of(column.field.data_type())?, text).map_err(|_| {
        let message = format!("{text:?} is no value of column {:?}", column.name());
        Error::new(ErrorKind::Configuration, message)
            .with_hint("give the value as the database itself prints it")
            .in_table(&stored.table.name)
    })
}
