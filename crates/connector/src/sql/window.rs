//! The condition of a window, and the statement that reads it.

use tidelake_model::{Column, CursorRead, Error, ErrorKind, Result, TableRead};
use tidelake_watermark::{Bound, Cursor, Position, Range, Value};

use crate::sql::dialect::{Dialect, qualified};

/// The cursor as an expression: the column, `coalesce(a, b)` for a fallback, the
/// row value `(a, b)` for a composite cursor.
pub fn cursor_expression(dialect: &dyn Dialect, cursor: &CursorRead) -> String {
    let columns = quoted(dialect, &cursor.cursor).join(", ");
    match &cursor.cursor {
        Cursor::Single(_) => columns,
        Cursor::Composite(_) => format!("({columns})"),
        Cursor::Fallback(_) => format!("coalesce({columns})"),
    }
}

fn quoted(dialect: &dyn Dialect, cursor: &Cursor) -> Vec<String> {
    cursor.columns().iter().map(|name| dialect.quote(name)).collect()
}

/// What must not be NULL for the cursor to have a value: each column of a
/// composite cursor, else the expression.
fn parts(dialect: &dyn Dialect, cursor: &CursorRead) -> Vec<String> {
    match &cursor.cursor {
        Cursor::Composite(_) => quoted(dialect, &cursor.cursor),
        _ => vec![cursor_expression(dialect, cursor)],
    }
}

/// True for the rows whose cursor is NULL; for a composite cursor, those in
/// which any of its columns is.
pub fn null_condition(dialect: &dyn Dialect, cursor: &CursorRead) -> String {
    joined(&parts(dialect, cursor), " IS NULL", " OR ")
}

/// True for all other rows.
pub fn not_null_condition(dialect: &dyn Dialect, cursor: &CursorRead) -> String {
    joined(&parts(dialect, cursor), " IS NOT NULL", " AND ")
}

fn joined(parts: &[String], test: &str, with: &str) -> String {
    let conditions: Vec<_> = parts.iter().map(|part| format!("{part}{test}")).collect();
    if conditions.len() == 1 { conditions.concat() } else { format!("({})", conditions.join(with)) }
}

/// The cursor's columns as a sort order: `direction` is `ASC` or `DESC`.
pub fn order_by(dialect: &dyn Dialect, cursor: &CursorRead, direction: &str) -> String {
    let columns = match &cursor.cursor {
        Cursor::Composite(_) => quoted(dialect, &cursor.cursor),
        _ => vec![cursor_expression(dialect, cursor)],
    };
    let terms: Vec<_> = columns.iter().map(|column| format!("{column} {direction}")).collect();
    terms.join(", ")
}

/// True for the rows whose cursor lies in the range, never for those whose
/// cursor is NULL; `None` when both ends are open.
pub fn range_condition(
    dialect: &dyn Dialect,
    cursor: &CursorRead,
    range: &Range,
) -> Option<String> {
    let low = range.low.as_ref().map(|bound| comparison(dialect, cursor, bound, '>'));
    let high = range.high.as_ref().map(|bound| comparison(dialect, cursor, bound, '<'));
    let mut conditions: Vec<_> = low.into_iter().chain(high).collect();
    if conditions.is_empty() {
        return None;
    }
    // `(2, NULL) > (1, 1)` is true: the first difference decides.
    if matches!(cursor.cursor, Cursor::Composite(_)) {
        conditions.push(not_null_condition(dialect, cursor));
    }
    Some(conditions.join(" AND "))
}

fn comparison(dialect: &dyn Dialect, cursor: &CursorRead, bound: &Bound, sign: char) -> String {
    let equal = if bound.inclusive { "=" } else { "" };
    let Cursor::Composite(_) = cursor.cursor else {
        let expression = cursor_expression(dialect, cursor);
        return format!("{expression} {sign}{equal} {}", dialect.literal(bound.at.first()));
    };
    if dialect.row_values() {
        let literals: Vec<_> = bound.at.values().map(|value| dialect.literal(value)).collect();
        let expression = cursor_expression(dialect, cursor);
        return format!("{expression} {sign}{equal} ({})", literals.join(", "));
    }
    let columns = quoted(dialect, &cursor.cursor);
    written_out(dialect, &columns, &bound.at, sign, equal)
}

