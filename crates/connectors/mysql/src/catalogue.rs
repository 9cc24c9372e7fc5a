//! What the catalogue says of tables and columns. A schema here is what the server
//! calls a database.

use std::collections::HashMap;

use tidelake_connector::TableFilter;
use tidelake_connector::sql::like_literal;
use tidelake_model::{Column, Error, ErrorKind, Result, Table, TableKind, TableName};

use crate::dialect::text_literal;
use crate::pool::{Row, Session, number, text};
use crate::types::{Carried, Declared, carried, field};

const DOING: &str = "the catalogue cannot be read";

/// Engines whose tables live elsewhere.
const ELSEWHERE: [&str; 4] = ["CONNECT", "FEDERATED", "SPIDER", "MRG_MYISAM"];
/// The first version of MariaDB that can switch an index off.
const IGNORED_INDEXES: (u32, u32) = (10, 6);

/// A table or view.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) name: TableName,
    pub(crate) kind: TableKind,
    /// Whether its rows can be read in a snapshot that several connections share.
    pub(crate) transactional: bool,
    /// The storage engine; empty for a view.
    pub(crate) engine: String,
    pub(crate) estimated_rows: Option<u64>,
    pub(crate) estimated_bytes: Option<u64>,
}

/// A column, with what the catalogue says beyond the model.
#[derive(Debug, Clone)]
pub(crate) struct CatalogueColumn {
    pub(crate) column: Column,
    pub(crate) carried: Carried,
    pub(crate) not_null: bool,
    /// What its value is in a new row, and `on update …`.
    pub(crate) default: Option<String>,
    pub(crate) extra: String,
}

/// Which tables are looked up: one schema or table by its plain name needs no look
/// at all the others.
#[derive(Debug, Default)]
struct Scope {
    schema: Option<String>,
    table: Option<String>,
}

impl Scope {
    fn of(name: &TableName) -> Self {
        Self { schema: Some(name.schema.clone()), table: Some(name.table.clone()) }
    }

    /// The condition on a view of the catalogue. Names are compared exactly
    /// afterwards: the catalogue's own collation takes `T` for `t`.
    fn condition(&self, schema_column: &str) -> String {
        let mut conditions = vec![match &self.schema {
            Some(schema) => format!("{schema_column} = {}", text_literal(schema)),
            None => format!(
                "{schema_column} NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"
            ),
        }];
        conditions
            .extend(self.table.iter().map(|table| format!("TABLE_NAME = {}", text_literal(table))));
        conditions.join(" AND ")
    }
}

fn name_of(row: &Row) -> TableName {
    TableName::new(text(row, 0), text(row, 1))
}

async fn relations(session: &mut Session, scope: &Scope) -> Result<Vec<Relation>> {
    let statement = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, DATA_LENGTH, \
         CREATE_OPTIONS FROM information_schema.TABLES \
         WHERE TABLE_TYPE IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED') AND {}",
        scope.condition("TABLE_SCHEMA")
    );
    let rows = session.ask(&statement, DOING).await?;
    let relations = rows.iter().map(|row| {
        let engine = text(row, 3).to_owned();
        let kind = match text(row, 2) {
            "VIEW" => TableKind::View,
            _ if ELSEWHERE.contains(&engine.to_ascii_uppercase().as_str()) => TableKind::Foreign,
            _ if text(row, 6).contains("partitioned") => TableKind::Partitioned,
            _ => TableKind::Table,
        };
        Relation {
            name: name_of(row),
            kind,
            transactional: engine.eq_ignore_ascii_case("InnoDB"),
            engine,
            estimated_rows: number(row, 4),
            estimated_bytes: number::<u64>(row, 5).filter(|bytes| *bytes > 0),
        }
    });
    Ok(relations.collect())
}

/// The table of that exact name.
pub(crate) async fn relation(session: &mut Session, name: &TableName) -> Result<Option<Relation>> {
    let found = relations(session, &Scope::of(name)).await?;
    Ok(found.into_iter().find(|relation| relation.name == *name))
}

/// What the indexes of a table say of a column.
#[derive(Debug, Clone, Copy, Default)]
struct Indexed {
    key_position: Option<u32>,
    leads: bool,
}

type ByColumn<T> = HashMap<(TableName, String), T>;

/// An index helps a cursor when it begins with the whole column and can be walked
/// in order.
async fn indexes(session: &mut Session, scope: &Scope) -> Result<ByColumn<Indexed>> {
    let usable = match (session.is_mariadb(), session.version()) {
        (false, _) => "IS_VISIBLE",
        (true, version) if version >= IGNORED_INDEXES => "IF(IGNORED = 'NO', 'YES', 'NO')",
        (true, _) => "'YES'",
    };
    let statement = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, INDEX_NAME, SEQ_IN_INDEX, SUB_PART, \
         INDEX_TYPE, {usable} FROM information_schema.STATISTICS \
         WHERE (SEQ_IN_INDEX = 1 OR INDEX_NAME = 'PRIMARY') AND {}",
        scope.condition("TABLE_SCHEMA")
    );
    let rows = session.ask(&statement, DOING).await?;
    let mut found: ByColumn<Indexed> = HashMap::new();
    for row in &rows {
        let place = number::<u32>(row, 4).unwrap_or(1);
        let indexed = found.entry((name_of(row), text(row, 2).to_owned())).or_default();
        if text(row, 3) == "PRIMARY" {
            indexed.key_position = place.checked_sub(1);
        }
        indexed.leads |= place == 1
            && row.get(5).is_none_or(Option::is_none)
            && text(row, 6) == "BTREE"
            && text(row, 7) == "YES";
    }
    Ok(found)
}

