//! The cursor of a table as the catalogue knows it.

use tidelake_model::{
    Column, CursorRead, CursorType, Error, ErrorKind, IncrementalTable, Result, Table,
};
use tidelake_watermark::{Ceiling, Cursor, Kind, Tick};

use crate::incremental::CursorTypeName;
use crate::selection::listed;

/// A cursor that was checked against the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableCursor {
    /// What the sync says of it.
    pub(crate) settings: IncrementalTable,
    /// For the source.
    pub(crate) read: CursorRead,
    /// How the upper bound is chosen.
    pub(crate) ceiling: Ceiling,
    /// Smallest step of its first column.
    pub(crate) tick: Tick,
    /// Whether a row can have no cursor value.
    pub(crate) nullable: bool,
    /// Whether its highest value is cheap.
    pub(crate) indexed: bool,
}

impl TableCursor {
    /// Looks the cursor of a sync up in the catalogue's table. The kind must
    /// still be the one that the sync was made with.
    pub(crate) fn find(settings: &IncrementalTable, table: &Table) -> Result<Self> {
        check_columns_are_there(&settings.cursor, table)?;
        let columns = columns(&settings.cursor, table)?;
        let types = types(&columns, &settings.cursor, table)?;
        let kinds: Vec<Kind> = types.iter().map(|found| found.kind).collect();
        if kinds != settings.kinds {
            let names =
                |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
            return Err(Error::new(
                ErrorKind::Data,
                format!(
                    "the cursor {} is now of kind {}, the sync was made with {}",
                    settings.cursor,
                    names(&kinds),
                    names(&settings.kinds)
                ),
            )
            .with_hint(
                "what was read so far cannot be compared with it: make the sync anew with the \
                 column's present type (tidelake config delete, config create with the same \
                 --sync-id, then sync --on-mismatch rebuild)",
            )
            .in_table(&table.name));
        }
        let first = types.first().copied();
        let is_clocked = first.is_some_and(|found| found.kind.is_time())
            && !matches!(settings.cursor, Cursor::Composite(_));
        let tick = match first {
            Some(found) if found.kind != Kind::Date && !settings.day_ticks => {
                Tick::of_digits(found.fraction_digits)
            }
            _ => Tick::DAY,
        };
        let all_nullable = columns.iter().all(|column| column.field.is_nullable());
        let any_nullable = columns.iter().any(|column| column.field.is_nullable());
        let is_fallback = matches!(settings.cursor, Cursor::Fallback(_));
        Ok(Self {
            settings: settings.clone(),
            read: CursorRead { cursor: settings.cursor.clone(), kinds },
            ceiling: if is_clocked { Ceiling::Clock } else { Ceiling::Observed },
            tick,
            nullable: if is_fallback { all_nullable } else { any_nullable },
            indexed: !is_fallback && columns.first().is_some_and(|column| column.indexed),
        })
    }

    /// Whether its kind may have values above all that a window reaches, such as
    /// NaN or a time without an end.
    pub(crate) fn may_be_unreachable(&self) -> bool {
        self.read.cursor.columns().len() == 1
            && (self.kind() == Kind::Number || self.kind().is_time())
    }

    /// The kind of its first value.
    pub(crate) fn kind(&self) -> Kind {
        self.read.kinds.first().copied().unwrap_or(Kind::Text)
    }
}

/// Says what to do when a column of a sync's cursor is gone.
fn check_columns_are_there(cursor: &Cursor, table: &Table) -> Result<()> {
    let gone = cursor.columns().iter().find(|name| table.column(name).is_none());
    let Some(name) = gone else { return Ok(()) };
    let names: Vec<_> = table.columns.iter().map(Column::name).collect();
    Err(Error::new(
        ErrorKind::NotFound,
        format!("the column {name:?} of the cursor does not exist any more"),
    )
    .with_hint(format!(
        "give it back to the table, or make the sync anew with another cursor (tidelake config \
         delete, config create with the same --sync-id, then sync --on-mismatch rebuild); the \
         columns are: {}",
        listed(&names)
    ))
    .in_table(&table.name))
}

/// The cursor's columns in the table.
pub(crate) fn columns<'a>(cursor: &Cursor, table: &'a Table) -> Result<Vec<&'a Column>> {
    let find = |name: &String| {
        table.column(name).ok_or_else(|| {
            let names: Vec<_> = table.columns.iter().map(Column::name).collect();
            Error::new(ErrorKind::NotFound, format!("there is no column {name:?}"))
                .with_hint(format!("the columns are: {}", listed(&names)))
                .in_table(&table.name)
        })
    };
    cursor.columns().iter().map(find).collect()
}

