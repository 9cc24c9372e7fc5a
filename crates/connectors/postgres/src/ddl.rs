//! Target tables: what a column of the lake becomes, and how a table follows
//! the lake's schema.

use arrow::datatypes::{DataType, Field, TimeUnit};
use tidelake_connector::TargetTable;
use tidelake_model::{Error, ErrorKind, Manifest, Result, TableName};

use crate::catalogue::CatalogueColumn;
use crate::literal::quoted;

/// The longest name that the server keeps whole, in bytes.
const LONGEST_NAME: usize = 63;

/// The type of a target's column, as far as its binary form goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Json,
    Jsonb,
    Bytea,
    Uuid,
    Date,
    Time,
    Timestamp,
    Timestamptz,
}

/// A column of the lake on its way into the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// The type in a statement.
    pub(crate) declaration: String,
}

/// What a column becomes in a new table.
pub(crate) fn mapped(field: &Field, source_type: Option<&str>) -> Mapped {
    use DataType as T;
    let extension = field.extension_type_name();
    let plain = |target, declaration: &str| (target, declaration.to_owned());
    let (target, declaration) = match (field.data_type(), extension) {
        (T::Boolean, _) => plain(Target::Bool, "boolean"),
        (T::Int8 | T::Int16 | T::UInt8, _) => plain(Target::Int2, "smallint"),
        (T::Int32 | T::UInt16, _) => plain(Target::Int4, "integer"),
        (T::Int64 | T::UInt32, _) => plain(Target::Int8, "bigint"),
        (T::UInt64, _) => plain(Target::Numeric, "numeric(20,0)"),
        (T::Float32, _) => plain(Target::Float4, "real"),
        (T::Float64, _) => plain(Target::Float8, "double precision"),
        (T::Decimal128(precision, scale) | T::Decimal256(precision, scale), _) => {
            let (precision, scale) = digits(*precision, *scale);
            (Target::Numeric, format!("numeric({precision},{scale})"))
        }
        // What the source kept as it was written is not normalised here either.
        (T::Utf8 | T::LargeUtf8 | T::Utf8View, Some("arrow.json"))
            if source_type == Some("json") =>
        {
            plain(Target::Json, "json")
        }
        (T::Utf8 | T::LargeUtf8 | T::Utf8View, Some("arrow.json")) => plain(Target::Jsonb, "jsonb"),
        (T::FixedSizeBinary(16), Some("arrow.uuid")) => plain(Target::Uuid, "uuid"),
        (T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_), _) => {
            plain(Target::Bytea, "bytea")
        }
        (T::Date32 | T::Date64, _) => plain(Target::Date, "date"),
        (T::Time32(_) | T::Time64(TimeUnit::Microsecond), _) => plain(Target::Time, "time"),
        (T::Timestamp(TimeUnit::Nanosecond, _), _) => plain(Target::Text, "text"),
        (T::Timestamp(_, None), _) => plain(Target::Timestamp, "timestamp"),
        (T::Timestamp(_, Some(_)), _) => plain(Target::Timestamptz, "timestamptz"),
        _ => plain(Target::Text, "text"),
    };
    Mapped { name: field.name().clone(), target, declaration }
}

/// Precision and scale of a numeric; a negative scale becomes whole digits.
fn digits(precision: u8, scale: i8) -> (i32, i32) {
    (i32::from(precision) - i32::from(scale.min(0)), i32::from(scale.max(0)))
}

/// The columns of a manifest as a new table has them.
pub(crate) fn columns(manifest: &Manifest) -> Vec<Mapped> {
    let fields = manifest.schema.fields().iter();
    fields
        .map(|field| {
            let source_type = manifest.source_types.get(field.name());
            mapped(field, source_type.map(String::as_str))
        })
        .collect()
}

/// Refuses names that the server would cut off, and so might confuse.
pub(crate) fn check_names(target: &TargetTable, columns: &[Mapped]) -> Result<()> {
    let names = [&target.schema, &target.table].into_iter();
    for name in names.chain(columns.iter().map(|column| &column.name)) {
        if name.len() > LONGEST_NAME {
            let message = format!("the name {name:?} has more than {LONGEST_NAME} bytes");
            return Err(Error::new(ErrorKind::Configuration, message)
                .with_hint("choose another --publish-table-pattern, or leave the column out"));
        }
    }
    Ok(())
}

