//! One snapshot, and the pieces into which a read is cut.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidelake_connector::sql::{Dialect, check, qualified, quote_text, select};
use tidelake_connector::{Slices, SplitRequest};
use tidelake_model::{Again, Error, ErrorKind, ReadMethod, Result, Slice, TableName, TableRead};
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::types::Type;

use crate::catalogue::{CatalogueColumn, Relation, columns, get, identity, relation};
use crate::failure::failure;
use crate::internal;
use crate::literal::PostgresDialect;
use crate::pool::Pool;
use crate::session::{Session, pooled};
use crate::types::{Wire, selected, wire_for};

const DOING: &str = "the snapshot cannot be taken";
/// A piece is no smaller than this many pages (8 MiB).
const LEAST_PAGES: u64 = 1_024;
/// A large table is cut into more pieces than there are readers, so that none is
/// idle for long while another has much left, and a lost connection costs less:
/// into pieces of this many pages (1 GiB) at least, whose files are worth having.
const LARGE_PAGES: u64 = 131_072;
const MOST_PIECES_EACH: u64 = 8;
/// The first version that reads a range of places without scanning the table.
const PLACE_RANGES: u32 = 14;

/// A slice in this connector's own terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) database: String,
    pub(crate) snapshot: String,
    /// How each column is sent.
    pub(crate) wires: Vec<Wire>,
    pub(crate) piece: Piece,
}

/// A piece of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Piece {
    /// All of it.
    Whole,
    /// Pages from one up to before another; open above where none is named.
    Pages { from: u64, before: Option<u64> },
    /// Some partitions.
    Partitions { tables: Vec<TableName> },
    /// Values of a column from one up to before another, as text of its type.
    Values { column: String, source_type: String, from: Option<String>, before: Option<String> },
}

/// Keeps the exporting transaction open. A session that is parked may be gone to
/// the reader of the only slice.
struct Exporter {
    session: Option<Session>,
    parked: Option<String>,
    pool: Arc<Pool>,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let parked = self.parked.as_ref().and_then(|snapshot| self.pool.unpark(snapshot));
        let Some(session) = self.session.take().or(parked) else { return };
        let pool = Arc::clone(&self.pool);
        // Without a runtime the connection is closed, which ends it as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if session.run("ROLLBACK", DOING).await.is_ok() {
                    pool.put(session);
                }
            });
        }
    }
}

/// The statement that reads a piece.
pub(crate) fn statement(read: &TableRead, part: Option<&Part>) -> String {
    let column = |column: &tidelake_model::Column| {
        let place = read.columns.iter().position(|other| other.name() == column.name());
        let wire = part.and_then(|part| part.wires.get(place?)).copied();
        selected(column.name(), wire.unwrap_or(Wire::Text))
    };
    let all = |read: &TableRead, extra: Option<&str>| select(&PostgresDialect, read, column, extra);
    match part.map(|part| &part.piece) {
        None | Some(Piece::Whole) => all(read, None),
        Some(Piece::Pages { from, before }) => {
            let mut conditions = vec![];
            if *from > 0 {
                conditions.push(format!("ctid >= '({from},0)'::tid"));
            }
            conditions.extend(before.map(|before| format!("ctid < '({before},0)'::tid")));
            let condition = conditions.join(" AND ");
            all(read, Some(condition.as_str()).filter(|condition| !condition.is_empty()))
        }
        Some(Piece::Partitions { tables }) => {
            let selects: Vec<_> = tables
                .iter()
                .map(|table| all(&TableRead { table: table.clone(), ..read.clone() }, None))
                .collect();
            selects.join(" UNION ALL ")
        }
        Some(Piece::Values { column, source_type, from, before }) => {
            let name = PostgresDialect.quote(column);
            // The type's name comes from the catalogue, in the form that it reads.
            let bound = |text: &String| format!("{}::{source_type}", quote_text(text));
            let condition = match (from, before) {
                (None, None) => return all(read, None),
                (None, Some(before)) => {
                    format!("{name} < {} OR {name} IS NULL", bound(before))
                }
                (Some(from), None) => format!("{name} >= {}", bound(from)),
                (Some(from), Some(before)) => {
                    format!("{name} >= {} AND {name} < {}", bound(from), bound(before))
                }
            };
            all(read, Some(&condition))
        }
    }
}

