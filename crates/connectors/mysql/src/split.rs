//! One snapshot, and the pieces into which a read is cut.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidelake_connector::sql::{Dialect, check, qualified, select_from};
use tidelake_connector::{Slices, SplitRequest};
use tidelake_model::{
    Again, CursorType, Error, ErrorKind, ReadMethod, Result, Slice, TableKind, TableRead,
};
use tidelake_watermark::Value;

use crate::catalogue::{CatalogueColumn, Relation, columns, missing, relation};
use crate::cut::{Axis, Cutter, access, explain};
use crate::dialect::{MysqlDialect, quoted, text_literal};
use crate::internal;
use crate::pool::{Pool, Session, number, text};
use crate::snapshot::{Snapshots, one, several};
use crate::types::{Form, Sent, selected, sent_for};

const DOING: &str = "the snapshot cannot be taken";
/// A piece is no smaller than this many bytes, as the catalogue estimates them.
const LEAST_BYTES: u64 = 8 << 20;

/// A slice in this connector's own terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The snapshot's number in the process that took it.
    pub(crate) snapshot: String,
    /// How each column is asked for.
    pub(crate) sent: Vec<Sent>,
    pub(crate) piece: Piece,
}

/// A piece of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Piece {
    /// All of it.
    Whole,
    /// Some partitions.
    Partitions {
        /// Their names.
        names: Vec<String>,
    },
    /// Values of a column from one up to before another, as canonical text.
    Values {
        /// The column.
        column: String,
        /// What its values are.
        cursor: CursorType,
        /// Whether it leads the primary key, by which the table is stored.
        is_key: bool,
        /// The lower end, which is part of it.
        from: Option<String>,
        /// The upper end, which is not.
        before: Option<String>,
    },
}

/// The statement that reads a piece.
pub(crate) fn statement(read: &TableRead, part: Option<&Part>) -> String {
    let column = |column: &tidelake_model::Column| {
        let place = read.columns.iter().position(|other| other.name() == column.name());
        let sent = part.and_then(|part| part.sent.get(place?));
        selected(column.name(), sent.map_or(&Form::Plain, |sent| &sent.form))
    };
    let table = qualified(&MysqlDialect, &read.table);
    let all =
        |table: &str, extra: Option<&str>| select_from(&MysqlDialect, table, read, column, extra);
    match part.map(|part| &part.piece) {
        None | Some(Piece::Whole) => all(&table, None),
        Some(Piece::Partitions { names }) => {
            let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
            all(&format!("{table} PARTITION ({})", names.join(", ")), None)
        }
        Some(Piece::Values { column, cursor, is_key, from, before }) => {
            let name = quoted(column);
            let bound = |text: &String| {
                Value::parse(cursor.kind, text)
                    .map_or_else(|_| text_literal(text), |value| MysqlDialect.literal(&value))
            };
            let condition = match (from, before) {
                (None, None) => return all(&table, None),
                (None, Some(before)) => format!("{name} < {} OR {name} IS NULL", bound(before)),
                (Some(from), None) => format!("{name} >= {}", bound(from)),
                (Some(from), Some(before)) => {
                    format!("{name} >= {} AND {name} < {}", bound(from), bound(before))
                }
            };
            // The window's own condition must not lead the server to another index,
            // from which it would go to each row by itself.
            let hint = if *is_key { " FORCE INDEX (PRIMARY)" } else { "" };
            all(&format!("{table}{hint}"), Some(&condition))
        }
    }
}

/// Takes a snapshot, checks the columns in it and cuts the read.
pub(crate) async fn split(
    pool: &Arc<Pool>,
    snapshots: &Arc<Snapshots>,
    request: &SplitRequest,
) -> Result<Slices> {
    check(&request.read)?;
    let taken = take(pool, request).await;
    let Taken { sessions, sent, pieces, columns } =
        taken.map_err(|error| error.in_table(&request.read.table))?;
    let (number, hold) = snapshots.keep(pool, sessions);
    let part = Part { snapshot: number, sent, piece: Piece::Whole };
    let slices: Result<Vec<_>> = pieces
        .into_iter()
        .zip(0..)
        .map(|(piece, number)| {
            let part = serde_json::to_value(Part { piece, ..part.clone() })
                .map_err(|error| internal(DOING).with_source(error))?;
            Ok(Slice { number, read: request.read.clone(), part })
        })
        .collect();
    Ok(Slices { slices: slices?, columns, hold: Box::new(hold) })
}

