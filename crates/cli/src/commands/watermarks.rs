//! `watermarks`: how far tables were read, and changing that by hand.

use serde::Serialize;
use tidelake_model::{Actor, HistoryRow, Result, WatermarkRecord};
use tidelake_sync::watermarks::{self, Edited};
use tidelake_watermark::Direction;

use super::{Session, watermark_filter};
use crate::args::{EditArgs, SelectArgs, SetArgs, WatermarksCommand};
use crate::exit::Exit;
use crate::output::{count, fields, one_line, or_dash, second, table};
use crate::terminal::Terminal;

/// Does what was asked for.
pub(super) async fn watermarks(session: &Session, command: WatermarksCommand) -> Result<Exit> {
    match command {
        WatermarksCommand::List(select) => list(session, &select).await,
        WatermarksCommand::Get(select) => get(session, &select).await,
        WatermarksCommand::Set(args) => set(session, &args).await,
        WatermarksCommand::Reset(args) => reset(session, &args).await,
        WatermarksCommand::Delete(select) => delete(session, &select).await,
        WatermarksCommand::History(select) => history(session, &select).await,
        WatermarksCommand::Undo(args) => undo(session, &args).await,
    }?;
    Ok(Exit::Done)
}

async fn list(session: &Session, select: &SelectArgs) -> Result<()> {
    let app = session.application().await?;
    let filter = watermark_filter(session.env(), select);
    let records = watermarks::list(&app, &filter).await?;
    session.output.emit(&records, |_| listed(&records))
}

async fn get(session: &Session, select: &SelectArgs) -> Result<()> {
    let app = session.application().await?;
    let record = watermarks::get(&app, &watermark_filter(session.env(), select)).await?;
    session.output.emit(&record, |terminal| described(&record, terminal))
}

async fn set(session: &Session, args: &SetArgs) -> Result<()> {
    let app = session.application().await?;
    let filter = watermark_filter(session.env(), &args.edit.select);
    let value = args.value.as_deref().or(args.value_option.as_deref()).unwrap_or_default();
    let reason = args.edit.reason.as_deref();
    let edited =
        watermarks::set(&app, &filter, value, args.expected_version, &actor(), reason).await?;
    show_edited(session, &edited, "set to")
}

async fn undo(session: &Session, args: &EditArgs) -> Result<()> {
    let app = session.application().await?;
    let filter = watermark_filter(session.env(), &args.select);
    let edited = watermarks::undo(&app, &filter, &actor(), args.reason.as_deref()).await?;
    show_edited(session, &edited, "back at")
}

fn show_edited(session: &Session, edited: &Edited, verb: &str) -> Result<()> {
    session.output.notices(&edited.notices);
    let record = &edited.watermark;
    let value = record.progress.watermark.as_ref();
    let value = value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let text = format!("{} is {verb} {value}\n", name(record));
    session.output.emit(edited, |_| text)
}

async fn reset(session: &Session, args: &EditArgs) -> Result<()> {
    let app = session.application().await?;
    let filter = watermark_filter(session.env(), &args.select);
    let record = watermarks::reset(&app, &filter, &actor(), args.reason.as_deref()).await?;
    let text = format!(
        "{} is reset: the next run reads everything and replaces what the lake holds\n",
        name(&record)
    );
    let edited = Edited { watermark: record, touches: None, notices: vec![] };
    session.output.emit(&edited, |_| text)
}

/// The answer to a deletion, as JSON.
#[derive(Serialize)]
struct Deleted<'a> {
    deleted: &'a WatermarkRecord,
}

async fn delete(session: &Session, select: &SelectArgs) -> Result<()> {
    let app = session.application().await?;
    let filter = watermark_filter(session.env(), select);
    let record = watermarks::get(&app, &filter).await?;
    watermarks::delete(&app, &filter).await?;
    session.output.emit(&Deleted { deleted: &record }, |_| {
        format!("deleted the watermark of {} with its history\n", name(&record))
    })
}

async fn history(session: &Session, select: &SelectArgs) -> Result<()> {
    let app = session.application().await?;
    let rows = watermarks::history(&app, &watermark_filter(session.env(), select)).await?;
    session.output.emit(&rows, |terminal| changes(&rows, terminal))
}

/// Who changes it: the user of this command line.
fn actor() -> Actor {
    let name = ["USER", "LOGNAME", "USERNAME"];
    let name = name.into_iter().find_map(|variable| std::env::var(variable).ok());
    Actor { kind: "cli".into(), name: name.unwrap_or_else(|| "unknown".into()) }
}

fn name(record: &WatermarkRecord) -> String {
    match &record.key.table {
        Some(table) => one_line(&table.to_string()),
        None => record.key.source_key.clone(),
    }
}

fn listed(records: &[WatermarkRecord]) -> String {
    if records.is_empty() {
        return "there are no watermarks yet; the first sync makes them\n".to_owned();
    }
    let rows = records.iter().map(|record| {
        vec![
            record.key.scope.clone(),
            name(record),
            record.column.clone(),
            or_dash(record.progress.watermark.as_ref()),
            count(record.row_count),
        ]
    });
    table(&["SYNC", "TABLE", "COLUMN", "VALUE", ">ROWS"], rows.collect())
}

fn described(record: &WatermarkRecord, terminal: &Terminal) -> String {
    let progress = &record.progress;
    let mut rows = vec![
        ("value", or_dash(progress.watermark.as_ref())),
        ("highest exported", or_dash(progress.max_seen.as_ref())),
        ("column", format!("{} ({})", record.column, record.kind)),
        (
            "window",
            match progress.direction {
                Direction::Inclusive => "(low, high]".to_owned(),
                Direction::Exclusive => "[low, high)".to_owned(),
            },
        ),
        ("sync", record.key.scope.clone()),
        ("source", format!("{} ({})", record.key.source_key, record.key.connector_type)),
        ("version", record.version.to_string()),
        ("rows of the last sync", count(record.row_count)),
        ("last advanced", or_dash(record.last_sync_at.as_deref().map(second))),
        ("last checked", or_dash(record.last_checked_at.as_deref().map(second))),
        ("last run", or_dash(record.last_run_id)),
    ];
    if let Some(first) = &progress.first {
        rows.push(("first run from", first.to_string()));
    }
    if record.starts_generation {
        rows.push(("next run", "reads everything and replaces what the lake holds".to_owned()));
    }
    format!("{}\n{}", name(record), fields(2, &rows, terminal.width()))
}

fn changes(rows: &[HistoryRow], terminal: &Terminal) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let mut values = vec![
                ("from", or_dash(row.before.watermark.as_ref())),
                ("to", or_dash(row.after.watermark.as_ref())),
                ("by", format!("{} {}, {}", row.actor.kind, row.actor.name, second(&row.at))),
            ];
            values.extend(row.reason.clone().map(|reason| ("why", reason)));
            let values = fields(2, &values, terminal.width());
            format!("version {}: {}\n{values}", row.version, row.change)
        })
        .collect();
    rows.join("\n")
}
