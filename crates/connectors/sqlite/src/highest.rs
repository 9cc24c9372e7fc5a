//! The highest value of a cursor, and counts that an index makes cheap.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use rusqlite::Connection;
use tidelake_connector::sql::{Dialect, not_null_condition, null_condition, order_by, qualified};
use tidelake_connector::{Counters, Effort, Highest, HighestRequest, cursor_extent};
use tidelake_model::{Column, CursorRead, Error, ErrorKind, Policies, Result, Table, TableRead};
use tidelake_watermark::{Cursor, Kind, Position, Value};

use crate::batches::Batcher;
use crate::catalogue::describe;
use crate::connection::failure;
use crate::dialect::{Plain, Sorted, kind_of, quote};
use crate::forms::cursor_forms;
use crate::statement::{Part, below, condition};
use crate::times::{Form, NANOS_PER_DAY, parse};

/// Looks the highest value up, and counts.
pub(crate) fn highest(connection: &Connection, request: &HighestRequest) -> Result<Highest> {
    // One transaction, so that value and counts are of one moment.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let table = describe(&transaction, &request.table)?.table;
    let cursor = &request.cursor;
    let columns = columns_of(&table, cursor)?;
    let leads = !matches!(cursor.cursor, Cursor::Fallback(_))
        && columns.first().is_some_and(|column| column.indexed);
    let mut found = Highest::default();
    // Several spellings of a time sort by no index once a second column decides.
    let sorts = !matches!(cursor.cursor, Cursor::Composite(_))
        || !cursor.kinds.first().is_some_and(|kind| kind.is_time());
    if !(leads && sorts) && request.effort == Effort::Cheap {
        if request.count_nulls {
            found.nulls = nulls(&transaction, &table, cursor, &columns, leads)?;
        }
        return Ok(found);
    }
    let forms = cursor_forms(&transaction, &table, cursor)?;
    found.value = Some(value(&transaction, &table, cursor, &columns, &forms)?);
    if let Some(range) = &request.count
        && leads
    {
        let condition = condition(cursor, Some(range), false, &forms);
        found.rows = Some(count(&transaction, &table, condition.as_deref())?);
    }
    if request.count_nulls {
        found.nulls = nulls(&transaction, &table, cursor, &columns, leads)?;
    }
    Ok(found)
}

fn columns_of(table: &Table, cursor: &CursorRead) -> Result<Vec<Column>> {
    let find = |name: &String| {
        table.column(name).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no column {name:?}"))
                .with_hint("names are compared in exact spelling")
                .in_table(&table.name)
        })
    };
    cursor.cursor.columns().iter().map(find).collect()
}

fn value(
    connection: &Connection,
    table: &Table,
    cursor: &CursorRead,
    columns: &[Column],
    forms: &BTreeMap<String, Form>,
) -> Result<Option<Position>> {
    let names: Vec<_> = columns.iter().map(|column| quote(column.name())).collect();
    let mut conditions = vec![not_null_condition(&Plain, cursor)];
    conditions.extend(near_the_end(connection, table, cursor, forms)?);
    let statement = format!(
        "SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT 1",
        names.join(", "),
        qualified(&Plain, &table.name),
        conditions.join(" AND "),
        order(cursor, forms)
    );
    tracing::debug!(table = %table.name, statement, "looking up the highest value");
    let read = TableRead {
        table: table.name.clone(),
        columns: columns.to_vec(),
        cursor: Some(cursor.clone()),
        range: None,
        null_cursors: false,
        policies: Policies::default(),
        batch_bytes: u64::MAX,
    };
    let part = Part { cursor_forms: forms.clone(), ..Part::default() };
    let mut batcher = Batcher::new(&read, &part, &Counters::default())?;
    let in_table = |error: Error| error.in_table(&table.name);
    let mut statement = connection.prepare(&statement).map_err(failed).map_err(in_table)?;
    let mut rows = statement.query([]).map_err(failed).map_err(in_table)?;
    let Some(row) = rows.next().map_err(failed).map_err(in_table)? else { return Ok(None) };
    batcher.push(row).map_err(in_table)?;
    match batcher.finish().map_err(in_table)? {
        Some(batch) => position(&batch, cursor),
        None => Ok(None),
    }
}

