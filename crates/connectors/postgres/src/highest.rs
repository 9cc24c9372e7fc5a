//! The highest value of a cursor.

use tidelake_connector::sql::{
    cursor_expression, not_null_condition, null_condition, order_by, qualified, range_condition,
};
use tidelake_connector::{Effort, Highest, HighestRequest};
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::{Cursor, Kind, Position, Value};

use crate::catalogue::{Known, KnownColumn, columns, get, relation};
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
    let highest =
        find(pool, &session, request).await.map_err(|error| error.in_table(&request.table));
    pool.put(session);
    highest
}

async fn find(pool: &Pool, session: &Session, request: &HighestRequest) -> Result<Highest> {
    if let Some(known) = pool.known(&request.table)
        && let Ok(columns) = cursor_columns(&known.columns, request)
    {
        match look_up(session, request, &columns).await {
            // The table is another than it was.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Data) => {
                pool.forget(&request.table);
            }
            other => return other,
        }
    }
    let found = relation(session, &request.table).await?;
    let found = found.ok_or_else(|| missing("the table does not exist"))?;
    let columns = columns(session, &[found.oid]).await?.remove(&found.oid).unwrap_or_default();
    let known = Known::new(found, &columns);
    look_up(session, request, &cursor_columns(&known.columns, request)?).await
}

/// All in one round trip.
async fn look_up(
    session: &Session,
    request: &HighestRequest,
    columns: &[&KnownColumn],
) -> Result<Highest> {
    // Only the first column of a composite cursor decides how much is looked at.
    let indexed = match &request.cursor.cursor {
        Cursor::Fallback(names) if names.len() > 1 => false,
        _ => columns.first().is_some_and(|found| found.indexed),
    };
    let looks = indexed || request.effort == Effort::Scan;
    let value = async {
        if !looks {
            return Ok(None);
        }
        highest_value(session, request).await.map(Some)
    };
    let rows = async {
        let Some(range) = request.count.as_ref().filter(|_| indexed) else { return Ok(None) };
        let condition = range_condition(&PostgresDialect, &request.cursor, range);
        count(session, request, condition.as_deref().unwrap_or("true")).await
    };
    let mut not_null = columns.iter().map(|found| found.not_null);
    let never_null = match &request.cursor.cursor {
        Cursor::Fallback(_) => not_null.any(|holds| holds),
        _ => not_null.all(|holds| holds),
    };
    let nulls = async {
        match (request.count_nulls, never_null) {
            (false, _) => Ok(None),
            (true, true) => Ok(Some(0)),
            (true, false) if indexed && columns.len() == 1 => {
                count(session, request, &null_condition(&PostgresDialect, &request.cursor)).await
            }
            (true, false) => Ok(None),
        }
    };
    let unreachable = async {
        if !looks || columns.len() != 1 {
            return Ok(None);
        }
        count_unreachable(session, request).await.map(Some)
    };
    let (value, rows, nulls, unreachable) = futures::join!(value, rows, nulls, unreachable);
    Ok(Highest { value: value?, rows: rows?, nulls: nulls?, unreachable: unreachable? })
}

fn missing(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotFound, what)
}

fn cursor_columns<'a>(
    columns: &'a [KnownColumn],
    request: &HighestRequest,
) -> Result<Vec<&'a KnownColumn>> {
    let names = request.cursor.cursor.columns().iter();
    names
        .map(|name| {
            let found = columns.iter().find(|column| column.name == *name);
            found.ok_or_else(|| missing(format!("the cursor column {name:?} does not exist")))
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
    let shorten = format!("SET statement_timeout = {COUNT_LIMIT}");
    let restore = format!("SET statement_timeout = '{}'", session.statement_timeout);
    let (shortened, row, restored) = futures::join!(
        session.run(&shorten, DOING),
        session.client.query_typed_one(&statement, &[]),
        session.run(&restore, DOING),
    );
    shortened?;
    restored?;
    match row {
        Ok(row) => Ok(u64::try_from(get::<i64>(&row, 0)?).ok()),
        Err(error) if error.code().is_some_and(|code| code.code() == "57014") => Ok(None),
        Err(error) => Err(failure(error, "rows cannot be counted")),
    }
}
