//! Which tables a sync means.

use std::collections::BTreeSet;

use tidelake_connector::{Source, TableFilter};
use tidelake_model::{
    Column, Error, ErrorKind, IncrementalTable, Notice, ReadMethod, Result, SyncConfig, Table,
    TableKey, TableName, TableReadSettings,
};
use tidelake_state::OWN_TABLES;

use crate::cursor::TableCursor;
use crate::lake_columns::select;
use crate::selection::nearest;

/// A table of a sync, as the catalogue has it now.
#[derive(Debug, Clone)]
pub(crate) struct SelectedTable {
    /// The table as the lake is to have it: only the columns that were chosen, in
    /// the types that were chosen, under the key that was declared. Rows that were
    /// read come to its schema by [`in_schema`](crate::exact::in_schema).
    pub(crate) table: Table,
    /// Its columns as the source is asked for them; one that the source has no more
    /// is missing here.
    pub(crate) read_columns: Vec<Column>,
    /// Names of the chosen columns that the catalogue had when it was looked at.
    pub(crate) known_columns: Vec<String>,
    /// Its cursor; `None` for a table that is exported whole.
    pub(crate) cursor: Option<TableCursor>,
    /// How it is read.
    pub(crate) read: TableReadSettings,
    /// What the user should know of its columns.
    pub(crate) notices: Vec<Notice>,
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

/// The sync's patterns.
pub(crate) fn filter_of(sync: &SyncConfig) -> TableFilter {
    TableFilter {
        schemas: sync.source.schemas.clone(),
        include: sync.source.include.clone(),
        exclude: sync.source.exclude.clone(),
    }
}

/// The catalogue's tables that the sync's patterns mean.
pub(crate) async fn catalogue(sync: &SyncConfig, source: &dyn Source) -> Result<Vec<Table>> {
    let filter = filter_of(sync);
    let mut tables = without_own(source.tables(&filter).await?);
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

/// Without the tables of a state store that lies in the same database: its schema
/// is known by having all of them.
fn without_own(mut tables: Vec<Table>) -> Vec<Table> {
    let is_own = |table: &TableName| OWN_TABLES.contains(&table.table.as_str());
    let stores: BTreeSet<String> = {
        let schemas: BTreeSet<&str> = tables.iter().map(|table| &*table.name.schema).collect();
        let count = |schema: &&str| {
            let own = tables.iter().filter(|table| table.name.schema == *schema);
            own.filter(|table| is_own(&table.name)).count()
        };
        let whole = schemas.into_iter().filter(|schema| count(schema) == OWN_TABLES.len());
        whole.map(str::to_owned).collect()
    };
    tables.retain(|table| !(stores.contains(&table.name.schema) && is_own(&table.name)));
    tables
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
            let what = "incremental table";
            Err(no_such_table(&tables, what, Some(&name.schema), &name.table).in_table(name))
        })
        .collect();
    let capabilities = source.capabilities();
    let selected = tables.into_iter().map(|table| select(sync, capabilities, table));
    Ok(selected.chain(gone).collect())
}

/// How a table is read.
pub(crate) fn read_settings(sync: &SyncConfig, name: &TableName) -> TableReadSettings {
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
pub(crate) fn no_such_table(
    tables: &[Table],
    what: &str,
    schema: Option<&str>,
    name: &str,
) -> Error {
    let wanted = schema.map_or(name.to_owned(), |schema| format!("{schema}.{name}"));
    let near = nearest(name, tables.iter().map(|table| table.name.table.as_str()));
    let alike = |table: &&Table| near.is_some_and(|near| table.name.table == near);
    let mut names: Vec<_> =
        tables.iter().filter(alike).map(|table| table.name.to_string()).collect();
    if names.is_empty() {
        names = tables.iter().take(10).map(|table| table.name.to_string()).collect();
    }
    Error::new(
        ErrorKind::NotFound,
        format!("the {what} {wanted} is not among the tables of the sync"),
    )
    .with_hint(format!(
        "check the spelling, --source-schema-name, --include and --exclude; there are: {}",
        names.join(", ")
    ))
}
