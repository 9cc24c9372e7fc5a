//! Every version of a row in the lake.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::{StreamExt, TryStreamExt};
use tidelake_lake::TableLake;
use tidelake_model::{CursorRead, DataFile, Latest, Manifest, Purpose, Result, RunId};

use super::LakeRow;
use super::cells::KeyCells;
use crate::verify::finding::{cursor_text, run_of};
use crate::window::describe;

/// Files that are read at once.
const READERS: usize = 4;

/// What the lake has.
pub(super) struct Searched {
    pub(super) found: Vec<LakeRow>,
    /// The newest manifest; `None` where nothing was committed.
    pub(super) latest: Option<Manifest>,
}

/// Searches the live files for rows of these keys.
pub(super) async fn search(
    lake: &TableLake,
    schema: SchemaRef,
    keys: Vec<KeyCells>,
    cursor: Option<&CursorRead>,
) -> Result<Searched> {
    let Some(latest) = lake.latest().await? else {
        return Ok(Searched { found: vec![], latest: None });
    };
    let files = lake.live_files(&latest).await?;
    let keys = &keys;
    let searches: Vec<_> = files
        .iter()
        .map(|file| rows_of(lake, file, SchemaRef::clone(&schema), keys, cursor))
        .collect();
    let found: Vec<_> = futures::stream::iter(searches).buffered(READERS).try_collect().await?;
    let mut manifests: BTreeMap<RunId, Option<Manifest>> = BTreeMap::new();
    let mut rows = vec![];
    for (file, cursors) in files.iter().zip(found) {
        if cursors.is_empty() {
            continue;
        }
        let run = run_of(&file.key);
        let manifest = match run {
            None => None,
            Some(run) => match manifests.get(&run) {
                Some(manifest) => manifest.clone(),
                None => {
                    let manifest = lake.manifest_of(run).await?;
                    manifests.insert(run, manifest.clone());
                    manifest
                }
            },
        };
        rows.extend(
            cursors.into_iter().map(|cursor| row(lake, file, cursor, run, manifest.as_ref())),
        );
    }
    let latest = newest(lake, &latest).await?;
    Ok(Searched { found: rows, latest })
}

async fn newest(lake: &TableLake, latest: &Latest) -> Result<Option<Manifest>> {
    match latest.manifests.last() {
        Some(live) => lake.manifest(live).await.map(Some),
        None => Ok(None),
    }
}

/// The cursor of each row of the file that has one of the keys.
async fn rows_of(
    lake: &TableLake,
    file: &DataFile,
    schema: SchemaRef,
    keys: &[KeyCells],
    cursor: Option<&CursorRead>,
) -> Result<Vec<Option<String>>> {
    let mut batches = lake.rows(vec![file.clone()], schema);
    let mut found = vec![];
    while let Some(batch) = batches.try_next().await? {
        for row in matching(&batch, keys)? {
            let row = batch.slice(row, 1);
            found.push(cursor.and_then(|cursor| cursor_text(&row, cursor)));
        }
    }
    Ok(found)
}

fn matching(batch: &RecordBatch, keys: &[KeyCells]) -> Result<Vec<usize>> {
    let mut rows = vec![];
    for key in keys {
        let mask = key.mask(batch)?;
        rows.extend(
            mask.iter().enumerate().filter(|(_, is)| *is == Some(true)).map(|(row, _)| row),
        );
    }
    rows.sort_unstable();
    rows.dedup();
    Ok(rows)
}

fn row(
    lake: &TableLake,
    file: &DataFile,
    cursor: Option<String>,
    run_id: Option<RunId>,
    manifest: Option<&Manifest>,
) -> LakeRow {
    let window = manifest.and_then(|manifest| manifest.window.as_ref()).map(|found| &found.window);
    LakeRow {
        cursor,
        file: lake.file_location(&file.key),
        run_id,
        read_at: manifest.map(|manifest| manifest.finished_at.clone()),
        window: window.map(describe),
        purpose: window.map(|window| match window.purpose {
            Purpose::Run => "run",
            Purpose::Backfill(_) => "backfill",
            Purpose::Repair => "repair",
            Purpose::Compact => "compact",
        }),
    }
}
