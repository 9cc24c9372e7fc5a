//! Playing one schedule.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use tidelake_model::{Actor, Error, ErrorKind, Result, RunStatus, WatermarkFilter};
use tidelake_state::{RunFilter, StateStore};
use tidelake_sync::{OnMismatch, Quiet, RunMode, RunReport, RunRequest, run, watermarks};
use tidelake_watermark::Value;
use tokio_util::sync::CancellationToken;

use crate::check;
use crate::doubles::application;
use crate::flaky::Control;
use crate::house;
use crate::world::{SECOND, World, events};

/// A run under way.
struct Runner {
    control: Arc<Control>,
    work: Pin<Box<dyn Future<Output = ()>>>,
}

/// How far a runner came.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Done,
    Crashed,
    Paused,
}

impl Runner {
    /// `trouble`: one moment in so many goes wrong; 0 is never.
    fn start(world: &Arc<World>, trouble: u32) -> Self {
        let control = Control::new(world, trouble);
        let app = application(world, &control);
        if world.chance(4) {
            return Self { control, work: Box::pin(house::play(Arc::clone(world), app)) };
        }
        let request = request(if world.chance(8) { RunMode::ExportOnly } else { RunMode::Whole });
        let teller = Arc::clone(&control);
        let work = Box::pin(async move {
            let result = run(&app, request).await;
            teller.tell(&result);
            check_error(result);
        });
        Self { control, work }
    }

