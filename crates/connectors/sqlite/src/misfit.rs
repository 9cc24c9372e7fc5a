//! Why a cell cannot be carried, and what helps.

use std::borrow::Cow;

use rusqlite::types::ValueRef;

use crate::texts::shown;

/// Why a cell cannot be carried.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// In words that follow the column's name.
    pub(crate) what: Cow<'static, str>,
    /// What helps.
    pub(crate) remedy: Remedy,
}

/// What helps against a misfit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Reading the column as text.
    Text,
    /// Reading the column as bytes or as text.
    Bytes,
    /// More digits after the second.
    Nanoseconds,
    /// Fewer digits after the second, which reach further.
    Microseconds,
    /// Another policy for NaN and infinite numbers.
    SpecialNumber,
    /// Another policy for infinite times.
    InfiniteTime,
    /// Another policy for dates that no calendar has.
    ZeroDate,
    /// Another value, since a cursor's must be comparable.
    Value,
}

impl Misfit {
    pub(crate) fn new(what: impl Into<Cow<'static, str>>, remedy: Remedy) -> Self {
        Self { what: what.into(), remedy }
    }

    /// A cell that is not what the column is read as.
    pub(crate) fn no(cell: ValueRef<'_>, wanted: &str, remedy: Remedy) -> Self {
        Self::new(format!("holds {}, which is no {wanted}", shown(cell)), remedy)
    }

    /// The hint, for a column whose options are spelled that way.
    pub(crate) fn hint(&self, column: &str) -> String {
        let cast = |to: &str| format!("--type-cast {column}:{to}");
        match self.remedy {
            Remedy::Text => {
                format!("correct the value, or carry the column as text with {}", cast("text"))
            }
            Remedy::Bytes => format!(
                "correct the value, or carry the column as {} or with {}",
                cast("text"),
                cast("binary")
            ),
            Remedy::Nanoseconds => format!(
                "carry all digits with --timestamp-unit ns, or the column as text with {}",
                cast("text")
            ),
            Remedy::Microseconds => format!(
                "choose --timestamp-unit us, or carry the column as text with {}",
                cast("text")
            ),
            Remedy::SpecialNumber => format!(
                "choose --on-special-number null or text, or carry the column as text with {}",
                cast("text")
            ),
            Remedy::InfiniteTime => format!(
                "choose --on-infinite-time null, clamp or text, or carry the column as text with {}",
                cast("text")
            ),
            Remedy::ZeroDate => format!(
                "choose --on-zero-date null or text, or carry the column as text with {}",
                cast("text")
            ),
            Remedy::Value => {
                "correct the value, or choose another cursor: this one's values must be comparable"
                    .to_owned()
            }
        }
    }
}
