//! The algebra of watermarks and windows.
//!
//! A *watermark* is the highest value of one cursor already processed from one
//! table. A run reads one *window*, a range of cursor values that is fixed
//! before the first row is read, and afterwards the watermark *advances*.
//! Everything here is a pure function: there is no clock, no I/O and no SQL;
//! "now" and every reading from a source are arguments, and no function panics.
//!
//! ```
//! use tidelake_watermark::*;
//!
//! // A table that was read up to noon, whose highest row was from 11:58.
//! let at = |text| Position::from(Value::parse(Kind::Timestamp, text).unwrap());
//! let progress = Progress {
//!     watermark: Some(at("2026-11-30T12:00:00Z")),
//!     max_seen: Some(at("2026-11-30T11:58:00Z")),
//!     ..Progress::default()
//! };
//! // The next window starts where rows were last seen, so that a row which
//! // arrived late between 11:58 and noon is not lost.
//! let window = Window::plan(&progress, &at("2026-11-30T12:10:00Z"), None).unwrap();
//! assert!(window.range.contains(&at("2026-11-30T11:59:00Z")).unwrap());
//! assert!(!window.range.contains(&at("2026-11-30T11:58:00Z")).unwrap());
//! ```

#![deny(missing_docs)]

mod ceiling;
mod progress;
mod window;

pub use ceiling::{Ceiling, FENCE_SETBACK_NANOS, Fence, Tick, clock_high, observed_high, reading};
pub use progress::{Outcome, Progress, Refused, Versioned};
pub use tidelake_value::{CompareError, Cursor, Decimal, Kind, ParseError, Position, Value};
pub use window::{Bound, Direction, Lookback, Range, Window};
