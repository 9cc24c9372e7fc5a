//! Seeing and correcting watermarks.

use serde::Serialize;
use tidelake_lake::Lake;
use tidelake_model::{
    Actor, Change, Error, ErrorKind, HistoryRow, IncrementalTable, Notice, NoticeCode, Result,
    SyncConfig, TableName, WatermarkFilter, WatermarkRecord, position_text,
};
use tidelake_watermark::{Bound, Direction, Kind, Position, Progress, Range};

use crate::application::Application;
use crate::create::watermark_settings;
pub use crate::edit::Touches;
use crate::incremental::table_name;
use crate::tables::table_key;

/// A watermark that was changed by hand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Edited {
    /// As it is now.
    pub watermark: WatermarkRecord,
    /// What the next run will read again and replace in the lake; `None` where
    /// there is no lake to look at.
    pub touches: Option<Touches>,
    /// What the user should know.
    pub notices: Vec<Notice>,
}

/// The watermarks that a filter names, by key. A table may be named without its
/// schema, and in double quotes as in `--incremental-table`.
pub async fn list(app: &Application, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>> {
    let Some(text) = &filter.table else { return app.state.watermarks(filter).await };
    let all = app.state.watermarks(&WatermarkFilter { table: None, ..filter.clone() }).await?;
    Ok(named(text, all, |record| record.key.table.as_ref()))
}

/// Those that a user means by a table's name: as it is quoted, else as it is
/// printed, else by the table's name alone.
fn named<T>(text: &str, all: Vec<T>, name: impl Fn(&T) -> Option<&TableName>) -> Vec<T> {
    let quoted = table_name(text).filter(|_| text.contains('"'));
    let is_quoted = |table: &TableName| {
        quoted.as_ref().is_some_and(|(schema, name)| {
            table.table == *name && schema.as_ref().is_none_or(|schema| *schema == table.schema)
        })
    };
    let ways: [&dyn Fn(&TableName) -> bool; 3] =
        [&is_quoted, &|table| table.to_string() == text, &|table| table.table == text];
    let way = ways.into_iter().find(|way| all.iter().any(|item| name(item).is_some_and(way)));
    let Some(way) = way else { return vec![] };
    all.into_iter().filter(|item| name(item).is_some_and(way)).collect()
}

/// The watermark of a sync's table, if there is one of that column.
pub(crate) async fn stored(
    app: &Application,
    sync: &SyncConfig,
    table: &TableName,
    column: &str,
) -> Result<Option<WatermarkRecord>> {
    let key = table_key(sync, table);
    let filter = WatermarkFilter {
        env: Some(key.env.clone()),
        scope: Some(key.scope.clone()),
        table: Some(table.to_string()),
        ..WatermarkFilter::default()
    };
    // What is printed alike need not be the same table: a name may hold dots.
    let stored = app.state.watermarks(&filter).await?;
    Ok(stored.into_iter().find(|record| record.key == key && record.column == column))
}

/// The one watermark that a filter names.
pub async fn get(app: &Application, filter: &WatermarkFilter) -> Result<WatermarkRecord> {
    let mut found = list(app, filter).await?;
    match (found.pop(), found.len()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(Error::new(ErrorKind::NotFound, "there is no such watermark")
            .with_hint("see them with tidelake watermarks list")),
        (Some(last), _) => {
            found.push(last);
            let names: Vec<_> = found.iter().map(name).collect();
            Err(Error::new(
                ErrorKind::Conflict,
                format!("several watermarks are meant: {}", names.join("; ")),
            )
            .with_hint("name one with --sync-id and --table"))
        }
    }
}

fn name(record: &WatermarkRecord) -> String {
    let key = &record.key;
    let table = key.table.as_ref().map_or("(no table yet)".to_owned(), ToString::to_string);
    format!(
        "{table} of {} {}",
        key.connector_type,
        [&key.scope, &key.source_key].map(String::as_str).join("/")
    )
}

/// Sets a value, up or down. A table of a sync that has no watermark yet gets one,
/// and its first run begins above it.
///
/// Down: the next run reads the rows above the value again, and takes those that
/// the lake already holds out in the same commit. Where a publish target can
/// only append, this is refused.
pub async fn set(
    app: &Application,
    filter: &WatermarkFilter,
    value: &str,
    expected: Option<u64>,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Edited> {
    let record = match get(app, filter).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return create_first(app, filter, value, actor, reason, error).await;
        }
        found => found?,
    };
    let position = parse(&record.kind, &record.column, value)?;
    let (touches, notices) = check_lower(app, &record, &position).await?;
    let change = Change::Edit(position);
    let watermark =
        app.state.change_watermark(&record.id, &change, expected, actor, reason).await?;
    Ok(Edited { watermark, touches, notices })
}

