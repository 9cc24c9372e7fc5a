//! Seeing and correcting watermarks.

use serde::Serialize;
use tidelake_lake::Lake;
use tidelake_model::{
    Actor, Change, Error, ErrorKind, HistoryRow, Notice, NoticeCode, Result, WatermarkFilter,
    WatermarkRecord, position_text,
};
use tidelake_watermark::{Bound, Direction, Kind, Position, Progress, Range};

use crate::application::Application;
pub use crate::edit::Touches;

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

/// The watermarks that a filter names, by key.
pub async fn list(app: &Application, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>> {
    app.state.watermarks(filter).await
}

/// The one watermark that a filter names.
pub async fn get(app: &Application, filter: &WatermarkFilter) -> Result<WatermarkRecord> {
    let mut found = app.state.watermarks(filter).await?;
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

/// Sets a value, up or down.
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
    let record = get(app, filter).await?;
    let position = position_text::from_parts(&record.kind, value).map_err(|message| {
        Error::new(ErrorKind::Configuration, message)
            .with_hint(format!("the cursor {} holds values of kind {}", record.column, record.kind))
    })?;
    let (touches, notices) = check_lower(app, &record, Some(&position)).await?;
    let change = Change::Edit(position);
    let watermark =
        app.state.change_watermark(&record.id, &change, expected, actor, reason).await?;
    Ok(Edited { watermark, touches, notices })
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
        Some(target) => check_lower(app, &record, Some(&target)).await?,
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
    to: Option<&Position>,
) -> Result<(Option<Touches>, Vec<Notice>)> {
    let (Some(to), Some(table)) = (to, &record.key.table) else { return Ok((None, vec![])) };
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
                 touches {} files with {} rows and {} bytes",
                touches.files, touches.rows, touches.bytes
            ),
        ));
    }
    Ok((Some(touches), notices))
}
