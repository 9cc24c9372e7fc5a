//! `config list`, `config show`, `config delete`.

use serde::Serialize;
use tidelake_model::{ColumnCast, ColumnSelection, Policies, Result, SyncConfig, TargetLocation};

use super::Session;
use crate::exit::Exit;
use crate::output::{counted, fields, size, table};
use crate::terminal::Terminal;

/// Lists the syncs of the environment.
pub(super) async fn list(session: &Session) -> Result<Exit> {
    let app = session.application().await?;
    let syncs = app.state.syncs(Some(session.env())).await?;
    session.output.emit(&syncs, |_| {
        if syncs.is_empty() {
            return "there are no syncs yet; 'tidelake config create' makes one\n".to_owned();
        }
        let rows = syncs.iter().map(|sync| {
            vec![
                sync.sync_id.clone(),
                sync.source.credential_id.clone(),
                sync.incremental.len().to_string(),
                target(sync),
            ]
        });
        let headers = ["SYNC", "SOURCE", ">INCREMENTAL", "TARGET"];
        table(&headers, rows.collect())
    })?;
    Ok(Exit::Done)
}

/// Shows all settings of a sync.
pub(super) async fn show(session: &Session, sync_id: &str) -> Result<Exit> {
    let app = session.application().await?;
    let sync = app.state.sync(session.env(), sync_id).await?;
    session.output.emit(&sync, |terminal| described(&sync, terminal))?;
    Ok(Exit::Done)
}

/// The answer to a deletion, as JSON.
#[derive(Serialize)]
struct Deleted<'a> {
    deleted: &'a str,
}

/// Deletes a sync with its watermarks.
pub(super) async fn delete(session: &Session, sync_id: &str) -> Result<Exit> {
    let app = session.application().await?;
    app.state.sync(session.env(), sync_id).await?;
    app.state.delete_sync(session.env(), sync_id).await?;
    session.output.emit(&Deleted { deleted: sync_id }, |_| {
        format!("deleted {sync_id} with its watermarks; its files are untouched\n")
    })?;
    Ok(Exit::Done)
}

/// Where a sync's lake is.
fn target(sync: &SyncConfig) -> String {
    let base = match &sync.target.location {
        TargetLocation::Folder(folder) => folder.clone(),
        TargetLocation::Credential(id) => format!("storage {id}"),
    };
    match &sync.target.sub_path {
        Some(path) => format!("{base}/{path}"),
        None => base,
    }
}

fn list_or(items: &[String], none: &str) -> String {
    if items.is_empty() { none.to_owned() } else { items.join(", ") }
}

/// A setting's stored name: the one that the command line takes.
fn named<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => "-".to_owned(),
    }
}

/// What becomes of values that the lake's types cannot hold.
fn values(sync: &SyncConfig) -> String {
    let Policies { special_number, infinite_time, zero_date, timestamp_unit } = sync.policies;
    format!(
        "special numbers {}, infinite times {}, zero dates {}, times in {}",
        named(special_number),
        named(infinite_time),
        named(zero_date),
        named(timestamp_unit)
    )
}

/// The choice of columns, a line for each table.
fn columns(sync: &SyncConfig) -> Vec<String> {
    let line = |selection: &ColumnSelection| {
        let ColumnSelection { table, include, exclude } = selection;
        match include.is_empty() {
            true => format!("{table} without {}", exclude.join(", ")),
            false => format!("{table}: {}", include.join(", ")),
        }
    };
    sync.columns.iter().map(line).collect()
}

/// Declared keys, a line for each table.
fn keys(sync: &SyncConfig) -> Vec<String> {
    sync.keys.iter().map(|key| format!("{}: {}", key.table, key.columns.join(", "))).collect()
}

/// Types that were chosen, a line for each column.
fn casts(sync: &SyncConfig) -> Vec<String> {
    let line = |cast: &ColumnCast| {
        let ColumnCast { table, column, data_type, extension } = cast;
        let name = tidelake_sync::type_name(data_type, extension.as_deref());
        format!("{table}: {column} as {name}")
    };
    sync.casts.iter().map(line).collect()
}

fn described(sync: &SyncConfig, terminal: &Terminal) -> String {
    let source = &sync.source;
    let mut text = format!("{}\n", sync.sync_id);
    let mut rows = vec![
        ("source", format!("{} ({})", source.credential_id, source.connector_type)),
        ("database", source.database.clone().unwrap_or_else(|| "the credential's".to_owned())),
        ("schemas", list_or(&source.schemas, "all user schemas")),
        ("include", list_or(&source.include, "all tables")),
        ("exclude", list_or(&source.exclude, "none")),
    ];
    if let Some(least) = source.min_rows {
        rows.push(("min rows", least.to_string()));
    }
    if let Some(most) = source.max_rows {
        rows.push(("max rows", most.to_string()));
    }
    let incremental: Vec<_> = sync
        .incremental
        .iter()
        .map(|table| {
            let kinds: Vec<_> = table.kinds.iter().map(|kind| kind.name()).collect();
            let start = table.start.as_ref().map(|start| format!(" from {start}"));
            format!(
                "{} by {} ({}), {}{}",
                table.table,
                table.cursor,
                kinds.join(","),
                table.strategy,
                start.unwrap_or_default()
            )
        })
        .collect();
    let parallel = match sync.parallel {
        None => "automatic".to_owned(),
        Some(0) => "all cores".to_owned(),
        Some(readers) if readers > 0 => counted(readers.unsigned_abs().into(), "reader"),
        Some(divisor) => format!("cores / {}", divisor.unsigned_abs()),
    };
    rows.extend([
        (
            "incremental",
            if incremental.is_empty() { "none".into() } else { incremental.join("\n") },
        ),
        ("schema drift", named(sync.schema_drift)),
        ("values", values(sync)),
        ("safety lag", counted(sync.safety_lag, "second")),
        ("null cursors", named(sync.null_cursor)),
        (
            "fence",
            format!("{}, waits {}", named(sync.fence.mode), counted(sync.fence.wait, "second")),
        ),
        ("target", target(sync)),
        ("compression", named(sync.compression)),
        ("readers", format!("{parallel}, {} at once", counted(sync.n_jobs.into(), "table"))),
        ("memory", size(sync.memory_limit)),
        ("on failure", named(sync.error_action)),
    ]);
    for (name, value) in [
        ("lookback", &sync.lookback),
        ("safety gap", &sync.safety_gap),
        ("cursor zone", &sync.cursor_zone),
    ] {
        if let Some(value) = value {
            rows.push((name, value.clone()));
        }
    }
    for (name, lines) in [("columns", columns(sync)), ("keys", keys(sync)), ("types", casts(sync))]
    {
        if !lines.is_empty() {
            rows.push((name, lines.join("\n")));
        }
    }
    if let Some(publish) = &sync.publish {
        rows.push((
            "publish",
            format!(
                "{} ({}), {}, as {}.{}",
                publish.credential_id,
                publish.connector_type,
                named(publish.method),
                publish.schema_pattern,
                publish.table_pattern
            ),
        ));
    }
    text.push_str(&fields(2, &rows, terminal.width()));
    text
}
