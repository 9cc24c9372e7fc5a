//! What SQL sources share: quoting, literals, and the condition of a window.
//!
//! A connector implements [`Dialect`] and leaves the text of its statements to
//! [`select`] and [`window_where`], so that the meaning of a window is written
//! once. Values reach a statement only as literals of their *typed* form, and
//! names only through [`Dialect::quote`]: neither can end its own quotes.
//!
//! ```
//! use tidelake_connector::sql::{Dialect, quote_ansi, quote_text, range_condition};
//! use tidelake_model::CursorRead;
//! use tidelake_watermark::{Bound, Cursor, Kind, Range, Value};
//!
//! struct Ansi;
//!
//! impl Dialect for Ansi {
//!     fn quote(&self, name: &str) -> String {
//!         quote_ansi(name)
//!     }
//!     fn literal(&self, value: &Value) -> String {
//!         match value {
//!             Value::Integer(number) => format!("CAST({number} AS NUMERIC)"),
//!             other => quote_text(&other.to_string()),
//!         }
//!     }
//!     fn row_values(&self) -> bool {
//!         true
//!     }
//! }
//!
//! let cursor = CursorRead { cursor: Cursor::Single("id".into()), kinds: vec![Kind::Integer] };
//! let low = Bound { at: Value::Integer(7).into(), inclusive: false };
//! let range = Range { low: Some(low), high: None };
//! let condition = range_condition(&Ansi, &cursor, &range);
//! assert_eq!(condition.as_deref(), Some(r#""id" > CAST(7 AS NUMERIC)"#));
//! ```

mod dialect;
mod like;
mod window;

pub use dialect::{Dialect, qualified, quote_ansi, quote_text};
pub use like::{like_literal, like_matches};
pub use window::{
    check, cursor_expression, not_null_condition, null_condition, order_by, range_condition,
    select, select_from, window_where,
};
