//! The suites notice: each fault, put into a system that is otherwise right,
//! fails the case that is named for it.

// Helpers of tests may stop at the first surprise, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use support::Fixture;
use tidelake_connector::conformance::{
    Report, publisher_cases, run_publisher_case, run_publisher_suite, run_source_case,
    run_source_suite, source_cases,
};
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, DiagnosedTable, FindRequest, Finding, Highest,
    HighestRequest, LedgerEntry, Load, Publisher, Reading, Slices, Source, SplitRequest,
    TableFilter, TargetTable,
};
use tidelake_model::{Error, ErrorKind, PublishMethod, Result, RunId, Slice, Strategy, Table};
use tidelake_watermark::{Fence, Range};

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    IncludesTheLowBound,
    LeavesOutTheHighBound,
    LosesNulls,
    AlwaysReadsNulls,
    ReadsOneSliceTwice,
    ForgetsTheRange,
    SplitsAgainToRead,
    IgnoresTheTable,
    HandsOnOneBatch,
    Panics,
    NeverFences,
    AlwaysFences,
    StoppedClock,
    MiscountsNulls,
    IgnoresPatterns,
    FindsByTheFirstColumnAlone,
    FindsNoNulls,
    LoadsTwice,
    IgnoresTheManifest,
    ForgetsToReplace,
}

struct Faulty<T> {
    inner: T,
    fault: Fault,
}

impl<T> Faulty<T> {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

#[async_trait]
impl<T: Source> Source for Faulty<T> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>> {
        let mut filter = filter.clone();
        if self.has(Fault::IgnoresPatterns) {
            filter.exclude.clear();
        }
        self.inner.tables(&filter).await
    }

    async fn clock(&self, request: &ClockRequest) -> Result<ClockReading> {
        let mut reading = self.inner.clock(request).await?;
        match self.fault {
            Fault::NeverFences => reading.fence = Fence::Open,
            Fault::AlwaysFences => reading.fence = Fence::Closed,
            Fault::StoppedClock => reading.now = 0,
            _ => {}
        }
        Ok(reading)
    }

    async fn highest(&self, request: &HighestRequest) -> Result<Highest> {
        let mut highest = self.inner.highest(request).await?;
        if self.has(Fault::MiscountsNulls) {
            highest.nulls = Some(0);
        }
        Ok(highest)
    }

    async fn split(&self, request: &SplitRequest) -> Result<Slices> {
        let mut slices = self.inner.split(request).await?;
        if self.has(Fault::ReadsOneSliceTwice)
            && let [first, second, ..] = slices.slices.as_mut_slice()
        {
            second.part = first.part.clone();
        }
        Ok(slices)
    }

    async fn read(&self, slice: &Slice) -> Result<Reading> {
        let mut slice = slice.clone();
        let range = slice.read.range.get_or_insert_default();
        match self.fault {
            Fault::IncludesTheLowBound => range.low.iter_mut().for_each(|low| low.inclusive = true),
            Fault::LeavesOutTheHighBound => {
                range.high.iter_mut().for_each(|high| high.inclusive = false);
            }
            Fault::ForgetsTheRange => *range = Range::default(),
            Fault::LosesNulls => slice.read.null_cursors = false,
            Fault::AlwaysReadsNulls => slice.read.null_cursors = true,
            Fault::HandsOnOneBatch => slice.read.batch_bytes = u64::MAX,
            Fault::Panics => panic!("a fault"),
            Fault::SplitsAgainToRead => {
                // As if there were no snapshot: what is committed now is read.
                let (read, degree) = (slice.read.clone(), 1);
                let again = SplitRequest { read, degree, method: Default::default(), key: None };
                let again = self.inner.split(&again).await?;
                if slice.number == 0
                    && let Some(all) = again.slices.first()
                {
                    return self.inner.read(all).await;
                }
                slice.part["end"] = slice.part["start"].clone();
            }
            Fault::IgnoresTheTable if slice.number == 1 => {
                let mut reading = self.inner.read(&slice).await?;
                reading.batches = futures::stream::empty().boxed();
                return Ok(reading);
            }
            _ => {}
        }
        self.inner.read(&slice).await
    }

    async fn find(&self, request: &FindRequest) -> Result<Reading> {
        let mut request = request.clone();
        if self.has(Fault::FindsByTheFirstColumnAlone) {
            request.key.truncate(1);
            request.values.iter_mut().for_each(|values| values.truncate(1));
        }
        if self.has(Fault::FindsNoNulls) {
            request.values.retain(|values| values.iter().all(Option::is_some));
        }
        self.inner.find(&request).await
    }

    async fn diagnose(&self, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
        self.inner.diagnose(tables).await
    }

    fn statement(&self, slice: &Slice) -> String {
        self.inner.statement(slice)
    }

    fn round_trips(&self) -> u64 {
        self.inner.round_trips()
    }
}

#[async_trait]
impl<T: Publisher> Publisher for Faulty<T> {
    fn supports(&self, method: PublishMethod, strategy: Strategy) -> bool {
        self.inner.supports(method, strategy)
    }

