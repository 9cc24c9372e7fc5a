//! The highest value of a cursor.

use tidelake_connector::sql::{
    cursor_expression, not_null_condition, null_condition, order_by, qualified, range_condition,
};
use tidelake_connector::{Effort, Highest, HighestRequest};
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::{Cursor, Kind, Position, Value};

use crate::catalogue::{CatalogueColumn, columns, get, relation};
use crate::failure::failure;
use crate::literal::PostgresDialect;
use crate::pool::Pool;
use crate::session::Session;

const DOING: &str = "the highest value cannot be read";
/// How long a count may take before it is no longer cheap, in milliseconds.
const COUNT_LIMIT: u32 = 2_000;
/// Rows above every window that are counted; more are as bad as so many.
const MOST_UNREACHABLE: u32 = 1_000_000;

/// Looks up what was asked for.
pub(crate) async fn highest(pool: &Pool, request: &HighestRequest) -> Result<Highest> {
    let session = pool.get().await?;
    let highest = look_up(&session, request).await.map_err(|error| error.in_table(&request.table));
    pool.put(session);
    highest
}

async fn look_up(session: &Session, request: &HighestRequest) -> Result<Highest> {
    let columns = cursor_columns(session, request).await?;
    // Only the first column of a composite cursor decides how much is looked at.
    let indexed = match &request.cursor.cursor {
        Cursor::Fallback(names) if names.len() > 1 => false,
        _ => columns.first().is_some_and(|found| found.column.indexed),
    };
    let value = if indexed || request.effort == Effort::Scan {
        Some(highest_value(session, request).await?)
    } else {
        None
    };
    let rows = match &request.count {
        Some(range) if indexed => {
            let condition = range_condition(&PostgresDialect, &request.cursor, range);
            count(session, request, condition.as_deref().unwrap_or("true")).await?
        }
        _ => None,
    };
    let mut not_null = columns.iter().map(|found| found.not_null);
    let never_null = match &request.cursor.cursor {
        Cursor::Fallback(_) => not_null.any(|holds| holds),
        _ => not_null.all(|holds| holds),
    };
    let nulls = match (request.count_nulls, never_null) {
        (false, _) => None,
        (true, true) => Some(0),
        (true, false) if indexed && columns.len() == 1 => {
            count(session, request, &null_condition(&PostgresDialect, &request.cursor)).await?
        }
        (true, false) => None,
    };
    let unreachable = match columns.as_slice() {
        [_] if indexed || request.effort == Effort::Scan => {
            Some(count_unreachable(session, request).await?)
        }
        _ => None,
    };
    Ok(Highest { value, rows, nulls, unreachable })
}

async fn cursor_columns(
    session: &Session,
    request: &HighestRequest,
) -> Result<Vec<CatalogueColumn>> {
    let missing = |what: String| Error::new(ErrorKind::NotFound, what);
    let found = relation(session, &request.table).await?;
    let found = found.ok_or_else(|| missing("the table does not exist".to_owned()))?;
    let mut all = columns(session, &[found.oid]).await?.remove(&found.oid).unwrap_or_default();
    let names = request.cursor.cursor.columns();
    names
        .iter()
        .map(|name| {
            let place = all.iter().position(|column| column.column.name() == name);
            let place = place
                .ok_or_else(|| missing(format!("the cursor column {name:?} does not exist")))?;
            Ok(all.swap_remove(place))
        })
        .collect()
}

/// True for values that a window can reach: no infinite time, no NaN.
fn finite(expression: &str, kind: Kind, version: u32) -> Option<String> {
    let cast = match kind {
        Kind::Date => "date",
        Kind::Datetime => "timestamp",
        Kind::Timestamp => "timestamptz",
        // Up to version 13 a numeric has no infinity, and the word is an error.
        Kind::Number if version >= 14 => {
            return Some(format!(
                "{expression} < 'Infinity'::numeric AND {expression} > '-Infinity'::numeric"
            ));
        }
        Kind::Number => return Some(format!("{expression} < 'NaN'::numeric")),
        Kind::Integer | Kind::Text | Kind::Binary => return None,
    };
    Some(format!("{expression} < 'infinity'::{cast} AND {expression} > '-infinity'::{cast}"))
}

