//! How each type of the server travels, and what becomes of it.

mod sending;

use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow_schema::extension::{Json, Uuid};
use serde::{Deserialize, Serialize};
use tidelake_model::CursorType;
use tidelake_watermark::Kind;

pub(crate) use sending::{selected, wire_for};

/// In which form a column's values are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// One byte.
    Bool,
    /// Two bytes.
    Int2,
    /// Four bytes.
    Int4,
    /// Eight bytes.
    Int8,
    /// Four bytes, unsigned.
    Oid,
    /// Eight bytes, unsigned.
    Xid8,
    /// IEEE, four bytes.
    Float4,
    /// IEEE, eight bytes.
    Float8,
    /// Digits in base 10,000.
    Numeric,
    /// Days since 2000.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds since 2000.
    Timestamp,
    /// Microseconds since 2000 in UTC.
    Timestamptz,
    /// Sixteen bytes.
    Uuid,
    /// A version byte, then text.
    Jsonb,
    /// Bytes as they are.
    Bytea,
    /// UTF-8.
    Text,
    /// UTF-8, made by a cast to `text` in the statement.
    Cast,
    /// The same of a column of numbers, NaN and infinite ones among them.
    NumberText,
    /// JSON, made by `to_json` in the statement.
    Json,
}

/// A type as the catalogue gives it, domains followed to their base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerType {
    /// `pg_type.typname`.
    pub(crate) name: String,
    /// Whether it belongs to the server itself.
    pub(crate) builtin: bool,
    /// `pg_type.typtype`: `b`ase, `c`omposite, `e`num, `r`ange, `m`ultirange…
    pub(crate) class: char,
    /// Whether it is an array, of any number of dimensions.
    pub(crate) array: bool,
    /// The type modifier, or −1.
    pub(crate) modifier: i32,
}

/// What becomes of a type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Carried {
    pub(crate) wire: Wire,
    pub(crate) data_type: DataType,
    pub(crate) cursor: Option<CursorType>,
    /// Whether the type is known; one that is not is carried as text.
    pub(crate) known: bool,
}

/// Types of the server that are carried as text on purpose.
const AS_TEXT: [&str; 35] = [
    "aclitem",
    "bit",
    "box",
    "char",
    "cid",
    "cidr",
    "circle",
    "inet",
    "int2vector",
    "interval",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "oidvector",
    "path",
    "pg_lsn",
    "pg_snapshot",
    "point",
    "polygon",
    "refcursor",
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
    "tid",
];

/// More of them: what is searched, counted or marked up.
const AS_TEXT_TOO: [&str; 7] =
    ["timetz", "tsquery", "tsvector", "txid_snapshot", "varbit", "xid", "xml"];

/// Types of extensions whose text is meant to be read.
const EXTENSION_TEXT: [&str; 14] = [
    "citext",
    "cube",
    "ean13",
    "isbn",
    "isbn13",
    "ismn",
    "ismn13",
    "issn",
    "issn13",
    "lquery",
    "ltree",
    "ltxtquery",
    "seg",
    "upc",
];

/// What becomes of a type.
pub(crate) fn carried(server: &ServerType) -> Carried {
    let plain = |wire, data_type| Carried { wire, data_type, cursor: None, known: true };
    let cursor = |carried: Carried, kind, fraction_digits| Carried {
        cursor: Some(CursorType { kind, fraction_digits }),
        ..carried
    };
    let integer = |wire, data_type| cursor(plain(wire, data_type), Kind::Integer, 0);
    let text = plain(Wire::Cast, DataType::Utf8);
    let name = server.name.as_str();
    // Arrays may have any number of dimensions and rows any fields, which no list
    // or struct can promise.
    if server.array || server.class == 'c' || (!server.builtin && name == "hstore") {
        return plain(Wire::Json, DataType::Utf8);
    }
    // The text of a range or an enum is its value.
    if matches!(server.class, 'e' | 'r' | 'm') {
        return text;
    }
    if !server.builtin {
        return Carried { known: EXTENSION_TEXT.contains(&name), ..text };
    }
    // Without a modifier the server keeps microseconds.
    let digits = u32::try_from(server.modifier).unwrap_or(6).min(6);
    let moment = |wire, kind, zone: Option<&str>| {
        let data_type = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        cursor(plain(wire, data_type), kind, digits)
    };
    match name {
        "bool" => plain(Wire::Bool, DataType::Boolean),
        "int2" => integer(Wire::Int2, DataType::Int16),
        "int4" => integer(Wire::Int4, DataType::Int32),
        "int8" => integer(Wire::Int8, DataType::Int64),
        "oid" => plain(Wire::Oid, DataType::UInt32),
        "xid8" => plain(Wire::Xid8, DataType::UInt64),
        "float4" => plain(Wire::Float4, DataType::Float32),
        "float8" => plain(Wire::Float8, DataType::Float64),
        "numeric" => match decimal(server.modifier) {
            Some(data_type) => cursor(plain(Wire::Numeric, data_type), Kind::Number, 0),
            None => cursor(plain(Wire::NumberText, DataType::Utf8), Kind::Number, 0),
        },
        "date" => cursor(plain(Wire::Date, DataType::Date32), Kind::Date, 0),
        "time" => plain(Wire::Time, DataType::Time64(TimeUnit::Microsecond)),
        "timestamp" => moment(Wire::Timestamp, Kind::Datetime, None),
        "timestamptz" => moment(Wire::Timestamptz, Kind::Timestamp, Some("UTC")),
        "uuid" => plain(Wire::Uuid, DataType::FixedSizeBinary(16)),
        "json" => plain(Wire::Text, DataType::Utf8),
        "jsonb" => plain(Wire::Jsonb, DataType::Utf8),
        "bytea" => cursor(plain(Wire::Bytea, DataType::Binary), Kind::Binary, 0),
        "text" | "varchar" | "bpchar" | "name" => {
            cursor(plain(Wire::Text, DataType::Utf8), Kind::Text, 0)
        }
        name => Carried { known: AS_TEXT.contains(&name) || AS_TEXT_TOO.contains(&name), ..text },
    }
}

