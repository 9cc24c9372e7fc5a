//! Ranges of cursor values, and the window that a run reads.

use std::cmp::Ordering;

use crate::progress::Progress;
use tidelake_value::Decimal;
use tidelake_value::NANOS_PER_DAY;
use tidelake_value::{CompareError, Position, Value};

/// On which side a window is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// `(low, high]`.
    #[default]
    Inclusive,
    /// `[low, high)`, for sources whose boundary value is still being written.
    Exclusive,
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The value at the end.
    pub at: Position,
    /// Whether the value itself belongs to the range.
    pub inclusive: bool,
}

/// A range of cursor values; an absent end is open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Range {
    /// Lower end.
    pub low: Option<Bound>,
    /// Upper end.
    pub high: Option<Bound>,
}

impl Range {
    /// Whether the value lies in the range.
    pub fn contains(&self, position: &Position) -> Result<bool, CompareError> {
        if let Some(low) = &self.low {
            match position.compare(&low.at)? {
                Ordering::Less => return Ok(false),
                Ordering::Equal if !low.inclusive => return Ok(false),
                _ => {}
            }
        }
        if let Some(high) = &self.high {
            match position.compare(&high.at)? {
                Ordering::Greater => return Ok(false),
                Ordering::Equal if !high.inclusive => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Whether no value can lie in the range. A range of text is never known to
    /// be empty, unless both ends are the same and one is open.
    pub fn is_empty(&self) -> Result<bool, CompareError> {
        let (Some(low), Some(high)) = (&self.low, &self.high) else {
            return Ok(false);
        };
        match low.at.compare(&high.at) {
            Ok(Ordering::Less) | Err(CompareError::Text) => Ok(false),
            Ok(Ordering::Equal) => Ok(!(low.inclusive && high.inclusive)),
            Ok(Ordering::Greater) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Cuts the range at ascending positions into ranges that tile it: each
    /// piece ends with its cut included, and the next begins just above it.
    /// Positions outside the range are passed over.
    pub fn cut(&self, positions: &[Position]) -> Result<Vec<Self>, CompareError> {
        let mut pieces = vec![];
        let mut rest = self.clone();
        for position in positions {
            if !rest.contains(position)? {
                continue;
            }
            let low = rest.low.take();
            let high = Some(Bound { at: position.clone(), inclusive: true });
            pieces.push(Self { low, high });
            rest.low = Some(Bound { at: position.clone(), inclusive: false });
        }
        pieces.push(rest);
        Ok(pieces)
    }
}

/// How far below its lower bound a window re-reads, for late updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookback {
    /// For cursors of a time kind.
    Nanos(u64),
    /// For integer and number cursors.
    Amount(Decimal),
}

impl Lookback {
    fn lower(&self, position: &Position) -> Option<Position> {
        let first = match (position.first(), self) {
            (Value::Date(days), Self::Nanos(nanos)) => {
                // A part of a day lowers by a whole one: more is read, not less.
                let whole = u128::from(*nanos).div_ceil(NANOS_PER_DAY.unsigned_abs());
                Value::Date(days.saturating_sub(i64::try_from(whole).ok()?))
            }
            (Value::Datetime(at), Self::Nanos(nanos)) => {
                Value::Datetime(at.saturating_sub(i128::from(*nanos)))
            }
            (Value::Timestamp(at), Self::Nanos(nanos)) => {
                Value::Timestamp(at.saturating_sub(i128::from(*nanos)))
            }
            (Value::Integer(number), Self::Amount(amount)) => {
                let lowered = Decimal::parse(&number.to_string())?.minus(amount);
                Value::Integer(lowered.floor()?)
            }
            (Value::Number(number), Self::Amount(amount)) => Value::Number(number.minus(amount)),
            _ => return None,
        };
        Some(position.with_first(first))
    }
}

/// What one run reads, fixed before its first row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The whole range that is read, the gap and a lookback included.
    pub range: Range,
    /// The part of the range below the watermark in which no row was exported
    /// so far; a row that came late into it is caught here.
    pub gap: Option<Range>,
    /// The upper bound, whichever side is open.
    pub high: Position,
    /// Whether `high` is below the watermark, so that only the gap is read and
    /// the watermark stays.
    pub stays: bool,
}

impl Window {
    /// The window from what is stored up to `high`.
    ///
    /// The range begins at `max_seen`, the highest value that any run exported:
    /// above it nothing was exported, so nothing can be read twice. While
    /// nothing was ever exported it begins at the first bound, or is open.
    pub fn plan(
        progress: &Progress,
        high: &Position,
        lookback: Option<&Lookback>,
    ) -> Result<Self, CompareError> {
        let inclusive = progress.direction == Direction::Exclusive;
        let low = match (&progress.max_seen, &progress.watermark) {
            (None, _) => progress.first.clone().map(|at| Bound { at, inclusive }),
            // Under `[low, high)` an exported value is below the watermark;
            // equal ones come from an edit, whose value is still to be read.
            (Some(seen), watermark) => {
                let inclusive = inclusive && watermark.as_ref() == Some(seen);
                Some(Bound { at: seen.clone(), inclusive })
            }
        };
        let stays = match &progress.watermark {
            Some(watermark) => matches!(high.compare(watermark), Ok(Ordering::Less)),
            None => false,
        };
        let end = Bound { at: high.clone(), inclusive: !inclusive };
        let gap = match (&low, &progress.watermark) {
            (low, Some(watermark)) if low.as_ref().is_none_or(|low| low.at != *watermark) => {
                let at = if stays { high.clone() } else { watermark.clone() };
                Some(Range { low: low.clone(), high: Some(Bound { at, inclusive: !inclusive }) })
            }
            _ => None,
        };
        let reaches = |left: &Position, right: &Position| {
            matches!(left.compare(right), Ok(Ordering::Equal | Ordering::Greater))
        };
        let low = match (low, lookback) {
            (Some(bound), Some(lookback)) => {
                let at = lookback.lower(&bound.at).unwrap_or_else(|| bound.at.clone());
                // Below the first bound nothing was read that could be read again.
                match progress.first.as_ref().filter(|first| reaches(first, &at)) {
                    Some(first) if reaches(&bound.at, first) => {
                        Some(Bound { at: first.clone(), inclusive })
                    }
                    Some(_) => Some(bound),
                    None => Some(Bound { at, ..bound }),
                }
            }
            (low, _) => low,
        };
        let range = Range { low, high: Some(end) };
        // Comparing once here means that later steps can rely on the kinds.
        range.is_empty()?;
        Ok(Self { range, gap, high: high.clone(), stays })
    }

    /// Whether nothing can lie in the window.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty().unwrap_or(false)
    }
}