/// Takes a snapshot, checks the columns in it and cuts the read.
pub(crate) async fn split(pool: &Arc<Pool>, request: &SplitRequest) -> Result<Slices> {
    check(&request.read)?;
    let session = pool.get().await?;
    // A failure drops the session, and the transaction with it.
    let Exported { snapshot, wires, pieces, columns } = export(pool, &session, request)
        .await
        .map_err(|error| error.in_table(&request.read.table))?;
    // A window above a lower bound is small as a rule. One reader needs no second
    // session for it: if its connection is lost, what is left is read in parts.
    let is_small = request.read.range.as_ref().is_some_and(|range| range.low.is_some());
    let is_parked = is_small && pieces.len() == 1;
    let parked = is_parked.then(|| snapshot.clone());
    let part =
        Part { database: pool.config.database.clone(), snapshot, wires, piece: Piece::Whole };
    let slices: Result<Vec<_>> = pieces
        .into_iter()
        .zip(0..)
        .map(|(piece, number)| {
            let part = serde_json::to_value(Part { piece, ..part.clone() })
                .map_err(|error| internal(DOING).with_source(error))?;
            Ok(Slice { number, read: request.read.clone(), part })
        })
        .collect();
    let slices = slices?;
    let session = match &parked {
        Some(snapshot) => {
            pool.park(snapshot, session);
            None
        }
        None => Some(session),
    };
    let hold = Exporter { session, parked, pool: Arc::clone(pool) };
    Ok(Slices { slices, columns, hold: Box::new(hold) })
}

/// A snapshot, and what was found in it.
struct Exported {
    snapshot: String,
    wires: Vec<Wire>,
    pieces: Vec<Piece>,
    columns: Vec<String>,
}

/// What was found under the lock.
struct Entered {
    snapshot: String,
    columns: Vec<CatalogueColumn>,
}

async fn export(pool: &Pool, session: &Session, request: &SplitRequest) -> Result<Exported> {
    let read = &request.read;
    let missing = || {
        Error::new(ErrorKind::NotFound, "the table does not exist")
            .with_hint("it may have been dropped or renamed")
    };
    let known = pool.known(&read.table);
    let remembered = match &known {
        Some(known) => match enter(session, read, &known.relation).await {
            // What was remembered need not be true any more.
            Err(error) if error.kind() != ErrorKind::Unavailable => Err(error),
            Err(error) if error.again() != Again::Afresh => return Err(error),
            other => other,
        },
        None => Err(internal(DOING)),
    };
    let (found, entered) = match (known, remembered) {
        (Some(known), Ok(entered)) => (known.relation.clone(), entered),
        (known, _) => {
            if known.is_some() {
                pool.forget(&read.table);
                session.run("ROLLBACK", DOING).await?;
            }
            let found = relation(session, &read.table).await?.ok_or_else(missing)?;
            let entered = enter(session, read, &found).await?;
            (found, entered)
        }
    };
    let Entered { snapshot, columns } = entered;
    let wires = wires(read, &columns)?;
    let pieces = pieces(session, request, &found, &columns, &wires).await?;
    let columns = columns.iter().map(|found| found.column.name().to_owned()).collect();
    Ok(Exported { snapshot, wires, pieces, columns })
}

