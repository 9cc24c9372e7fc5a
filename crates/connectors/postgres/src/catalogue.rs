//! What the catalogue says of tables and columns.

use std::collections::HashMap;

use tidelake_connector::TableFilter;
use tidelake_connector::sql::like_literal;
use tidelake_model::{Column, Result, Table, TableKind, TableName};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::failure::failure;
use crate::session::Session;
use crate::types::{Carried, ServerType, carried, field};

const DOING: &str = "the catalogue cannot be read";

/// Partitions are read through their parent, whose size is theirs. Sizes are the
/// catalogue's own estimates: asking the server for real ones would wait for locks.
const RELATIONS: &str = r"
WITH RECURSIVE relations AS (
    SELECT c.oid, n.nspname, c.relname, c.relkind
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND c.relpersistence <> 't'
      AND n.nspname !~ '^pg_' AND n.nspname !~ '^_timescaledb_'
      AND n.nspname <> 'information_schema'
      AND ($1::text IS NULL OR n.nspname = $1) AND ($2::text IS NULL OR c.relname = $2)
), tree AS (
    SELECT oid AS root, oid FROM relations
    UNION
    SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
), sizes AS (
    SELECT t.root,
           sum(CASE WHEN c.relkind = 'p' THEN 0
                    WHEN c.reltuples > 0 OR pg_stat_get_live_tuples(c.oid) = 0
                    THEN greatest(c.reltuples, 0)
                    ELSE pg_stat_get_live_tuples(c.oid) END)::int8 AS rows,
           sum(c.relpages)::int8 AS pages,
           bool_and(c.relkind IN ('p', 'v')
                    OR c.reltuples < 0 AND pg_stat_get_live_tuples(c.oid) = 0) AS unknown
    FROM tree t JOIN pg_class c ON c.oid = t.oid
    GROUP BY t.root
)
SELECT r.oid, r.nspname::text, r.relname::text, r.relkind::text,
       CASE WHEN NOT s.unknown THEN s.rows END,
       CASE WHEN NOT s.unknown AND s.pages > 0
            THEN s.pages * current_setting('block_size')::int8 END,
       has_table_privilege(r.oid, 'SELECT')
FROM relations r JOIN sizes s ON s.root = r.oid";

/// Domains are followed to their base. An index helps a cursor when it begins
/// with the column, holds every row and can be walked in order. A constraint that
/// is not validated promises nothing, nor does one of a foreign table.
const COLUMNS: &str = r"
WITH RECURSIVE domains AS (
    SELECT oid, typbasetype AS base, typtypmod AS modifier FROM pg_type WHERE typtype = 'd'
    UNION ALL
    SELECT d.oid, t.typbasetype, CASE WHEN d.modifier >= 0 THEN d.modifier ELSE t.typtypmod END
    FROM domains d JOIN pg_type t ON t.oid = d.base AND t.typtype = 'd'
)
SELECT a.attrelid, a.attname::text, format_type(a.atttypid, a.atttypmod),
       a.attnotnull AND c.relkind <> 'f' AND NOT EXISTS (
           SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'n'
             AND NOT k.convalidated AND a.attnum = ANY (k.conkey)),
       t.typname::text, t.typnamespace = 'pg_catalog'::regnamespace,
       t.typtype::text, t.typinput = 'pg_catalog.array_in'::regproc,
       coalesce(d.modifier, a.atttypmod),
       (SELECT array_position(x.indkey::int2[], a.attnum) - array_lower(x.indkey::int2[], 1)
        FROM pg_index x WHERE x.indrelid = a.attrelid AND x.indisprimary
          AND array_position(x.indkey::int2[], a.attnum)
              < array_lower(x.indkey::int2[], 1) + x.indnkeyatts),
       EXISTS (SELECT FROM pg_index x JOIN pg_class xc ON xc.oid = x.indexrelid
               JOIN pg_am m ON m.oid = xc.relam AND m.amname = 'btree'
               WHERE x.indrelid = a.attrelid AND x.indisvalid AND x.indisready
                 AND x.indpred IS NULL AND x.indkey[0] = a.attnum)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN domains d ON d.oid = a.atttypid
     AND NOT EXISTS (SELECT FROM pg_type b WHERE b.oid = d.base AND b.typtype = 'd')
JOIN pg_type t ON t.oid = coalesce(d.base, a.atttypid)
WHERE a.attrelid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum";

/// A relation.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) oid: u32,
    pub(crate) name: TableName,
    /// `pg_class.relkind`.
    pub(crate) kind: char,
    estimated_rows: Option<u64>,
    estimated_bytes: Option<u64>,
    /// Whether all of its columns may be read, and not just some.
    pub(crate) readable: bool,
}

/// A column, with what the catalogue says beyond the model.
#[derive(Debug, Clone)]
pub(crate) struct CatalogueColumn {
    pub(crate) column: Column,
    pub(crate) carried: Carried,
    pub(crate) not_null: bool,
}

/// What is remembered of a table from one look to the next. Whoever relies on it
/// checks it, or is content with what was true a while ago.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) relation: Relation,
    pub(crate) columns: Vec<KnownColumn>,
}

/// What a look at the highest value of a column rests on.
#[derive(Debug, Clone)]
pub(crate) struct KnownColumn {
    pub(crate) name: String,
    pub(crate) indexed: bool,
    pub(crate) not_null: bool,
}

impl Known {
    pub(crate) fn new(relation: Relation, columns: &[CatalogueColumn]) -> Self {
        let columns = columns.iter().map(|found| KnownColumn {
            name: found.column.name().to_owned(),
            indexed: found.column.indexed,
            not_null: found.not_null,
        });
        Self { relation, columns: columns.collect() }
    }
}