    async fn load(&self, load: &Load<'_>) -> Result<u64> {
        let mut manifest = load.manifest.clone();
        let mut replaces = load.replaces;
        match self.fault {
            Fault::LoadsTwice => {
                // Under another name, so that the ledger does not notice.
                let elsewhere = RunId::from_number(u128::MAX - manifest.files.len() as u128);
                manifest.run_id = elsewhere;
                self.inner.load(&Load { manifest: &manifest, ..copied(load) }).await?;
                manifest.run_id = load.manifest.run_id;
            }
            Fault::IgnoresTheManifest => {
                let batches: Vec<_> = (load.rows)().try_collect().await?;
                let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
                manifest.files.truncate(1);
                for file in &mut manifest.files {
                    file.rows = rows as u64;
                }
            }
            Fault::ForgetsToReplace => replaces = false,
            Fault::Panics => return Err(Error::new(ErrorKind::Internal, "a fault")),
            _ => {}
        }
        self.inner.load(&Load { manifest: &manifest, replaces, ..copied(load) }).await
    }

    async fn ledger(&self, target: &TargetTable, run_id: RunId) -> Result<Option<LedgerEntry>> {
        self.inner.ledger(target, run_id).await
    }
}

fn copied<'a>(load: &'a Load<'_>) -> Load<'a> {
    Load {
        manifest: load.manifest,
        target: load.target,
        strategy: load.strategy,
        method: load.method,
        replaces: load.replaces,
        primary_key: load.primary_key,
        owner: load.owner,
        takes_over: load.takes_over,
        rows: load.rows,
    }
}

fn faulty(fault: Fault) -> Fixture {
    Fixture::through(
        |inner| Arc::new(Faulty { inner, fault }),
        |inner| Arc::new(Faulty { inner, fault }),
    )
}

#[track_caller]
fn fails(report: Report, case: &str) {
    let failed: Vec<_> = report.failed.iter().map(|(name, _)| name.as_str()).collect();
    let wanted = format!("faulty::{case}");
    assert!(failed.contains(&wanted.as_str()), "{wanted} is not among {failed:?}");
    let text = report.verdict().expect_err("a report with a failed case").to_string();
    assert!(text.contains(&wanted), "{text}");
}

#[tokio::test]
async fn each_fault_of_a_source_fails_its_case() {
    for (fault, case) in [
        (Fault::IncludesTheLowBound, "reads_nothing_at_the_low_bound"),
        (Fault::LeavesOutTheHighBound, "reads_every_tie_at_the_high_bound"),
        (Fault::LosesNulls, "reads_null_cursors_once_when_asked_and_never_else"),
        (Fault::AlwaysReadsNulls, "reads_null_cursors_once_when_asked_and_never_else"),
        (Fault::ReadsOneSliceTwice, "slices_tile_at_every_degree"),
        (Fault::IgnoresTheTable, "slices_tile_at_every_degree"),
        (Fault::ForgetsTheRange, "reads_by_a_number"),
        (Fault::SplitsAgainToRead, "slices_see_one_snapshot"),
        (Fault::SplitsAgainToRead, "a_slice_without_its_snapshot_is_unavailable"),
        (Fault::HandsOnOneBatch, "batches_stay_within_their_bytes"),
        (Fault::Panics, "reads_every_row_without_a_cursor"),
        (Fault::NeverFences, "the_time_fence_is_lowered_by_a_writer"),
        (Fault::NeverFences, "the_identifier_fence_is_closed_while_a_writer_is_open"),
        (Fault::AlwaysFences, "the_identifier_fence_is_open_to_writers_elsewhere"),
        (Fault::StoppedClock, "the_clock_is_near_and_goes_forward"),
        (Fault::MiscountsNulls, "counts_are_right_where_they_are_given"),
        (Fault::FindsByTheFirstColumnAlone, "finds_rows_by_several_columns_and_by_null"),
        (Fault::FindsNoNulls, "finds_every_kind_of_key"),
        (Fault::IgnoresPatterns, "lists_tables_by_pattern_in_exact_spelling"),
    ] {
        assert!(run_source_case(case, &faulty(fault)).await.is_err(), "{case}");
    }
    let report = run_source_suite("faulty", &faulty(Fault::IncludesTheLowBound)).await;
    fails(report, "reads_nothing_at_the_low_bound");
}

#[tokio::test]
async fn each_fault_of_a_publisher_fails_its_case() {
    for (fault, case) in [
        (Fault::LoadsTwice, "appends_the_rows_of_each_run"),
        (Fault::IgnoresTheManifest, "a_count_that_differs_loads_nothing"),
        (Fault::ForgetsToReplace, "replaces_all_rows_when_asked"),
        (Fault::Panics, "carries_each_arrow_type"),
    ] {
        assert!(run_publisher_case(case, &faulty(fault)).await.is_err(), "{case}");
    }
    let report = run_publisher_suite("faulty", &faulty(Fault::LoadsTwice)).await;
    fails(report, "appends_the_rows_of_each_run");
}

#[tokio::test]
async fn cases_have_names_of_their_own() {
    let source = source_cases().into_iter().map(|case| case.name);
    let mut names: Vec<_> = source.chain(publisher_cases().iter().map(|case| case.name)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(run_source_case("no such case", &Fixture::new()).await.is_err());
}