/// Begins the transaction, locks the table and exports the snapshot, all in one
/// round trip. What kind of relation it is decides how it is locked; the lock is the
/// first statement of the transaction, so that the snapshot is younger than it.
async fn enter(session: &Session, read: &TableRead, found: &Relation) -> Result<Entered> {
    let table = qualified(&PostgresDialect, &read.table);
    let by_name = found.readable && matches!(found.kind, 'r' | 'p');
    let lock = match by_name {
        true => format!("LOCK TABLE {table} IN ACCESS SHARE MODE"),
        // Others cannot be locked by name, nor can those of which only some columns
        // may be read; looking at them has the same effect.
        false => format!("SELECT FROM {table} LIMIT 0"),
    };
    let query = format!("SELECT pg_export_snapshot(), {}", Session::IDENTITY);
    let oids = [found.oid];
    // Sent in this order, and run in it.
    let (begun, locked, again, columns, row) = futures::join!(
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", DOING),
        session.run(&lock, "the table cannot be locked for reading"),
        identity(session, &read.table),
        columns(session, &oids),
        session.client.query_typed_one(&query, &[]),
    );
    // The first error is the cause of all others.
    begun?;
    locked?;
    let again = again?;
    let is_same = again.is_some_and(|again| {
        (again.oid, again.kind, again.readable) == (found.oid, found.kind, found.readable)
    });
    let columns = columns?.remove(&found.oid).unwrap_or_default();
    let row = row.map_err(|error| failure(error, DOING))?;
    if !session.is_identity(get(&row, 1)?) {
        return Err(pooled());
    }
    if !is_same || !by_name && rewritten(session, found.oid).await? {
        return Err(Error::new(ErrorKind::Unavailable, "the table was replaced meanwhile")
            .with_again(Again::Afresh));
    }
    Ok(Entered { snapshot: get(&row, 0)?, columns })
}

/// Whether a table, or a part of it, was written anew between the snapshot and the
/// lock: a look takes its snapshot first, and would find such a table empty.
async fn rewritten(session: &Session, oid: u32) -> Result<bool> {
    let statement = "
        WITH RECURSIVE tree AS (
            SELECT $1 AS oid
            UNION
            SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
        )
        SELECT coalesce(bool_or(c.relfilenode <> pg_relation_filenode(c.oid)), false)
        FROM tree t JOIN pg_class c ON c.oid = t.oid
        WHERE c.relkind IN ('r', 'm')";
    let row = session.client.query_typed_one(statement, &[(&oid, Type::OID)]).await;
    get(&row.map_err(|error| failure(error, DOING))?, 0)
}

/// How each column that is read has to be sent; an error names one that is gone
/// or has another type.
pub(crate) fn wires(read: &TableRead, columns: &[CatalogueColumn]) -> Result<Vec<Wire>> {
    let changed = |message: String| {
        Error::new(ErrorKind::Data, message)
            .with_hint("the table was altered; run again, or choose --on-schema-drift")
    };
    read.columns
        .iter()
        .map(|wanted| {
            let name = wanted.name();
            let Some(found) = columns.iter().find(|found| found.column.name() == name) else {
                let message = format!(
                    "column {name:?} of type {} does not exist any more",
                    wanted.source_type
                );
                return Err(changed(message));
            };
            if found.column.source_type != wanted.source_type {
                let message = format!(
                    "column {name:?} was of type {} and now is {}",
                    wanted.source_type, found.column.source_type
                );
                return Err(changed(message));
            }
            wire_for(&found.carried, wanted).ok_or_else(|| {
                let message = format!(
                    "column {name:?} of type {} cannot be read as {}",
                    wanted.source_type,
                    wanted.field.data_type()
                );
                Error::new(ErrorKind::Unsupported, message)
                    .with_hint("every type can be read as text, numeric as a decimal too")
            })
        })
        .collect()
}

async fn pieces(
    session: &Session,
    request: &SplitRequest,
    found: &Relation,
    columns: &[CatalogueColumn],
    wires: &[Wire],
) -> Result<Vec<Piece>> {
    let whole = vec![Piece::Whole];
    let pieces = u64::from(request.degree);
    match (request.method, found.kind) {
        (ReadMethod::None, _) => Ok(whole),
        _ if request.degree < 2 => Ok(whole),
        (ReadMethod::Range, 'r' | 'p' | 'm') => {
            let Some(key) = &request.key else {
                return Err(Error::new(ErrorKind::Configuration, "no column to cut by is named"));
            };
            by_values(session, request, columns, key, pieces).await
        }
        (ReadMethod::Auto | ReadMethod::Physical, 'r' | 'p' | 'm') => {
            // A window that an index gives is not worth several scans.
            if request.read.range.is_some() && !scans(session, request, wires).await? {
                return Ok(whole);
            }
            match found.kind {
                'p' => by_partitions(session, found, pieces).await,
                // A place is a column that only a right on the whole table shows.
                _ if found.readable && session.version >= PLACE_RANGES => {
                    by_pages(session, found, pieces).await
                }
                _ => Ok(whole),
            }
        }
        _ => Ok(whole),
    }
}

