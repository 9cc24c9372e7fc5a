//! What users do beside syncs: they backfill, repair, compact and clean up, at any
//! moment, and any of it may crash.

use std::sync::Arc;
use std::time::Duration;

use tidelake_model::{ErrorKind, Purpose, Result, WatermarkFilter};
use tidelake_state::StateStore;
use tidelake_sync::run::ErrorReport;
use tidelake_sync::{
    Application, BackfillRequest, CleanupRequest, CompactRequest, Compaction, Cut, Piece, Quiet,
    TableRequest, backfill, cleanup, compact, run_piece,
};
use tidelake_watermark::{Bound, Position, Progress, Range, Value};
use tokio_util::sync::CancellationToken;

use crate::world::{World, events, kinds_table};

/// Does one thing, and looks at what went wrong.
pub(crate) async fn play(world: Arc<World>, app: Application) {
    let result = match world.below(4) {
        0 => backfill_some(&world, &app).await,
        1 => repair(&world, &app).await,
        2 => clean_up(&world, &app).await,
        _ => compact_some(&world, &app).await,
    };
    check(&world, result);
}

fn request(table: &str) -> TableRequest {
    TableRequest {
        env: String::new(),
        sync_id: "simulated".into(),
        table: table.into(),
        cores: 2,
        cancel: CancellationToken::new(),
        events: Arc::new(Quiet),
    }
}

/// Two values up to the watermark that rows have, or the watermark itself.
async fn two_values(world: &World) -> Option<(Value, Value)> {
    let filter =
        WatermarkFilter { table: Some(events().to_string()), ..WatermarkFilter::default() };
    let record = world.store.watermarks(&filter).await.unwrap().pop()?;
    let Progress { watermark, .. } = record.progress;
    let watermark = watermark?.first().clone();
    let rows = world.database.rows(&events()).unwrap();
    let mut values: Vec<_> = rows
        .iter()
        .filter_map(|row| row[1].clone())
        .filter(|value| value.compare(&watermark).unwrap().is_le())
        .collect();
    values.push(watermark);
    values.sort_by(|left, right| left.compare(right).unwrap());
    values.dedup();
    // Near the watermark is the gap, in which nothing was exported.
    if world.chance(3) {
        values.drain(..values.len().saturating_sub(3));
    }
    let pick = || {
        let at = world.below(u32::try_from(values.len()).unwrap());
        values[usize::try_from(at).unwrap()].clone()
    };
    let (left, right) = (pick(), pick());
    Some(if left.compare(&right).unwrap().is_gt() { (right, left) } else { (left, right) })
}

async fn backfill_some(world: &World, app: &Application) -> Result<Vec<ErrorReport>> {
    let Some((low, high)) = two_values(world).await else { return Ok(vec![]) };
    let from = (!world.chance(4)).then(|| low.to_string());
    world.tell(|| format!("backfill from {from:?} to {high}"));
    let done = backfill(
        app,
        BackfillRequest {
            table: request("main.events"),
            from,
            to: high.to_string(),
            cut: match world.below(3) {
                0 => Cut::Automatic,
                pieces => Cut::Pieces(1 + pieces),
            },
            restart: world.chance(3),
            dry_run: world.chance(8),
        },
    )
    .await?;
    world.tell(|| format!("backfill ended: {:?} {:?} {:?}", done.status, done.rows, done.error));
    Ok(done.error.into_iter().collect())
}

async fn repair(world: &World, app: &Application) -> Result<Vec<ErrorReport>> {
    let Some((low, high)) = two_values(world).await else { return Ok(vec![]) };
    let bound = |value: Value| Some(Bound { at: Position::from(value), inclusive: true });
    let range = Range {
        low: if world.chance(6) { None } else { bound(low) },
        high: if world.chance(6) { None } else { bound(high) },
    };
    world.tell(|| format!("repair {range:?}"));
    let piece = Piece { range, purpose: Purpose::Repair };
    let report = run_piece(app, request("main.events"), piece).await?;
    world.tell(|| format!("repair ended: {:?} {:?}", report.status, report.tables));
    Ok(report.tables.into_iter().filter_map(|table| table.error).collect())
}

async fn compact_some(world: &World, app: &Application) -> Result<Vec<ErrorReport>> {
    let table = match world.below(3) {
        0 => String::new(),
        1 => kinds_table().to_string(),
        _ => events().to_string(),
    };
    world.tell(|| format!("compact {table:?}"));
    let done = compact(
        app,
        CompactRequest {
            table: request(&table),
            compaction: Compaction { target_bytes: [3_000, 1 << 20][world.pick(2)] },
            dry_run: world.chance(8),
        },
    )
    .await?;
    world.tell(|| format!("compact ended: {done:?}"));
    Ok(done.into_iter().filter_map(|table| table.error).collect())
}

/// Everything that counts no more goes at once, however young it is.
async fn clean_up(world: &World, app: &Application) -> Result<Vec<ErrorReport>> {
    let done = cleanup(
        app,
        &CleanupRequest {
            env: String::new(),
            sync_id: world.chance(2).then(|| "simulated".into()),
            older_than: Duration::ZERO,
            statuses: vec![],
            dry_run: world.chance(8),
            cancel: CancellationToken::new(),
        },
    )
    .await?;
    world.tell(|| format!("cleanup ended: {done:?}"));
    Ok(done.tables.into_iter().filter_map(|table| table.error).collect())
}

/// What may be refused: a range that is none, or whose rows a target has already.
fn check(world: &World, result: Result<Vec<ErrorReport>>) {
    let errors = match result {
        Ok(errors) => errors,
        Err(error) => vec![(&error).into()],
    };
    for error in errors {
        let is_published = world.publishes && error.message.contains("were published before");
        let is_wrong = match error.error_kind {
            ErrorKind::Internal | ErrorKind::Data | ErrorKind::Unsupported => true,
            ErrorKind::Mismatch => !is_published,
            ErrorKind::Configuration => {
                // Somebody may have corrected the watermark meanwhile.
                !["watermark", "no value lies in", "another cursor", "cannot be told"]
                    .iter()
                    .any(|part| error.message.contains(part))
            }
            _ => false,
        };
        assert!(!is_wrong, "seed {}: {:?} {}", world.seed, error.error_kind, error.message);
    }
}
