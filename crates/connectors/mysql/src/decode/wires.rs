//! In which form a column's values are sent.

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
