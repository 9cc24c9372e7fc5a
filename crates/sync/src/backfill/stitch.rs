//! After the last piece: do they make the whole?

use futures::TryStreamExt;
use serde::Serialize;
use tidelake_connector::SplitRequest;
use tidelake_model::{Error, ErrorKind, ReadMethod, Result};
use tidelake_watermark::Range;

use super::cut::tile;
use super::earlier::{Done, still_counts};
use crate::columns::{Shares, table_read};
use crate::edit::rows_in_range;
use crate::one_table::OneTable;
use crate::window::whole;

/// What the stitch check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stitch {
    /// Rows of the range that the lake holds.
    pub lake_rows: u64,
    /// Rows of the range that the source holds, counted in one snapshot.
    pub source_rows: u64,
}

impl Stitch {
    /// Whether both hold the same number.
    pub fn matches(&self) -> bool {
        self.lake_rows == self.source_rows
    }
}

/// Checks that the pieces tile the range, that each counts in the lake, and counts
/// the rows of the range on both sides.
pub(crate) async fn stitch(
    one: &OneTable<'_>,
    range: &Range,
    pieces: &[Range],
    done: &[Done],
) -> Result<Stitch> {
    if !tile(range, pieces) || done.len() != pieces.len() {
        return Err(Error::new(ErrorKind::Internal, "the pieces of the backfill do not tile it"));
    }
    let lake = one.lake();
    let latest = lake.latest().await?;
    if !still_counts(&lake, latest.as_ref(), done.iter()).await? {
        return Err(Error::new(
            ErrorKind::Mismatch,
            "a piece of the backfill does not count in the lake any more",
        )
        .with_hint("was the watermark reset meanwhile? begin anew with backfill --restart"));
    }
    Ok(Stitch {
        source_rows: source_rows(one, range).await?,
        lake_rows: lake_rows(one, range).await?,
    })
}

/// Rows of a range in the lake as it is now.
pub(crate) async fn lake_rows(one: &OneTable<'_>, range: &Range) -> Result<u64> {
    let lake = one.lake();
    let Some(latest) = lake.latest().await? else { return Ok(0) };
    let (Some(live), Some(cursor)) = (latest.manifests.last(), &one.selected.cursor) else {
        return Ok(0);
    };
    let head = lake.manifest(live).await?;
    rows_in_range(&lake, &latest, &head, range, &cursor.read).await
}

/// Rows of a range in the source: the cursor's columns are read, in one snapshot.
async fn source_rows(one: &OneTable<'_>, range: &Range) -> Result<u64> {
    let window =
        tidelake_model::WindowRecord { range: Some(range.clone()), null_cursors: false, ..whole() };
    let sync = &one.systems.sync;
    let shares = Shares::of(sync.memory_limit, 1);
    let mut read = table_read(sync, &one.selected, &window, shares);
    if let Some(cursor) = &read.cursor {
        let names = cursor.cursor.columns().to_vec();
        read.columns.retain(|column| names.iter().any(|name| name == column.name()));
    }
    let request = SplitRequest { read, degree: 1, method: ReadMethod::None, key: None };
    let slices = one.systems.source.split(&request).await?;
    let mut rows = 0_u64;
    for slice in &slices.slices {
        let mut reading = one.systems.source.read(slice).await?;
        loop {
            let batch = tokio::select! {
                biased;
                () = one.request.cancel.cancelled() => {
                    return Err(Error::new(ErrorKind::Interrupted, "the count was interrupted"));
                }
                batch = reading.batches.try_next() => batch?,
            };
            let Some(batch) = batch else { break };
            rows = rows.saturating_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX));
        }
    }
    Ok(rows)
}
