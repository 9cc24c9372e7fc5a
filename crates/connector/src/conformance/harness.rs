//! Cases, and how a list of them is run.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tidelake_model::Strategy;

/// A case that hangs has failed; the slowest honest one waits for a fence.
const LONGEST: Duration = Duration::from_secs(60);

/// Why a case failed. Any error turns into one, with its causes.
pub struct Failure(String);

/// What a case, or a step of a fixture, comes to.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with that message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        Self(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Fails unless the condition holds.
pub(super) fn ensure(condition: bool, message: impl FnOnce() -> String) -> Outcome {
    if condition { Ok(()) } else { Err(Failure(message())) }
}

/// Fails unless both are the same.
pub(super) fn ensure_same<T: PartialEq + fmt::Debug>(what: &str, found: &T, wanted: &T) -> Outcome {
    ensure(found == wanted, || format!("{what}: {wanted:?} was expected, {found:?} was found"))
}

/// What a system must be able to do for a case to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing: the case is for everyone.
    Nothing,
    /// Rows can become visible after later ones did.
    LateCommits,
    /// Open transactions can be seen.
    Fence,
    /// Several slices can be read at once.
    ParallelSlices,
    /// The snapshot of a split ends with its hold, and slices with it.
    ExportedSnapshots,
    /// Composite cursors.
    CompositeCursor,
    /// Fallback cursors.
    FallbackCursor,
    /// Several schemas.
    Schemas,
    /// A publish target that holds the rows itself and takes them in this way.
    Internal(Strategy),
}

/// A named case over a fixture.
pub struct Case<F: ?Sized + 'static> {
    /// What must hold, as a sentence.
    pub name: &'static str,
    /// What it needs.
    pub needs: Need,
    run: Run<F>,
}

type Run<F> = for<'a> fn(&'a F) -> BoxFuture<'a, Outcome>;

impl<F: ?Sized + 'static> Case<F> {
    pub(super) const fn new(name: &'static str, needs: Need, run: Run<F>) -> Self {
        Self { name, needs, run }
    }

    /// Runs the case; a panic and a hang are failures like any other.
    pub(super) async fn outcome(&self, fixture: &F) -> Outcome {
        let case = AssertUnwindSafe((self.run)(fixture)).catch_unwind();
        match tokio::time::timeout(LONGEST, case).await {
            Err(_) => Err(Failure(format!("did not end within {} s", LONGEST.as_secs()))),
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                Err(Failure(format!("panicked: {}", text.unwrap_or("without a message"))))
            }
        }
    }
}

/// What became of a list of cases.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that passed.
    pub passed: Vec<String>,
    /// Cases that do not apply.
    pub passed_over: Vec<String>,
    /// Cases that failed, with the reason.
    pub failed: Vec<(String, Failure)>,
}

impl Report {
    /// Success if no case failed, else the list of those that did.
    pub fn verdict(self) -> Outcome {
        if self.failed.is_empty() {
            return Ok(());
        }
        let of = self.passed.len() + self.failed.len();
        let mut text = format!("{} of {of} cases failed", self.failed.len());
        for (name, failure) in &self.failed {
            text.push_str(&format!("\n{name}: {failure}"));
        }
        Err(Failure(text))
    }
}

/// Runs the cases one after another, so that none sees another's transactions.
pub(super) async fn run<F: ?Sized + 'static>(
    connector: &str,
    fixture: &F,
    cases: Vec<Case<F>>,
    applies: impl Fn(Need) -> bool,
) -> Report {
    let mut report = Report::default();
    for case in cases {
        let name = format!("{connector}::{}", case.name);
        if !applies(case.needs) {
            report.passed_over.push(name);
            continue;
        }
        match case.outcome(fixture).await {
            Ok(()) => report.passed.push(name),
            Err(failure) => report.failed.push((name, failure)),
        }
    }
    report
}
