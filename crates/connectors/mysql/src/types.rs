//! How each type of the server travels, and what becomes of it.

use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow_schema::extension::{Json, Uuid};
use serde::{Deserialize, Serialize};
use tidelake_model::{Column, CursorType};
use tidelake_watermark::Kind;

use crate::decode::Wire;
use crate::dialect::quoted;

/// A type as the catalogue gives it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Declared {
    /// `DATA_TYPE`, such as `int`.
    pub(crate) name: String,
    /// `COLUMN_TYPE`, such as `int(10) unsigned`.
    pub(crate) full: String,
    /// `NUMERIC_PRECISION`; for `BIT` its length.
    pub(crate) precision: u32,
    /// `NUMERIC_SCALE`.
    pub(crate) scale: u32,
    /// `DATETIME_PRECISION`.
    pub(crate) digits: u32,
    /// `CHARACTER_SET_NAME`; empty for what is no text.
    pub(crate) charset: String,
    /// Whether a check says that its texts are JSON.
    pub(crate) json: bool,
}

/// As which expression a column is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// The column itself, in the bytes that are stored.
    Plain,
    /// Text of a character set that maps to Unicode in full.
    Converted,
    /// Text of a character set in which some bytes have no character; what would
    /// become a question mark becomes a byte that is no UTF-8 instead.
    Checked {
        /// The character set.
        charset: String,
    },
    /// The server's own text of a value.
    Printed,
    /// The text of a number that is printed with all of its digits only as a
    /// double.
    PrintedDouble,
    /// The text of bits as a number.
    PrintedNumber,
    /// The well-known text of a geometry.
    GeometryText,
}

/// How a column is asked for and how its values are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) wire: Wire,
    pub(crate) form: Form,
}

/// What becomes of a type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Carried {
    pub(crate) sent: Sent,
    pub(crate) data_type: DataType,
    pub(crate) cursor: Option<CursorType>,
    /// Whether the type is known; one that is not is carried as text.
    pub(crate) known: bool,
}

/// Types of geometries.
const GEOMETRIES: [&str; 9] = [
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
];

/// Character sets whose bytes are UTF-8.
const UTF8: [&str; 4] = ["utf8mb4", "utf8mb3", "utf8", "ascii"];
/// Character sets of which every byte has a character of Unicode.
const TOTAL: [&str; 1] = ["latin1"];

/// The form in which texts of a character set are asked for.
fn text_form(charset: &str) -> Form {
    match charset {
        charset if charset.is_empty() || UTF8.contains(&charset) => Form::Plain,
        charset if TOTAL.contains(&charset) => Form::Converted,
        charset => Form::Checked { charset: charset.to_owned() },
    }
}

/// What becomes of a type.
pub(crate) fn carried(declared: &Declared) -> Carried {
    let name = declared.name.as_str();
    let unsigned = declared.full.contains("unsigned") || declared.full.contains("zerofill");
    let plain = |wire, data_type| Carried {
        sent: Sent { wire, form: Form::Plain },
        data_type,
        cursor: None,
        known: true,
    };
    let cursor = |carried: Carried, kind, fraction_digits| Carried {
        cursor: Some(CursorType { kind, fraction_digits }),
        ..carried
    };
    let integer = |signed: (Wire, DataType), without: (Wire, DataType)| {
        let (wire, data_type) = if unsigned { without } else { signed };
        cursor(plain(wire, data_type), Kind::Integer, 0)
    };
    let text = || Carried {
        sent: Sent { wire: Wire::Text, form: text_form(&declared.charset) },
        ..plain(Wire::Text, DataType::Utf8)
    };
    let printed = || Carried {
        sent: Sent { wire: Wire::Text, form: Form::Printed },
        ..plain(Wire::Text, DataType::Utf8)
    };
    let moment = |kind, zone: Option<&str>| {
        let data_type = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        cursor(plain(Wire::Datetime, data_type), kind, declared.digits.min(6))
    };
    match name {
        "tinyint" => integer((Wire::Tiny, DataType::Int8), (Wire::UnsignedTiny, DataType::UInt8)),
        "smallint" => {
            integer((Wire::Short, DataType::Int16), (Wire::UnsignedShort, DataType::UInt16))
        }
        "mediumint" | "int" => {
            integer((Wire::Long, DataType::Int32), (Wire::UnsignedLong, DataType::UInt32))
        }
        "bigint" => {
            integer((Wire::LongLong, DataType::Int64), (Wire::UnsignedLongLong, DataType::UInt64))
        }
        "decimal" => match decimal(declared) {
            Some(data_type) => cursor(plain(Wire::Decimal, data_type), Kind::Number, 0),
            None => Carried { known: false, ..text() },
        },
        "float" => plain(Wire::Float, DataType::Float32),
        "double" => plain(Wire::Double, DataType::Float64),
        "bit" if declared.precision == 1 => plain(Wire::Bit, DataType::Boolean),
        "bit" => plain(Wire::Bit, DataType::UInt64),
        "year" => plain(Wire::Year, DataType::Int16),
        "date" => cursor(plain(Wire::Date, DataType::Date32), Kind::Date, 0),
        "datetime" => moment(Kind::Datetime, None),
        "timestamp" => moment(Kind::Timestamp, Some("UTC")),
        // Parquet has no type for a span of time; most readers would see a number.
        "time" => printed(),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" if declared.json => {
            text()
        }
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
            cursor(text(), Kind::Text, 0)
        }
        "enum" | "set" | "json" => text(),
        // Their text is sent in a character set of its own choice.
        "inet4" | "inet6" => printed(),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
            cursor(plain(Wire::Bytes, DataType::Binary), Kind::Binary, 0)
        }
        "vector" => plain(Wire::Bytes, DataType::Binary),
        "uuid" => plain(Wire::Uuid, DataType::FixedSizeBinary(16)),
        name if GEOMETRIES.contains(&name) => plain(Wire::Geometry, DataType::Binary),
        _ => Carried { known: false, ..printed() },
    }
}

