//! What a declared type becomes.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, TimeUnit};
use tidelake_model::CursorType;
use tidelake_watermark::Kind;

/// Digits after the second that a time column keeps.
const MICROSECOND_DIGITS: u32 = 6;
/// Digits of the widest decimal.
const MOST_DIGITS: u8 = 38;

/// A column's type, as its declaration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// 64-bit integers.
    Integer,
    /// True or false.
    Boolean,
    /// Days.
    Date,
    /// Moments, in UTC or in no zone, with nanoseconds or microseconds.
    Time {
        /// Whether they are instants.
        utc: bool,
        /// Whether nanoseconds are declared.
        nanos: bool,
    },
    /// Decimals of that precision and scale.
    Decimal(u8, i8),
    /// Decimals of any size, as text.
    Number,
    /// 64-bit floats.
    Float,
    /// Text.
    Text,
    /// Text in a column that does not turn numbers into text by itself.
    LooseText,
    /// JSON text.
    Json,
    /// A UUID as text.
    Uuid,
    /// Bytes.
    Binary,
    /// Not known: text, with a warning.
    Unknown,
}

/// A declaration in capitals without its arguments, and the arguments.
fn split(declaration: &str) -> (String, Vec<u32>) {
    let upper = declaration.to_ascii_uppercase();
    let (before, inside, behind) = match upper.split_once('(') {
        Some((before, rest)) => match rest.split_once(')') {
            Some((inside, behind)) => (before, inside, behind),
            None => (before, rest, ""),
        },
        None => (upper.as_str(), "", ""),
    };
    let words: Vec<_> = before.split_whitespace().chain(behind.split_whitespace()).collect();
    let arguments = inside.split(',').filter_map(|part| part.trim().parse().ok()).collect();
    (words.join(" "), arguments)
}

impl ColumnType {
    /// Reads a declaration.
    pub(crate) fn of(declaration: &str) -> Self {
        let (name, arguments) = split(declaration);
        let first = arguments.first().copied();
        let nanos = first.is_some_and(|digits| digits > MICROSECOND_DIGITS);
        match name.as_str() {
            "BOOL" | "BOOLEAN" => Self::Boolean,
            "DATE" => Self::Date,
            "DATETIME"
            | "DATETIME2"
            | "SMALLDATETIME"
            | "TIMESTAMP"
            | "TIMESTAMP WITHOUT TIME ZONE" => Self::Time { utc: false, nanos },
            "TIMESTAMPTZ"
            | "TIMESTAMP_TZ"
            | "TIMESTAMP WITH TIME ZONE"
            | "TIMESTAMP WITH LOCAL TIME ZONE"
            | "DATETIMEOFFSET" => Self::Time { utc: true, nanos },
            "DECIMAL" | "DEC" | "NUMERIC" | "NUMBER" => decimal(&arguments).unwrap_or(Self::Number),
            // What `CREATE TABLE … AS SELECT` declares for a numeric column.
            "NUM" => Self::Number,
            "REAL" | "FLOAT" | "FLOAT4" | "FLOAT8" | "DOUBLE" | "DOUBLE PRECISION" => Self::Float,
            "JSON" | "JSONB" => Self::Json,
            "UUID" | "GUID" | "UNIQUEIDENTIFIER" => Self::Uuid,
            "BLOB" | "BINARY" | "VARBINARY" | "BYTEA" | "BINARY VARYING" | "LONGBLOB"
            | "MEDIUMBLOB" | "TINYBLOB" | "IMAGE" => Self::Binary,
            "TIME" | "TIME WITHOUT TIME ZONE" | "STRING" | "ENUM" => Self::LooseText,
            // Names of shapes hold the word by accident.
            name if name.contains("POINT") => Self::Unknown,
            // From here on SQLite's own rules of affinity, in their order. What
            // remains has none, or may hold anything.
            name if name.contains("INT") => Self::Integer,
            name if ["CHAR", "CLOB", "TEXT"].iter().any(|part| name.contains(part)) => Self::Text,
            name if name.contains("BLOB") => Self::Binary,
            name if ["REAL", "FLOA", "DOUB"].iter().any(|part| name.contains(part)) => Self::Float,
            _ => Self::Unknown,
        }
    }