/// Descending order of the cursor. Numbers of one unit sort as the times that
/// they are, so that an index on them serves.
fn order(cursor: &CursorRead, forms: &BTreeMap<String, Form>) -> String {
    let sorted = Sorted::new(cursor, forms);
    if matches!(cursor.cursor, Cursor::Fallback(_)) {
        return order_by(&sorted, cursor, "DESC");
    }
    let terms = cursor.cursor.columns().iter().map(|name| match forms.get(name) {
        Some(Form::Text) | None => format!("{} DESC", sorted.quote(name)),
        Some(_) => format!("{} DESC", quote(name)),
    });
    terms.collect::<Vec<_>>().join(", ")
}

/// Text of different spellings sorts by its date to within two days; the highest
/// time is that near to the highest text.
fn near_the_end(
    connection: &Connection,
    table: &Table,
    cursor: &CursorRead,
    forms: &BTreeMap<String, Form>,
) -> Result<Option<String>> {
    let (Cursor::Single(name), Some(Form::Text)) =
        (&cursor.cursor, cursor.cursor.columns().first().and_then(|name| forms.get(name)))
    else {
        return Ok(None);
    };
    let name = quote(name);
    let statement = format!("SELECT max({name}) FROM {}", qualified(&Plain, &table.name));
    let highest: Option<String> =
        connection.query_row(&statement, [], |row| row.get(0)).map_err(failed)?;
    let nanos = highest.and_then(|text| parse(text.as_bytes()));
    Ok(nanos.map(|nanos| format!("{name} >= {}", below(nanos - 2 * NANOS_PER_DAY, Form::Text))))
}

/// The cursor's position in the one row of a batch.
fn position(batch: &RecordBatch, cursor: &CursorRead) -> Result<Option<Position>> {
    if !cursor.kinds.contains(&Kind::Text) {
        return Ok(cursor_extent(batch, cursor)?.highest);
    }
    let mut values = vec![];
    for name in cursor.cursor.columns() {
        let kind = kind_of(cursor, name).unwrap_or(Kind::Text);
        let value = if kind == Kind::Text {
            let column =
                batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
            column
                .filter(|column| column.is_valid(0))
                .map(|column| Value::Text(column.value(0).to_owned()))
        } else {
            let single = CursorRead { cursor: Cursor::Single(name.clone()), kinds: vec![kind] };
            cursor_extent(batch, &single)?.highest.map(|position| position.first().clone())
        };
        match (value, &cursor.cursor) {
            (Some(value), Cursor::Fallback(_)) => return Ok(Some(value.into())),
            (Some(value), _) => values.push(value),
            (None, Cursor::Fallback(_)) => {}
            (None, _) => return Ok(None),
        }
    }
    Ok(Position::tuple(values))
}

fn count(connection: &Connection, table: &Table, condition: Option<&str>) -> Result<u64> {
    let mut statement = format!("SELECT count(*) FROM {}", qualified(&Plain, &table.name));
    if let Some(condition) = condition {
        statement.push_str(&format!(" WHERE {condition}"));
    }
    let rows: i64 = connection.query_row(&statement, [], |row| row.get(0)).map_err(failed)?;
    u64::try_from(rows).map_err(|error| {
        Error::new(ErrorKind::Internal, "a negative number of rows was counted").with_source(error)
    })
}

/// Rows whose cursor is NULL: none where the columns cannot be, else counted
/// where an index has them together.
fn nulls(
    connection: &Connection,
    table: &Table,
    cursor: &CursorRead,
    columns: &[Column],
    leads: bool,
) -> Result<Option<u64>> {
    let nullable = |column: &Column| column.field.is_nullable();
    let never = match cursor.cursor {
        Cursor::Fallback(_) => !columns.iter().all(nullable),
        _ => !columns.iter().any(nullable),
    };
    if never {
        return Ok(Some(0));
    }
    if leads && !columns.iter().skip(1).any(nullable) {
        return count(connection, table, Some(&null_condition(&Plain, cursor))).map(Some);
    }
    Ok(None)
}

fn failed(error: rusqlite::Error) -> Error {
    failure(error, "cannot look up the highest value")
}
