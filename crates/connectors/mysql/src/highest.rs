//! The highest value of a cursor.

use tidelake_connector::sql::{
    cursor_expression, not_null_condition, null_condition, order_by, qualified, range_condition,
};
use tidelake_connector::{Effort, Highest, HighestRequest};
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::{Cursor, Kind, Position, Value};

use crate::catalogue::{CatalogueColumn, columns, missing, relation};
use crate::dialect::{MysqlDialect, quoted};
use crate::pool::{Pool, Session, code, number, text};

const DOING: &str = "the highest value cannot be read";
/// How long a count may take before it is no longer cheap, in seconds.
const COUNT_LIMIT: u32 = 2;
/// Rows that no window reaches are counted up to here; more are as bad as so many.
const MOST_UNREACHABLE: u32 = 1_000_000;
/// The server ended a statement that took too long.
const TOO_LONG: [u16; 2] = [1969, 3024];

/// Looks up what was asked for.
pub(crate) async fn highest(pool: &Pool, request: &HighestRequest) -> Result<Highest> {
    let mut session = pool.get().await?;
    let highest = look_up(&mut session, request).await;
    let highest = highest.map_err(|error| error.in_table(&request.table))?;
    pool.put(session);
    Ok(highest)
}

async fn look_up(session: &mut Session, request: &HighestRequest) -> Result<Highest> {
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
            let condition = range_condition(&MysqlDialect, &request.cursor, range);
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
            count(session, request, &null_condition(&MysqlDialect, &request.cursor)).await?
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
    session: &mut Session,
    request: &HighestRequest,
) -> Result<Vec<CatalogueColumn>> {
    if relation(session, &request.table).await?.is_none() {
        return Err(missing());
    }
    let mut all = columns(session, &request.table).await?;
    let names = request.cursor.cursor.columns();
    names
        .iter()
        .map(|name| {
            let place = all.iter().position(|column| column.column.name() == name);
            let place = place.ok_or_else(|| {
                let message = format!("the cursor column {name:?} does not exist");
                Error::new(ErrorKind::NotFound, message)
            })?;
            Ok(all.swap_remove(place))
        })
        .collect()
}

/// True for days that are in the calendar. The server keeps others too: month or day
/// may be 0, and with a setting there is a 31st of February.
fn in_calendar(expression: &str, kind: Kind) -> Option<String> {
    matches!(kind, Kind::Date | Kind::Datetime | Kind::Timestamp).then(|| {
        format!("DAYOFMONTH({expression}) BETWEEN 1 AND DAYOFMONTH(LAST_DAY({expression}))")
    })
}

/// Counts rows whose date is `0000-00-00`, or has no year: they lie below every
/// window but the first, which refuses them. An index goes straight to them.
async fn count_unreachable(session: &mut Session, request: &HighestRequest) -> Result<u64> {
    let expression = cursor_expression(&MysqlDialect, &request.cursor);
    let kind = request.cursor.kinds.first().copied().unwrap_or(Kind::Text);
    if in_calendar(&expression, kind).is_none() {
        return Ok(0);
    }
    let statement = format!(
        "SELECT count(*) FROM (SELECT 1 FROM {} WHERE {expression} < DATE'0000-01-01' \
         LIMIT {MOST_UNREACHABLE}) AS rows_found",
        qualified(&MysqlDialect, &request.table)
    );
    tracing::debug!(%statement, "counting rows that no window reaches");
    let row = session.ask_one(&statement, DOING).await?;
    Ok(number(&row, 0).unwrap_or(0))
}

async fn highest_value(
    session: &mut Session,
    request: &HighestRequest,
) -> Result<Option<Position>> {
    let cursor = &request.cursor;
    let expressions = match &cursor.cursor {
        Cursor::Composite(names) => names.iter().map(|name| quoted(name)).collect(),
        _ => vec![cursor_expression(&MysqlDialect, cursor)],
    };
    let kinds = expressions.iter().enumerate().map(|(place, _)| {
        cursor.kinds.get(place).or(cursor.kinds.first()).copied().unwrap_or(Kind::Text)
    });
    let kinds: Vec<_> = kinds.collect();
    let mut conditions = vec![not_null_condition(&MysqlDialect, cursor)];
    let pairs = || expressions.iter().zip(&kinds);
    conditions.extend(pairs().filter_map(|(expression, kind)| in_calendar(expression, *kind)));
    // A name that no column has: ORDER BY would take it for one of these.
    let names: Vec<_> =
        (0..kinds.len()).map(|place| quoted(&format!("highest value {place}"))).collect();
    let texts: Vec<_> = names
        .iter()
        .zip(&kinds)
        .map(|(name, kind)| match kind {
            Kind::Binary => format!("CONCAT('0x', HEX({name}))"),
            Kind::Text => format!("CONVERT({name} USING utf8mb4)"),
            _ => format!("CAST({name} AS CHAR)"),
        })
        .collect();
    let selected: Vec<_> = expressions
        .iter()
        .zip(&names)
        .map(|(expression, name)| format!("{expression} AS {name}"))
        .collect();
    let statement = format!(
        "SELECT {} FROM (SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT 1) AS highest",
        texts.join(", "),
        selected.join(", "),
        qualified(&MysqlDialect, &request.table),
        conditions.join(" AND "),
        order_by(&MysqlDialect, cursor, "DESC"),
    );
    tracing::debug!(%statement, "looking up the highest value");
    let rows = session.ask(&statement, DOING).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let values: Result<Vec<_>> = kinds
        .iter()
        .enumerate()
        .map(|(place, kind)| {
            Value::parse(*kind, text(row, place))
                .map_err(|error| Error::new(ErrorKind::Data, DOING).with_source(error))
        })
        .collect();
    Ok(Position::tuple(values?))
}

/// Counts rows, unless that takes long.
async fn count(
    session: &mut Session,
    request: &HighestRequest,
    condition: &str,
) -> Result<Option<u64>> {
    let table = qualified(&MysqlDialect, &request.table);
    let counting = format!("count(*) FROM {table} WHERE {condition}");
    let statement = match session.is_mariadb() {
        true => format!("SET STATEMENT max_statement_time = {COUNT_LIMIT} FOR SELECT {counting}"),
        false => format!("SELECT /*+ MAX_EXECUTION_TIME({COUNT_LIMIT}000) */ {counting}"),
    };
    tracing::debug!(%statement, "counting rows");
    match session.ask_one(&statement, "rows cannot be counted").await {
        Ok(row) => Ok(number(&row, 0)),
        Err(error) if code(&error).is_some_and(|code| TOO_LONG.contains(&code)) => Ok(None),
        Err(error) => Err(error),
    }
}
