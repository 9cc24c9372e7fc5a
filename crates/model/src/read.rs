//! What is read of one table, as data that any engine can carry.

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use tidelake_watermark::{Cursor, Kind, Range};

use crate::table::{Column, TableName, schema_of};

/// The cursor of a read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CursorRead {
    /// Its columns.
    #[serde(with = "crate::text::cursor_text")]
    pub cursor: Cursor,
    /// The kind of each component: one, unless the cursor is composite.
    #[serde(with = "crate::text::kinds")]
    pub kinds: Vec<Kind>,
}

/// What becomes of NaN and infinite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecialNumber {
    /// Kept where the column's type has them, as floats and texts do; NULL and
    /// counted in a decimal, which has none.
    #[default]
    Nan,
    /// NULL in every column, counted.
    Null,
    /// Decimal columns become text columns that say what the source says.
    Text,
    /// The table fails.
    Fail,
}

/// What becomes of infinite dates and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InfiniteTime {
    /// NULL, counted.
    #[default]
    Null,
    /// The lowest or highest value that the type can hold, counted.
    Clamp,
    /// Columns of dates and times, cursors aside, become text columns that say
    /// what the source says.
    Text,
    /// The table fails.
    Fail,
}

/// What becomes of dates that no calendar has, such as `0000-00-00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroDate {
    /// NULL, counted.
    #[default]
    Null,
    /// Columns of dates and times become text columns.
    Text,
    /// The table fails.
    Fail,
}

/// Unit of the lake's time stamps where the source has more than microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampUnit {
    /// Microseconds; a column that has more digits is text.
    #[default]
    Us,
    /// Nanoseconds, for the columns that have more digits than microseconds.
    Ns,
}

/// What becomes of values that the lake's types cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policies {
    /// NaN and infinite numbers in decimals.
    pub special_number: SpecialNumber,
    /// Infinite dates and times.
    pub infinite_time: InfiniteTime,
    /// Dates that no calendar has.
    #[serde(default)]
    pub zero_date: ZeroDate,
    /// Unit of time stamps with more digits than microseconds.
    #[serde(default)]
    pub timestamp_unit: TimestampUnit,
}

/// What is read of one table in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRead {
    /// The table.
    pub table: TableName,
    /// The columns to read, in the order of the lake's schema.
    pub columns: Vec<Column>,
    /// The cursor, where the table is read incrementally.
    pub cursor: Option<CursorRead>,
    /// The range of cursor values; `None` reads every row.
    #[serde(with = "crate::text::range_text")]
    pub range: Option<Range>,
    /// Whether rows whose cursor is NULL are read as well.
    pub null_cursors: bool,
    /// What becomes of values that cannot be represented.
    pub policies: Policies,
    /// How large a record batch may become, in bytes, before it is handed on.
    /// A single row may be larger.
    pub batch_bytes: u64,
}

impl TableRead {
    /// The Arrow schema of what is read.
    pub fn schema(&self) -> SchemaRef {
        schema_of(&self.columns)
    }
}

/// A piece of a table read that one reader reads. Data, never a live handle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Number within the table run, from 0.
    pub number: u32,
    /// What the whole table run reads.
    pub read: TableRead,
    /// Which piece of it, in the connector's own terms.
    pub part: serde_json::Value,
}
