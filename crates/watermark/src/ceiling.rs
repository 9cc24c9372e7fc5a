//! How the upper bound of a window is chosen.

use std::cmp::Ordering;

use tidelake_value::Decimal;
use tidelake_value::{CompareError, Position, Value};
use tidelake_value::{NANOS_PER_DAY, NANOS_PER_SECOND};

/// How `high` is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// The source's clock less the safety lag; the watermark becomes `high`
    /// whether or not a row reached it.
    Clock,
    /// The highest value in the table; the watermark becomes the highest value
    /// in the rows read.
    Observed,
}

/// With a fence, "now" is taken this much back: a server publishes the start of
/// a transaction a moment after it took the stamp.
pub const FENCE_SETBACK_NANOS: i128 = 250_000_000;

/// What the in-flight fence of the source allows to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// Nothing in flight can still write below `high`.
    Open,
    /// Only what is stamped before this instant (nanoseconds since the epoch).
    Before(i128),
    /// Nothing above `low` may be read now.
    Closed,
}

/// The smallest step of a cursor column of a time kind, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick(i128);

impl Tick {
    /// One calendar day.
    pub const DAY: Self = Self(NANOS_PER_DAY);

    /// The tick of a time column with that many fractional digits (0 to 9; more
    /// count as 9).
    pub fn of_digits(digits: u32) -> Self {
        Self(NANOS_PER_SECOND / 10i128.pow(digits.min(9)))
    }

    /// The length of a tick in nanoseconds.
    pub fn nanos(self) -> i128 {
        self.0
    }
}

/// The latest instant (nanoseconds since the epoch) up to which the source can
/// be trusted: the lower of `now` less the lag, and the fence. `None` when the
/// fence is closed.
pub fn reading(now: i128, lag_nanos: u64, fence: Fence) -> Option<i128> {
    let lagged = now.saturating_sub(i128::from(lag_nanos));
    match fence {
        Fence::Open => Some(lagged),
        Fence::Before(instant) => Some(lagged.min(instant)),
        Fence::Closed => None,
    }
}

/// The clock ceiling: a reading in the cursor's own kind, rounded down to the
/// column's tick, **less one tick**, because a tick that is still running may
/// still be given to new rows. `None` for kinds that are not times.
pub fn clock_high(reading: &Value, tick: Tick) -> Option<Value> {
    let below = |nanos: i128| nanos.div_euclid(tick.0).saturating_sub(1).saturating_mul(tick.0);
    match reading {
        // A date has no finer tick than its day, whatever was asked for.
        Value::Date(days) => Some(Value::Date(days.saturating_sub(1))),
        Value::Datetime(nanos) => Some(Value::Datetime(below(*nanos))),
        Value::Timestamp(nanos) => Some(Value::Timestamp(below(*nanos))),
        _ => None,
    }
}

/// The observed ceiling: the highest value in the table, less the safety gap
/// (numbers only), and for times never above `cap`, the clock ceiling.
pub fn observed_high(
    highest: &Position,
    cap: Option<&Value>,
    gap: Option<&Decimal>,
) -> Result<Position, CompareError> {
    let first = match (highest.first(), gap) {
        (Value::Integer(number), Some(gap)) => {
            // Down, not to the nearest: a gap of 0.5 holds back a whole number.
            let lowered = Decimal::parse(&number.to_string()).map(|number| number.minus(gap));
            Value::Integer(lowered.and_then(|number| number.floor()).unwrap_or(*number))
        }
        (Value::Number(number), Some(gap)) => Value::Number(number.minus(gap)),
        (other, _) => other.clone(),
    };
    match cap {
        Some(cap) if first.compare(cap)? == Ordering::Greater => {
            Ok(highest.with_first(cap.clone()))
        }
        _ => Ok(highest.with_first(first)),
    }
}
