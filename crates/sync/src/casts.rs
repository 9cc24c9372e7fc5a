//! Which type a column has in the lake, where the user chose another than the
//! catalogue's, and who brings it there.
//!
//! Two ways are exact. The source prints any column as its own text and any exact
//! number as a decimal; everything else is read as the catalogue says and cast
//! afterwards, each value checked ([`exact`](crate::exact)).

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, TimeUnit};
use tidelake_connector::Capabilities;
use tidelake_model::{Column, ColumnCast, Error, ErrorKind, Result};
use tidelake_watermark::Kind;

/// Under this key a field's metadata has the name of its extension type.
const EXTENSION: &str = "ARROW:extension:name";
/// The extension type of JSON text.
pub(crate) const JSON: &str = "arrow.json";

/// Who brings a column to its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The source sends that type.
    Source,
    /// The values are cast after they were read.
    Batch,
}

/// Applies a cast to a column: how the source is asked for it, and how the lake
/// has it.
pub(crate) fn cast_column(
    column: &Column,
    cast: &ColumnCast,
    capabilities: Capabilities,
) -> Result<(Column, Column)> {
    let way = stored_bytes(column, &cast.data_type, capabilities)
        .or_else(|| way(column, &cast.data_type, cast.extension.as_deref()))
        .or_else(|| way_of_source(column, &cast.data_type, capabilities))
        .ok_or_else(|| not_exact(column, &cast.data_type))?;
    let mut lake = column.clone();
    lake.field = field_of(column, &cast.data_type, cast.extension.as_deref());
    lake.chosen = true;
    // What was said of the catalogue's own choice says nothing of this one.
    lake.warning = None;
    let read = match way {
        Way::Source => lake.clone(),
        Way::Batch => Column { warning: None, ..column.clone() },
    };
    Ok((read, lake))
}

fn field_of(column: &Column, data_type: &DataType, extension: Option<&str>) -> Field {
    let field = Field::new(column.name(), data_type.clone(), column.field.is_nullable());
    let Some(extension) = extension else { return field };
    let mut metadata = HashMap::from([(EXTENSION.to_owned(), extension.to_owned())]);
    if extension == JSON {
        metadata.insert("ARROW:extension:metadata".to_owned(), String::new());
    }
    field.with_metadata(metadata)
}

/// The same column as text that says what the source says.
pub(crate) fn as_text(column: &mut Column) {
    column.field = field_of(column, &DataType::Utf8, None);
    column.chosen = true;
}

/// The bytes of a text as they are stored, which need not be text.
fn stored_bytes(column: &Column, to: &DataType, capabilities: Capabilities) -> Option<Way> {
    let is_text = *column.field.data_type() == DataType::Utf8
        && column.cursor.is_some_and(|cursor| cursor.kind == Kind::Text);
    (is_text && *to == DataType::Binary && capabilities.bytes_of_texts).then_some(Way::Source)
}

/// What this source can do besides.
fn way_of_source(column: &Column, to: &DataType, capabilities: Capabilities) -> Option<Way> {
    let is_float = *column.field.data_type() == DataType::Float64;
    let is_decimal = matches!(to, DataType::Decimal128(..) | DataType::Decimal256(..));
    (is_float && is_decimal && capabilities.decimals_of_floats).then_some(Way::Source)
}

