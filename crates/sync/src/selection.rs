//! What a user says of single columns, looked up in the catalogue when a sync is
//! made: names are spelled as the catalogue does, mistakes are told with the
//! nearest name.

use tidelake_model::{
    ColumnCast, ColumnSelection, DeclaredKey, Error, ErrorKind, Notice, NoticeCode, Result,
    SyncConfig, Table, TableName,
};

use crate::column_requests::{CastRequest, ColumnRequests, TableColumns};
use crate::tables::no_such_table;

/// Names that a message lists.
const LISTED: usize = 20;

/// Looks the requests up and puts them into the settings.
pub(crate) fn resolve(
    requests: &ColumnRequests,
    tables: &[Table],
    config: &mut SyncConfig,
    notices: &mut Vec<Notice>,
) -> Result<()> {
    for request in &requests.include {
        let (table, columns) = find_columns("--columns", request, tables)?;
        if config.columns.iter().any(|other| other.table == table.name) {
            return Err(twice("--columns", table));
        }
        config.columns.push(ColumnSelection {
            table: table.name.clone(),
            include: columns,
            exclude: vec![],
        });
    }
    let mut excluding: Vec<&TableName> = vec![];
    for request in &requests.exclude {
        let (table, columns) = find_columns("--exclude-columns", request, tables)?;
        if excluding.contains(&&table.name) {
            return Err(twice("--exclude-columns", table));
        }
        excluding.push(&table.name);
        if config.columns.iter().any(|other| other.table == table.name) {
            return Err(wrong(
                "columns are named both to be read and to be left out",
                "keep one of --columns and --exclude-columns for each table",
            )
            .in_table(&table.name));
        }
        if table.columns.iter().all(|column| columns.iter().any(|name| name == column.name())) {
            return Err(wrong(
                "every column is left out, so that nothing would be read",
                "keep at least one column, or leave the whole table out with --exclude",
            )
            .in_table(&table.name));
        }
        config.columns.push(ColumnSelection {
            table: table.name.clone(),
            include: vec![],
            exclude: columns,
        });
    }
    for request in &requests.keys {
        let (table, columns) = find_columns("--key", request, tables)?;
        if config.keys.iter().any(|other| other.table == table.name) {
            return Err(twice("--key", table));
        }
        declare_key(config, table, columns, notices)?;
    }
    for request in &requests.casts {
        declare_cast(request, tables, config)?;
    }
    Ok(())
}

/// A key that the user declares: each row's own, as far as we are told.
fn declare_key(
    config: &mut SyncConfig,
    table: &Table,
    columns: Vec<String>,
    notices: &mut Vec<Notice>,
) -> Result<()> {
    for column in &columns {
        if is_left_out(config, &table.name, column) {
            return Err(wrong(
                format!("the column {column:?} of the key is left out"),
                "read it too, or choose another --key",
            )
            .in_table(&table.name));
        }
        if table.column(column).is_some_and(|found| found.field.is_nullable()) {
            notices.push(Notice::new(
                NoticeCode::Setting,
                format!(
                    "{}: the column {column:?} of the key may be NULL, and a row without a key \
                     cannot be told from another",
                    table.name
                ),
            ));
        }
    }
    config.keys.push(DeclaredKey { table: table.name.clone(), columns });
    Ok(())
}

fn declare_cast(request: &CastRequest, tables: &[Table], config: &mut SyncConfig) -> Result<()> {
    let CastRequest { option, schema, table, column, to } = request;
    let names = TableColumns {
        schema: schema.clone(),
        table: table.clone(),
        columns: vec![column.clone()],
    };
    let (table, _) = find_columns(option, &names, tables)?;
    if is_left_out(config, &table.name, column) {
        return Err(wrong(
            format!("the column {column:?} has a type of its own and is left out"),
            format!("keep one of {option} and the choice of columns"),
        )
        .in_table(&table.name));
    }
    if config.casts.iter().any(|other| other.table == table.name && other.column == *column) {
        return Err(wrong(
            format!("two types were named for the column {column:?}"),
            "name each column once with --type-cast or --decimal",
        )
        .in_table(&table.name));
    }
    config.casts.push(ColumnCast {
        table: table.name.clone(),
        column: column.clone(),
        data_type: to.data_type.clone(),
        extension: to.extension.map(str::to_owned),
    });
    Ok(())
}

/// Whether the sync leaves a column out.
pub(crate) fn is_left_out(config: &SyncConfig, table: &TableName, column: &str) -> bool {
    let selection = config.columns.iter().find(|selection| selection.table == *table);
    selection.is_some_and(|selection| !selects(selection, column))
}

/// Whether a selection takes a column.
pub(crate) fn selects(selection: &ColumnSelection, column: &str) -> bool {
    let has = |names: &[String]| names.iter().any(|name| name == column);
    (selection.include.is_empty() || has(&selection.include)) && !has(&selection.exclude)
}

/// The table of a request, and its columns in the catalogue's spelling.
fn find_columns<'a>(
    option: &str,
    request: &TableColumns,
    tables: &'a [Table],
) -> Result<(&'a Table, Vec<String>)> {
    let TableColumns { schema, table: name, columns } = request;
    let table = find_table(tables, &format!("table of {option}"), schema.as_deref(), name)?;
    for column in columns {
        if table.column(column).is_none() {
            return Err(no_such_column(option, table, column));
        }
    }
    Ok((table, columns.clone()))
}

/// The catalogue's table of that name. Without a schema, exactly one may have it.
pub(crate) fn find_table<'a>(
    tables: &'a [Table],
    what: &str,
    schema: Option<&str>,
    name: &str,
) -> Result<&'a Table> {
    let means = |table: &&Table| {
        table.name.table == name && schema.is_none_or(|schema| schema == table.name.schema)
    };
    let found: Vec<_> = tables.iter().filter(means).collect();
    match found.as_slice() {
        [table] => Ok(table),
        [] => Err(no_such_table(tables, what, schema, name)),
        several => {
            let names: Vec<_> = several.iter().map(|table| table.name.to_string()).collect();
            Err(wrong(
                format!("{name:?} is the name of several tables: {}", names.join(", ")),
                "write the schema too, as schema.table:…",
            ))
        }
    }
}

fn no_such_column(option: &str, table: &Table, column: &str) -> Error {
    let names: Vec<_> = table.columns.iter().map(|column| column.name()).collect();
    let hint = match nearest(column, names.iter().copied()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("the columns are: {}", listed(&names)),
    };
    let message = format!("{option} names the column {column:?}, which is not there");
    Error::new(ErrorKind::NotFound, message).with_hint(hint).in_table(&table.name)
}

/// Some names, and how many there are besides.
pub(crate) fn listed(names: &[&str]) -> String {
    let mut text = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > LISTED {
        text.push_str(&format!(" and {} more", names.len() - LISTED));
    }
    text
}

/// The name that was meant, if one is near enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&name, &known.to_lowercase());
    let close = (name.chars().count() / 3).max(1);
    known
        .map(|known| (distance(known), known))
        .filter(|(distance, _)| *distance <= close)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

fn twice(option: &str, table: &Table) -> Error {
    wrong(
        format!("{option} names the table twice"),
        format!("name all its columns in one {option} {}:a,b", table.name),
    )
    .in_table(&table.name)
}

fn wrong(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message).with_hint(hint)
}
