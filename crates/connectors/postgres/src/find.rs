//! Rows by their keys.

use std::sync::Arc;

use tidelake_connector::sql::{Dialect, qualified, quote_text, select};
use tidelake_connector::{Counters, FindRequest, Reading};
use tidelake_model::{Error, ErrorKind, Result, TableRead};
use tidelake_watermark::{Kind, Value};

use crate::catalogue::{CatalogueColumn, columns, relation};
use crate::copy::CopyDecoder;
use crate::literal::PostgresDialect;
use crate::pool::Pool;
use crate::reader::CopyReader;
use crate::session::Session;
use crate::split::wires;
use crate::types::selected;

const DOING: &str = "the rows cannot be looked up";

/// Reads the rows that have these keys, in a snapshot of its own.
pub(crate) async fn find(pool: &Arc<Pool>, request: &FindRequest) -> Result<Reading> {
    // The range and the cursor of the read do not count.
    let read = TableRead { cursor: None, range: None, null_cursors: false, ..request.read.clone() };
    let session = pool.get().await?;
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", DOING).await?;
    let found = relation(&session, &read.table).await?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "the table does not exist")
            .with_hint("it may have been dropped or renamed")
    })?;
    let columns = columns(&session, &[found.oid]).await?.remove(&found.oid).unwrap_or_default();
    for name in &request.key {
        if !columns.iter().any(|found| found.column.name() == name) {
            let names: Vec<_> = columns.iter().map(|found| found.column.name()).collect();
            let message = format!("there is no column {name:?}");
            return Err(Error::new(ErrorKind::Configuration, message)
                .with_hint(format!("the columns are: {}", names.join(", "))));
        }
    }
    let wires = wires(&read, &columns)?;
    let place = |name: &str| read.columns.iter().position(|column| column.name() == name);
    let column = |column: &tidelake_model::Column| {
        let wire = place(column.name()).and_then(|place| wires.get(place)).copied();
        selected(column.name(), wire.unwrap_or(crate::types::Wire::Text))
    };
    let finder = Finder { key: &request.key, columns: &columns };
    let query = select(&PostgresDialect, &read, column, Some(&finder.condition(&request.values)));
    let schema = read.schema();
    let counters = Counters::default();
    let decoder =
        CopyDecoder::new(&schema, &wires, read.policies, read.batch_bytes, counters.clone())?;
    let statement = format!("COPY ({query}) TO STDOUT (FORMAT binary)");
    tracing::debug!(table = %read.table, %statement, "looking rows up");
    match CopyReader::start(session, Arc::clone(pool), &statement, decoder).await {
        Ok(reader) => Ok(Reading { schema, batches: reader.into_stream(), counters }),
        Err(error) => Err(misfit(pool, request, &finder).await?.unwrap_or(error)),
    }
}

/// Writes conditions on the key's columns.
struct Finder<'a> {
    key: &'a [String],
    columns: &'a [CatalogueColumn],
}

impl Finder<'_> {
    /// True for the rows that are looked for.
    fn condition(&self, values: &[Vec<Option<String>>]) -> String {
        let rows: Vec<_> = values.iter().map(|values| self.row(values)).collect();
        if rows.is_empty() { "false".to_owned() } else { rows.join(" OR ") }
    }

    fn row(&self, values: &[Option<String>]) -> String {
        if values.len() != self.key.len() || values.is_empty() {
            return "false".to_owned();
        }
        let cells = self.key.iter().zip(values);
        let cells: Vec<_> = cells.map(|(name, value)| self.cell(name, value.as_deref())).collect();
        format!("({})", cells.join(" AND "))
    }

    /// A literal without a type takes the type of its column, without its length:
    /// one that is too long is not cut to fit. Times and bytes may be written as
    /// the lake's values are.
    fn cell(&self, name: &str, value: Option<&str>) -> String {
        let quoted = PostgresDialect.quote(name);
        let Some(text) = value else { return format!("{quoted} IS NULL") };
        // No value of this server holds a NUL.
        if text.contains('\0') {
            return "false".to_owned();
        }
        let column = self.columns.iter().find(|found| found.column.name() == name);
        let kind = column.and_then(|found| found.column.cursor).map(|cursor| cursor.kind);
        let parsed = kind
            .filter(|kind| kind.is_time() || *kind == Kind::Binary)
            .and_then(|kind| Value::parse(kind, text).ok());
        match parsed {
            Some(value) => format!("{quoted} = {}", PostgresDialect.literal(&value)),
            None => format!("{quoted} = {}", quote_text(text)),
        }
    }
}

/// Names the value that is none of its column's type, where that is why the
/// look-up failed.
async fn misfit(
    pool: &Arc<Pool>,
    request: &FindRequest,
    finder: &Finder<'_>,
) -> Result<Option<Error>> {
    let table = qualified(&PostgresDialect, &request.read.table);
    let session = pool.get().await?;
    for values in &request.values {
        for (name, value) in request.key.iter().zip(values) {
            let condition = finder.cell(name, value.as_deref());
            let query = format!("SELECT FROM {table} WHERE {condition} LIMIT 0");
            let Some(code) = refused(&session, &query).await else { continue };
            let value = value.as_deref().unwrap_or("NULL");
            let message = match code.as_str() {
                // There is no operator to compare by.
                "42883" => format!("rows cannot be looked up by column {name:?}"),
                code if code.starts_with("22") => {
                    format!("{value:?} is no value of column {name:?}")
                }
                _ => return Ok(None),
            };
            return Ok(Some(
                Error::new(ErrorKind::Configuration, message)
                    .with_hint("give the value as the database itself prints it"),
            ));
        }
    }
    pool.put(session);
    Ok(None)
}

/// The code with which the server refuses a statement.
async fn refused(session: &Session, query: &str) -> Option<String> {
    let error = session.client.simple_query(query).await.err()?;
    error.as_db_error().map(|server| server.code().code().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_in_their_quotes() {
        let key = ["a".to_owned(), "b\"c".to_owned()];
        let finder = Finder { key: &key, columns: &[] };
        let values = [
            vec![Some("it's".into()), None],
            vec![Some("x\0y".into()), Some("1".into())],
            vec![Some("too few".into())],
        ];
        assert_eq!(
            finder.condition(&values),
            r#"("a" = 'it''s' AND "b""c" IS NULL) OR (false AND "b""c" = '1') OR false"#
        );
        assert_eq!(finder.condition(&[]), "false");
    }
}
