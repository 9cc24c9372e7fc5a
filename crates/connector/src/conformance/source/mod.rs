//! The cases of a source, by what they are about.

mod bounds;
mod catalogue;
mod clock;
mod cursors;
mod diagnose;
mod find;
mod highest;
mod slices;
mod stream;
mod values;

use super::harness::{Case, run};
use super::{Failure, Need, Outcome, Report, SourceFixture};

type SourceCase = Case<dyn SourceFixture>;

/// Every case of a source.
pub fn source_cases() -> Vec<Case<dyn SourceFixture>> {
    let groups = [
        catalogue::cases(),
        bounds::cases(),
        cursors::cases(),
        slices::cases(),
        highest::cases(),
        values::cases(),
        find::cases(),
        stream::cases(),
        clock::cases(),
        diagnose::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// Whether the source can do what a case needs.
fn applies(fixture: &dyn SourceFixture, need: Need) -> bool {
    let can = fixture.source().capabilities();
    match need {
        Need::Nothing => true,
        Need::LateCommits => can.rows_commit_out_of_order,
        Need::Fence => can.has_fence && can.rows_commit_out_of_order,
        Need::ParallelSlices => can.parallel_slices,
        Need::ExportedSnapshots => fixture.exports_snapshots(),
        Need::CompositeCursor => can.composite_cursor,
        Need::FallbackCursor => can.fallback_cursor,
        Need::Schemas => can.schemas,
        Need::Internal(_) => false,
    }
}

/// Runs every case that applies.
pub async fn run_source_suite(connector: &str, fixture: &(impl SourceFixture + 'static)) -> Report {
    let dynamic: &(dyn SourceFixture + 'static) = fixture;
    run(connector, dynamic, source_cases(), |need| applies(fixture, need)).await
}

/// Runs one case by its name. It passes where it does not apply.
pub async fn run_source_case(name: &str, fixture: &(impl SourceFixture + 'static)) -> Outcome {
    let case = source_cases().into_iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Failure::new(format!("there is no case {name:?}")))?;
    if applies(fixture, case.needs) { case.outcome(fixture).await } else { Ok(()) }
}