/// A comparison of tuples without row values: `a > 1 OR (a = 1 AND b > 2)`.
fn written_out(
    dialect: &dyn Dialect,
    columns: &[String],
    at: &Position,
    sign: char,
    equal: &str,
) -> String {
    let pairs: Vec<(&String, &Value)> = columns.iter().zip(at.values()).collect();
    let last = pairs.len().saturating_sub(1);
    let mut text = String::new();
    for (place, (column, value)) in pairs.iter().enumerate().rev() {
        let literal = dialect.literal(value);
        text = if place == last {
            format!("{column} {sign}{equal} {literal}")
        } else {
            format!("({column} {sign} {literal} OR ({column} = {literal} AND {text}))")
        };
    }
    text
}

/// The condition of what is read; `None` where every row is.
///
/// | range | NULL cursors are | condition |
/// |---|---|---|
/// | bounded at either end | not read | the bounds, which no NULL meets |
/// | bounded at either end | read | the bounds, or NULL |
/// | open at both, or absent | not read | not NULL |
/// | open at both, or absent | read | none |
///
/// Without a cursor every row is read; [`check`] refuses a range then.
pub fn window_where(dialect: &dyn Dialect, read: &TableRead) -> Option<String> {
    let cursor = read.cursor.as_ref()?;
    let bounds = read.range.as_ref().and_then(|range| range_condition(dialect, cursor, range));
    match (bounds, read.null_cursors) {
        (Some(bounds), false) => Some(bounds),
        (Some(bounds), true) => {
            Some(format!("(({bounds}) OR {})", null_condition(dialect, cursor)))
        }
        (None, false) => Some(not_null_condition(dialect, cursor)),
        (None, true) => None,
    }
}

/// The statement that reads a table: `column` renders each selected column,
/// `extra` is one more condition, such as the physical part of a slice.
pub fn select(
    dialect: &dyn Dialect,
    read: &TableRead,
    column: impl Fn(&Column) -> String,
    extra: Option<&str>,
) -> String {
    select_from(dialect, &qualified(dialect, &read.table), read, column, extra)
}

/// The same from a table that the caller spells, with its partitions or an index for
/// example.
pub fn select_from(
    dialect: &dyn Dialect,
    table: &str,
    read: &TableRead,
    column: impl Fn(&Column) -> String,
    extra: Option<&str>,
) -> String {
    let columns: Vec<_> = read.columns.iter().map(column).collect();
    let mut statement = format!("SELECT {} FROM {table}", columns.join(", "));
    let window = window_where(dialect, read);
    let conditions = window.as_deref().into_iter().chain(extra);
    for (place, condition) in conditions.enumerate() {
        statement.push_str(if place == 0 { " WHERE " } else { " AND " });
        statement.push_str(&format!("({condition})"));
    }
    statement
}

/// Refuses a read that no statement can express: a range without a cursor, a
/// cursor whose columns are not read, a bound of another shape than the cursor.
/// Sources call it before they read, because a condition that is left out would
/// read too much without anybody noticing.
pub fn check(read: &TableRead) -> Result<()> {
    let internal = |message: String| Err(Error::new(ErrorKind::Internal, message));
    let Some(cursor) = &read.cursor else {
        return match &read.range {
            Some(range) if *range != Range::default() => {
                internal("a range of cursor values was given without a cursor".to_owned())
            }
            _ => Ok(()),
        };
    };
    let columns = cursor.cursor.columns();
    for name in columns {
        if !read.columns.iter().any(|column| column.name() == name) {
            return internal(format!("cursor column {name:?} is not among those that are read"));
        }
    }
    let components = if matches!(cursor.cursor, Cursor::Composite(_)) { columns.len() } else { 1 };
    if cursor.kinds.len() != components {
        return internal(format!(
            "a cursor of {components} values has {} kinds",
            cursor.kinds.len()
        ));
    }
    let range = read.range.iter();
    for bound in range.flat_map(|range| range.low.iter().chain(&range.high)) {
        if bound.at.kinds() != cursor.kinds {
            return internal(format!("the bound {} is of another kind than the cursor", bound.at));
        }
    }
    Ok(())
}
