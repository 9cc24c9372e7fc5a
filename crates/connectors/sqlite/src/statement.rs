//! The statements that read rows.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};
use tidelake_connector::sql::{not_null_condition, null_condition, qualified, range_condition};
use tidelake_model::{CursorRead, Slice};
use tidelake_watermark::{Bound, Cursor, Kind, Range, Value};

use crate::dialect::{Plain, Sorted, TIME_FUNCTION, kind_of, literal, quote};
use crate::numbers::exact_float;
use crate::times::{
    Form, JULIAN_EPOCH_MILLIS, LAST_DAY, NANOS_PER_DAY, NANOS_PER_SECOND, decode, print, print_date,
};

/// Which piece of a read a slice is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// The snapshot.
    pub(crate) snapshot: u64,
    /// Which of the snapshot's connections reads it.
    pub(crate) reader: usize,
    /// The rows that belong to it.
    pub(crate) rows: RowRange,
    /// The name under which a row's number is read.
    pub(crate) row_number: Option<String>,
    /// The stored form of the cursor's times, by column.
    pub(crate) cursor_forms: BTreeMap<String, Form>,
    /// The unit in which other columns hold times as numbers, where it is known.
    pub(crate) units: BTreeMap<String, Form>,
}

/// Rows by their number, `(after, to]`; open where there is no end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowRange {
    pub(crate) after: Option<i64>,
    pub(crate) to: Option<i64>,
}

impl RowRange {
    /// The ranges between ascending numbers, which have every row in one of them.
    pub(crate) fn between(cuts: &[i64]) -> Vec<Self> {
        let low = std::iter::once(None).chain(cuts.iter().copied().map(Some));
        let high = cuts.iter().copied().map(Some).chain(std::iter::once(None));
        low.zip(high).map(|(after, to)| Self { after, to }).collect()
    }

    /// True for the rows; `None` where that is every one.
    fn condition(self, row_number: &str) -> Option<String> {
        let number = |number: i64| literal(&Value::Integer(number.into()));
        let after = self.after.map(|after| format!("{row_number} > {}", number(after)));
        let to = self.to.map(|to| format!("{row_number} <= {}", number(to)));
        let both: Vec<_> = after.into_iter().chain(to).collect();
        (!both.is_empty()).then(|| both.join(" AND "))
    }
}

/// Gives the connection [`TIME_FUNCTION`]: the time in a cell of a form as text
/// that sorts as time does, NULL for what is no such time.
pub(crate) fn add_time_function(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function(TIME_FUNCTION, 2, flags, |context| {
        let ValueRef::Text(name) = context.get_raw(1) else { return Ok(None) };
        let form = std::str::from_utf8(name).ok().and_then(Form::from_name);
        Ok(form.and_then(|form| decode(context.get_raw(0), form)).map(print))
    })
}

/// The statement that reads the slice.
pub(crate) fn select(slice: &Slice, part: &Part) -> String {
    let read = &slice.read;
    let mut columns: Vec<_> = read.columns.iter().map(|column| quote(column.name())).collect();
    columns.extend(part.row_number.clone());
    let table = qualified(&Plain, &read.table);
    let mut statement = format!("SELECT {} FROM {table}", columns.join(", "));
    let cursor = read.cursor.as_ref();
    let condition = cursor.and_then(|cursor| {
        condition(cursor, read.range.as_ref(), read.null_cursors, &part.cursor_forms)
    });
    let rows = part.row_number.as_ref().and_then(|number| part.rows.condition(number));
    let conditions = match (condition, rows) {
        (None, None) => return statement,
        (Some(condition), None) => condition,
        // The rows of a slice lie together in the table, and in no index.
        (None, Some(rows)) => {
            statement.push_str(" NOT INDEXED");
            rows
        }
        (Some(condition), Some(rows)) => {
            statement.push_str(" NOT INDEXED");
            format!("{rows} AND ({condition})")
        }
    };
    statement.push_str(&format!(" WHERE {conditions}"));
    statement
}

