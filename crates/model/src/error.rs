//! The one error type of all crates.

use std::fmt;

use crate::run::RunId;
use crate::table::TableName;

/// A result with the [`Error`] of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Say it differently: an option, a setting or a credential is wrong.
    Configuration,
    /// Name something that exists.
    NotFound,
    /// Choose another name; this one is taken.
    AlreadyExists,
    /// Load again and decide again: somebody changed it meanwhile.
    Conflict,
    /// Wait for the run that holds the lease.
    Locked,
    /// Decide: state and lake disagree, and guessing could lose or double rows.
    Mismatch,
    /// Get permission, or the right password.
    Denied,
    /// Try again later: a connection was refused, cut or timed out.
    Unavailable,
    /// Look at the data: a value or a type cannot be carried.
    Data,
    /// Choose something else: this is not available (yet).
    Unsupported,
    /// Nothing: the user interrupted the run.
    Interrupted,
    /// Report it: something that should not happen happened.
    Internal,
}

/// What may be tried again after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Again {
    /// Nothing: it would fail in the same way, or was waited for already.
    Never,
    /// The same call.
    Same,
    /// A read, from a new snapshot: the one that it was part of is lost.
    Afresh,
}

/// An error: its kind says what the caller can do, its message what was wrong
/// and where, its hint how to mend it, and its source what caused it.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    table: Option<TableName>,
    run: Option<RunId>,
    slice: Option<u32>,
    again: Option<Again>,
    source: Option<Source>,
}

impl Error {
    /// An error with a lowercase message without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            table: None,
            run: None,
            slice: None,
            again: None,
            source: None,
        }))
    }

    /// Adds the remedy; the first one given stays.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Adds the table; the first one given stays.
    #[must_use]
    pub fn in_table(mut self, table: &TableName) -> Self {
        self.0.table.get_or_insert_with(|| table.clone());
        self
    }

    /// Adds the run; the first one given stays.
    #[must_use]
    pub fn in_run(mut self, run: RunId) -> Self {
        self.0.run.get_or_insert(run);
        self
    }

    /// Adds the slice; the first one given stays.
    #[must_use]
    pub fn in_slice(mut self, slice: u32) -> Self {
        self.0.slice.get_or_insert(slice);
        self
    }

    /// Says what may be tried again, where the kind does not say it.
    #[must_use]
    pub fn with_again(mut self, again: Again) -> Self {
        self.0.again = Some(again);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was wrong, without the causes.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The remedy.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The table at which it happened.
    pub fn table(&self) -> Option<&TableName> {
        self.0.table.as_ref()
    }

    /// The run in which it happened, or the run that stands in the way.
    pub fn run(&self) -> Option<RunId> {
        self.0.run
    }

    /// What may be tried again: the same call after an error of the kind
    /// `Unavailable`, unless it was said otherwise.
    pub fn again(&self) -> Again {
        match (self.0.again, self.0.kind) {
            (Some(again), _) => again,
            (None, ErrorKind::Unavailable) => Again::Same,
            (None, _) => Again::Never,
        }
    }

    /// Whether it may succeed later without any change.
    pub fn is_retryable(&self) -> bool {
        self.again() != Again::Never
    }

    /// The message followed by the messages of all causes.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let message = error.to_string();
            // Some libraries repeat their cause in their own message.
            if !text.contains(&message) {
                text.push_str(": ");
                text.push_str(&message);
            }
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.0.table {
            write!(formatter, "{table}: ")?;
        }
        formatter.write_str(&self.0.message)?;
        if let Some(slice) = self.0.slice {
            write!(formatter, " (slice {slice})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.0.kind, self.chain())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