    /// The Arrow type.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Boolean => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::Time { utc, nanos } => {
                let unit = if nanos { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
                DataType::Timestamp(unit, utc.then(|| "UTC".into()))
            }
            Self::Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Self::Float => DataType::Float64,
            Self::Binary => DataType::Binary,
            Self::Number
            | Self::Text
            | Self::LooseText
            | Self::Json
            | Self::Uuid
            | Self::Unknown => DataType::Utf8,
        }
    }

    /// The Arrow field of a column.
    pub(crate) fn field(self, name: &str, nullable: bool) -> Field {
        let field = Field::new(name, self.data_type(), nullable);
        if self != Self::Json {
            return field;
        }
        let extension = [("ARROW:extension:name", "arrow.json"), ("ARROW:extension:metadata", "")];
        let pairs = extension.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        field.with_metadata(pairs.collect::<HashMap<_, _>>())
    }

    /// How the column can serve as a cursor. Text only where the column itself
    /// sees to it that there is nothing but text.
    pub(crate) fn cursor(self) -> Option<CursorType> {
        let (kind, fraction_digits) = match self {
            Self::Integer => (Kind::Integer, 0),
            Self::Date => (Kind::Date, 0),
            // Whatever digits the column holds, CURRENT_TIMESTAMP and datetime('now')
            // write whole seconds: a row may still get the second that is running.
            Self::Time { utc: true, .. } => (Kind::Timestamp, 0),
            Self::Time { utc: false, .. } => (Kind::Datetime, 0),
            Self::Decimal(_, _) | Self::Number => (Kind::Number, 0),
            Self::Text => (Kind::Text, 0),
            Self::Binary => (Kind::Binary, 0),
            Self::Boolean
            | Self::Float
            | Self::LooseText
            | Self::Json
            | Self::Uuid
            | Self::Unknown => return None,
        };
        Some(CursorType { kind, fraction_digits })
    }

    /// What the user should know when the column is read.
    pub(crate) fn warning(self, declaration: &str) -> Option<String> {
        match self {
            Self::Unknown if declaration.is_empty() => {
                Some("no type is declared, values are carried as text".to_owned())
            }
            Self::Unknown => Some(format!(
                "the declared type {declaration:?} is not known, values are carried as text"
            )),
            Self::Number => {
                Some(format!("{declaration} declares no precision, decimals are carried as text"))
            }
            _ => None,
        }
    }
}

fn decimal(arguments: &[u32]) -> Option<ColumnType> {
    let (precision, scale) = match arguments {
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return None,
    };
    let (precision, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    let fits = (1..=MOST_DIGITS).contains(&precision) && i16::from(scale) <= precision.into();
    fits.then_some(ColumnType::Decimal(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declared_name_decides() {
        use ColumnType::*;
        let naive = Time { utc: false, nanos: false };
        let instant = Time { utc: true, nanos: false };
        for (declaration, wanted) in [
            ("INT", Integer),
            ("integer", Integer),
            ("Unsigned  Big Int", Integer),
            ("BIGINT(20) UNSIGNED", Integer),
            ("boolean", Boolean),
            ("TINYINT(1)", Integer),
            ("date", Date),
            ("DATETIME", naive),
            ("timestamp", naive),
            ("TIMESTAMP(3)", naive),
            ("DATETIME(9)", Time { utc: false, nanos: true }),
            ("TIMESTAMPTZ", instant),
            ("timestamp with time zone", instant),
            ("TIMESTAMP(6) WITH TIME ZONE", instant),
            ("DECIMAL(10,2)", Decimal(10, 2)),
            ("numeric( 38 , 38 )", Decimal(38, 38)),
            ("DECIMAL(5)", Decimal(5, 0)),
            ("DECIMAL", Number),
            ("DECIMAL(39,2)", Number),
            ("DECIMAL(2,3)", Number),
            ("NUM", Number),
            ("DOUBLE PRECISION", Float),
            ("VARCHAR(255)", Text),
            ("NATIVE CHARACTER(70)", Text),
            ("CLOB", Text),
            ("TEXT", Text),
            ("STRING", LooseText),
            ("TIME", LooseText),
            ("JSON", Json),
            ("UUID", Uuid),
            ("BLOB", Binary),
            ("VARBINARY(16)", Binary),
            ("", Unknown),
            ("POINT", Unknown),
            ("CHARINT", Integer),
            ("UINT8", Integer),
            ("FLOATING POINT", Unknown),
            ("UNSIGNED FLOAT", Float),
            ("GEOBLOB", Binary),
            ("ANY", Unknown),
            ("MONEY", Unknown),
            ("DECIMAL(10", Decimal(10, 0)),
        ] {
            assert_eq!(ColumnType::of(declaration), wanted, "{declaration}");
        }
    }

    #[test]
    fn a_second_is_the_tick_of_times() {
        for declaration in ["DATETIME", "TIMESTAMP(6)", "DATETIME(9)", "TIMESTAMPTZ"] {
            let cursor = ColumnType::of(declaration).cursor().unwrap();
            assert_eq!(cursor.fraction_digits, 0, "{declaration}");
        }
    }

    #[test]
    fn unknown_types_warn_and_known_ones_do_not() {
        let warning = |declaration: &str| ColumnType::of(declaration).warning(declaration);
        assert!(warning("").unwrap().contains("no type is declared"));
        assert!(warning("MONEY").unwrap().contains("MONEY"));
        assert!(warning("NUMERIC").unwrap().contains("carried as text"));
        assert_eq!(warning("INTEGER"), None);
    }
}