/// Whether the server would scan the table for the window.
async fn scans(session: &Session, request: &SplitRequest, wires: &[Wire]) -> Result<bool> {
    let part = Part {
        database: String::new(),
        snapshot: String::new(),
        wires: wires.to_vec(),
        piece: Piece::Whole,
    };
    let statement = format!("EXPLAIN {}", statement(&request.read, Some(&part)));
    let answer = session.client.simple_query(&statement).await;
    let answer = answer.map_err(|error| failure(error, DOING))?;
    Ok(answer.iter().any(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).is_some_and(|line| line.contains("Seq Scan")),
        _ => false,
    }))
}

/// Ranges of pages. The last one is open above.
async fn by_pages(session: &Session, found: &Relation, pieces: u64) -> Result<Vec<Piece>> {
    let statement = "SELECT pg_relation_size($1) / current_setting('block_size')::int8";
    let row = session.client.query_typed_one(statement, &[(&found.oid, Type::OID)]).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let pages = u64::try_from(get::<i64>(&row, 0)?).unwrap_or(0);
    Ok(page_ranges(pages, pieces))
}

fn page_ranges(pages: u64, readers: u64) -> Vec<Piece> {
    let pieces = (pages / LARGE_PAGES).clamp(readers, readers.saturating_mul(MOST_PIECES_EACH));
    let pieces = pieces.min(pages / LEAST_PAGES).max(1);
    if pieces == 1 {
        return vec![Piece::Whole];
    }
    let step = pages.div_ceil(pieces);
    (0..pieces)
        .map(|piece| Piece::Pages {
            from: piece * step,
            before: (piece + 1 < pieces).then_some((piece + 1) * step),
        })
        .collect()
}

/// Leaf partitions, dealt out by size. A partition that the user may not read by
/// itself can still be read through its parent.
async fn by_partitions(session: &Session, found: &Relation, pieces: u64) -> Result<Vec<Piece>> {
    let statement = "
        WITH RECURSIVE tree AS (
            SELECT i.inhrelid AS oid FROM pg_inherits i WHERE i.inhparent = $1
            UNION ALL
            SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
        )
        SELECT n.nspname::text, c.relname::text, has_table_privilege(c.oid, 'SELECT')
               AND has_schema_privilege(n.oid, 'USAGE'), coalesce(pg_relation_size(c.oid), 0)
        FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind <> 'p'
        ORDER BY 4 DESC, 1, 2";
    let rows = session.client.query_typed(statement, &[(&found.oid, Type::OID)]).await;
    let rows = rows.map_err(|error| failure(error, DOING))?;
    let mut partitions = vec![];
    for row in &rows {
        if !get::<bool>(row, 2)? {
            return Ok(vec![Piece::Whole]);
        }
        let name = TableName::new(get::<String>(row, 0)?, get::<String>(row, 1)?);
        partitions.push((name, u64::try_from(get::<i64>(row, 3)?).unwrap_or(0)));
    }
    Ok(dealt(partitions, pieces))
}

fn dealt(partitions: Vec<(TableName, u64)>, pieces: u64) -> Vec<Piece> {
    let count = usize::try_from(pieces).unwrap_or(1).min(partitions.len());
    if count < 2 {
        return vec![Piece::Whole];
    }
    let mut hands: Vec<(u64, Vec<TableName>)> = vec![(0, vec![]); count];
    for (table, bytes) in partitions {
        if let Some(lightest) = hands.iter_mut().min_by_key(|(bytes, _)| *bytes) {
            // An empty one counts too, so that many of them are shared out.
            lightest.0 += bytes.max(1);
            lightest.1.push(table);
        }
    }
    hands.into_iter().map(|(_, tables)| Piece::Partitions { tables }).collect()
}

