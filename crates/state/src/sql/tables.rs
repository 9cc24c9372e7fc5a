//! `table_state`: token, lease and head of every table.

use tidelake_model::{Head, Holder, Result, TableKey};

use super::reader::{Reader, damaged};
use super::{Cell, Session, Statement, key};
use crate::rows::{LeaseRow, TableFilter, TableRow};

const COLUMNS: &str = "env, scope, connector_type, source_key, schema_name, table_name, token, \
    run_id, host, boot_id, process_id, process_started, expires_at, head_run_id, head_location";

fn read(cells: Vec<Cell>) -> Result<TableRow> {
    let mut reader = Reader::new(cells);
    let key = key::read(&mut reader)?;
    let token = reader.count()?;
    let run_id = reader.optional_parse()?;
    let (host, boot_id) = (reader.optional_text()?, reader.optional_text()?);
    let process_id = reader.optional_count()?;
    let process_started = reader.optional_text()?;
    let expires_at = reader.optional_time()?;
    let lease = match run_id {
        Some(run_id) => Some(LeaseRow {
            run_id,
            holder: Holder {
                host: host.unwrap_or_default(),
                boot_id: boot_id.unwrap_or_default(),
                process_id: u32::try_from(process_id.unwrap_or(0)).map_err(damaged)?,
                process_started: process_started.unwrap_or_default().parse().map_err(damaged)?,
            },
            expires_at: expires_at.ok_or_else(|| damaged("a lease without an end"))?,
        }),
        None => None,
    };
    let (head_run_id, head_location) = (reader.optional_parse()?, reader.optional_text()?);
    let head = head_run_id.zip(head_location).map(|(run_id, location)| Head { run_id, location });
    Ok(TableRow { key, token, lease, head })
}

fn write(row: &TableRow) -> Result<Vec<Cell>> {
    let mut cells = key::cells(&row.key);
    cells.push(Cell::count(row.token)?);
    let lease = row.lease.as_ref();
    let holder = lease.map(|lease| &lease.holder);
    let process_id = holder.map(|holder| i64::from(holder.process_id));
    cells.extend([
        Cell::Text(lease.map(|lease| lease.run_id.to_string())),
        Cell::Text(holder.map(|holder| holder.host.clone())),
        Cell::Text(holder.map(|holder| holder.boot_id.clone())),
        Cell::Integer(process_id),
        // In the system's own unit, which may need all 64 bits.
        Cell::Text(holder.map(|holder| holder.process_started.to_string())),
        Cell::Time(lease.map(|lease| lease.expires_at)),
        Cell::Text(row.head.as_ref().map(|head| head.run_id.to_string())),
        Cell::Text(row.head.as_ref().map(|head| head.location.clone())),
    ]);
    Ok(cells)
}

async fn select<S: Session>(session: &mut S, statement: Statement) -> Result<Vec<TableRow>> {
    session.query(&statement).await?.into_iter().map(read).collect()
}

pub(super) async fn lock<S: Session>(session: &mut S, keys: &[TableKey]) -> Result<Vec<TableRow>> {
    let mut locked = vec![];
    for keys in keys.chunks(key::CHUNK) {
        let found = lock_existing(session, keys).await?;
        if found.len() == keys.len() {
            locked.extend(found);
            continue;
        }
        // Rows that are there already are not touched, so they are not waited
        // for in another order than the one below.
        let is_missing = |key: &&TableKey| !found.iter().any(|row| row.key == **key);
        let missing = keys.iter().filter(is_missing).map(|key| {
            let mut cells = key::cells(key);
            cells.push(Cell::Integer(Some(0)));
            cells
        });
        let insert =
            Statement::new(format!("INSERT INTO table_state ({}, token) VALUES ", key::KEY))
                .tuples(missing)
                .or_nothing(key::KEY);
        session.execute(&insert).await?;
        locked.extend(lock_existing(session, keys).await?);
    }
    Ok(locked)
}

async fn lock_existing<S: Session>(session: &mut S, keys: &[TableKey]) -> Result<Vec<TableRow>> {
    let select_sql = Statement::new(format!("SELECT {COLUMNS} FROM table_state"));
    let statement = key::among(session, select_sql, keys).sql(" ORDER BY ").sql(key::KEY);
    let statement = statement.sql(session.for_update());
    session.lock(&statement).await?.into_iter().map(read).collect()
}

pub(super) async fn matching<S: Session>(
    session: &mut S,
    filter: &TableFilter,
    lock: bool,
) -> Result<Vec<TableRow>> {
    let statement = Statement::new(format!("SELECT {COLUMNS} FROM table_state WHERE 1 = 1"))
        .filter("env", filter.env.as_ref())
        .filter("scope", filter.scope.as_ref())
        .filter("run_id", filter.run_id)
        .sql(if filter.leased { " AND run_id IS NOT NULL" } else { "" })
        .sql(" ORDER BY ")
        .sql(key::KEY)
        .sql(if lock { session.for_update() } else { "" });
    select(session, statement).await
}

pub(super) async fn save<S: Session>(session: &mut S, rows: &[TableRow]) -> Result<()> {
    for rows in rows.chunks(key::CHUNK) {
        let tuples = rows.iter().map(write).collect::<Result<Vec<_>>>()?;
        let statement = Statement::new(format!("INSERT INTO table_state ({COLUMNS}) VALUES "))
            .tuples(tuples)
            .or_replace(COLUMNS, key::KEY);
        session.send(statement).await?;
    }
    Ok(())
}