/// The decimal that holds every value of `numeric(p, s)`; `None` without a
/// precision, and beyond 76 digits.
fn decimal(modifier: i32) -> Option<DataType> {
    let bits = modifier.checked_sub(4).filter(|_| modifier >= 4)?;
    let precision = (bits >> 16) & 0xffff;
    // Eleven bits with a sign, since servers allow scales from −1000 to 1000.
    let scale = ((bits & 0x7ff) ^ 1024) - 1024;
    // Parquet knows neither a negative scale nor one above the precision; the
    // wider type has the same values.
    let (precision, scale) = match scale {
        ..0 => (precision - scale, 0),
        _ => (precision.max(scale), scale),
    };
    let (precision, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    match precision {
        1..=38 => Some(DataType::Decimal128(precision, scale)),
        39..=76 => Some(DataType::Decimal256(precision, scale)),
        _ => None,
    }
}

/// The Arrow field of a column.
pub(crate) fn field(name: &str, server: &ServerType, carried: &Carried, not_null: bool) -> Field {
    let field = Field::new(name, carried.data_type.clone(), !not_null);
    match (carried.wire, server.name.as_str()) {
        (Wire::Uuid, _) => field.with_extension_type(Uuid),
        (Wire::Json | Wire::Jsonb, _) | (Wire::Text, "json") => {
            field.with_extension_type(Json::default())
        }
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(precision: i32, scale: i32) -> Option<DataType> {
        decimal(((precision << 16) | (scale & 0x7ff)) + 4)
    }

    #[test]
    fn decimals_hold_every_value_of_their_type() {
        assert_eq!(numeric(15, 2), Some(DataType::Decimal128(15, 2)));
        assert_eq!(numeric(38, 0), Some(DataType::Decimal128(38, 0)));
        assert_eq!(numeric(39, 5), Some(DataType::Decimal256(39, 5)));
        assert_eq!(numeric(76, 76), Some(DataType::Decimal256(76, 76)));
        assert_eq!(numeric(77, 0), None);
        assert_eq!(numeric(5, -2), Some(DataType::Decimal128(7, 0)));
        assert_eq!(numeric(3, 5), Some(DataType::Decimal128(5, 5)));
        assert_eq!(numeric(2, 1000), None);
        assert_eq!(numeric(1000, -1000), None);
        assert_eq!(decimal(-1), None);
        assert_eq!(decimal(i32::MIN), None);
    }

    fn server(name: &str, builtin: bool, class: char, array: bool) -> ServerType {
        ServerType { name: name.to_owned(), builtin, class, array, modifier: -1 }
    }

    #[test]
    fn what_is_not_known_is_text_and_says_so() {
        for (server, known) in [
            (server("geometry", false, 'b', false), false),
            (server("citext", false, 'b', false), true),
            (server("mood", false, 'e', false), true),
            (server("int4range", true, 'r', false), true),
            (server("inet", true, 'b', false), true),
            (server("int2vector", true, 'b', false), true),
            (server("a_type_of_tomorrow", true, 'b', false), false),
            // A type of the user's that only has a familiar name.
            (server("int4", false, 'b', false), false),
        ] {
            let carried = carried(&server);
            assert_eq!((carried.wire, carried.known), (Wire::Cast, known), "{}", server.name);
            assert_eq!(carried.data_type, DataType::Utf8);
        }
    }

    #[test]
    fn what_has_parts_is_json() {
        for server in [
            server("_int4", true, 'b', true),
            server("_mood", false, 'b', true),
            server("pair", false, 'c', false),
            server("hstore", false, 'b', false),
        ] {
            let carried = carried(&server);
            assert_eq!((carried.wire, carried.known), (Wire::Json, true), "{}", server.name);
            let field = field("c", &server, &carried, true);
            assert_eq!(field.extension_type_name(), Some("arrow.json"));
        }
    }
}
