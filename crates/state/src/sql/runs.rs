//! `runs` and `table_runs`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidelake_model::{Result, RunId, RunRecord, TableKey, TableRun};

use super::reader::{Reader, damaged, parse_time};
use super::{Cell, Session, Statement, key};
use crate::store::RunFilter;
use crate::time::time_text;

pub(super) const RUN: &str = "run_id, env, scope, status, started_at, finished_at, error";

const TABLE_RUN: &str = "run_id, env, scope, connector_type, source_key, schema_name, table_name, \
    token, status, read_window, uploads, pending, row_count, byte_count, counters, notices, \
    started_at, finished_at, error";

/// The name under which a status is stored is the one in documents.
pub(super) fn name_of(status: &impl Serialize) -> Result<String> {
    let value = serde_json::to_value(status).map_err(damaged)?;
    value.as_str().map(str::to_owned).ok_or_else(|| damaged("a status without a name"))
}

fn named<T: DeserializeOwned>(name: String) -> Result<T> {
    serde_json::from_value(name.into()).map_err(damaged)
}

fn read_run(cells: Vec<Cell>) -> Result<RunRecord> {
    let mut reader = Reader::new(cells);
    Ok(RunRecord {
        run_id: reader.parse()?,
        env: reader.text()?,
        scope: reader.text()?,
        status: named(reader.text()?)?,
        started_at: time_text(reader.time()?),
        finished_at: reader.optional_time()?.map(time_text),
        error: reader.optional_text()?,
    })
}

pub(super) async fn select_runs<S: Session>(
    session: &mut S,
    statement: Statement,
) -> Result<Vec<RunRecord>> {
    session.query(&statement).await?.into_iter().map(read_run).collect()
}

pub(super) async fn get<S: Session>(session: &mut S, run_id: RunId) -> Result<Option<RunRecord>> {
    let statement = Statement::new(format!("SELECT {RUN} FROM runs WHERE run_id = ")).bind(run_id);
    Ok(select_runs(session, statement).await?.into_iter().next())
}

pub(super) async fn matching<S: Session>(
    session: &mut S,
    filter: &RunFilter,
) -> Result<Vec<RunRecord>> {
    let status = filter.status.as_ref().map(name_of).transpose()?;
    let mut statement = Statement::new(format!("SELECT {RUN} FROM runs WHERE 1 = 1"))
        .filter("env", filter.env.as_ref())
        .filter("scope", filter.scope.as_ref())
        .filter("run_id", filter.run_id)
        .filter("status", status)
        .sql(" ORDER BY started_at DESC, run_id DESC");
    if filter.limit > 0 {
        statement = statement.sql(" LIMIT ").bind(Cell::count(filter.limit.into())?);
    }
    select_runs(session, statement).await
}

fn optional_time(text: Option<&String>) -> Result<Cell> {
    Ok(Cell::Time(text.map(|text| parse_time(text)).transpose()?))
}

pub(super) async fn save<S: Session>(session: &mut S, run: &RunRecord) -> Result<()> {
    let cells = vec![
        Cell::from(run.run_id),
        Cell::from(&run.env),
        Cell::from(&run.scope),
        Cell::from(name_of(&run.status)?),
        Cell::from(parse_time(&run.started_at)?),
        optional_time(run.finished_at.as_ref())?,
        Cell::from(run.error.clone()),
    ];
    let statement = Statement::new(format!("INSERT INTO runs ({RUN}) VALUES "))
        .tuple(cells)
        .or_replace(RUN, "run_id");
    session.send(statement).await
}

fn read_table_run(cells: Vec<Cell>) -> Result<(TableKey, TableRun)> {
    let mut reader = Reader::new(cells);
    let run_id = reader.parse()?;
    let key = key::read(&mut reader)?;
    let table = key.table.clone().ok_or_else(|| damaged("a table run without a table"))?;
    let record = TableRun {
        run_id,
        table,
        token: reader.count()?,
        status: named(reader.text()?)?,
        window: reader.optional_json()?,
        uploads: reader.json()?,
        pending: reader.optional_json()?,
        rows: reader.count()?,
        bytes: reader.count()?,
        counters: reader.json()?,
        notices: reader.json()?,
        started_at: time_text(reader.time()?),
        finished_at: reader.optional_time()?.map(time_text),
        error: reader.optional_text()?,
    };
    Ok((key, record))
}

async fn select_table_runs<S: Session>(
    session: &mut S,
    statement: Statement,
) -> Result<Vec<(TableKey, TableRun)>> {
    session.query(&statement).await?.into_iter().map(read_table_run).collect()
}

fn all_table_runs() -> Statement {
    Statement::new(format!("SELECT {TABLE_RUN} FROM table_runs"))
}

pub(super) async fn table_run<S: Session>(
    session: &mut S,
    run_id: RunId,
    key: &TableKey,
) -> Result<Option<TableRun>> {
    let of_key = key::among(session, all_table_runs(), std::slice::from_ref(key));
    let statement = of_key.filter("run_id", Some(run_id));
    let found = select_table_runs(session, statement).await?;
    Ok(found.into_iter().next().map(|(_, record)| record))
}

pub(super) async fn table_runs<S: Session>(
    session: &mut S,
    run_id: RunId,
) -> Result<Vec<TableRun>> {
    let statement = all_table_runs()
        .sql(" WHERE run_id = ")
        .bind(run_id)
        .sql(" ORDER BY schema_name, table_name, ")
        .sql("env, scope, connector_type, source_key");
    let found = select_table_runs(session, statement).await?;
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

pub(super) async fn of_table<S: Session>(
    session: &mut S,
    key: &TableKey,
    limit: u32,
) -> Result<Vec<TableRun>> {
    let mut statement = key::among(session, all_table_runs(), std::slice::from_ref(key))
        .sql(" ORDER BY started_at DESC, run_id DESC");
    if limit > 0 {
        statement = statement.sql(" LIMIT ").bind(Cell::count(limit.into())?);
    }
    let found = select_table_runs(session, statement).await?;
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

pub(super) async fn unfinished<S: Session>(
    session: &mut S,
    keys: &[TableKey],
) -> Result<Vec<(TableKey, TableRun)>> {
    let mut found = vec![];
    for keys in keys.chunks(key::CHUNK) {
        let statement = key::among(session, all_table_runs(), keys)
            .sql(" AND status IN ('reading', 'committing', 'committed') ORDER BY token, run_id");
        found.extend(select_table_runs(session, statement).await?);
    }
    Ok(found)
}

pub(super) async fn save_table_run<S: Session>(
    session: &mut S,
    key: &TableKey,
    record: &TableRun,
) -> Result<()> {
    let mut cells = vec![Cell::from(record.run_id)];
    cells.extend(key::cells(key));
    cells.extend([
        Cell::count(record.token)?,
        Cell::from(name_of(&record.status)?),
        Cell::optional_json(record.window.as_ref())?,
        Cell::json(&record.uploads)?,
        Cell::optional_json(record.pending.as_ref())?,
        Cell::count(record.rows)?,
        Cell::count(record.bytes)?,
        Cell::json(&record.counters)?,
        Cell::json(&record.notices)?,
        Cell::from(parse_time(&record.started_at)?),
        optional_time(record.finished_at.as_ref())?,
        Cell::from(record.error.clone()),
    ]);
    let statement = Statement::new(format!("INSERT INTO table_runs ({TABLE_RUN}) VALUES "))
        .tuple(cells)
        .or_replace(TABLE_RUN, &format!("run_id, {}", key::KEY));
    session.send(statement).await
}