/// The rows whose cursor lies in the range, and those where it is NULL if they
/// are wanted; `None` where that is every row.
///
/// A cell that is no time in the column's form is always among them: reading it
/// fails, where leaving it out would lose its row.
pub(crate) fn condition(
    cursor: &CursorRead,
    range: Option<&Range>,
    nulls: bool,
    forms: &BTreeMap<String, Form>,
) -> Option<String> {
    let sorted = Sorted::new(cursor, forms);
    let Some(bounds) = range.and_then(|range| range_condition(&sorted, cursor, range)) else {
        return (!nulls).then(|| not_null_condition(&Plain, cursor));
    };
    let mut conditions = range.map(|range| coarse(cursor, range, forms)).unwrap_or_default();
    match undecodable(cursor, &sorted) {
        Some(undecodable) => conditions.push(format!("(({bounds}) OR {undecodable})")),
        None => conditions.push(bounds),
    }
    let within = conditions.join(" AND ");
    if nulls {
        return Some(format!("(({within}) OR {})", null_condition(&Plain, cursor)));
    }
    Some(within)
}

fn undecodable(cursor: &CursorRead, sorted: &Sorted<'_>) -> Option<String> {
    use tidelake_connector::sql::Dialect;

    let columns = cursor.cursor.columns().iter();
    let times = columns.filter(|name| kind_of(cursor, name).is_some_and(Kind::is_time));
    let tests: Vec<_> = times
        .map(|name| format!("({} IS NULL AND {} IS NOT NULL)", sorted.quote(name), quote(name)))
        .collect();
    (!tests.is_empty()).then(|| tests.join(" OR "))
}

/// Conditions on the stored form of the first column that an index can serve.
/// They let a little more through than the range: text with any separator,
/// fraction and offset from UTC sorts by its date to within a day.
fn coarse(cursor: &CursorRead, range: &Range, forms: &BTreeMap<String, Form>) -> Vec<String> {
    // Where all below the upper bound is read, the table's own order is faster.
    let Some(low) = &range.low else { return vec![] };
    let columns = cursor.cursor.columns();
    let (Some(name), false) = (columns.first(), matches!(cursor.cursor, Cursor::Fallback(_)))
    else {
        return vec![];
    };
    let Some(form) = forms.get(name) else { return vec![] };
    let name = quote(name);
    let low = moment(low).map(|nanos| format!("{name} >= {}", below(nanos, *form)));
    let high = range.high.as_ref().and_then(moment);
    let high = high.and_then(|nanos| Some(format!("{name} < {}", above(nanos, *form)?)));
    low.into_iter().chain(high).collect()
}

fn moment(bound: &Bound) -> Option<i128> {
    match bound.at.first() {
        Value::Date(days) => Some(i128::from(*days).saturating_mul(NANOS_PER_DAY)),
        Value::Datetime(nanos) | Value::Timestamp(nanos) => Some(*nanos),
        _ => None,
    }
}

fn days(nanos: i128) -> i64 {
    let limit = if nanos < 0 { i64::MIN / 2 } else { i64::MAX / 2 };
    i64::try_from(nanos.div_euclid(NANOS_PER_DAY)).unwrap_or(limit)
}

/// Something in the form that surely sorts below the moment.
pub(crate) fn below(nanos: i128, form: Form) -> String {
    match form {
        Form::Text => format!("'{}'", print_date(days(nanos).saturating_sub(1))),
        Form::JulianDay => julian(nanos, -0.001),
        _ => (nanos.div_euclid(unit(form)) - 1).to_string(),
    }
}

/// Something in the form that surely sorts above the moment; `None` where
/// nothing does.
fn above(nanos: i128, form: Form) -> Option<String> {
    match form {
        Form::Text => {
            let day = days(nanos).saturating_add(2);
            (day <= LAST_DAY).then(|| format!("'{}'", print_date(day)))
        }
        Form::JulianDay => Some(julian(nanos, 0.001)),
        _ => Some((nanos.div_euclid(unit(form)) + 2).to_string()),
    }
}

fn unit(form: Form) -> i128 {
    match form {
        Form::Milliseconds => NANOS_PER_SECOND / 1_000,
        Form::Microseconds => NANOS_PER_SECOND / 1_000_000,
        _ => NANOS_PER_SECOND,
    }
}

fn julian(nanos: i128, margin: f64) -> String {
    let millis = nanos.div_euclid(1_000_000) + i128::from(JULIAN_EPOCH_MILLIS);
    let days = i64::try_from(millis).ok().and_then(exact_float).map(|millis| millis / 86_400_000.0);
    match days {
        Some(days) => format!("{:.6}", days + margin),
        None if nanos < 0 => "-9e999".to_owned(),
        None => "9e999".to_owned(),
    }
}