/// A value for a table that was never synced: the first run begins above it.
async fn create_first(
    app: &Application,
    filter: &WatermarkFilter,
    value: &str,
    actor: &Actor,
    reason: Option<&str>,
    missing: Error,
) -> Result<Edited> {
    let (Some(scope), Some(table)) = (&filter.scope, &filter.table) else { return Err(missing) };
    let sync = app.state.sync(filter.env.as_deref().unwrap_or(""), scope).await?;
    let tables: Vec<&IncrementalTable> = sync.incremental.iter().collect();
    let [incremental] = named(table, tables, |settings| Some(&settings.table))[..] else {
        return Err(Error::new(ErrorKind::NotFound, format!("{table} has no cursor in this sync"))
            .with_hint("see the tables with tidelake config show"));
    };
    let mut settings = watermark_settings(incremental)?;
    let position = parse(&settings.kind, &settings.column, value)?;
    settings.initial.watermark = Some(position.clone());
    settings.initial.max_seen = Some(position);
    let key = table_key(&sync, &incremental.table);
    let watermark = app.state.create_watermark(&key, &settings, actor, reason).await?;
    Ok(Edited { watermark, touches: None, notices: vec![] })
}

fn parse(kind: &str, column: &str, value: &str) -> Result<Position> {
    position_text::from_parts(kind, value).map_err(|message| {
        Error::new(ErrorKind::Configuration, message).with_hint(format!(
            "write it as the example is written: the cursor {column} holds values of kind {kind}"
        ))
    })
}

/// Forgets the value; the next run reads everything, and replaces what the lake
/// holds.
pub async fn reset(
    app: &Application,
    filter: &WatermarkFilter,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<WatermarkRecord> {
    let record = get(app, filter).await?;
    app.state.change_watermark(&record.id, &Change::Reset, None, actor, reason).await
}

/// Puts the values before the last change back.
pub async fn undo(
    app: &Application,
    filter: &WatermarkFilter,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Edited> {
    let record = get(app, filter).await?;
    let earlier = app.state.history(&record.id).await?.into_iter().next();
    let before = earlier.map(|row| row.before).unwrap_or_default();
    let target = before.max_seen.clone().or(before.watermark.clone());
    let (touches, notices) = match target {
        Some(target) => check_lower(app, &record, &target).await?,
        // Back to nothing is a reset: the next run replaces everything.
        None => (None, vec![]),
    };
    let expected = Some(record.version);
    let watermark =
        app.state.change_watermark(&record.id, &Change::Undo, expected, actor, reason).await?;
    Ok(Edited { watermark, touches, notices })
}

/// Removes the watermark; the next run reads everything.
pub async fn delete(app: &Application, filter: &WatermarkFilter) -> Result<()> {
    let record = get(app, filter).await?;
    app.state.delete_watermark(&record.id).await
}

/// The changes of a watermark, newest first.
pub async fn history(app: &Application, filter: &WatermarkFilter) -> Result<Vec<HistoryRow>> {
    let record = get(app, filter).await?;
    app.state.history(&record.id).await
}

/// What going to `to` means for the lake and the publish target.
async fn check_lower(
    app: &Application,
    record: &WatermarkRecord,
    to: &Position,
) -> Result<(Option<Touches>, Vec<Notice>)> {
    let Some(table) = &record.key.table else { return Ok((None, vec![])) };
    let Ok(sync) = app.state.sync(&record.key.env, &record.key.scope).await else {
        return Ok((None, vec![]));
    };
    let storage = app.storages.open(&sync.target.location).await?;
    let lake = Lake::new(storage).table(sync.target.sub_path.as_deref(), table);
    let latest = lake.latest().await?;
    let is_text = to.kinds().contains(&Kind::Text);
    if is_text && latest.is_some() && record.progress != Progress::default() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a watermark of text cannot be moved by hand: only the source can compare its values",
        )
        .with_hint("reset it, so that the next sync replaces the lake's rows"));
    }
    let inclusive = record.progress.direction == Direction::Exclusive;
    let range = Range { low: Some(Bound { at: to.clone(), inclusive }), high: None };
    let touches = crate::edit::touches(&lake, latest.as_ref(), &range).await?;
    if touches.files > 0 && sync.publish.is_some() {
        return Err(Error::new(
            ErrorKind::Mismatch,
            format!(
                "{} rows at or above {to} may be published already, and the target only appends",
                touches.rows
            ),
        )
        .with_hint("reset the watermark, so that the next sync replaces the target's rows"));
    }
    let mut notices = vec![];
    if touches.files > 0 {
        notices.push(Notice::new(
            NoticeCode::Setting,
            format!(
                "the next sync reads the rows above {to} again and replaces them in the lake: it \
                 touches {} file(s) with {} row(s), {} bytes",
                touches.files, touches.rows, touches.bytes
            ),
        ));
    }
    Ok((Some(touches), notices))
}