/// How a column can become another type without any loss; `None` where it cannot.
pub(crate) fn way(column: &Column, to: &DataType, extension: Option<&str>) -> Option<Way> {
    use DataType as T;
    let from = column.field.data_type();
    if from == to && column.field.extension_type_name() == extension {
        return Some(Way::Source);
    }
    let is_number_as_text =
        *from == T::Utf8 && column.cursor.is_some_and(|cursor| cursor.kind == Kind::Number);
    let is_exact = match (from, to) {
        // Whatever it is, the source can print it.
        (_, T::Utf8) if extension.is_none() => return Some(Way::Source),
        (T::Decimal128(..) | T::Decimal256(..), T::Decimal128(..) | T::Decimal256(..)) => {
            return Some(Way::Source);
        }
        (_, T::Decimal128(..) | T::Decimal256(..)) if is_number_as_text => {
            return Some(Way::Source);
        }
        (from, T::Decimal128(..) | T::Decimal256(..)) => from.is_integer() || *from == T::Utf8,
        (from, to) if to.is_integer() => {
            from.is_integer()
                || matches!(from, T::Boolean | T::Utf8 | T::Decimal128(..) | T::Decimal256(..))
        }
        (from, T::Boolean) => from.is_integer() || *from == T::Utf8,
        (from, T::Float64) => from.is_integer() || *from == T::Float32,
        (T::Utf8, T::Date32 | T::Time64(_) | T::Timestamp(..) | T::Binary) => true,
        (T::Timestamp(_, None), T::Date32) => true,
        (T::Date32, T::Timestamp(TimeUnit::Microsecond, None)) => true,
        (T::Timestamp(_, from), T::Timestamp(TimeUnit::Microsecond, to)) => {
            from.is_some() == to.is_some()
        }
        (T::FixedSizeBinary(_), T::Binary) => true,
        (T::Utf8 | T::Binary | T::FixedSizeBinary(16), T::FixedSizeBinary(16)) => true,
        (T::Utf8, T::Utf8) => true,
        _ => false,
    };
    is_exact.then_some(Way::Batch)
}

fn not_exact(column: &Column, to: &DataType) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!(
            "column {:?} of type {} cannot become {} without a loss",
            column.name(),
            column.source_type,
            type_text(to, None)
        ),
    )
    .with_hint(format!("choose {}, or leave the cast out", choices(column).join(", ")))
}

/// Types that the column can become, by name.
fn choices(column: &Column) -> Vec<&'static str> {
    let utc = || Some("UTC".into());
    let micros = TimeUnit::Microsecond;
    let all = [
        ("text", DataType::Utf8),
        ("boolean", DataType::Boolean),
        ("an integer type", DataType::Int64),
        ("float64", DataType::Float64),
        ("decimal(p,s)", DataType::Decimal128(38, 0)),
        ("date", DataType::Date32),
        ("timestamp", DataType::Timestamp(micros, None)),
        ("timestamptz", DataType::Timestamp(micros, utc())),
        ("time", DataType::Time64(micros)),
        ("binary", DataType::Binary),
        ("uuid", DataType::FixedSizeBinary(16)),
    ];
    let fits = |(name, to): (&'static str, DataType)| way(column, &to, None).map(|_| name);
    all.into_iter().filter_map(fits).collect()
}

/// A type in the words of `--type-cast`, for messages.
pub fn type_text(data_type: &DataType, extension: Option<&str>) -> String {
    use DataType as T;
    match (data_type, extension) {
        (_, Some("arrow.uuid")) => "uuid".into(),
        (_, Some(JSON)) => "json".into(),
        (T::Utf8, _) => "text".into(),
        (T::Date32, _) => "date".into(),
        (T::Decimal128(precision, scale) | T::Decimal256(precision, scale), _) => {
            format!("decimal({precision},{scale})")
        }
        (T::Timestamp(TimeUnit::Microsecond, None), _) => "timestamp".into(),
        (T::Timestamp(TimeUnit::Microsecond, Some(_)), _) => "timestamptz".into(),
        (T::Timestamp(TimeUnit::Nanosecond, None), _) => "timestamp in nanoseconds".into(),
        (T::Timestamp(TimeUnit::Nanosecond, Some(_)), _) => "timestamptz in nanoseconds".into(),
        (T::Time64(_), _) => "time".into(),
        (T::FixedSizeBinary(16), _) => "uuid".into(),
        (other, _) => other.to_string().to_lowercase(),
    }
}

/// The type of a field, for messages.
pub(crate) fn field_text(field: &Field) -> String {
    type_text(field.data_type(), field.extension_type_name())
}
