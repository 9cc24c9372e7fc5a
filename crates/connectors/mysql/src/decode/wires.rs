//! In which form a column's values are sent.

use mysql_common::collations::{Collation, CollationId};
use mysql_common::constants::ColumnType;
use serde::{Deserialize, Serialize};

/// In which form a column's values are sent in a row of the binary protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// One byte: `Int8`, or `Boolean` where only 0 and 1 are meant.
    Tiny,
    /// The same without a sign: `UInt8` or `Boolean`.
    UnsignedTiny,
    /// Two bytes: `Int16`.
    Short,
    /// Two bytes without a sign: `UInt16`.
    UnsignedShort,
    /// Four bytes, for MEDIUMINT and INT: `Int32`.
    Long,
    /// Four bytes without a sign: `UInt32`.
    UnsignedLong,
    /// Eight bytes: `Int64`.
    LongLong,
    /// Eight bytes without a sign: `UInt64`.
    UnsignedLongLong,
    /// Two bytes: `Int16`.
    Year,
    /// IEEE, four bytes: `Float32`.
    Float,
    /// IEEE, eight bytes: `Float64`.
    Double,
    /// Digits as text: `Decimal128` or `Decimal256` of any scale.
    Decimal,
    /// Year, month and day: `Date32`.
    Date,
    /// Day and time of day, for DATETIME and TIMESTAMP alike: `Timestamp` in
    /// microseconds, with or without a zone.
    Datetime,
    /// A sign, days and a time of day: `Duration` in microseconds.
    Time,
    /// Bits, the highest first: `Boolean` for one, `UInt64` for more.
    Bit,
    /// UTF-8, whatever the type at the server: `Utf8`.
    Text,
    /// Hexadecimal digits with hyphens: `FixedSizeBinary(16)`.
    Uuid,
    /// Bytes as they are: `Binary`.
    Bytes,
    /// A geometry as the server stores it, four bytes of a reference system before
    /// its WKB: `Binary`, without these four.
    Geometry,
}

/// What the server says of a column that it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The protocol's number of the type.
    pub(crate) kind: u8,
    pub(crate) unsigned: bool,
    /// The number of the collation; 63 for what is no text.
    pub(crate) collation: u16,
}

impl Wire {
    /// Whether a column that is sent so has this form.
    pub(crate) fn takes(self, sent: &Sent) -> bool {
        use ColumnType::{
            MYSQL_TYPE_BIT, MYSQL_TYPE_DATE, MYSQL_TYPE_DATETIME, MYSQL_TYPE_DECIMAL,
            MYSQL_TYPE_DOUBLE, MYSQL_TYPE_FLOAT, MYSQL_TYPE_INT24, MYSQL_TYPE_LONG,
            MYSQL_TYPE_LONGLONG, MYSQL_TYPE_NEWDECIMAL, MYSQL_TYPE_SHORT, MYSQL_TYPE_TIME,
            MYSQL_TYPE_TIMESTAMP, MYSQL_TYPE_TINY, MYSQL_TYPE_YEAR,
        };
        let Ok(kind) = ColumnType::try_from(sent.kind) else { return false };
        let unsigned = sent.unsigned;
        match self {
            Self::Tiny => kind == MYSQL_TYPE_TINY && !unsigned,
            Self::UnsignedTiny => kind == MYSQL_TYPE_TINY && unsigned,
            Self::Short => kind == MYSQL_TYPE_SHORT && !unsigned,
            Self::UnsignedShort => kind == MYSQL_TYPE_SHORT && unsigned,
            Self::Long => matches!(kind, MYSQL_TYPE_LONG | MYSQL_TYPE_INT24) && !unsigned,
            Self::UnsignedLong => matches!(kind, MYSQL_TYPE_LONG | MYSQL_TYPE_INT24) && unsigned,
            Self::LongLong => kind == MYSQL_TYPE_LONGLONG && !unsigned,
            Self::UnsignedLongLong => kind == MYSQL_TYPE_LONGLONG && unsigned,
            Self::Year => kind == MYSQL_TYPE_YEAR,
            Self::Float => kind == MYSQL_TYPE_FLOAT,
            Self::Double => kind == MYSQL_TYPE_DOUBLE,
            Self::Decimal => matches!(kind, MYSQL_TYPE_NEWDECIMAL | MYSQL_TYPE_DECIMAL),
            Self::Date => kind == MYSQL_TYPE_DATE,
            Self::Datetime => matches!(kind, MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP),
            Self::Time => kind == MYSQL_TYPE_TIME,
            Self::Bit => kind == MYSQL_TYPE_BIT,
            Self::Text => is_string(kind) && is_utf8(sent.collation),
            Self::Uuid | Self::Bytes | Self::Geometry => is_string(kind),
        }
    }
}

/// Whether cells of a type are sent as a length and bytes that mean themselves.
fn is_string(kind: ColumnType) -> bool {
    use ColumnType::{
        MYSQL_TYPE_BLOB, MYSQL_TYPE_ENUM, MYSQL_TYPE_GEOMETRY, MYSQL_TYPE_JSON,
        MYSQL_TYPE_LONG_BLOB, MYSQL_TYPE_MEDIUM_BLOB, MYSQL_TYPE_SET, MYSQL_TYPE_STRING,
        MYSQL_TYPE_TINY_BLOB, MYSQL_TYPE_VAR_STRING, MYSQL_TYPE_VARCHAR, MYSQL_TYPE_VECTOR,
    };
    matches!(
        kind,
        MYSQL_TYPE_VARCHAR
            | MYSQL_TYPE_VAR_STRING
            | MYSQL_TYPE_STRING
            | MYSQL_TYPE_ENUM
            | MYSQL_TYPE_SET
            | MYSQL_TYPE_TINY_BLOB
            | MYSQL_TYPE_MEDIUM_BLOB
            | MYSQL_TYPE_LONG_BLOB
            | MYSQL_TYPE_BLOB
            | MYSQL_TYPE_JSON
            | MYSQL_TYPE_GEOMETRY
            | MYSQL_TYPE_VECTOR
    )
}

/// Whether text of a collation is UTF-8, as far as the protocol's tables know it:
/// bytes of another character set may look like UTF-8 and mean something else.
fn is_utf8(collation: u16) -> bool {
    let charset = Collation::resolve(CollationId::from(collation)).charset;
    !is_known(charset) || matches!(charset, "utf8mb4" | "utf8mb3" | "utf8" | "ascii" | "binary")
}

/// The tables lack the youngest collations, whose bytes are only looked at.
fn is_known(charset: &str) -> bool {
    charset != "unknown"
}
