//! Which tables a sync means.

use arrow::datatypes::DataType;
use tidelake_connector::{Source, TableFilter};
use tidelake_model::{
    Error, ErrorKind, IncrementalTable, InfiniteTime, Policies, ReadMethod, Result, SpecialNumber,
    SyncConfig, Table, TableKey, TableName, TableReadSettings,
};

use crate::cursor::TableCursor;

/// A table of a sync, as the catalogue has it now.
#[derive(Debug, Clone)]
pub(crate) struct SelectedTable {
    /// The catalogue's table.
    pub(crate) table: Table,
    /// Its cursor; `None` for a table that is exported whole.
    pub(crate) cursor: Option<TableCursor>,
    /// How it is read.
    pub(crate) read: TableReadSettings,
}

impl SelectedTable {
    /// `incremental` or `full`.
    pub(crate) fn mode(&self) -> &'static str {
        if self.cursor.is_some() { "incremental" } else { "full" }
    }
}

/// The identity of a sync's table in the state store.
pub(crate) fn table_key(sync: &SyncConfig, table: &TableName) -> TableKey {
    TableKey {
        env: sync.env.clone(),
        scope: sync.sync_id.clone(),
        connector_type: sync.source.connector_type.clone(),
        source_key: sync.source.credential_id.clone(),
        table: Some(table.clone()),
    }
}

/// The catalogue's tables that the sync's patterns mean.
pub(crate) async fn catalogue(sync: &SyncConfig, source: &dyn Source) -> Result<Vec<Table>> {
    let filter = TableFilter {
        schemas: sync.source.schemas.clone(),
        include: sync.source.include.clone(),
        exclude: sync.source.exclude.clone(),
    };
    let mut tables = source.tables(&filter).await?;
    let (least, most) = (sync.source.min_rows, sync.source.max_rows);
    tables.retain(|table| {
        // A table without an estimate is kept: leaving it out would be a guess.
        let Some(rows) = table.estimated_rows else { return true };
        least.is_none_or(|least| rows >= least) && most.is_none_or(|most| rows <= most)
    });
    if tables.is_empty() {
        let schemas = source.tables(&TableFilter::default()).await?;
        let mut names: Vec<_> = schemas.iter().map(|table| table.name.schema.as_str()).collect();
        names.dedup();
        let hint = match names.as_slice() {
            [] => "the database holds no tables that this user may see".to_owned(),
            names => format!(
                "check --source-schema-name, --include and --exclude; schemas with tables are: {}",
                names.join(", ")
            ),
        };
        return Err(
            Error::new(ErrorKind::NotFound, "no table matches the sync's patterns").with_hint(hint)
        );
    }
    Ok(tables)
}

/// The tables of a sync with their cursors. A table that cannot be read, because
/// it or its cursor is gone, is an error of its own and holds up no other.
pub(crate) async fn tables_of(
    sync: &SyncConfig,
    source: &dyn Source,
) -> Result<Vec<Result<SelectedTable>>> {
    let tables = catalogue(sync, source).await?;
    let is_gone =
        |settings: &&IncrementalTable| !tables.iter().any(|table| table.name == settings.table);
    let gone: Vec<_> = sync
        .incremental
        .iter()
        .filter(is_gone)
        .map(|IncrementalTable { table: name, .. }| {
            Err(no_such_table(&tables, Some(&name.schema), &name.table).in_table(name))
        })
        .collect();
    Ok(tables.into_iter().map(|table| select(sync, table)).chain(gone).collect())
}

fn select(sync: &SyncConfig, mut table: Table) -> Result<SelectedTable> {
    let settings = sync.incremental.iter().find(|settings| settings.table == table.name);
    let cursor = settings.map(|settings| TableCursor::find(settings, &table)).transpose()?;
    let read = read_settings(sync, &table.name);
    relax(&mut table, sync.policies);
    if table.columns.is_empty() {
        return Err(Error::new(ErrorKind::Unsupported, "the table has no columns")
            .with_hint("leave it out with --exclude")
            .in_table(&table.name));
    }
    Ok(SelectedTable { table, cursor, read })
}

/// A policy may turn a value into NULL, so a column to which it can apply holds
/// NULLs in the lake, whatever the catalogue says: `valid_to timestamptz NOT NULL
/// DEFAULT 'infinity'` is common. Columns of the key keep their promise.
fn relax(table: &mut Table, policies: Policies) {
    for column in table.columns.iter_mut().filter(|column| column.key_position.is_none()) {
        let becomes_null = match column.field.data_type() {
            DataType::Decimal128(..) | DataType::Decimal256(..) => {
                policies.special_number != SpecialNumber::Fail
            }
            DataType::Date32 | DataType::Time64(_) | DataType::Timestamp(..) => {
                matches!(policies.infinite_time, InfiniteTime::Null | InfiniteTime::Text)
            }
            _ => false,
        };
        if becomes_null {
            column.field.set_nullable(true);
        }
    }
}

fn read_settings(sync: &SyncConfig, name: &TableName) -> TableReadSettings {
    let means = |settings: &&TableReadSettings| {
        settings.table == name.table
            && settings.schema.as_ref().is_none_or(|schema| *schema == name.schema)
    };
    sync.read_settings.iter().find(means).cloned().unwrap_or(TableReadSettings {
        schema: None,
        table: name.table.clone(),
        method: ReadMethod::Auto,
        key: None,
        degree: None,
    })
}

/// The error for a table that is not there, with those that are nearly so named.
pub(crate) fn no_such_table(tables: &[Table], schema: Option<&str>, name: &str) -> Error {
    let wanted = schema.map_or(name.to_owned(), |schema| format!("{schema}.{name}"));
    let alike = |table: &&Table| table.name.table.eq_ignore_ascii_case(name);
    let mut names: Vec<_> =
        tables.iter().filter(alike).map(|table| table.name.to_string()).collect();
    if names.is_empty() {
        names = tables.iter().take(10).map(|table| table.name.to_string()).collect();
    }
    Error::new(
        ErrorKind::NotFound,
        format!("the incremental table {wanted} is not among the tables of the sync"),
    )
    .with_hint(format!(
        "check the spelling, --source-schema-name, --include and --exclude; there are: {}",
        names.join(", ")
    ))
}
