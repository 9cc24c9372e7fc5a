//! What is stored about a cursor, and how it may change.

use std::cmp::Ordering;
use std::fmt;

use crate::ceiling::Ceiling;
use crate::window::{Direction, Window};
use tidelake_value::{CompareError, Kind, Position};

/// How far one table was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Highest value already processed; `None` reads everything.
    pub watermark: Option<Position>,
    /// Highest value that any run exported; never above the watermark.
    pub max_seen: Option<Position>,
    /// Lower bound of the first run.
    pub first: Option<Position>,
    /// Which side of a window is open; changes only with a reset.
    pub direction: Direction,
}

/// Progress with the version under which it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Raised by every change.
    pub version: u64,
    /// What is stored.
    pub progress: Progress,
}

/// What a run found in its window.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rows read.
    pub rows: u64,
    /// Highest cursor value in them, NULLs aside; `None` where only the source
    /// could compare them, or where there was none.
    pub highest: Option<Position>,
}

impl Outcome {
    /// Joins what two slices found. Associative, commutative, and the empty
    /// outcome changes nothing.
    pub fn join(&self, other: &Self) -> Result<Self, CompareError> {
        let highest = match (&self.highest, &other.highest) {
            (Some(left), Some(right)) => Some(match left.compare(right)? {
                Ordering::Less => right.clone(),
                _ => left.clone(),
            }),
            (left, right) => left.clone().or_else(|| right.clone()),
        };
        Ok(Self { rows: self.rows.saturating_add(other.rows), highest })
    }
}

/// A change of a watermark that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Somebody changed the watermark since it was loaded.
    Version {
        /// The version that was loaded.
        expected: u64,
        /// The version that is stored.
        stored: u64,
    },
    /// The new value is below the stored one; only an edit, an undo or a reset
    /// may lower a watermark.
    Backwards {
        /// The stored value.
        from: Box<Position>,
        /// The value that was refused; `None` would forget everything.
        to: Option<Position>,
    },
    /// The values cannot be compared.
    Compare(CompareError),
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { expected, stored } => write!(
                formatter,
                "the watermark was changed meanwhile: version {expected} was loaded, {stored} is stored"
            ),
            Self::Backwards { from, to: Some(to) } => {
                write!(formatter, "the watermark cannot go back from {from} to {to}")
            }
            Self::Backwards { from, to: None } => {
                write!(formatter, "the watermark cannot go back from {from} to nothing")
            }
            Self::Compare(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for Refused {}

impl From<CompareError> for Refused {
    fn from(error: CompareError) -> Self {
        Self::Compare(error)
    }
}

impl Progress {
    /// The progress after a run that read `window` and found `outcome`.
    ///
    /// | ceiling | direction | watermark becomes |
    /// |---|---|---|
    /// | clock | either | `high`, whether or not a row reached it |
    /// | observed | `(low, high]` | the highest value in the rows read |
    /// | observed | `[low, high)` | `high` |
    ///
    /// It never becomes lower, and `max_seen` becomes the highest value read.
    pub fn after(
        &self,
        window: &Window,
        outcome: &Outcome,
        ceiling: Ceiling,
    ) -> Result<Self, CompareError> {
        let is_text = window.high.kinds().contains(&Kind::Text);
        // Text is compared by the source alone: `high` came from there as the
        // highest value, so a window that held rows was read up to it.
        let highest = match &outcome.highest {
            None if is_text && outcome.rows > 0 => Some(window.high.clone()),
            highest => highest.clone(),
        };
        let reached = match (ceiling, self.direction) {
            _ if window.stays => None,
            (Ceiling::Observed, Direction::Inclusive) => highest.clone(),
            (Ceiling::Observed, Direction::Exclusive) if is_text && outcome.rows == 0 => None,
            _ => Some(window.high.clone()),
        };
        Ok(Self {
            watermark: higher(self.watermark.as_ref(), reached.as_ref())?,
            max_seen: higher(self.max_seen.as_ref(), highest.as_ref())?,
            ..self.clone()
        })
    }
}

fn higher(
    stored: Option<&Position>,
    reached: Option<&Position>,
) -> Result<Option<Position>, CompareError> {
    match (stored, reached) {
        (Some(stored), Some(reached)) => stored.max(reached).map(Some),
        (stored, reached) => Ok(reached.or(stored).cloned()),
    }
}

impl Versioned {
    fn next(&self, progress: Progress) -> Self {
        Self { version: self.version.saturating_add(1), progress }
    }

    fn check(&self, expected: u64) -> Result<(), Refused> {
        if self.version == expected {
            return Ok(());
        }
        Err(Refused::Version { expected, stored: self.version })
    }

    /// Moves forward to what a run reached. Refused when the stored version is
    /// not the one that the run loaded, and when a value would become lower.
    pub fn advance(&self, expected: u64, to: Progress) -> Result<Self, Refused> {
        self.check(expected)?;
        let pairs =
            [(&self.progress.watermark, &to.watermark), (&self.progress.max_seen, &to.max_seen)];
        for (from, to) in pairs {
            let Some(from) = from else { continue };
            let lowers = match to {
                None => true,
                Some(to) => match to.compare(from) {
                    Ok(order) => order == Ordering::Less,
                    // The source said that this text is the later one.
                    Err(CompareError::Text) => false,
                    Err(error) => return Err(error.into()),
                },
            };
            if lowers {
                return Err(Refused::Backwards { from: Box::new(from.clone()), to: to.clone() });
            }
        }
        Ok(self.next(to))
    }

    /// Sets watermark and `max_seen` to a value, up or down.
    pub fn edit(&self, expected: u64, to: Position) -> Result<Self, Refused> {
        self.check(expected)?;
        let progress =
            Progress { watermark: Some(to.clone()), max_seen: Some(to), ..self.progress.clone() };
        Ok(self.next(progress))
    }

    /// Forgets both values, so that the next run reads everything again.
    pub fn reset(&self, expected: u64) -> Result<Self, Refused> {
        self.check(expected)?;
        let progress = Progress { watermark: None, max_seen: None, ..self.progress.clone() };
        Ok(self.next(progress))
    }

    /// Puts an earlier pair of values back.
    pub fn undo(&self, expected: u64, earlier: Progress) -> Result<Self, Refused> {
        self.check(expected)?;
        Ok(self.next(earlier))
    }
}