fn decimal(declared: &Declared) -> Option<DataType> {
    let (precision, scale) =
        (u8::try_from(declared.precision).ok()?, i8::try_from(declared.scale).ok()?);
    match precision {
        1..=38 => Some(DataType::Decimal128(precision, scale)),
        39..=76 => Some(DataType::Decimal256(precision, scale)),
        _ => None,
    }
}

/// The Arrow field of a column.
pub(crate) fn field(name: &str, declared: &Declared, carried: &Carried, not_null: bool) -> Field {
    let field = Field::new(name, carried.data_type.clone(), !not_null);
    if carried.sent.wire == Wire::Uuid {
        return field.with_extension_type(Uuid);
    }
    if declared.json || declared.name == "json" {
        return field.with_extension_type(Json::default());
    }
    field
}

/// How a column has to be asked for so that it arrives as `wanted`: in its natural
/// type, as text for whoever asks for text, as another decimal, or the bytes of a
/// text; `None` where there is no such way.
pub(crate) fn sent_for(carried: &Carried, wanted: &Column) -> Option<Sent> {
    use DataType as T;
    let natural = &carried.sent;
    let printed = |form| Some(Sent { wire: Wire::Text, form });
    match (wanted.field.data_type(), natural.wire) {
        (data_type, _) if *data_type == carried.data_type => Some(natural.clone()),
        (T::Utf8, Wire::Float | Wire::Double) => printed(Form::PrintedDouble),
        (T::Utf8, Wire::Bit) => printed(Form::PrintedNumber),
        (T::Utf8, Wire::Geometry) => printed(Form::GeometryText),
        (T::Utf8, Wire::Bytes | Wire::Text) => printed(natural.form.clone()),
        (T::Utf8, _) => printed(Form::Printed),
        (T::Decimal128(..) | T::Decimal256(..), Wire::Decimal) => Some(natural.clone()),
        (T::Boolean, Wire::Tiny | Wire::UnsignedTiny) => Some(natural.clone()),
        (T::Binary, Wire::Text) if natural.form != Form::Printed => {
            Some(Sent { wire: Wire::Bytes, form: Form::Plain })
        }
        _ => None,
    }
}

/// The column as it stands in the statement's list.
pub(crate) fn selected(name: &str, form: &Form) -> String {
    let name = quoted(name);
    match form {
        Form::Plain => name,
        Form::Converted => format!("CONVERT({name} USING utf8mb4)"),
        Form::Checked { charset } => checked(&name, charset),
        Form::Printed => format!("CAST({name} AS CHAR CHARACTER SET utf8mb4)"),
        Form::PrintedDouble => format!("CAST({name} + 0E0 AS CHAR CHARACTER SET utf8mb4)"),
        Form::PrintedNumber => format!("CAST({name} + 0 AS CHAR CHARACTER SET utf8mb4)"),
        Form::GeometryText => format!("ST_AsText({name})"),
    }
}

/// A text is right when it becomes the stored bytes again. Some sets have several
/// byte sequences for one character, which do not; then no question mark may have
/// been added.
fn checked(name: &str, charset: &str) -> String {
    let unicode = format!("CONVERT({name} USING utf8mb4)");
    let marks = |text: &str, charset: &str| {
        format!(
            "CHAR_LENGTH({text}) - CHAR_LENGTH(REPLACE({text}, CONVERT('?' USING {charset}), ''))"
        )
    };
    format!(
        "CASE WHEN {name} IS NULL THEN NULL \
         WHEN CAST(CONVERT({unicode} USING {charset}) AS BINARY) = CAST({name} AS BINARY) \
         OR CHAR_LENGTH({unicode}) = CHAR_LENGTH({name}) AND {} = {} \
         THEN CAST({unicode} AS BINARY) ELSE X'FF' END",
        marks(&unicode, "utf8mb4"),
        marks(name, charset),
    )
}
