//! The six columns of a table's key.

use tidelake_model::{Result, TableKey, TableName};

use super::reader::Reader;
use super::{Cell, Statement};

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

/// Adds `WHERE (key) IN (…)`.
pub(super) fn among(statement: Statement, keys: &[TableKey]) -> Statement {
    statement.sql(" WHERE (").sql(KEY).sql(") IN (VALUES ").tuples(keys.iter().map(cells)).sql(")")
}
