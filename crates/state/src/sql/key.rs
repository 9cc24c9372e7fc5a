//! The six columns of a table's key.

use tidelake_model::{Result, TableKey, TableName};

use super::reader::Reader;
use super::{Cell, Session, Statement};

/// The columns of a key, in the order in which keys are sorted.
pub(super) const KEY: &str = "env, scope, connector_type, source_key, schema_name, table_name";

/// How many keys one statement carries: databases limit the parameters.
pub(super) const CHUNK: usize = 500;

/// The cells of a key. A key without a table has empty names, which no table has.
pub(super) fn cells(key: &TableKey) -> Vec<Cell> {
    let (schema, table) = match &key.table {
        Some(name) => (name.schema.as_str(), name.table.as_str()),
        None => ("", ""),
    };
    [&*key.env, &*key.scope, &*key.connector_type, &*key.source_key, schema, table]
        .into_iter()
        .map(Cell::from)
        .collect()
}

pub(super) fn read(reader: &mut Reader) -> Result<TableKey> {
    let (env, scope) = (reader.text()?, reader.text()?);
    let (connector_type, source_key) = (reader.text()?, reader.text()?);
    let (schema, table) = (reader.text()?, reader.text()?);
    let table = (!table.is_empty()).then(|| TableName::new(schema, table));
    Ok(TableKey { env, scope, connector_type, source_key, table })
}

/// Adds a condition that only rows of these keys meet.
pub(super) fn among<S: Session>(session: &S, statement: Statement, keys: &[TableKey]) -> Statement {
    if session.has_value_lists() {
        let statement = statement.sql(" WHERE (").sql(KEY).sql(") IN (VALUES ");
        return statement.tuples(keys.iter().map(cells)).sql(")");
    }
    let mut statement = statement.sql(" WHERE (");
    for (at, key) in keys.iter().enumerate() {
        statement = statement.sql(if at == 0 { "(" } else { " OR (" });
        for (place, (column, cell)) in KEY.split(", ").zip(cells(key)).enumerate() {
            let and = if place == 0 { "" } else { " AND " };
            statement = statement.sql(and).sql(column).sql(" = ").bind(cell);
        }
        statement = statement.sql(")");
    }
    statement.sql(")")
}
