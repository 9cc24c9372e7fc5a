//! `watermarks` and `watermark_history`.

use serde::{Deserialize, Serialize};
use tidelake_model::{
    Actor, HistoryRow, Result, TableKey, WatermarkFilter, WatermarkRecord, position_text,
    progress_text,
};
use tidelake_watermark::{Direction, Position, Progress};

use super::reader::{Reader, damaged, parse_time};
use super::{Cell, Session, Statement, key};
use crate::time::time_text;

const COLUMNS: &str = "id, env, scope, connector_type, source_key, schema_name, table_name, \
    watermark_column, watermark_kind, last_exported_value, max_seen, first_bound, direction, \
    version, row_count, last_sync_at, last_checked_at, last_run_id, starts_generation";

/// A progress as a JSON document.
#[derive(Serialize, Deserialize)]
struct Document(#[serde(with = "progress_text")] Progress);

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Inclusive => "inclusive",
        Direction::Exclusive => "exclusive",
    }
}

fn direction_of(name: &str) -> Result<Direction> {
    match name {
        "inclusive" => Ok(Direction::Inclusive),
        "exclusive" => Ok(Direction::Exclusive),
        other => Err(damaged(format!("unknown direction {other:?}"))),
    }
}

fn read(cells: Vec<Cell>) -> Result<WatermarkRecord> {
    let mut reader = Reader::new(cells);
    let id = reader.text()?;
    let key = key::read(&mut reader)?;
    let (column, kind) = (reader.text()?, reader.text()?);
    let mut position = || -> Result<Option<Position>> {
        let text = reader.optional_text()?;
        let parse = |text: String| position_text::from_parts(&kind, &text).map_err(damaged);
        text.map(parse).transpose()
    };
    let (watermark, max_seen, first) = (position()?, position()?, position()?);
    let direction = direction_of(&reader.text()?)?;
    let progress = Progress { watermark, max_seen, first, direction };
    Ok(WatermarkRecord {
        id,
        key,
        column,
        kind,
        progress,
        version: reader.count()?,
        row_count: reader.count()?,
        last_sync_at: reader.optional_time()?.map(time_text),
        last_checked_at: reader.optional_time()?.map(time_text),
        last_run_id: reader.optional_parse()?,
        starts_generation: reader.boolean()?,
    })
}

fn optional_time(text: Option<&String>) -> Result<Cell> {
    Ok(Cell::Time(text.map(|text| parse_time(text)).transpose()?))
}

fn write(record: &WatermarkRecord) -> Result<Vec<Cell>> {
    let value = |position: Option<&Position>| Cell::Text(position.map(ToString::to_string));
    let progress = &record.progress;
    let mut cells = vec![Cell::from(&record.id)];
    cells.extend(key::cells(&record.key));
    cells.extend([
        Cell::from(&record.column),
        Cell::from(&record.kind),
        value(progress.watermark.as_ref()),
        value(progress.max_seen.as_ref()),
        value(progress.first.as_ref()),
        Cell::from(direction_name(progress.direction)),
        Cell::count(record.version)?,
        Cell::count(record.row_count)?,
        optional_time(record.last_sync_at.as_ref())?,
        optional_time(record.last_checked_at.as_ref())?,
        Cell::Text(record.last_run_id.map(|run_id| run_id.to_string())),
        Cell::from(record.starts_generation),
    ]);
    Ok(cells)
}

fn select_all() -> Statement {
    Statement::new(format!("SELECT {COLUMNS} FROM watermarks"))
}

async fn select<S: Session>(session: &mut S, statement: Statement) -> Result<Vec<WatermarkRecord>> {
    session.query(&statement).await?.into_iter().map(read).collect()
}

pub(super) async fn get<S: Session>(session: &mut S, id: &str) -> Result<Option<WatermarkRecord>> {
    let statement = select_all().sql(" WHERE id = ").bind(id);
    Ok(select(session, statement).await?.into_iter().next())
}

pub(super) async fn matching<S: Session>(
    session: &mut S,
    filter: &WatermarkFilter,
) -> Result<Vec<WatermarkRecord>> {
    let statement = select_all()
        .sql(" WHERE 1 = 1")
        .filter("env", filter.env.as_ref())
        .filter("scope", filter.scope.as_ref())
        .filter("connector_type", filter.connector_type.as_ref())
        .filter("source_key", filter.source_key.as_ref())
        .filter("schema_name || '.' || table_name", filter.table.as_ref())
        .sql(if filter.table.is_some() { " AND table_name <> ''" } else { "" })
        .sql(" ORDER BY ")
        .sql(key::KEY);
    select(session, statement).await
}

pub(super) async fn of<S: Session>(
    session: &mut S,
    keys: &[TableKey],
) -> Result<Vec<WatermarkRecord>> {
    let mut found = vec![];
    for keys in keys.chunks(key::CHUNK) {
        found.extend(select(session, key::among(session, select_all(), keys)).await?);
    }
    Ok(found)
}

pub(super) async fn save<S: Session>(session: &mut S, record: &WatermarkRecord) -> Result<()> {
    let statement = Statement::new(format!("INSERT INTO watermarks ({COLUMNS}) VALUES "))
        .tuple(write(record)?)
        .or_replace(COLUMNS, "id");
    session.send(statement).await
}

/// The history goes with it, by its foreign key.
pub(super) async fn delete<S: Session>(session: &mut S, id: &str) -> Result<()> {
    let statement = Statement::new("DELETE FROM watermarks WHERE id = ").bind(id);
    session.send(statement).await
}

pub(super) async fn history<S: Session>(
    session: &mut S,
    id: &str,
    limit: u32,
) -> Result<Vec<HistoryRow>> {
    let mut statement = Statement::new(
        "SELECT version, \"change\", before_change, after_change, actor_kind, actor_name, reason, \
        changed_at FROM watermark_history WHERE watermark_id = ",
    )
    .bind(id)
    .sql(" ORDER BY version DESC");
    if limit > 0 {
        statement = statement.sql(" LIMIT ").bind(Cell::count(limit.into())?);
    }
    let read = |cells| {
        let mut reader = Reader::new(cells);
        Ok(HistoryRow {
            version: reader.count()?,
            change: reader.text()?,
            before: reader.json::<Document>()?.0,
            after: reader.json::<Document>()?.0,
            actor: Actor { kind: reader.text()?, name: reader.text()? },
            reason: reader.optional_text()?,
            at: time_text(reader.time()?),
        })
    };
    session.query(&statement).await?.into_iter().map(read).collect()
}

pub(super) async fn insert_history<S: Session>(
    session: &mut S,
    id: &str,
    row: &HistoryRow,
) -> Result<()> {
    let cells = vec![
        Cell::from(id),
        Cell::count(row.version)?,
        Cell::from(&row.change),
        Cell::json(&Document(row.before.clone()))?,
        Cell::json(&Document(row.after.clone()))?,
        Cell::from(&row.actor.kind),
        Cell::from(&row.actor.name),
        Cell::from(row.reason.clone()),
        Cell::from(parse_time(&row.at)?),
    ];
    let statement = Statement::new(
        "INSERT INTO watermark_history (watermark_id, version, \"change\", before_change, \
        after_change, actor_kind, actor_name, reason, changed_at) VALUES ",
    )
    .tuple(cells);
    session.send(statement).await
}
