//! Tables and columns, from the database's own catalogue.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension};
use tidelake_connector::TableFilter;
use tidelake_model::{Column, Error, ErrorKind, Result, Table, TableKind, TableName};

use crate::connection::failure;
use crate::dialect::quote;
use crate::types::ColumnType;

/// The only schema.
pub(crate) const SCHEMA: &str = "main";

/// Columns that SQLite lets a table and a statement have.
const MOST_COLUMNS: usize = 2_000;

/// A table, and how its rows are told apart.
pub(crate) struct Described {
    pub(crate) table: Table,
    /// A name for the row's number that no column hides; `None` where rows have
    /// none.
    pub(crate) row_number: Option<&'static str>,
}

struct Listed {
    name: String,
    kind: TableKind,
    has_row_numbers: bool,
}

/// Tables and views without the internal ones, sorted by name.
pub(crate) fn tables(connection: &Connection, filter: &TableFilter) -> Result<Vec<Table>> {
    let listed = list(connection, None).map_err(|error| failure(error, "cannot list tables"))?;
    let mut tables = vec![];
    for entry in listed {
        if !filter.matches(&TableName::new(SCHEMA, &entry.name)) {
            continue;
        }
        // A table without a name has no place of its own, neither in the state nor
        // in the lake.
        if entry.name.is_empty() {
            tracing::warn!("a table is left out, its name is empty; a view can give it one");
            continue;
        }
        match describe_listed(connection, &entry) {
            Ok(described) => tables.push(described.table),
            // A view whose table is gone, or a table of a module that is not
            // loaded, must not keep the others from being seen.
            Err(rusqlite::Error::SqliteFailure(error, message))
                if error.code == rusqlite::ErrorCode::Unknown =>
            {
                let message = message.unwrap_or_default();
                tracing::warn!(table = entry.name, "left out, it cannot be described: {message}");
            }
            Err(error) => {
                let error = failure(error, "cannot describe the table");
                return Err(error.in_table(&TableName::new(SCHEMA, &entry.name)));
            }
        }
    }
    tables.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(tables)
}

/// One table, by its exact name.
pub(crate) fn describe(connection: &Connection, name: &TableName) -> Result<Described> {
    let failed = |error| failure(error, "cannot describe the table").in_table(name);
    let listed = match name.schema.as_str() {
        SCHEMA => list(connection, Some(&name.table)).map_err(failed)?,
        _ => vec![],
    };
    match listed.iter().find(|entry| entry.name == name.table) {
        Some(entry) => describe_listed(connection, entry).map_err(failed),
        None => Err(Error::new(ErrorKind::NotFound, format!("there is no table {name}"))
            .with_hint("the schema is always main, and names are compared in exact spelling")),
    }
}

fn list(connection: &Connection, name: Option<&str>) -> rusqlite::Result<Vec<Listed>> {
    let mut statement = connection.prepare(
        "SELECT name, type, wr FROM pragma_table_list
         WHERE schema = 'main' AND type IN ('table', 'view', 'virtual')
           AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND (?1 IS NULL OR name = ?1)",
    )?;
    let rows = statement.query_map([name], |row| {
        let kind: String = row.get("type")?;
        let without_row_numbers: bool = row.get("wr")?;
        Ok(Listed {
            name: row.get("name")?,
            kind: if kind == "view" { TableKind::View } else { TableKind::Table },
            has_row_numbers: kind == "table" && !without_row_numbers,
        })
    })?;
    rows.collect()
}