/// Connections that see one snapshot, and what they read.
struct Taken {
    sessions: Vec<Session>,
    sent: Vec<Sent>,
    pieces: Vec<Piece>,
    /// All columns of the table.
    columns: Vec<String>,
}

async fn take(pool: &Arc<Pool>, request: &SplitRequest) -> Result<Taken> {
    let table = &request.read.table;
    // From here on the table cannot be altered; what the catalogue says is true of it.
    let first = one(pool, table).await?;
    let mut session = pool.get().await?;
    let found = relation(&mut session, table).await?.ok_or_else(missing)?;
    let all = columns(&mut session, table).await?;
    let sent = sent(&request.read, &all)?;
    let pieces = pieces(&mut session, request, &found, &all, &sent).await?;
    pool.put(session);
    let columns: Vec<_> = all.iter().map(|found| found.column.name().to_owned()).collect();
    if pieces.len() < 2 {
        return Ok(Taken { sessions: vec![first], sent, pieces, columns });
    }
    // The first one may be older than what the others will see.
    drop(first);
    let Some(sessions) = several(pool, table, pieces.len()).await? else {
        let sessions = vec![one(pool, table).await?];
        unchanged(pool, request, &sent).await?;
        return Ok(Taken { sessions, sent, pieces: vec![Piece::Whole], columns });
    };
    unchanged(pool, request, &sent).await?;
    Ok(Taken { sessions, sent, pieces, columns })
}

/// Checks that the table is as it was when the pieces were cut.
async fn unchanged(pool: &Pool, request: &SplitRequest, before: &[Sent]) -> Result<()> {
    let mut session = pool.get().await?;
    let columns = columns(&mut session, &request.read.table).await?;
    pool.put(session);
    if sent(&request.read, &columns)? == before {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unavailable, "the table was altered meanwhile")
        .with_again(Again::Afresh))
}

/// How each column that is read has to be asked for; an error names one that is gone
/// or has another type.
pub(crate) fn sent(read: &TableRead, columns: &[CatalogueColumn]) -> Result<Vec<Sent>> {
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
            sent_for(&found.carried, wanted).ok_or_else(|| {
                let message = format!(
                    "column {name:?} of type {} cannot be read as {}",
                    wanted.source_type,
                    wanted.field.data_type()
                );
                Error::new(ErrorKind::Unsupported, message)
                    .with_hint("every type can be read as text, decimals as other decimals too")
            })
        })
        .collect()
}

async fn pieces(
    session: &mut Session,
    request: &SplitRequest,
    found: &Relation,
    columns: &[CatalogueColumn],
    sent: &[Sent],
) -> Result<Vec<Piece>> {
    let whole = vec![Piece::Whole];
    let wanted = match &request.key {
        Some(key) if request.method == ReadMethod::Range => Some(range_column(columns, key)?),
        _ => None,
    };
    // What is in no snapshot is read by one statement, which sees what it sees.
    if !found.transactional || request.degree < 2 || request.method == ReadMethod::None {
        return Ok(whole);
    }
    let least = found.estimated_bytes.unwrap_or(0) / LEAST_BYTES;
    let count = u64::from(request.degree);
    let worthwhile = count.min(least).max(1);
    match (request.method, wanted) {
        (ReadMethod::Range, Some(column)) => {
            by_values(session, request, found, column, count).await
        }
        _ if worthwhile < 2 => Ok(whole),
        (ReadMethod::Auto | ReadMethod::Physical, _) => {
            if request.read.cursor.is_some() && !scans(session, request, sent).await? {
                return Ok(whole);
            }
            if found.kind == TableKind::Partitioned {
                let pieces = by_partitions(session, found, worthwhile).await?;
                if pieces.len() > 1 {
                    return Ok(pieces);
                }
            }
            match columns.iter().find(|found| found.column.key_position == Some(0)) {
                Some(column) => by_values(session, request, found, column, worthwhile).await,
                None => Ok(whole),
            }
        }
        _ => Ok(whole),
    }
}

