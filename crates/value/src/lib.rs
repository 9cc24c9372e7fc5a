//! Typed, lossless cursor values and their canonical text.
//!
//! A watermark is only as good as the value it holds: nothing here is rounded,
//! no zone is guessed, no decimal passes through a float, and text is compared by
//! the source alone. Pure functions without a clock or I/O; none panics.
//!
//! ```
//! use tidelake_value::{Kind, Value};
//!
//! let value = Value::parse(Kind::Timestamp, "2026-11-30 09:15:00.123456+02:00")?;
//! assert_eq!(value.to_string(), "2026-11-30T07:15:00.123456Z");
//! assert!(Value::parse(Kind::Integer, "1.5").is_err());
//! # Ok::<(), tidelake_value::ParseError>(())
//! ```

#![deny(missing_docs)]

mod calendar;
mod cursor;
mod decimal;
mod value;

pub use calendar::{NANOS_PER_DAY, NANOS_PER_SECOND};
pub use cursor::Cursor;
pub use decimal::Decimal;
pub use value::{CompareError, Kind, ParseError, Position, Value};
