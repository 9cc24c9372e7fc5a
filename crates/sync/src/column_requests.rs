//! `--columns` and its like: what a user says of single columns, before the
//! catalogue was looked at.
//!
//! `schema.table:a,b`, `schema.table:column:type`; split on unquoted separators
//! only, names may stand in double quotes as they may in `--incremental-table`.

use arrow::datatypes::{DataType, TimeUnit};
use tidelake_model::{Error, ErrorKind, Result};

use crate::incremental::{name, next_piece};

/// What a user says of single columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnRequests {
    /// Columns that alone are read.
    pub include: Vec<TableColumns>,
    /// Columns that are left out.
    pub exclude: Vec<TableColumns>,
    /// Columns of a table's key.
    pub keys: Vec<TableColumns>,
    /// Types of columns.
    pub casts: Vec<CastRequest>,
}

/// Columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumns {
    /// Schema, if it was written.
    pub schema: Option<String>,
    /// Table.
    pub table: String,
    /// Its columns, in the order in which they were written.
    pub columns: Vec<String>,
}

/// The type that a column is to have in the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastRequest {
    /// The option that it was written with.
    pub option: &'static str,
    /// Schema, if it was written.
    pub schema: Option<String>,
    /// Table.
    pub table: String,
    /// Column.
    pub column: String,
    /// Type.
    pub to: CastType,
}

/// A type of the lake that a column can be cast to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastType {
    /// The type.
    pub data_type: DataType,
    /// The Arrow extension type, where it has one.
    pub extension: Option<&'static str>,
}

impl CastType {
    /// The names that are accepted.
    pub const NAMES: &str = "text, boolean, int8, int16, int32, int64, uint8, uint16, uint32, \
        uint64, float64, decimal(p,s), date, timestamp, timestamptz, time, binary, uuid, json";

    /// The type of that name.
    pub fn from_name(text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let plain = |data_type| Ok(Self { data_type, extension: None });
        match lower.as_str() {
            "text" => plain(DataType::Utf8),
            "boolean" => plain(DataType::Boolean),
            "int8" => plain(DataType::Int8),
            "int16" => plain(DataType::Int16),
            "int32" => plain(DataType::Int32),
            "int64" => plain(DataType::Int64),
            "uint8" => plain(DataType::UInt8),
            "uint16" => plain(DataType::UInt16),
            "uint32" => plain(DataType::UInt32),
            "uint64" => plain(DataType::UInt64),
            "float64" => plain(DataType::Float64),
            "date" => plain(DataType::Date32),
            "timestamp" => plain(DataType::Timestamp(TimeUnit::Microsecond, None)),
            "timestamptz" => plain(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            "time" => plain(DataType::Time64(TimeUnit::Microsecond)),
            "binary" => plain(DataType::Binary),
            "uuid" => {
                Ok(Self { data_type: DataType::FixedSizeBinary(16), extension: Some("arrow.uuid") })
            }
            "json" => Ok(Self { data_type: DataType::Utf8, extension: Some("arrow.json") }),
            other => match other.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')')) {
                Some(digits) => Self::decimal(digits),
                None => Err(wrong(
                    format!("{text:?} is not a type of the lake"),
                    format!("the types are: {}", Self::NAMES),
                )),
            },
        }
    }

    /// A decimal of `p,s`: its digits in all, and those after the point.
    pub fn decimal(text: &str) -> Result<Self> {
        let error = || {
            wrong(
                format!("{text:?} is not the precision and scale of a decimal"),
                "the precision is 1 to 76 digits in all, the scale 0 to that many after the \
                 point, for example 38,9",
            )
        };
        let (precision, scale) = text.split_once(',').ok_or_else(error)?;
        let precision: u8 = precision.trim().parse().map_err(|_| error())?;
        let scale: u8 = scale.trim().parse().map_err(|_| error())?;
        if !(1..=76).contains(&precision) || scale > precision {
            return Err(error());
        }
        let scale = i8::try_from(scale).map_err(|_| error())?;
        let data_type = match precision {
            ..=38 => DataType::Decimal128(precision, scale),
            _ => DataType::Decimal256(precision, scale),
        };
        Ok(Self { data_type, extension: None })
    }
}

impl TableColumns {
    /// Parses `[schema.]table:a,b` of an option.
    pub fn parse(option: &str, text: &str) -> Result<Self> {
        let error = |what: &str| mistake(option, text, what, "schema.table:a,b", "shop.orders:id");
        let (schema, table, rest) = table(text).map_err(error)?;
        let mut columns: Vec<String> = vec![];
        let (mut piece, mut rest) = next_piece(rest, &[',']);
        loop {
            let column = name(piece.text.trim())
                .ok_or_else(|| error("a column is missing or not a name"))?;
            if columns.contains(&column) {
                return Err(error(&format!("the column {column:?} is named twice")));
            }
            columns.push(column);
            if piece.separator.is_none() {
                return Ok(Self { schema, table, columns });
            }
            (piece, rest) = next_piece(rest, &[',']);
        }
    }
}