/// Ranges of a column's values at the bounds of the server's own histogram; the
/// server compares, so that any type and collation will do.
async fn by_values(
    session: &Session,
    request: &SplitRequest,
    columns: &[CatalogueColumn],
    key: &str,
    pieces: u64,
) -> Result<Vec<Piece>> {
    let Some(column) = columns.iter().find(|found| found.column.name() == key) else {
        let message = format!("the column to cut by, {key:?}, does not exist");
        return Err(Error::new(ErrorKind::Configuration, message));
    };
    let statement = "
        SELECT histogram_bounds::text::text[] FROM pg_stats
        WHERE schemaname = $1 AND tablename = $2 AND attname = $3 AND histogram_bounds IS NOT NULL
        ORDER BY inherited DESC LIMIT 1";
    let table = &request.read.table;
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
        [(&table.schema, Type::TEXT), (&table.table, Type::TEXT), (&key, Type::TEXT)];
    let row = session.client.query_typed_opt(statement, &parameters).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let bounds: Vec<String> = match &row {
        Some(row) => get(row, 0)?,
        None => vec![],
    };
    Ok(value_ranges(&bounds, pieces, key, &column.column.source_type))
}

fn value_ranges(bounds: &[String], pieces: u64, column: &str, source_type: &str) -> Vec<Piece> {
    // The outermost bounds are the lowest and the highest value.
    let inner = bounds.get(1..bounds.len().saturating_sub(1)).unwrap_or(&[]);
    let cuts = usize::try_from(pieces).unwrap_or(1).saturating_sub(1).min(inner.len());
    let cuts: Vec<_> =
        (1..=cuts).filter_map(|cut| inner.get(cut * inner.len() / (cuts + 1))).cloned().collect();
    let mut ranges = vec![];
    let mut from = None;
    for before in cuts.into_iter().map(Some).chain([None]) {
        if from.is_some() && from == before {
            continue;
        }
        ranges.push(Piece::Values {
            column: column.to_owned(),
            source_type: source_type.to_owned(),
            from: std::mem::replace(&mut from, before.clone()),
            before,
        });
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn page_ranges_tile(pages in 0u64..10_000_000, pieces in 1u64..200) {
            let mut next = Some(0);
            for piece in page_ranges(pages, pieces) {
                match piece {
                    Piece::Whole => next = None,
                    Piece::Pages { from, before } => {
                        prop_assert_eq!(Some(from), next);
                        prop_assert!(before.is_none_or(|before| before > from));
                        next = before;
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(next, None);
        }

        #[test]
        fn large_tables_are_cut_finer_than_there_are_readers(pages in 0u64..100_000_000, readers in 1u64..64) {
            let pieces = page_ranges(pages, readers).len() as u64;
            let enough = pieces >= readers.min(pages / LEAST_PAGES).max(1);
            let not_too_many = pieces <= readers * MOST_PIECES_EACH;
            let large = pieces <= readers || pages / pieces >= LARGE_PAGES;
            prop_assert!(enough && not_too_many && large, "{} pieces", pieces);
            prop_assert!(pages < LARGE_PAGES * readers * 2 || pieces >= readers * 2, "{} pieces", pieces);
        }

        #[test]
        fn value_ranges_tile(count in 0usize..150, pieces in 1u64..40) {
            let bounds: Vec<_> = (0..count).map(|number| number.to_string()).collect();
            let mut next = None;
            let ranges = value_ranges(&bounds, pieces, "k", "text");
            for (place, piece) in ranges.iter().enumerate() {
                let Piece::Values { from, before, .. } = piece else { panic!() };
                prop_assert_eq!(from, &next);
                prop_assert_eq!(before.is_none(), place + 1 == ranges.len());
                next.clone_from(before);
            }
        }

        #[test]
        fn each_partition_is_dealt_once(sizes in proptest::collection::vec(0u64..1000, 2..60), pieces in 2u64..9) {
            let tables: Vec<_> = sizes.iter().enumerate()
                .map(|(place, size)| (TableName::new("s", place.to_string()), *size)).collect();
            let mut dealt_out: Vec<_> = dealt(tables.clone(), pieces).into_iter().flat_map(|piece| match piece {
                Piece::Partitions { tables } => { assert!(!tables.is_empty()); tables }
                other => panic!("{other:?}"),
            }).collect();
            dealt_out.sort();
            let mut wanted: Vec<_> = tables.into_iter().map(|(name, _)| name).collect();
            wanted.sort();
            prop_assert_eq!(dealt_out, wanted);
        }
    }
}