/// A cell of a catalogue query.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(|error| failure(error, DOING))
}

fn character(row: &Row, index: usize) -> Result<char> {
    Ok(get::<&str>(row, index)?.chars().next().unwrap_or(' '))
}

/// Relations of a schema and name; of any, where one is absent.
async fn relations(
    session: &Session,
    schema: Option<&str>,
    table: Option<&str>,
) -> Result<Vec<Relation>> {
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&schema, Type::TEXT), (&table, Type::TEXT)];
    let rows = session.client.query_typed(RELATIONS, &parameters).await;
    let rows = rows.map_err(|error| failure(error, DOING))?;
    let estimate = |row: &Row, index| {
        Ok::<_, tidelake_model::Error>(
            get::<Option<i64>>(row, index)?.and_then(|count| u64::try_from(count).ok()),
        )
    };
    rows.iter()
        .map(|row| {
            Ok(Relation {
                oid: get(row, 0)?,
                name: TableName::new(get::<String>(row, 1)?, get::<String>(row, 2)?),
                kind: character(row, 3)?,
                estimated_rows: estimate(row, 4)?,
                estimated_bytes: estimate(row, 5)?,
                readable: get(row, 6)?,
            })
        })
        .collect()
}

/// The relation of that exact name.
pub(crate) async fn relation(session: &Session, name: &TableName) -> Result<Option<Relation>> {
    Ok(relations(session, Some(&name.schema), Some(&name.table)).await?.into_iter().next())
}

/// The columns of relations, in the catalogue's order.
pub(crate) async fn columns(
    session: &Session,
    relations: &[u32],
) -> Result<HashMap<u32, Vec<CatalogueColumn>>> {
    let rows = session.client.query_typed(COLUMNS, &[(&relations, Type::OID_ARRAY)]).await;
    let rows = rows.map_err(|error| failure(error, DOING))?;
    let mut found: HashMap<u32, Vec<CatalogueColumn>> = HashMap::new();
    for row in &rows {
        found.entry(get(row, 0)?).or_default().push(column(row)?);
    }
    Ok(found)
}

fn column(row: &Row) -> Result<CatalogueColumn> {
    let name: &str = get(row, 1)?;
    let source_type: String = get(row, 2)?;
    let not_null = get(row, 3)?;
    let server = ServerType {
        name: get(row, 4)?,
        builtin: get(row, 5)?,
        class: character(row, 6)?,
        array: get(row, 7)?,
        modifier: get(row, 8)?,
    };
    let carried = carried(&server);
    let warning = (!carried.known).then(|| {
        format!(
            "column {name:?} has the type {source_type}, which is not known; it is read as text"
        )
    });
    let key_position = get::<Option<i32>>(row, 9)?.and_then(|place| u32::try_from(place).ok());
    let column = Column {
        field: field(name, &server, &carried, not_null),
        source_type,
        cursor: carried.cursor,
        key_position,
        indexed: get(row, 10)?,
        warning,
        chosen: false,
    };
    Ok(CatalogueColumn { column, carried, not_null })
}

/// What a relation is, by its name.
pub(crate) struct Identity {
    pub(crate) oid: u32,
    pub(crate) kind: char,
    pub(crate) readable: bool,
}

/// The relation of that name, as little of it as says that it is the same.
pub(crate) async fn identity(session: &Session, name: &TableName) -> Result<Option<Identity>> {
    let query = "
        SELECT c.oid, c.relkind::text, has_table_privilege(c.oid, 'SELECT')
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = $2";
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&name.schema, Type::TEXT), (&name.table, Type::TEXT)];
    let row = session.client.query_typed_opt(query, &parameters).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let identity = |row: Row| {
        Ok(Identity { oid: get(&row, 0)?, kind: character(&row, 1)?, readable: get(&row, 2)? })
    };
    row.map(identity).transpose()
}

/// Tables with their columns, sorted by name, and what to remember of them.
pub(crate) async fn tables(session: &Session, filter: &TableFilter) -> Result<Vec<(Table, Known)>> {
    // One schema or table by its plain name needs no look at all the others.
    let schema = filter.schemas.first().filter(|_| filter.schemas.len() == 1);
    let table = filter.include.first().filter(|_| filter.include.len() == 1);
    let schema = schema.and_then(|pattern| like_literal(pattern));
    let table = table.and_then(|pattern| like_literal(pattern));
    let mut relations = relations(session, schema.as_deref(), table.as_deref()).await?;
    relations.retain(|relation| filter.matches(&relation.name));
    relations.sort_by(|left, right| left.name.cmp(&right.name));
    if relations.is_empty() {
        return Ok(vec![]);
    }
    let oids: Vec<_> = relations.iter().map(|relation| relation.oid).collect();
    let mut columns = columns(session, &oids).await?;
    let tables = relations.into_iter().map(|relation| {
        let columns = columns.remove(&relation.oid).unwrap_or_default();
        let known = Known::new(relation.clone(), &columns);
        let table = Table {
            kind: match relation.kind {
                'p' => TableKind::Partitioned,
                'v' | 'm' => TableKind::View,
                'f' => TableKind::Foreign,
                _ => TableKind::Table,
            },
            columns: columns.into_iter().map(|found| found.column).collect(),
            estimated_rows: relation.estimated_rows,
            estimated_bytes: relation.estimated_bytes,
            name: relation.name,
        };
        (table, known)
    });
    Ok(tables.collect())
}
