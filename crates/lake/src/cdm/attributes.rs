//! Columns as attributes.

use arrow::datatypes::{DataType, Field};
use serde_json::{Value, json};
use tidelake_model::Manifest;

use super::set;

/// The key under which Arrow keeps the name of an extension type.
const EXTENSION: &str = "ARROW:extension:name";

/// A column as an attribute.
pub(super) fn attribute(field: &Field, manifest: &Manifest) -> Value {
    let (data_type, data_format) = data_type(field);
    let mut attribute = json!({
        "name": field.name(),
        "dataType": data_type,
        "dataFormat": data_format,
        "isNullable": field.is_nullable(),
    });
    if manifest.key.contains(field.name()) {
        set(&mut attribute, "isPrimaryKey", json!(true));
    }
    let length = manifest.source_types.get(field.name()).and_then(|name| maximum_length(name));
    if let Some(length) = length.filter(|_| data_type == "string") {
        set(&mut attribute, "maximumLength", json!(length));
    }
    if let Some((precision, scale)) = shape(field.data_type()) {
        let traits = json!([{
            "traitReference": "is.dataFormat.numeric.shaped",
            "arguments": [
                { "name": "precision", "value": precision },
                { "name": "scale", "value": scale },
            ],
        }]);
        set(&mut attribute, "appliedTraits", traits);
    }
    attribute
}

/// Data type and data format. Unsigned numbers, for which there is no type, get
/// the next larger one.
fn data_type(field: &Field) -> (&'static str, &'static str) {
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    match (field.data_type(), extension) {
        (_, Some("arrow.uuid")) => ("guid", "Guid"),
        (_, Some("arrow.json")) => ("json", "Json"),
        (DataType::Boolean, _) => ("boolean", "Boolean"),
        (DataType::Int8 | DataType::UInt8 | DataType::Int16, _) => ("smallInteger", "Int16"),
        (DataType::UInt16 | DataType::Int32, _) => ("integer", "Int32"),
        (DataType::UInt32 | DataType::Int64, _) => ("bigInteger", "Int64"),
        (DataType::Float16 | DataType::Float32, _) => ("float", "Float"),
        (DataType::Float64, _) => ("double", "Double"),
        (
            DataType::UInt64
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..),
            _,
        ) => ("decimal", "Decimal"),
        (DataType::Date32 | DataType::Date64, _) => ("date", "Date"),
        (DataType::Time32(_) | DataType::Time64(_), _) => ("time", "Time"),
        (DataType::Timestamp(_, None), _) => ("dateTime", "DateTime"),
        (DataType::Timestamp(_, Some(_)), _) => ("dateTimeOffset", "DateTimeOffset"),
        (
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_),
            _,
        ) => ("binary", "Binary"),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, _) => ("string", "String"),
        _ => ("any", "Unknown"),
    }
}

fn shape(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::UInt64 => Some((20, 0)),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// The length in a character type's name, as `character varying(20)` has it.
fn maximum_length(source_type: &str) -> Option<u32> {
    let (name, rest) = source_type.split_once('(')?;
    let name = name.to_ascii_lowercase();
    let is_text = name.contains("char") || name.contains("text");
    let (length, _) = rest.split_once(')')?;
    let length = length.split_whitespace().next()?;
    is_text.then(|| length.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_from_the_catalogue() {
        for (source_type, length) in [
            ("character varying(20)", Some(20)),
            ("VARCHAR2(30 CHAR)", Some(30)),
            ("char(3)", Some(3)),
            ("nvarchar(max)", None),
            ("numeric(10,2)", None),
            ("text", None),
        ] {
            assert_eq!(maximum_length(source_type), length, "{source_type}");
        }
    }
}