impl CastRequest {
    /// Parses `[schema.]table:column:type`.
    pub fn parse(text: &str) -> Result<Self> {
        let option = "--type-cast";
        let (form, example) = ("schema.table:column:type", "shop.orders:price:decimal(12,2)");
        Self::parse_as(option, text, form, example, CastType::from_name)
    }

    /// Parses `[schema.]table:column:p,s`.
    pub fn parse_decimal(text: &str) -> Result<Self> {
        let (form, example) = ("schema.table:column:p,s", "shop.orders:price:38,9");
        Self::parse_as("--decimal", text, form, example, CastType::decimal)
    }

    fn parse_as(
        option: &'static str,
        text: &str,
        form: &str,
        example: &str,
        to: impl Fn(&str) -> Result<CastType>,
    ) -> Result<Self> {
        let error = |what: &str| mistake(option, text, what, form, example);
        let (schema, table, rest) = table(text).map_err(error)?;
        let (column, rest) = next_piece(rest, &[':']);
        let name = name(column.text).ok_or_else(|| error("the column is missing or not a name"))?;
        if column.separator.is_none() || rest.is_empty() {
            return Err(error("the type is missing"));
        }
        let to = to(rest).map_err(|found| {
            let error = Error::new(
                ErrorKind::Configuration,
                format!("{option} {text:?}: {}", found.message()),
            );
            error.with_hint(found.hint().unwrap_or_default())
        })?;
        Ok(Self { option, schema, table, column: name, to })
    }
}

/// `[schema.]table:` and what follows.
fn table(text: &str) -> Result<(Option<String>, String, &str), &'static str> {
    const MISSING: &str = "the table's name is missing or not a name";
    let (first, mut rest) = next_piece(text, &['.', ':']);
    let mut table = name(first.text).ok_or(MISSING)?;
    let (mut schema, mut separator) = (None, first.separator);
    if separator == Some('.') {
        let (second, after) = next_piece(rest, &[':']);
        schema = Some(table);
        table = name(second.text).ok_or(MISSING)?;
        (rest, separator) = (after, second.separator);
    }
    match separator {
        Some(_) => Ok((schema, table, rest)),
        None => Err("the columns after the table are missing"),
    }
}

fn mistake(option: &str, text: &str, what: &str, form: &str, example: &str) -> Error {
    wrong(format!("{option} {text:?}: {what}"), format!("write {form}, for example {example}"))
}

fn wrong(message: String, hint: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_split_outside_quotes() {
        let parsed = TableColumns::parse("--columns", r#"s.t:a,"b,:c", d"#).unwrap();
        assert_eq!((parsed.schema.as_deref(), parsed.table.as_str()), (Some("s"), "t"));
        assert_eq!(parsed.columns, ["a", "b,:c", "d"]);
        let parsed = TableColumns::parse("--key", r#""t.x":"we""ird""#).unwrap();
        assert_eq!((parsed.schema, parsed.table.as_str()), (None, "t.x"));
        assert_eq!(parsed.columns, ["we\"ird"]);
    }

    #[test]
    fn casts_name_a_type() {
        let cast = CastRequest::parse("s.t:price:decimal(12,2)").unwrap();
        assert_eq!(cast.to.data_type, DataType::Decimal128(12, 2));
        let cast = CastRequest::parse(r#"t:"a:b":UUID"#).unwrap();
        assert_eq!((cast.column.as_str(), cast.to.extension), ("a:b", Some("arrow.uuid")));
        let cast = CastRequest::parse_decimal("s.t:price:76, 38").unwrap();
        assert_eq!(cast.to.data_type, DataType::Decimal256(76, 38));
    }

    #[test]
    fn mistakes_name_themselves() {
        for (text, part) in [
            ("", "table's name"),
            ("orders", "columns after the table"),
            ("s.orders", "columns after the table"),
            ("s.orders:", "column is missing"),
            ("s.orders:a,", "column is missing"),
            ("s.orders:a,,b", "column is missing"),
            ("s.orders:a,b,a", "named twice"),
            ("s.orders:a\"b", "not a name"),
        ] {
            let error = TableColumns::parse("--columns", text).unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
            assert!(error.hint().is_some());
        }
        for (text, part) in [
            ("s.orders:price", "type is missing"),
            ("s.orders:price:", "type is missing"),
            ("s.orders::text", "column is missing"),
            ("s.orders:price:money", "not a type"),
            ("s.orders:price:decimal(77,2)", "precision and scale"),
            ("s.orders:price:decimal(0,0)", "precision and scale"),
            ("s.orders:price:decimal(2,3)", "precision and scale"),
            ("s.orders:price:decimal(5)", "precision and scale"),
            ("s.orders:price:decimal(5,-2)", "precision and scale"),
        ] {
            let error = CastRequest::parse(text).unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{text}");
        }
    }
}