/// The target's name in quotes.
pub(crate) fn quoted_table(target: &TargetTable) -> String {
    format!("{}.{}", quoted(&target.schema), quoted(&target.table))
}

/// The target as a table's name, for messages.
pub(crate) fn named(target: &TargetTable) -> TableName {
    TableName::new(&target.schema, &target.table)
}

/// The statement that makes the table.
pub(crate) fn create(target: &TargetTable, columns: &[Mapped], key: &[String]) -> String {
    let mut parts: Vec<_> = columns
        .iter()
        .map(|column| format!("{} {}", quoted(&column.name), column.declaration))
        .collect();
    if !key.is_empty() {
        let key: Vec<_> = key.iter().map(|name| quoted(name)).collect();
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    format!("CREATE TABLE {} ({})", quoted_table(target), parts.join(", "))
}

/// How an existing table is brought to hold the columns: the statement, if one
/// is needed, and the columns as they are loaded. A table of ours that was just
/// emptied may have any type changed.
pub(crate) fn evolve(
    target: &TargetTable,
    wanted: Vec<Mapped>,
    fields: &[DataType],
    existing: &[CatalogueColumn],
    emptied: bool,
) -> Result<(Option<String>, Vec<Mapped>)> {
    let mut changes = vec![];
    let mut loaded = vec![];
    for (column, data_type) in wanted.into_iter().zip(fields) {
        let name = quoted(&column.name);
        let found = existing.iter().find(|found| found.column.name() == column.name);
        let Some(found) = found else {
            changes.push(format!("ADD COLUMN {name} {}", column.declaration));
            loaded.push(column);
            continue;
        };
        let (column, change) = match fitted(&column, data_type, found) {
            Some(fitted) => fitted,
            None if emptied => {
                let change = format!("{} USING NULL", column.declaration);
                (column, Some(change))
            }
            None => return Err(misfit(&column, found)),
        };
        changes.extend(change.map(|to| format!("ALTER COLUMN {name} TYPE {to}")));
        loaded.push(column);
    }
    let statement = (!changes.is_empty())
        .then(|| format!("ALTER TABLE {} {}", quoted_table(target), changes.join(", ")));
    Ok((statement, loaded))
}

/// A column as it goes into one that exists, and the type to which that has to
/// be widened first.
fn fitted(
    column: &Mapped,
    data_type: &DataType,
    found: &CatalogueColumn,
) -> Option<(Mapped, Option<String>)> {
    let existing = existing_target(&found.column.source_type);
    let kept = |target| Mapped { target, ..column.clone() };
    let widened = || (column.clone(), Some(column.declaration.clone()));
    let rank = |target| match target {
        Target::Int2 => Some(2),
        Target::Int4 => Some(4),
        Target::Int8 => Some(8),
        _ => None,
    };
    // A length or precision in the type would cut off or round.
    let limited = found.column.source_type.contains('(');
    match (column.target, existing) {
        (_, Some(Target::Text)) => Some((kept(Target::Text), None)),
        (Target::Numeric, Some(Target::Numeric)) => {
            Some((kept(Target::Numeric), wider_numeric(data_type, &found.column.source_type)))
        }
        (wanted, Some(Target::Numeric)) if rank(wanted).is_some() => {
            Some((kept(Target::Numeric), wider_numeric(data_type, &found.column.source_type)))
        }
        (Target::Numeric, Some(existing)) if rank(existing).is_some() => Some(widened()),
        (wanted, Some(existing)) => match (rank(wanted), rank(existing)) {
            (Some(wanted), Some(has)) if wanted > has => Some(widened()),
            (Some(_), Some(_)) => Some((kept(existing), None)),
            _ => match (wanted, existing) {
                (Target::Float4, Target::Float8) => Some((kept(Target::Float8), None)),
                (Target::Float8, Target::Float4) => Some(widened()),
                (Target::Json, Target::Jsonb) | (Target::Jsonb, Target::Json) => {
                    Some((kept(existing), None))
                }
                (Target::Time | Target::Timestamp | Target::Timestamptz, same)
                    if wanted == same && limited =>
                {
                    Some(widened())
                }
                _ if wanted == existing => Some((kept(existing), None)),
                _ => None,
            },
        },
        (_, None) => None,
    }
}

fn misfit(column: &Mapped, found: &CatalogueColumn) -> Error {
    let message = format!(
        "column {:?} of the target is of type {} and cannot hold {}",
        column.name, found.column.source_type, column.declaration
    );
    Error::new(ErrorKind::Data, message)
        .with_hint("alter the column's type, or publish to another table")
}

/// What a column of the catalogue's type takes in binary form.
fn existing_target(source_type: &str) -> Option<Target> {
    let base = source_type.split('(').next().unwrap_or("").trim();
    Some(match base {
        "boolean" => Target::Bool,
        "smallint" => Target::Int2,
        "integer" => Target::Int4,
        "bigint" => Target::Int8,
        "real" => Target::Float4,
        "double precision" => Target::Float8,
        "numeric" => Target::Numeric,
        "text" | "character varying" => Target::Text,
        "json" => Target::Json,
        "jsonb" => Target::Jsonb,
        "bytea" => Target::Bytea,
        "uuid" => Target::Uuid,
        "date" => Target::Date,
        "time" | "time without time zone" if !source_type.ends_with("with time zone") => {
            Target::Time
        }
        "timestamp" | "timestamp without time zone" | "timestamp with time zone" => {
            if source_type.ends_with("with time zone") {
                Target::Timestamptz
            } else {
                Target::Timestamp
            }
        }
        _ => return None,
    })
}

/// The numeric to which a column has to be widened so that nothing is rounded.
fn wider_numeric(data_type: &DataType, existing: &str) -> Option<String> {
    use DataType as T;
    // Without a precision it holds everything.
    let (has, has_scale) = declared_digits(existing)?;
    let (needs, scale) = match data_type {
        T::Decimal128(precision, scale) | T::Decimal256(precision, scale) => {
            digits(*precision, *scale)
        }
        T::Int8 | T::UInt8 => (3, 0),
        T::Int16 | T::UInt16 => (5, 0),
        T::Int32 | T::UInt32 => (10, 0),
        T::Int64 => (19, 0),
        _ => (20, 0),
    };
    let whole = (needs - scale).max(has - has_scale);
    let wide_scale = scale.max(has_scale);
    let enough = needs - scale <= has - has_scale && scale <= has_scale;
    (!enough).then(|| format!("numeric({},{wide_scale})", whole + wide_scale))
}

/// Precision and scale in `numeric(p,s)`.
fn declared_digits(declared: &str) -> Option<(i32, i32)> {
    let inner = declared.strip_prefix("numeric(")?.strip_suffix(')')?;
    let (precision, scale) = inner.split_once(',')?;
    Some((precision.parse().ok()?, scale.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerics_are_widened_until_nothing_is_rounded() {
        use DataType as T;
        for (existing, data_type, wanted) in [
            ("numeric", T::Decimal128(38, 10), None),
            ("numeric(10,2)", T::Decimal128(10, 2), None),
            ("numeric(10,2)", T::Decimal128(9, 1), None),
            ("numeric(10,2)", T::Decimal128(12, 4), Some("numeric(12,4)")),
            ("numeric(10,2)", T::Decimal128(10, 4), Some("numeric(12,4)")),
            ("numeric(100,2)", T::Decimal128(10, 4), Some("numeric(102,4)")),
            ("numeric(5,-2)", T::Decimal128(7, 0), Some("numeric(7,0)")),
            ("numeric(10,2)", T::Int64, Some("numeric(21,2)")),
            ("numeric(20,0)", T::UInt64, None),
            ("numeric(10,0)", T::Decimal128(7, -3), None),
        ] {
            assert_eq!(wider_numeric(&data_type, existing).as_deref(), wanted, "{existing}");
        }
    }

    #[test]
    fn types_of_the_catalogue_are_told_apart() {
        for (text, wanted) in [
            ("integer", Some(Target::Int4)),
            ("numeric(10,2)", Some(Target::Numeric)),
            ("character varying(10)", Some(Target::Text)),
            ("timestamp(3) without time zone", Some(Target::Timestamp)),
            ("timestamp(3) with time zone", Some(Target::Timestamptz)),
            ("timestamp with time zone", Some(Target::Timestamptz)),
            ("timestamp without time zone", Some(Target::Timestamp)),
            ("time without time zone", Some(Target::Time)),
            ("time with time zone", None),
            ("time(3) with time zone", None),
            ("public.mood", None),
            ("integer[]", None),
        ] {
            assert_eq!(existing_target(text), wanted, "{text}");
        }
    }
}
