//! Trying again what failed because a connection was lost.
//!
//! Only what may be done twice is tried again: reads of the source, and records
//! in the state store that say the same the second time. A call whose answer was
//! lost after it changed something, `advance` for example, is not: the next run
//! finds out what became of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, DiagnosedTable, FindRequest, Finding, Highest,
    HighestRequest, Reading, Slices, Source, SplitRequest, TableFilter,
};
use tidelake_model::{
    Again, Error, ErrorKind, Notice, NoticeCode, Result, RunId, Slice, Table, TableName,
};
use tokio_util::sync::CancellationToken;

use crate::timeline::Timeline;

/// How often and how long a run tries to go on after a connection was lost.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The wait before the second try; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait between two tries.
    pub longest_wait: Duration,
    /// Tries in a row, the first one included, between which no row arrives.
    pub tries_in_a_row: u32,
    /// How often the work on one table may be interrupted in all.
    pub most_losses: u32,
    /// Tries of a run's first connection: what is wrong from the start is rarely
    /// mended by waiting.
    pub first_tries: u32,
    /// The age from which a snapshot that a read keeps open is warned of.
    pub old_snapshot: Duration,
}

impl Default for Patience {
    /// About a quarter of a minute for a server that is gone.
    fn default() -> Self {
        Self {
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(5),
            tries_in_a_row: 10,
            most_losses: 40,
            first_tries: 4,
            old_snapshot: Duration::from_secs(30 * 60),
        }
    }
}

/// What all work of one run has in common when a connection is lost.
pub(crate) struct Retry {
    pub(crate) patience: Patience,
    stop: CancellationToken,
    seed: u64,
    losses: Mutex<BTreeMap<Option<TableName>, u32>>,
}

impl Retry {
    /// For one run; once `stop` is cancelled nothing is tried again.
    pub(crate) fn new(patience: Patience, run_id: RunId, stop: CancellationToken) -> Arc<Self> {
        let mut hasher = DefaultHasher::new();
        run_id.hash(&mut hasher);
        let seed = hasher.finish();
        Arc::new(Self { patience, stop, seed, losses: Mutex::default() })
    }

    /// Failures in a row of one piece of work.
    pub(crate) fn series<'a>(&'a self, table: Option<&'a TableName>) -> Series<'a> {
        Series { retry: self, table, failed: 0, most: self.patience.tries_in_a_row }
    }

    /// Does something that may be done again, until it succeeds or there is no
    /// point in trying.
    pub(crate) async fn keep<T, Work: Future<Output = Result<T>>>(
        &self,
        table: Option<&TableName>,
        work: impl FnMut() -> Work,
    ) -> Result<T> {
        self.series(table).keep(work).await
    }

    /// The same for a run's first connection to a system.
    pub(crate) async fn connect<T, Work: Future<Output = Result<T>>>(
        &self,
        work: impl FnMut() -> Work,
    ) -> Result<T> {
        let most = self.patience.first_tries;
        Series { most, ..self.series(None) }.keep(work).await
    }

    /// How often the work on a table, or outside any, was interrupted, in words.
    pub(crate) fn notice(&self, table: Option<&TableName>) -> Option<Notice> {
        let losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let times = match losses.get(&table.cloned())? {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let message = format!("a connection was lost {times}; what was under way was tried again");
        Some(Notice::new(NoticeCode::Retried, message))
    }

    fn count(&self, table: Option<&TableName>) -> u32 {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let count = losses.entry(table.cloned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// The wait after so many failures in a row: twice as long each time, and up
    /// to a half shorter, so that runs which failed together part.
    fn wait(&self, failed: u32, losses: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1).min(20));
        let longest = self.patience.first_wait.saturating_mul(doubled);
        let longest = longest.min(self.patience.longest_wait);
        let mut hasher = DefaultHasher::new();
        (self.seed, losses).hash(&mut hasher);
        let eighths = u32::try_from(hasher.finish() % 5).unwrap_or(0);
        longest.saturating_sub(longest.saturating_mul(eighths) / 8)
    }
}

/// Failures in a row of one piece of work.
pub(crate) struct Series<'a> {
    retry: &'a Retry,
    table: Option<&'a TableName>,
    failed: u32,
    most: u32,
}

impl Series<'_> {
    /// Something arrived: the failures are no longer in a row.
    pub(crate) fn arrived(&mut self) {
        self.failed = 0;
    }

    /// Waits for the next try. Gives the error back where there is none, marked
    /// so that nobody else tries.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<()> {
        if !error.is_retryable() {
            return Err(error);
        }
        self.failed = self.failed.saturating_add(1);
        let place = self.table.map_or_else(String::new, |table| format!("{table}: "));
        let losses = self.retry.count(self.table);
        if self.failed >= self.most || losses > self.retry.patience.most_losses {
            tracing::warn!("{place}given up after {} tries in a row, {losses} in all", self.failed);
            return Err(error.with_again(Again::Never));
        }
        let wait = self.retry.wait(self.failed, losses);
        tracing::warn!("{place}trying again in {} ms: {}", wait.as_millis(), error.chain());
        tokio::select! {
            biased;
            () = self.retry.stop.cancelled() => {
                Err(Error::new(ErrorKind::Interrupted, "the run was interrupted"))
            }
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    async fn keep<T, Work: Future<Output = Result<T>>>(
        &mut self,
        mut work: impl FnMut() -> Work,
    ) -> Result<T> {
        loop {
            match work().await {
                Ok(done) => return Ok(done),
                Err(error) => self.wait(error).await?,
            }
        }
    }
}

