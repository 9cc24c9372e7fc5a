//! Range replaces: taking rows that are read again out of the lake.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::array::RecordBatch;
use arrow::compute::{and, is_not_null};
use arrow::datatypes::Schema;
use futures::TryStreamExt;
use tidelake_connector::{CursorExtent, cursor_extent, rows_outside};
use tidelake_lake::{FileExtent, TableLake, TableWriter, WriterSettings};
use tidelake_model::{
    CursorRead, DataFile, Error, ErrorKind, Latest, Manifest, Result, StagedObject, TakenOut,
    WindowRecord,
};
use tidelake_watermark::{Cursor, Position, Range};

/// What one commit takes out, and what it writes anew instead.
#[derive(Debug, Default)]
pub(crate) struct Replacement {
    /// Files that count no more.
    pub(crate) taken_out: Vec<TakenOut>,
    /// Their rows that stay.
    pub(crate) files: Vec<(DataFile, StagedObject)>,
    /// Highest cursor value of what stays live.
    pub(crate) highest: Option<Position>,
}

impl Replacement {
    /// Whether no row is taken out.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken_out.is_empty()
    }
}

/// How a live file stands to a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overlap {
    /// No row of it lies in the range.
    Outside,
    /// Every row of it does.
    Inside,
    /// Some do.
    Straddles,
}

/// How much of the lake a range replace touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Touches {
    /// Live files that hold rows of the range.
    pub files: u64,
    /// Rows in those files.
    pub rows: u64,
    /// Bytes of those files.
    pub bytes: u64,
}

/// Whether a run that reads `range` can meet rows that the lake holds: it reads
/// at or below the highest live value, or reads rows without a value again.
fn can_meet(head: &Manifest, range: &Range, nulls: bool) -> Result<bool> {
    if nulls {
        return Ok(true);
    }
    let (Some(highest), Some(low)) = (&head.live_highest, &range.low) else {
        return Ok(head.live_highest.is_some());
    };
    Ok(match low.at.compare(highest).map_err(differ)? {
        Ordering::Less => true,
        Ordering::Equal => low.inclusive,
        Ordering::Greater => false,
    })
}

/// Rows of the lake that lie in the window's range, taken out: files wholly
/// inside are dropped, straddling ones are written anew without those rows.
/// `nulls` takes the rows without a cursor value as well.
pub(crate) async fn rows_to_take_out(
    lake: &TableLake,
    latest: Option<&Latest>,
    head: Option<&Manifest>,
    window: &WindowRecord,
    cursor: Option<&CursorRead>,
    nulls: bool,
    settings: WriterSettings,
) -> Result<Replacement> {
    let (Some(latest), Some(head)) = (latest, head) else { return Ok(Replacement::default()) };
    let (Some(range), Some(cursor)) = (&window.range, cursor) else {
        return Ok(Replacement::default());
    };
    if window.replaces {
        return Ok(Replacement::default());
    }
    // Rows without a value leave only where they are read again.
    let nulls = nulls && window.null_cursors;
    let mut replacement =
        Replacement { highest: head.live_highest.clone(), ..Replacement::default() };
    if !can_meet(head, range, nulls)? {
        return Ok(replacement);
    }
    replacement.highest = None;
    let mut writer: Option<TableWriter> = None;
    let result = async {
        for file in lake.live_files(latest).await? {
            let mut overlap = overlap(&file, range, nulls)?;
            // The values of a file may lie on both sides of the range, and none in it.
            if overlap == Overlap::Straddles
                && rows_of_file(lake, head, &file, range, cursor, nulls).await? == 0
            {
                overlap = Overlap::Outside;
            }
            let taken_out = match overlap {
                Overlap::Outside => {
                    let highest = replacement.highest.take();
                    replacement.highest = higher(highest, file.cursor_max.clone())?;
                    continue;
                }
                Overlap::Inside => TakenOut { key: file.key.clone(), rows: file.rows },
                Overlap::Straddles => {
                    let writer = match &mut writer {
                        Some(writer) => writer,
                        None => writer.insert(lake.writer(settings.clone())?),
                    };
                    let keep = |batch: &RecordBatch| keep_mask(batch, cursor, range, nulls);
                    let extent = |batch: &RecordBatch| file_extent(batch, cursor);
                    lake.take_out(&file, &keep, writer, &extent).await?
                }
            };
            replacement.taken_out.push(taken_out);
        }
        Ok(())
    }
    .await;
    match (result, writer) {
        (Ok(()), Some(writer)) => replacement.files = writer.finish().await?,
        (Ok(()), None) => {}
        (Err(error), writer) => {
            if let Some(writer) = writer {
                writer.abort().await;
            }
            return Err(error);
        }
    }
    for (file, _) in &replacement.files {
        replacement.highest = higher(replacement.highest.take(), file.cursor_max.clone())?;
    }
    Ok(replacement)
}

