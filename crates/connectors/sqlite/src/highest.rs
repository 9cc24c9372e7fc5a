//! The highest value of a cursor, and counts that an index makes cheap.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tidelake_connector::sql::{Dialect, not_null_condition, null_condition, order_by, qualified};
use tidelake_connector::{Counters, Effort, Highest, HighestRequest, cursor_extent};
use tidelake_model::{Column, CursorRead, Error, ErrorKind, Policies, Result, Table, TableRead};
use tidelake_watermark::{Cursor, Kind, Position, Value};

use crate::batches::Batcher;
use crate::catalogue::describe;
use crate::connection::failure;
use crate::dialect::{Plain, Sorted, kind_of, quote};
use crate::forms::{Units, cursor_forms};
use crate::rows::Rows;
use crate::statement::{Part, below, condition};
use crate::texts::shown;
use crate::times::{Form, NANOS_PER_DAY, decode, parse};

/// Looks the highest value up, and counts.
pub(crate) fn highest(connection: &Connection, request: &HighestRequest) -> Result<Highest> {
    // One transaction, so that value and counts are of one moment.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let table = describe(&transaction, &request.table)?.table;
    let cursor = &request.cursor;
    let columns = columns_of(&table, cursor)?;
    let leads = !matches!(cursor.cursor, Cursor::Fallback(_))
        && columns.first().is_some_and(|column| column.indexed);
    let endless = endless(cursor);
    // A time without an end is an error wherever it is met.
    let has_numbers = cursor.kinds.contains(&Kind::Number);
    let mut found = Highest { unreachable: (!has_numbers).then_some(0), ..Highest::default() };
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
    if let Some(number) = &endless {
        let above = format!("{number} = 9e999");
        found.unreachable = Some(count(&transaction, &table, Some(&above))?);
    }
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

/// The quoted name of a column of decimals, whose cells may be infinite: `9e999`
/// is more than a float can hold. NaN is NULL here.
fn endless(cursor: &CursorRead) -> Option<String> {
    match (&cursor.cursor, cursor.kinds.as_slice()) {
        (Cursor::Single(name), [Kind::Number]) => Some(quote(name)),
        _ => None,
    }
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
    let is_time = |column: &&Column| kind_of(cursor, column.name()).is_some_and(Kind::is_time);
    let times: Vec<_> = columns.iter().filter(is_time).collect();
    let others: Vec<_> = columns.iter().filter(|column| !is_time(column)).cloned().collect();
    let names = others.iter().chain(times.iter().copied());
    let names: Vec<_> = names.map(|column| quote(column.name())).collect();
    let mut conditions = vec![not_null_condition(&Plain, cursor)];
    conditions.extend(near_the_end(connection, table, cursor, forms)?);
    conditions
        .extend(endless(cursor).map(|number| format!("{number} < 9e999 AND {number} > -9e999")));
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
        columns: others,
        cursor: None,
        range: None,
        null_cursors: false,
        policies: Policies::default(),
        batch_bytes: u64::MAX,
    };
    let in_table = |error: Error| error.in_table(&table.name);
    let mut rows = Rows::of(connection, &statement).map_err(failed).map_err(in_table)?;
    let Some(row) = rows.next().map_err(failed).map_err(in_table)? else { return Ok(None) };
    let mut values = BTreeMap::new();
    if !read.columns.is_empty() {
        let mut batcher =
            Batcher::new(&read, &Part::default(), &Units::default(), &Counters::default())?;
        batcher.push(&row).map_err(in_table)?;
        if let Some(batch) = batcher.finish().map_err(in_table)?.pop() {
            for column in &read.columns {
                values.insert(column.name(), value_in(&batch, column.name(), cursor)?);
            }
        }
    }
    for (place, column) in times.iter().enumerate() {
        let cell = row.cell(read.columns.len() + place).map_err(failed).map_err(in_table)?;
        let form = forms.get(column.name()).copied().unwrap_or(Form::Text);
        let value = time_in(cell, form, kind_of(cursor, column.name())).map_err(|()| {
            let message = format!(
                "cursor column {:?} holds {}, which is no such time",
                column.name(),
                shown(cell)
            );
            in_table(Error::new(ErrorKind::Data, message).with_hint(
                "correct the value, or choose another cursor: this one's values must be comparable",
            ))
        })?;
        values.insert(column.name(), value);
    }
    Ok(position(&mut values, cursor))
}

/// The moment in a cell, whatever digits the lake's column keeps.
fn time_in(cell: ValueRef<'_>, form: Form, kind: Option<Kind>) -> Result<Option<Value>, ()> {
    if cell == ValueRef::Null {
        return Ok(None);
    }
    let nanos = decode(cell, form).ok_or(())?;
    Ok(Some(match kind {
        Some(Kind::Date) if nanos.rem_euclid(NANOS_PER_DAY) != 0 => return Err(()),
        Some(Kind::Date) => Value::Date(i64::try_from(nanos / NANOS_PER_DAY).map_err(|_| ())?),
        Some(Kind::Datetime) => Value::Datetime(nanos),
        _ => Value::Timestamp(nanos),
    }))
}

/// The value of one column in the one row of a batch.
fn value_in(batch: &RecordBatch, name: &str, cursor: &CursorRead) -> Result<Option<Value>> {
    let kind = kind_of(cursor, name).unwrap_or(Kind::Text);
    if kind == Kind::Text {
        let column = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
        let column = column.filter(|column| column.is_valid(0));
        return Ok(column.map(|column| Value::Text(column.value(0).to_owned())));
    }
    let single = CursorRead { cursor: Cursor::Single(name.to_owned()), kinds: vec![kind] };
    Ok(cursor_extent(batch, &single)?.highest.map(|position| position.first().clone()))
}

/// The cursor's position, from the values of its columns.
fn position(values: &mut BTreeMap<&str, Option<Value>>, cursor: &CursorRead) -> Option<Position> {
    let columns = cursor.cursor.columns().iter();
    let columns = columns.map(|name| values.remove(name.as_str()).flatten());
    match cursor.cursor {
        Cursor::Fallback(_) => columns.flatten().next().map(Position::from),
        _ => Position::tuple(columns.collect::<Option<Vec<_>>>()?),
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
