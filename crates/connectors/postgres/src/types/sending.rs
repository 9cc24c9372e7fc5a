//! In which form a column is asked for.

use arrow::datatypes::DataType;
use tidelake_connector::sql::Dialect;
use tidelake_model::Column;
use tidelake_watermark::Kind;

use super::{Carried, Wire};
use crate::literal::PostgresDialect;

/// The form in which a column has to be sent so that it arrives as `wanted`: the
/// natural one, text for whoever asks for text, digits for a number in a decimal;
/// `None` where there is no such form.
pub(crate) fn wire_for(carried: &Carried, wanted: &Column) -> Option<Wire> {
    use DataType as T;
    let is_number = carried.cursor.is_some_and(|cursor| cursor.kind == Kind::Number);
    let is_json = wanted.field.extension_type_name() == Some("arrow.json");
    match (wanted.field.data_type(), carried.wire) {
        // Whoever asks for the text of an array gets the server's own.
        (T::Utf8, Wire::Json) if !is_json => Some(Wire::Cast),
        (data_type, natural) if *data_type == carried.data_type => Some(natural),
        // A policy for numbers holds for their text too.
        (T::Utf8, Wire::Numeric | Wire::Float4 | Wire::Float8) => Some(Wire::NumberText),
        (T::Utf8, _) => Some(Wire::Cast),
        (T::Decimal128(..) | T::Decimal256(..), _) if is_number => Some(Wire::Numeric),
        _ => None,
    }
}

/// The column as it stands in the statement's list.
pub(crate) fn selected(name: &str, wire: Wire) -> String {
    let quoted = PostgresDialect.quote(name);
    match wire {
        Wire::Cast | Wire::NumberText => format!("{quoted}::text"),
        Wire::Json => format!("pg_catalog.to_json({quoted})"),
        _ => quoted,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::super::{ServerType, carried, field};
    use super::*;

    fn found(name: &str, array: bool) -> (Carried, Column) {
        let server =
            ServerType { name: name.to_owned(), builtin: true, class: 'b', array, modifier: -1 };
        let carried = carried(&server);
        let column = Column {
            field: field("c", &server, &carried, false),
            source_type: name.to_owned(),
            cursor: carried.cursor,
            key_position: None,
            indexed: false,
            warning: None,
            chosen: false,
        };
        (carried, column)
    }

    fn asked(name: &str, data_type: DataType) -> Option<Wire> {
        let (carried, column) = found(name, false);
        let field = Field::new("c", data_type, true);
        wire_for(&carried, &Column { field, chosen: true, ..column })
    }

    #[test]
    fn a_column_can_be_asked_for_as_text_or_another_decimal() {
        use DataType as T;
        for (name, data_type, wanted) in [
            ("numeric", T::Utf8, Some(Wire::NumberText)),
            ("numeric", T::Decimal128(20, 4), Some(Wire::Numeric)),
            ("numeric", T::Decimal256(60, 4), Some(Wire::Numeric)),
            ("numeric", T::Int64, None),
            ("float8", T::Utf8, Some(Wire::NumberText)),
            ("float8", T::Decimal128(20, 4), None),
            ("int4", T::Int32, Some(Wire::Int4)),
            ("int4", T::Utf8, Some(Wire::Cast)),
            ("int4", T::Int64, None),
            ("text", T::Utf8, Some(Wire::Text)),
        ] {
            assert_eq!(asked(name, data_type.clone()), wanted, "{name} as {data_type}");
        }
    }

    #[test]
    fn an_array_is_json_unless_its_text_is_wanted() {
        let (carried, column) = found("_int4", true);
        assert_eq!(wire_for(&carried, &column), Some(Wire::Json));
        let chosen = Column { chosen: true, ..column.clone() };
        assert_eq!(wire_for(&carried, &chosen), Some(Wire::Json));
        let plain = Column { field: Field::new("c", DataType::Utf8, true), ..column };
        assert_eq!(wire_for(&carried, &plain), Some(Wire::Cast));
    }
}