struct Info {
    place: i64,
    name: String,
    declaration: String,
    not_null: bool,
    key: u32,
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Info>> {
    // Hidden columns (1) belong to virtual tables; generated ones are 2 and 3.
    let mut statement = connection.prepare(
        "SELECT cid, name, type, \"notnull\", pk FROM pragma_table_xinfo(?1, 'main')
         WHERE hidden <> 1 ORDER BY cid",
    )?;
    let rows = statement.query_map([table], |row| {
        Ok(Info {
            place: row.get(0)?,
            name: row.get(1)?,
            declaration: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
            not_null: row.get(3)?,
            key: row.get(4)?,
        })
    })?;
    rows.collect()
}

/// What the indexes of a table give.
#[derive(Default)]
struct Indexes {
    /// Columns that lead a whole index, and those that lead one in which text
    /// sorts by its bytes.
    leading: HashSet<i64>,
    leading_by_bytes: HashSet<i64>,
    /// Whether the primary key has an index of its own.
    has_key_index: bool,
}

fn indexes(connection: &Connection, table: &str) -> rusqlite::Result<Indexes> {
    let mut found = Indexes::default();
    let mut statement = connection.prepare(
        "SELECT list.origin, list.partial, info.cid, info.coll
         FROM pragma_index_list(?1, 'main') AS list, pragma_index_xinfo(list.name, 'main') AS info
         WHERE info.seqno = 0",
    )?;
    let mut rows = statement.query([table])?;
    while let Some(row) = rows.next()? {
        let (origin, partial): (String, bool) = (row.get(0)?, row.get(1)?);
        let (place, collation): (i64, Option<String>) = (row.get(2)?, row.get(3)?);
        found.has_key_index |= origin == "pk";
        if !partial && place >= 0 {
            found.leading.insert(place);
            if collation.as_deref() == Some("BINARY") {
                found.leading_by_bytes.insert(place);
            }
        }
    }
    Ok(found)
}

fn describe_listed(connection: &Connection, entry: &Listed) -> rusqlite::Result<Described> {
    let infos = columns(connection, &entry.name)?;
    let indexes = indexes(connection, &entry.name)?;
    let name = TableName::new(SCHEMA, &entry.name);
    // One more column would be more than a statement may select.
    let has_room = infos.len() < MOST_COLUMNS;
    let row_number = (entry.has_row_numbers && has_room).then(|| free_name(&infos)).flatten();
    let key_columns = infos.iter().filter(|info| info.key > 0).count();
    let columns = infos.iter().map(|info| {
        // The one primary key column that is the row's number itself.
        let is_row_number = entry.has_row_numbers
            && info.key == 1
            && key_columns == 1
            && !indexes.has_key_index
            && info.declaration.eq_ignore_ascii_case("INTEGER");
        let column_type = ColumnType::of(&info.declaration);
        let leading = if column_type == ColumnType::Text {
            &indexes.leading_by_bytes
        } else {
            &indexes.leading
        };
        Column {
            field: column_type.field(&info.name, !(info.not_null || is_row_number)),
            source_type: info.declaration.clone(),
            cursor: column_type.cursor(),
            key_position: info.key.checked_sub(1),
            indexed: is_row_number || leading.contains(&info.place),
            warning: column_type.warning(&info.declaration),
            chosen: false,
        }
    });
    let columns: Vec<Column> = columns.collect();
    let table = Table {
        name,
        kind: entry.kind,
        columns,
        estimated_rows: estimated_rows(connection, &entry.name, row_number)?,
        estimated_bytes: None,
    };
    Ok(Described { table, row_number })
}

fn free_name(infos: &[Info]) -> Option<&'static str> {
    ["rowid", "_rowid_", "oid"]
        .into_iter()
        .find(|name| !infos.iter().any(|info| info.name.eq_ignore_ascii_case(name)))
}

/// Rows by `ANALYZE`, else the highest row number, which is at least as many
/// where rows were never deleted nor numbered by hand.
fn estimated_rows(
    connection: &Connection,
    table: &str,
    row_number: Option<&str>,
) -> rusqlite::Result<Option<u64>> {
    let analysed: bool = connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'",
        [],
        |row| row.get(0),
    )?;
    if analysed {
        let mut statement = connection.prepare("SELECT stat FROM sqlite_stat1 WHERE tbl = ?1")?;
        let mut rows = statement.query([table])?;
        let mut most = None;
        while let Some(row) = rows.next()? {
            let stat: Option<String> = row.get(0)?;
            let first = stat.as_deref().and_then(|stat| stat.split(' ').next());
            most = most.max(first.and_then(|count| count.parse().ok()));
        }
        if most.is_some() {
            return Ok(most);
        }
    }
    let Some(row_number) = row_number else { return Ok(None) };
    let statement = format!("SELECT max({row_number}) FROM {SCHEMA}.{}", quote(table));
    let highest: Option<Option<i64>> =
        connection.query_row(&statement, [], |row| row.get(0)).optional()?;
    Ok(highest.map(|number| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)))
}

/// Fails where the table is no longer as the read says.
pub(crate) fn check_columns(table: &Table, wanted: &[Column]) -> Result<()> {
    for column in wanted {
        let name = column.name();
        let changed = |what: String| {
            Err(Error::new(ErrorKind::Data, format!("column {name:?} {what}"))
                .with_hint("run the sync again, so that it sees the columns as they are now")
                .in_table(&table.name))
        };
        let Some(now) = table.column(name) else {
            return changed("is gone from the table".to_owned());
        };
        if now.source_type != column.source_type {
            return changed(format!(
                "was declared {:?} and is {:?} now",
                column.source_type, now.source_type
            ));
        }
        if now.field.is_nullable() && !column.field.is_nullable() {
            return changed("was declared NOT NULL and can be NULL now".to_owned());
        }
    }
    Ok(())
}