/// A source whose questions are asked again where a connection is lost. Reading a
/// slice is not among them: whoever reads knows what became of its rows.
pub(crate) struct PatientSource {
    inner: Arc<dyn Source>,
    retry: Arc<Retry>,
    timeline: Arc<Timeline>,
}

impl PatientSource {
    pub(crate) fn over(
        inner: Arc<dyn Source>,
        retry: &Arc<Retry>,
        timeline: &Arc<Timeline>,
    ) -> Arc<dyn Source> {
        Arc::new(Self { inner, retry: Arc::clone(retry), timeline: Arc::clone(timeline) })
    }
}

#[async_trait]
impl Source for PatientSource {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn tables(&self, filter: &TableFilter) -> Result<Vec<Table>> {
        let work = self.retry.keep(None, || self.inner.tables(filter));
        self.timeline.of(None, "catalogue", work).await
    }

    async fn clock(&self, request: &ClockRequest) -> Result<ClockReading> {
        let table = Some(&request.table);
        let work = self.retry.keep(table, || self.inner.clock(request));
        self.timeline.of(table, "clock and fence", work).await
    }

    async fn highest(&self, request: &HighestRequest) -> Result<Highest> {
        let table = Some(&request.table);
        let work = self.retry.keep(table, || self.inner.highest(request));
        self.timeline.of(table, "highest value", work).await
    }

    /// One try: whether a snapshot that could not be taken counts as one more
    /// failure in a row is for the reading to say.
    async fn split(&self, request: &SplitRequest) -> Result<Slices> {
        let work = self.inner.split(request);
        self.timeline.of(Some(&request.read.table), "snapshot", work).await
    }

    async fn read(&self, slice: &Slice) -> Result<Reading> {
        self.inner.read(slice).await
    }

    async fn find(&self, request: &FindRequest) -> Result<Reading> {
        self.retry.keep(Some(&request.read.table), || self.inner.find(request)).await
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn retry(stop: &CancellationToken) -> Arc<Retry> {
        Retry::new(Patience::default(), RunId::from_number(1), stop.clone())
    }

    async fn tries(retry: &Retry, error: impl Fn(u32) -> Option<Error>) -> (Result<()>, u32) {
        let tries = AtomicU32::new(0);
        let done = retry.keep(None, || async {
            error(tries.fetch_add(1, Ordering::Relaxed)).map_or(Ok(()), Err)
        });
        let done = done.await;
        (done, tries.into_inner())
    }

    fn lost() -> Error {
        Error::new(ErrorKind::Unavailable, "lost")
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_lost_is_tried_again_and_given_up_in_the_end() {
        let retry = retry(&CancellationToken::new());
        let (done, count) = tries(&retry, |number| (number < 3).then(lost)).await;
        assert!(done.is_ok());
        assert_eq!(count, 4);
        assert!(retry.notice(None).unwrap().message.contains("3 times"));
        let began = tokio::time::Instant::now();
        let (done, count) = tries(&retry, |_| Some(lost())).await;
        assert_eq!(count, Patience::default().tries_in_a_row);
        assert!(!done.unwrap_err().is_retryable(), "another would try as often again");
        let waited = began.elapsed().as_secs();
        assert!((8..24).contains(&waited), "{waited} s");
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_fail_again_is_not_tried_again() {
        let retry = retry(&CancellationToken::new());
        for kind in [ErrorKind::Denied, ErrorKind::Data, ErrorKind::NotFound, ErrorKind::Conflict] {
            let (done, count) = tries(&retry, |_| Some(Error::new(kind, "no"))).await;
            assert_eq!((done.unwrap_err().kind(), count), (kind, 1));
        }
        let (_, count) = tries(&retry, |_| Some(lost().with_again(Again::Never))).await;
        assert_eq!(count, 1);
        assert_eq!(retry.notice(None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn losses_are_bounded_although_rows_arrive_between_them() {
        let retry = retry(&CancellationToken::new());
        let mut series = retry.series(None);
        let mut count = 0;
        loop {
            series.arrived();
            if series.wait(lost()).await.is_err() {
                break;
            }
            count += 1;
        }
        assert_eq!(count, Patience::default().most_losses);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_is_stopped_waits_for_nothing() {
        let stop = CancellationToken::new();
        let retry = retry(&stop);
        stop.cancel();
        let (done, count) = tries(&retry, |_| Some(lost())).await;
        assert_eq!((done.unwrap_err().kind(), count), (ErrorKind::Interrupted, 1));
    }
}
