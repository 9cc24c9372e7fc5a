//! Cases, and how one is run.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tidelake_model::{Error, ErrorKind, Result as StoreResult};

use super::Place;

/// A case that hangs has failed.
const LONGEST: Duration = Duration::from_secs(90);

/// Why a case failed. Any error turns into one, with its causes.
pub struct Failure(String);

/// What a case comes to.
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
pub(super) fn ensure(condition: bool, message: &str) -> Outcome {
    if condition { Ok(()) } else { Err(Failure::new(message)) }
}

/// Fails unless both are the same.
pub(super) fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, wanted: T) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    Err(Failure(format!("{what}: {wanted:?} was expected, {found:?} was found")))
}

/// Fails unless the call was refused in that way; returns the error.
pub(super) fn refused<T>(kind: ErrorKind, what: &str, result: StoreResult<T>) -> Outcome<Error> {
    match result {
        Err(error) if error.kind() == kind => Ok(error),
        Err(error) => Err(Failure(format!("{what}: {kind:?} was expected, but: {error:?}"))),
        Ok(_) => Err(Failure(format!("{what}: {kind:?} was expected, but it was allowed"))),
    }
}

/// Fails where there is nothing.
pub(super) fn some<T>(what: &str, value: Option<T>) -> Outcome<T> {
    value.ok_or_else(|| Failure(format!("{what} is missing")))
}

/// A named case over an empty place.
pub struct Case {
    /// What must hold, as a sentence.
    pub name: &'static str,
    run: Run,
}

pub(super) type Run = fn(Arc<dyn Place>) -> BoxFuture<'static, Outcome>;

impl Case {
    pub(super) const fn new(name: &'static str, run: Run) -> Self {
        Self { name, run }
    }

    /// Runs the case; a panic and a hang are failures like any other.
    pub(super) async fn outcome(&self, place: Arc<dyn Place>) -> Outcome {
        let case = AssertUnwindSafe((self.run)(place)).catch_unwind();
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

/// What became of the cases.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that passed.
    pub passed: Vec<String>,
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