/// True for values above all that a window can reach: NaN, which sorts above
/// infinity here, and a time without an end. `None` where a kind has no such value.
fn above_all(expression: &str, kind: Kind, version: u32) -> Option<String> {
    let condition = match kind {
        Kind::Date => format!("{expression} = 'infinity'::date"),
        Kind::Datetime => format!("{expression} = 'infinity'::timestamp"),
        Kind::Timestamp => format!("{expression} = 'infinity'::timestamptz"),
        Kind::Number if version >= 14 => format!("{expression} >= 'Infinity'::numeric"),
        Kind::Number => format!("{expression} = 'NaN'::numeric"),
        Kind::Integer | Kind::Text | Kind::Binary => return None,
    };
    Some(condition)
}

/// Counts the rows that lie above every window. An index goes straight to them.
async fn count_unreachable(session: &Session, request: &HighestRequest) -> Result<u64> {
    let expression = cursor_expression(&PostgresDialect, &request.cursor);
    let kind = request.cursor.kinds.first().copied().unwrap_or(Kind::Text);
    let Some(condition) = above_all(&expression, kind, session.version) else { return Ok(0) };
    let statement = format!(
        "SELECT count(*) FROM (SELECT FROM {} WHERE {condition} LIMIT {MOST_UNREACHABLE}) AS rows",
        qualified(&PostgresDialect, &request.table)
    );
    tracing::debug!(%statement, "counting rows above every window");
    let row = session.client.query_typed_one(&statement, &[]).await;
    let rows: i64 = get(&row.map_err(|error| failure(error, DOING))?, 0)?;
    Ok(u64::try_from(rows).unwrap_or(0))
}

async fn highest_value(session: &Session, request: &HighestRequest) -> Result<Option<Position>> {
    let cursor = &request.cursor;
    let expressions = match &cursor.cursor {
        Cursor::Composite(names) => names.iter().map(|name| crate::literal::quoted(name)).collect(),
        _ => vec![cursor_expression(&PostgresDialect, cursor)],
    };
    let kinds = expressions.iter().enumerate().map(|(place, _)| {
        cursor.kinds.get(place).or(cursor.kinds.first()).copied().unwrap_or(Kind::Text)
    });
    let kinds: Vec<_> = kinds.collect();
    let mut conditions = vec![not_null_condition(&PostgresDialect, cursor)];
    let pairs = || expressions.iter().zip(&kinds);
    conditions.extend(
        pairs().filter_map(|(expression, kind)| finite(expression, *kind, session.version)),
    );
    let names: Vec<_> = (0..kinds.len()).map(|place| format!("v{place}")).collect();
    let texts: Vec<_> = names
        .iter()
        .zip(&kinds)
        .map(|(name, kind)| match kind {
            Kind::Binary => format!("'0x' || upper(encode({name}, 'hex'))"),
            _ => format!("{name}::text"),
        })
        .collect();
    // In one SELECT, ORDER BY "id" would mean the output "id"::text, whose highest
    // is 9 and not 10.
    let statement = format!(
        "SELECT {} FROM (SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT 1) AS highest ({})",
        texts.join(", "),
        expressions.join(", "),
        qualified(&PostgresDialect, &request.table),
        conditions.join(" AND "),
        order_by(&PostgresDialect, cursor, "DESC"),
        names.join(", "),
    );
    tracing::debug!(%statement, "looking up the highest value");
    let row = session.client.query_typed_opt(&statement, &[]).await;
    let Some(row) = row.map_err(|error| failure(error, DOING))? else { return Ok(None) };
    let values: Result<Vec<_>> = kinds
        .iter()
        .enumerate()
        .map(|(place, kind)| {
            Value::parse(*kind, get(&row, place)?)
                .map_err(|error| Error::new(ErrorKind::Data, DOING).with_source(error))
        })
        .collect();
    Ok(Position::tuple(values?))
}

/// Counts rows, unless that takes long.
async fn count(
    session: &Session,
    request: &HighestRequest,
    condition: &str,
) -> Result<Option<u64>> {
    let table = qualified(&PostgresDialect, &request.table);
    let statement = format!("SELECT count(*) FROM {table} WHERE {condition}");
    tracing::debug!(%statement, "counting rows");
    session.run(&format!("SET statement_timeout = {COUNT_LIMIT}"), DOING).await?;
    let row = session.client.query_typed_one(&statement, &[]).await;
    let limit = &session.statement_timeout;
    session.run(&format!("SET statement_timeout = '{limit}'"), DOING).await?;
    match row {
        Ok(row) => Ok(u64::try_from(get::<i64>(&row, 0)?).ok()),
        Err(error) if error.code().is_some_and(|code| code.code() == "57014") => Ok(None),
        Err(error) => Err(failure(error, "rows cannot be counted")),
    }
}