/// How the columns can serve: one type for each component of a composite cursor,
/// and one for all columns of a fallback.
fn types(columns: &[&Column], cursor: &Cursor, table: &Table) -> Result<Vec<CursorType>> {
    let usable = |column: &&Column| {
        column.cursor.ok_or_else(|| {
            let Column { source_type, .. } = column;
            Error::new(
                ErrorKind::Configuration,
                format!("column {:?} of type {source_type} cannot be a cursor", column.name()),
            )
            .with_hint(
                "choose a date, a time stamp, a whole number, an exact decimal, text or bytes; \
                 a floating-point number is not exact enough to say how far a table was read",
            )
            .in_table(&table.name)
        })
    };
    let types: Vec<CursorType> = columns.iter().map(usable).collect::<Result<_>>()?;
    if !matches!(cursor, Cursor::Fallback(_)) {
        return Ok(types);
    }
    let first = types.first().copied();
    let alike = types.iter().all(|found| Some(found.kind) == first.map(|first| first.kind));
    // A value of the coarsest column may still be given in a tick of that column.
    let coarsest = types.iter().min_by_key(|found| found.fraction_digits).copied();
    match coarsest {
        Some(coarsest) if alike => Ok(vec![coarsest]),
        _ => Err(Error::new(
            ErrorKind::Configuration,
            format!("the columns of the fallback cursor {cursor} have different kinds"),
        )
        .with_hint("choose columns of one type")
        .in_table(&table.name)),
    }
}

/// The kinds that a cursor gets from the catalogue, checked against the types
/// that the user named; and whether it counts in whole days.
pub(crate) fn check_types(
    cursor: &Cursor,
    named: &[CursorTypeName],
    table: &Table,
) -> Result<(Vec<Kind>, bool)> {
    let columns = columns(cursor, table)?;
    let types = types(&columns, cursor, table)?;
    let mut day_ticks = false;
    for ((found, named), column) in types.iter().zip(named).zip(&columns) {
        let fits = match named {
            CursorTypeName::Date => {
                day_ticks |= found.kind != Kind::Date;
                found.kind.is_time()
            }
            CursorTypeName::Datetime => found.kind.is_time(),
            CursorTypeName::Integer => found.kind == Kind::Integer,
            CursorTypeName::Number => matches!(found.kind, Kind::Integer | Kind::Number),
            CursorTypeName::Text => found.kind == Kind::Text,
            CursorTypeName::Binary => found.kind == Kind::Binary,
        };
        if !fits {
            let name = column.name();
            let source_type = &column.source_type;
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("column {name:?} is of type {source_type}, not of the cursor type named"),
            )
            .with_hint(format!("name it as {}", type_names(found.kind)))
            .in_table(&table.name));
        }
    }
    Ok((types.iter().map(|found| found.kind).collect(), day_ticks))
}

fn type_names(kind: Kind) -> &'static str {
    match kind {
        Kind::Date => "date",
        Kind::Datetime | Kind::Timestamp => "datetime, or date to count in whole days",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Text => "text",
        Kind::Binary => "binary",
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, TimeUnit};
    use tidelake_model::{TableKind, TableName};

    use super::*;

    fn column(name: &str, fraction_digits: u32) -> Column {
        Column {
            field: Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), true),
            source_type: "timestamp".into(),
            cursor: Some(CursorType { kind: Kind::Datetime, fraction_digits }),
            key_position: None,
            indexed: false,
            warning: None,
            chosen: false,
        }
    }

    #[test]
    fn the_coarsest_column_of_a_fallback_gives_the_tick() {
        let table = Table {
            name: TableName::new("shop", "orders"),
            kind: TableKind::Table,
            columns: vec![column("updated_at", 6), column("created_at", 0)],
            estimated_rows: None,
            estimated_bytes: None,
        };
        let cursor = Cursor::Fallback(vec!["updated_at".into(), "created_at".into()]);
        let found = columns(&cursor, &table).unwrap();
        let kinds = types(&found, &cursor, &table).unwrap();
        assert_eq!(kinds, [CursorType { kind: Kind::Datetime, fraction_digits: 0 }]);
    }
}
