//! How each type of the server travels, and what becomes of it.

use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow_schema::extension::{Json, Uuid};
use serde::{Deserialize, Serialize};
use tidelake_connector::sql::Dialect;
use tidelake_model::CursorType;
use tidelake_watermark::Kind;

use crate::literal::PostgresDialect;

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
    /// `pg_type.typcategory`; `A` is an array.
    pub(crate) category: char,
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

/// Types that are carried as text on purpose.
const AS_TEXT: [&str; 34] = [
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
    "regnamespace",
    "regproc",
    "regrole",
    "regtype",
    "tid",
    "timetz",
    "tsquery",
    "tsvector",
    "varbit",
    "xid",
];

/// Types of extensions whose text is meant to be read.
const EXTENSION_TEXT: [&str; 5] = ["citext", "hstore", "ltree", "txid_snapshot", "isbn"];

/// What becomes of a type.
pub(crate) fn carried(server: &ServerType) -> Carried {
    let plain = |wire, data_type| Carried { wire, data_type, cursor: None, known: true };
    let cursor = |carried: Carried, kind, fraction_digits| Carried {
        cursor: Some(CursorType { kind, fraction_digits }),
        ..carried
    };
    let integer = |wire, data_type| cursor(plain(wire, data_type), Kind::Integer, 0);
    let text = plain(Wire::Cast, DataType::Utf8);
    if !server.builtin {
        let known = matches!(server.class, 'e' | 'c' | 'r' | 'm')
            || server.category == 'A'
            || EXTENSION_TEXT.contains(&server.name.as_str());
        return Carried { known, ..text };
    }
    // Without a modifier the server keeps microseconds.
    let digits = u32::try_from(server.modifier).unwrap_or(6).min(6);
    let moment = |wire, kind, zone: Option<&str>| {
        let data_type = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        cursor(plain(wire, data_type), kind, digits)
    };
    match server.name.as_str() {
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
            None => cursor(text, Kind::Number, 0),
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
        name => {
            let known = matches!(server.class, 'e' | 'c' | 'r' | 'm')
                || server.category == 'A'
                || name == "xml"
                || AS_TEXT.contains(&name);
            Carried { known, ..text }
        }
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
    match (server.builtin, server.name.as_str()) {
        (true, "uuid") => field.with_extension_type(Uuid),
        (true, "json" | "jsonb") => field.with_extension_type(Json::default()),
        _ => field,
    }
}

/// The form in which a column has to be sent so that it arrives as `wanted`:
/// the natural one, text for whoever asks for text, another decimal for a number;
/// `None` where there is no such form.
pub(crate) fn wire_for(carried: &Carried, wanted: &DataType) -> Option<Wire> {
    use DataType as T;
    match (wanted, carried.wire) {
        (wanted, wire) if *wanted == carried.data_type => Some(wire),
        (T::Utf8, _) => Some(Wire::Cast),
        (T::Decimal128(_, _) | T::Decimal256(_, _), Wire::Numeric) => Some(Wire::Numeric),
        (T::Decimal128(_, _) | T::Decimal256(_, _), Wire::Cast)
            if carried.cursor.is_some_and(|cursor| cursor.kind == Kind::Number) =>
        {
            Some(Wire::Numeric)
        }
        _ => None,
    }
}

/// The column as it stands in the statement's list.
pub(crate) fn selected(name: &str, wire: Wire) -> String {
    let quoted = PostgresDialect.quote(name);
    if wire == Wire::Cast { format!("{quoted}::text") } else { quoted }
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

    #[test]
    fn what_is_not_known_is_text_and_says_so() {
        let server = |name: &str, builtin, class, category| ServerType {
            name: name.to_owned(),
            builtin,
            class,
            category,
            modifier: -1,
        };
        for (server, known) in [
            (server("geometry", false, 'b', 'U'), false),
            (server("citext", false, 'b', 'S'), true),
            (server("mood", false, 'e', 'E'), true),
            (server("_int4", true, 'b', 'A'), true),
            (server("inet", true, 'b', 'I'), true),
            (server("a_type_of_tomorrow", true, 'b', 'U'), false),
            // A type of the user's that only has a familiar name.
            (server("int4", false, 'b', 'N'), false),
        ] {
            let carried = carried(&server);
            assert_eq!((carried.wire, carried.known), (Wire::Cast, known), "{}", server.name);
            assert_eq!(carried.data_type, DataType::Utf8);
        }
    }

    #[test]
    fn a_column_can_be_asked_for_as_text_or_another_decimal() {
        let server = |name: &str| ServerType {
            name: name.to_owned(),
            builtin: true,
            class: 'b',
            category: 'N',
            modifier: -1,
        };
        let number = carried(&server("numeric"));
        assert_eq!(wire_for(&number, &DataType::Utf8), Some(Wire::Cast));
        assert_eq!(wire_for(&number, &DataType::Decimal128(20, 4)), Some(Wire::Numeric));
        let integer = carried(&server("int4"));
        assert_eq!(wire_for(&integer, &DataType::Int32), Some(Wire::Int4));
        assert_eq!(wire_for(&integer, &DataType::Utf8), Some(Wire::Cast));
        assert_eq!(wire_for(&integer, &DataType::Int64), None);
    }
}