/// Columns of which a check of their own says that they hold JSON, which is what
/// MariaDB's type of that name is.
async fn json_checks(session: &mut Session, scope: &Scope) -> Result<ByColumn<()>> {
    let statement = format!(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, CHECK_CLAUSE \
         FROM information_schema.CHECK_CONSTRAINTS \
         WHERE CHECK_CLAUSE LIKE 'json_valid(%' AND {}",
        scope.condition("CONSTRAINT_SCHEMA")
    );
    let rows = session.ask(&statement, DOING).await?;
    let is_whole = |row: &&Row| {
        text(row, 3) == format!("json_valid({})", crate::dialect::quoted(text(row, 2)))
    };
    Ok(rows
        .iter()
        .filter(is_whole)
        .map(|row| ((name_of(row), text(row, 2).to_owned()), ()))
        .collect())
}

async fn columns_of(
    session: &mut Session,
    scope: &Scope,
) -> Result<HashMap<TableName, Vec<CatalogueColumn>>> {
    let statement = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, \
         NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, CHARACTER_SET_NAME, \
         COLUMN_DEFAULT, EXTRA, COLLATION_NAME FROM information_schema.COLUMNS \
         WHERE {} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
        scope.condition("TABLE_SCHEMA")
    );
    let rows = session.ask(&statement, DOING).await?;
    let may_be_json = |row: &Row| text(row, 4) == "longtext" && text(row, 12) == "utf8mb4_bin";
    let checks = match session.is_mariadb() && rows.iter().any(may_be_json) {
        true => json_checks(session, scope).await?,
        false => HashMap::new(),
    };
    let indexes = indexes(session, scope).await?;
    let mut found: HashMap<TableName, Vec<CatalogueColumn>> = HashMap::new();
    for row in &rows {
        let key = (name_of(row), text(row, 2).to_owned());
        let json = checks.contains_key(&key);
        let indexed = indexes.get(&key).copied().unwrap_or_default();
        found.entry(key.0).or_default().push(column(row, json, indexed));
    }
    Ok(found)
}

fn column(row: &Row, json: bool, indexed: Indexed) -> CatalogueColumn {
    let name = text(row, 2);
    let source_type = text(row, 3).to_owned();
    let not_null = text(row, 5) == "NO";
    let declared = Declared {
        name: text(row, 4).to_ascii_lowercase(),
        full: source_type.clone(),
        precision: number(row, 6).unwrap_or(0),
        scale: number(row, 7).unwrap_or(0),
        digits: number(row, 8).unwrap_or(0),
        charset: text(row, 9).to_owned(),
        json,
    };
    let carried = carried(&declared);
    let warning = (!carried.known).then(|| {
        format!(
            "column {name:?} has the type {source_type}, which is not known; it is read as text"
        )
    });
    let column = Column {
        field: field(name, &declared, &carried, not_null),
        source_type,
        cursor: carried.cursor,
        key_position: indexed.key_position,
        indexed: indexed.leads,
        warning,
        chosen: false,
    };
    let default = row.get(10).cloned().flatten();
    CatalogueColumn { column, carried, not_null, default, extra: text(row, 11).to_owned() }
}

/// The columns of one table, in the catalogue's order; none where there is no such
/// table.
pub(crate) async fn columns(
    session: &mut Session,
    name: &TableName,
) -> Result<Vec<CatalogueColumn>> {
    let mut found = columns_of(session, &Scope::of(name)).await?;
    Ok(found.remove(name).unwrap_or_default())
}

/// The error for a table that is not there.
pub(crate) fn missing() -> Error {
    Error::new(ErrorKind::NotFound, "the table does not exist")
        .with_hint("it may have been dropped or renamed, or the user may not see it")
}

/// Tables with their columns, sorted by name. Where no schema is named, that of the
/// credential's database is meant.
pub(crate) async fn tables(
    session: &mut Session,
    filter: &TableFilter,
    database: Option<&str>,
) -> Result<Vec<Table>> {
    let single = |patterns: &[String]| match patterns {
        [pattern] => like_literal(pattern),
        _ => None,
    };
    let chosen = database.filter(|_| filter.schemas.is_empty()).map(str::to_owned);
    let scope = Scope {
        schema: single(&filter.schemas).or_else(|| chosen.clone()),
        table: single(&filter.include),
    };
    let mut relations = relations(session, &scope).await?;
    relations.retain(|relation| {
        filter.matches(&relation.name)
            && chosen.as_ref().is_none_or(|schema| relation.name.schema == *schema)
    });
    relations.sort_by(|left, right| left.name.cmp(&right.name));
    if relations.is_empty() {
        return Ok(vec![]);
    }
    let mut columns = columns_of(session, &scope).await?;
    let tables = relations.into_iter().map(|relation| {
        let columns = columns.remove(&relation.name).unwrap_or_default();
        Table {
            kind: relation.kind,
            columns: columns.into_iter().map(|found| found.column).collect(),
            estimated_rows: relation.estimated_rows,
            estimated_bytes: relation.estimated_bytes,
            name: relation.name,
        }
    });
    Ok(tables.collect())
}
