//! What `backfill`, `compact` and `cleanup` were told.

use std::time::Duration;

use tidelake_model::{Result, RunStatus};
use tidelake_sync::{Compaction, Cut};

use super::{configuration, quantity};
use crate::args::{BackfillArgs, CleanupArgs, CompactArgs, RunStatusName};

/// Smallest size of a merged file that makes sense.
const SMALLEST_TARGET: u64 = 1 << 10;

/// How a backfill is cut.
pub(crate) fn cut(args: &BackfillArgs) -> Cut {
    match (args.pieces, &args.step) {
        (Some(pieces), _) => Cut::Pieces(pieces),
        (None, Some(step)) => Cut::Step(step.clone()),
        (None, None) => Cut::Automatic,
    }
}

/// How files are merged.
pub(crate) fn compaction(args: &CompactArgs) -> Result<Compaction> {
    let target_bytes = quantity::bytes("--target-size", &args.target_size)?;
    if target_bytes < SMALLEST_TARGET {
        return Err(configuration(format!("--target-size {:?} is too small", args.target_size))
            .with_hint("a good size is 128MiB to 1GiB"));
    }
    Ok(Compaction { target_bytes })
}

/// How old something has to be, and how runs ended.
pub(crate) fn old(args: &CleanupArgs) -> Result<(Duration, Vec<RunStatus>)> {
    let seconds = quantity::seconds("--older-than", &args.older_than)?;
    let statuses = args.status.iter().map(|status| match status {
        RunStatusName::Completed => RunStatus::Completed,
        RunStatusName::Partial => RunStatus::Partial,
        RunStatusName::Failed => RunStatus::Failed,
        RunStatusName::Cancelled => RunStatus::Cancelled,
    });
    Ok((Duration::from_secs(seconds), statuses.collect()))
}
