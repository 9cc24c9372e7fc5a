//! What was done of a backfill before, as the state store's records tell it.

use std::collections::BTreeMap;

use tidelake_lake::TableLake;
use tidelake_model::{BackfillPiece, Latest, Purpose, Result, RunId, TableRun, TableRunStatus};

/// A backfill that was begun earlier.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Earlier {
    /// The run of its first piece.
    pub(crate) backfill: RunId,
    /// How many pieces it has.
    pub(crate) of: u32,
    /// Where its equal steps begin.
    pub(crate) from: Option<String>,
    /// Its completed pieces, by number.
    pub(crate) done: BTreeMap<u32, Done>,
}

/// A piece that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// The run that did it.
    pub(crate) run_id: RunId,
    /// Rows that it read.
    pub(crate) rows: u64,
}

/// The newest backfill of that range among the runs of a table.
pub(crate) fn earlier(runs: &[TableRun], range: &str) -> Option<Earlier> {
    let pieces = runs.iter().filter_map(|run| Some((run, piece_of(run)?)));
    let of_range: Vec<_> = pieces.filter(|(_, piece)| piece.range == range).collect();
    let newest = of_range.iter().map(|(_, piece)| piece.backfill).max()?;
    let mut found: Option<Earlier> = None;
    for (run, piece) in of_range.into_iter().filter(|(_, piece)| piece.backfill == newest) {
        let earlier = found.get_or_insert_with(|| Earlier {
            backfill: newest,
            of: piece.of,
            from: piece.from.clone(),
            done: BTreeMap::new(),
        });
        if run.status == TableRunStatus::Completed {
            let done = Done { run_id: run.run_id, rows: run.rows };
            earlier.done.entry(piece.number).or_insert(done);
        }
    }
    found
}

fn piece_of(run: &TableRun) -> Option<&BackfillPiece> {
    match &run.window.as_ref()?.purpose {
        Purpose::Backfill(piece) => Some(piece),
        _ => None,
    }
}

/// Whether the rows of the pieces count in the lake's present generation: a reset,
/// or a rebuilt table, makes them void.
pub(crate) async fn still_counts(
    lake: &TableLake,
    latest: Option<&Latest>,
    pieces: impl Iterator<Item = &Done>,
) -> Result<bool> {
    for piece in pieces.filter(|piece| piece.rows > 0) {
        let manifest = lake.manifest_of(piece.run_id).await?;
        let generation = manifest.map(|manifest| manifest.generation);
        if generation.is_none() || generation != latest.map(|latest| latest.generation) {
            return Ok(false);
        }
    }
    Ok(true)
}