    /// Lets it go on until it is done, dead or asleep. Dropping it afterwards is
    /// what a crash does to a process: nothing is tidied up.
    async fn go(&mut self) -> End {
        loop {
            if self.step().is_some() {
                return End::Done;
            }
            if self.control.crashed.load(Ordering::Relaxed) {
                return End::Crashed;
            }
            if self.control.paused.load(Ordering::Relaxed) {
                return End::Paused;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn step(&mut self) -> Option<()> {
        (&mut self.work).now_or_never()
    }
}

fn request(mode: RunMode) -> RunRequest {
    RunRequest {
        env: String::new(),
        sync_id: "simulated".into(),
        mode,
        resume: None,
        on_mismatch: OnMismatch::Refuse,
        reset_watermarks: false,
        cores: 2,
        cancel: CancellationToken::new(),
        events: Arc::new(Quiet),
    }
}

/// State and lake never disagree by themselves, whatever crashes.
fn check_error(result: Result<RunReport>) {
    let report = match result {
        Ok(report) => report,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Mismatch, "{error:?}");
            assert_ne!(error.kind(), ErrorKind::Internal, "{error:?}");
            return;
        }
    };
    for error in report.tables.iter().filter_map(|table| table.error.as_ref()) {
        assert!(
            !matches!(error.error_kind, ErrorKind::Internal | ErrorKind::Data),
            "{}",
            error.message
        );
    }
}

/// Plays the schedule of one seed from the first run to the last check.
pub(crate) fn run_schedule(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let played = std::panic::catch_unwind(|| runtime.block_on(play(seed)));
    if let Err(panic) = played {
        eprintln!("the schedule of seed {seed} failed");
        std::panic::resume_unwind(panic);
    }
}

async fn play(seed: u64) {
    let world = Arc::new(World::new(seed));
    world.store.create_sync(&world.config()).await.unwrap();
    for _ in 0..2 + world.below(4) {
        for _ in 0..world.below(12) {
            world.live();
        }
        if world.chance(3) {
            edit(&world).await;
        }
        for _ in 0..[0, 0, 1, 2][world.pick(4)] {
            arrive_late(&world).await;
        }
        round(&world).await;
        if world.chance(2) {
            world.advance_state_clock(20);
        }
        check::readers_see_no_row_twice(&world).await;
    }
    settle(&world).await;
    check::all_arrived(&world).await;
}

/// One or two runners, one of which may sleep until the other took its lease.
async fn round(world: &Arc<World>) {
    let trouble = [0, 15, 40, 100][usize::try_from(world.below(4)).unwrap()];
    let mut first = Runner::start(world, trouble);
    if world.chance(4) {
        return side_by_side(world, first, Runner::start(world, trouble)).await;
    }
    if first.go().await != End::Paused {
        return;
    }
    if world.chance(2) {
        // It sleeps for longer than its lease lasts.
        world.advance_state_clock(20);
    }
    let mut second = Runner::start(world, trouble);
    if second.go().await == End::Paused {
        second.control.paused.store(false, Ordering::Relaxed);
        second.go().await;
    }
    drop(second);
    first.control.paused.store(false, Ordering::Relaxed);
    while first.go().await == End::Paused {
        first.control.paused.store(false, Ordering::Relaxed);
    }
}

/// Two runners that take turns at every moment at which one has to wait.
async fn side_by_side(world: &Arc<World>, first: Runner, second: Runner) {
    let mut runners = vec![first, second];
    while !runners.is_empty() {
        let turn = usize::try_from(world.below(2)).unwrap() % runners.len();
        let runner = &mut runners[turn];
        let result = runner.step();
        let is_over = result.is_some() || runner.control.crashed.load(Ordering::Relaxed);
        if is_over {
            drop(runners.swap_remove(turn));
        } else if runner.control.paused.swap(false, Ordering::Relaxed) && world.chance(2) {
            world.advance_state_clock(20);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Somebody corrects the watermark by hand: down, back, or to nothing.
async fn edit(world: &Arc<World>) {
    let app = application(world, &Control::new(world, 0));
    let filter =
        WatermarkFilter { table: Some(events().to_string()), ..WatermarkFilter::default() };
    let Some(record) = world.store.watermarks(&filter).await.unwrap().pop() else { return };
    let actor = Actor { kind: "cli".into(), name: "simulated".into() };
    let result: Result<(), Error> = match world.below(4) {
        0 => watermarks::reset(&app, &filter, &actor, None).await.map(|_| ()),
        1 => watermarks::undo(&app, &filter, &actor, None).await.map(|_| ()),
        _ => {
            // A value above what was exported would ask to skip rows, and they would
            // rightly be missing.
            let Some(exported) = check::highest_in_lake(world).await else { return };
            let rows = world.database.rows(&events()).unwrap();
            let values: Vec<_> = rows
                .iter()
                .filter_map(|row| row[1].clone())
                .filter(|value| value.compare(&exported).unwrap().is_le())
                .collect();
            let Some(watermark) = &record.progress.watermark else { return };
            if values.is_empty() {
                return;
            }
            let at = usize::try_from(world.below(u32::try_from(values.len()).unwrap())).unwrap();
            let value = &values[at];
            if value.compare(watermark.first()).unwrap().is_gt() {
                return;
            }
            let text = value.to_string();
            world.tell(|| format!("edit from {watermark} to {text}"));
            watermarks::set(&app, &filter, &text, None, &actor, None).await.map(|_| ())
        }
    };
    if let Err(error) = result {
        let expected = [ErrorKind::Locked, ErrorKind::Mismatch, ErrorKind::Conflict];
        assert!(expected.contains(&error.kind()), "{error:?}");
    }
}

/// A late row falls into the gap, where no row was exported yet and none is about
/// to be.
async fn arrive_late(world: &Arc<World>) {
    for run in world.store.runs(&RunFilter::default()).await.unwrap() {
        let tables = world.store.table_runs(run.run_id).await.unwrap();
        if tables.iter().any(|table| table.status.is_unfinished()) {
            return;
        }
    }
    let filter =
        WatermarkFilter { table: Some(events().to_string()), ..WatermarkFilter::default() };
    let Some(record) = world.store.watermarks(&filter).await.unwrap().pop() else { return };
    let Some(watermark) = record.progress.watermark else { return };
    // What is in the lake says what was exported, not what the state says of it.
    let exported = check::highest_in_lake(world).await;
    if let (Some(Value::Timestamp(seen)), Value::Timestamp(watermark)) =
        (exported, watermark.first())
    {
        world.tell(|| format!("late, above {seen} up to {watermark}"));
        world.arrive_late(seen, *watermark);
    }
}

/// Everything comes to rest: all transactions end, time passes, and syncs run
/// without trouble until two in a row are complete.
async fn settle(world: &Arc<World>) {
    world.busy.store(false, Ordering::Relaxed);
    world.commit_all();
    let days = 3 * 86_400 * SECOND;
    world.database.set_now(world.database.now() + days + 2 * world.lag_seconds * SECOND);
    let mut complete = 0;
    for _ in 0..10 {
        world.advance_state_clock(100);
        let app = application(world, &Control::new(world, 0));
        let report = run(&app, request(RunMode::Whole)).await.unwrap();
        let is_complete = report.status == RunStatus::Completed;
        complete = if is_complete { complete + 1 } else { 0 };
        if complete == 2 {
            return;
        }
        assert!(is_complete, "a run without trouble failed: {report:?}");
    }
    panic!("the world does not come to rest");
}