/// The column of `--read-key`, if a read can be cut by it.
fn range_column<'a>(columns: &'a [CatalogueColumn], key: &str) -> Result<&'a CatalogueColumn> {
    let Some(column) = columns.iter().find(|found| found.column.name() == key) else {
        let message = format!("the column to cut by, {key:?}, does not exist");
        return Err(Error::new(ErrorKind::Configuration, message));
    };
    if !column.column.indexed {
        let message = format!("no index leads with the column to cut by, {key:?}");
        return Err(Error::new(ErrorKind::Unsupported, message)
            .with_hint("each piece would read the whole table; choose an indexed column"));
    }
    if Axis::of(column.column.cursor).is_none() {
        let message =
            format!("a read cannot be cut by {key:?} of type {}", column.column.source_type);
        return Err(Error::new(ErrorKind::Unsupported, message)
            .with_hint("choose a column of numbers or times"));
    }
    Ok(column)
}

/// Whether the server would scan the table for the window.
async fn scans(session: &mut Session, request: &SplitRequest, sent: &[Sent]) -> Result<bool> {
    let part = Part { snapshot: String::new(), sent: sent.to_vec(), piece: Piece::Whole };
    let statement = format!("{} {}", explain(session), statement(&request.read, Some(&part)));
    let lines = session.ask(&statement, DOING).await?;
    Ok(lines.iter().any(|line| matches!(access(line), "ALL" | "index")))
}

/// Ranges of a column's values.
async fn by_values(
    session: &mut Session,
    request: &SplitRequest,
    found: &Relation,
    column: &CatalogueColumn,
    pieces: u64,
) -> Result<Vec<Piece>> {
    let (Some(cursor), Some(axis)) = (column.column.cursor, Axis::of(column.column.cursor)) else {
        return Ok(vec![Piece::Whole]);
    };
    let mut cutter = Cutter {
        session,
        table: &request.read.table,
        column: column.column.name(),
        axis,
        rows: found.estimated_rows.unwrap_or(0),
    };
    let cuts = cutter.cuts(pieces).await?;
    Ok(value_ranges(&cuts, column, cursor))
}

fn value_ranges(cuts: &[Value], column: &CatalogueColumn, cursor: CursorType) -> Vec<Piece> {
    if cuts.is_empty() {
        return vec![Piece::Whole];
    }
    let ends = cuts.iter().map(|cut| Some(cut.to_string())).chain([None]);
    let mut from = None;
    let ranges = ends.map(|before| Piece::Values {
        column: column.column.name().to_owned(),
        cursor,
        is_key: column.column.key_position == Some(0),
        from: std::mem::replace(&mut from, before.clone()),
        before,
    });
    ranges.collect()
}

/// Partitions, dealt out by size.
async fn by_partitions(session: &mut Session, found: &Relation, pieces: u64) -> Result<Vec<Piece>> {
    let statement = format!(
        "SELECT PARTITION_NAME, SUM(TABLE_ROWS) FROM information_schema.PARTITIONS \
         WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND PARTITION_NAME IS NOT NULL \
         GROUP BY PARTITION_NAME ORDER BY 2 DESC, 1",
        text_literal(&found.name.schema),
        text_literal(&found.name.table)
    );
    let rows = session.ask(&statement, DOING).await?;
    let partitions = rows.iter().map(|row| (text(row, 0).to_owned(), number(row, 1).unwrap_or(0)));
    Ok(dealt(partitions.collect(), pieces))
}

fn dealt(partitions: Vec<(String, u64)>, pieces: u64) -> Vec<Piece> {
    let count = usize::try_from(pieces).unwrap_or(1).min(partitions.len());
    if count < 2 {
        return vec![Piece::Whole];
    }
    let mut hands: Vec<(u64, Vec<String>)> = vec![(0, vec![]); count];
    for (name, rows) in partitions {
        if let Some(lightest) = hands.iter_mut().min_by_key(|(rows, _)| *rows) {
            // An empty one counts too, so that many of them are shared out.
            lightest.0 += rows.max(1);
            lightest.1.push(name);
        }
    }
    hands.into_iter().map(|(_, names)| Piece::Partitions { names }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_partition_is_dealt_once(sizes in proptest::collection::vec(0u64..1000, 2..60), pieces in 2u64..9) {
            let partitions: Vec<_> =
                sizes.iter().enumerate().map(|(place, size)| (place.to_string(), *size)).collect();
            let mut dealt_out: Vec<_> = dealt(partitions.clone(), pieces).into_iter().flat_map(|piece| match piece {
                Piece::Partitions { names } => { assert!(!names.is_empty()); names }
                other => panic!("{other:?}"),
            }).collect();
            dealt_out.sort();
            let mut wanted: Vec<_> = partitions.into_iter().map(|(name, _)| name).collect();
            wanted.sort();
            prop_assert_eq!(dealt_out, wanted);
        }
    }
}