/// Rows of the lake that lie in a range, counted in its files.
pub(crate) async fn rows_in_range(
    lake: &TableLake,
    latest: &Latest,
    head: &Manifest,
    range: &Range,
    cursor: &CursorRead,
) -> Result<u64> {
    let mut rows = 0_u64;
    for file in lake.live_files(latest).await? {
        let inside = match overlap(&file, range, false)? {
            Overlap::Outside => 0,
            Overlap::Inside => file.rows,
            Overlap::Straddles => rows_of_file(lake, head, &file, range, cursor, false).await?,
        };
        rows = rows.saturating_add(inside);
    }
    Ok(rows)
}

/// Rows of one file that lie in a range; only the cursor's columns are read.
async fn rows_of_file(
    lake: &TableLake,
    head: &Manifest,
    file: &DataFile,
    range: &Range,
    cursor: &CursorRead,
    nulls: bool,
) -> Result<u64> {
    let is_wanted = |name: &str| cursor.cursor.columns().iter().any(|column| column == name);
    let fields = head.schema.fields().iter().filter(|field| is_wanted(field.name())).cloned();
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut batches = lake.rows(vec![file.clone()], schema);
    let mut rows = 0_u64;
    while let Some(batch) = batches.try_next().await? {
        let stays = keep_mask(&batch, cursor, range, nulls)?.true_count();
        let inside = batch.num_rows().saturating_sub(stays);
        rows = rows.saturating_add(u64::try_from(inside).unwrap_or(u64::MAX));
    }
    Ok(rows)
}

/// What a run that reads a range again would touch.
pub(crate) async fn touches(
    lake: &TableLake,
    latest: Option<&Latest>,
    range: &Range,
) -> Result<Touches> {
    touches_of(lake, latest, std::slice::from_ref(range)).await
}

/// The same for several ranges, each file counted once.
pub(crate) async fn touches_of(
    lake: &TableLake,
    latest: Option<&Latest>,
    ranges: &[Range],
) -> Result<Touches> {
    let mut touches = Touches::default();
    let Some(latest) = latest else { return Ok(touches) };
    for file in lake.live_files(latest).await? {
        let mut touched = false;
        for range in ranges {
            touched |= overlap(&file, range, false)? != Overlap::Outside;
        }
        if touched {
            touches.files += 1;
            touches.rows = touches.rows.saturating_add(file.rows);
            touches.bytes = touches.bytes.saturating_add(file.bytes);
        }
    }
    Ok(touches)
}

fn overlap(file: &DataFile, range: &Range, nulls: bool) -> Result<Overlap> {
    let takes_nulls = nulls && file.cursor_nulls > 0;
    let (Some(min), Some(max)) = (&file.cursor_min, &file.cursor_max) else {
        return Ok(if takes_nulls { Overlap::Inside } else { Overlap::Outside });
    };
    let inside = range.contains(min).map_err(differ)? && range.contains(max).map_err(differ)?;
    if inside {
        let all = file.cursor_nulls == 0 || nulls;
        return Ok(if all { Overlap::Inside } else { Overlap::Straddles });
    }
    // The file's values and the range meet unless one lies wholly on a side.
    let below = match &range.low {
        None => false,
        Some(low) => match max.compare(&low.at).map_err(differ)? {
            Ordering::Less => true,
            Ordering::Equal => !low.inclusive,
            Ordering::Greater => false,
        },
    };
    let above = match &range.high {
        None => false,
        Some(high) => match min.compare(&high.at).map_err(differ)? {
            Ordering::Greater => true,
            Ordering::Equal => !high.inclusive,
            Ordering::Less => false,
        },
    };
    let apart = below || above;
    Ok(if apart && !takes_nulls { Overlap::Outside } else { Overlap::Straddles })
}

/// Which rows stay.
fn keep_mask(
    batch: &RecordBatch,
    cursor: &CursorRead,
    range: &Range,
    nulls: bool,
) -> Result<BooleanArray> {
    let mut keep = rows_outside(batch, cursor, range)?;
    if nulls && let Cursor::Single(name) = &cursor.cursor {
        let column = batch.column_by_name(name).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "the cursor column is not in the lake")
        })?;
        let has_value = is_not_null(column).map_err(compute)?;
        keep = and(&keep, &has_value).map_err(compute)?;
    }
    Ok(keep)
}

/// The extent of a batch in the lake's terms.
pub(crate) fn file_extent(batch: &RecordBatch, cursor: &CursorRead) -> Result<FileExtent> {
    let CursorExtent { lowest, highest, nulls } = cursor_extent(batch, cursor)?;
    Ok(FileExtent { min: lowest, max: highest, nulls })
}

fn higher(left: Option<Position>, right: Option<Position>) -> Result<Option<Position>> {
    Ok(match (left, right) {
        (Some(left), Some(right)) => Some(left.max(&right).map_err(differ)?),
        (left, right) => left.or(right),
    })
}

fn differ(error: tidelake_watermark::CompareError) -> Error {
    Error::new(ErrorKind::Data, "the cursor's values in the lake are of another kind")
        .with_source(error)
        .with_hint("reset the watermark, so that the next sync replaces the lake's rows")
}

fn compute(error: arrow::error::ArrowError) -> Error {
    Error::new(ErrorKind::Internal, "rows could not be filtered").with_source(error)
}
