//! A table as the lake is to have it: which of its columns, under which key, in
//! which types.

use arrow::datatypes::{DataType, TimeUnit};
use tidelake_connector::Capabilities;
use tidelake_model::{
    Column, ColumnCast, Error, ErrorKind, InfiniteTime, Notice, NoticeCode, Policies, Result,
    SpecialNumber, SyncConfig, Table, TimestampUnit, ZeroDate,
};
use tidelake_watermark::Kind;

use crate::casts::{as_text, cast_column, type_text};
use crate::cursor::TableCursor;
use crate::selection::selects;
use crate::tables::{SelectedTable, read_settings};

/// Applies what the sync says of the table's columns.
pub(crate) fn select(
    sync: &SyncConfig,
    capabilities: Capabilities,
    mut table: Table,
) -> Result<SelectedTable> {
    let settings = sync.incremental.iter().find(|settings| settings.table == table.name);
    let mut notices = vec![];
    take_columns(sync, &mut table, settings.is_none(), &mut notices)?;
    let cursor = settings.map(|settings| TableCursor::find(settings, &table)).transpose()?;
    let cursor_columns = settings.map(|settings| settings.cursor.columns()).unwrap_or_default();
    let mut read_columns = vec![];
    let mut columns = vec![];
    for column in std::mem::take(&mut table.columns) {
        let is_cursor = cursor_columns.iter().any(|name| name == column.name());
        let means = |cast: &&ColumnCast| cast.table == table.name && cast.column == column.name();
        let (mut read, mut lake) = match sync.casts.iter().find(means) {
            Some(cast) => {
                if is_cursor {
                    check_cursor_cast(&column, cast)
                        .map_err(|error| error.in_table(&table.name))?;
                }
                cast_column(&column, cast, capabilities)
                    .map_err(|error| error.in_table(&table.name))?
            }
            None => {
                let chosen =
                    by_policy(column, sync.policies, is_cursor, capabilities.open_time_digits);
                (chosen.clone(), chosen)
            }
        };
        if may_become_null(&read, sync.policies) {
            read.field.set_nullable(true);
            lake.field.set_nullable(true);
        }
        read_columns.push(read);
        columns.push(lake);
    }
    table.columns = columns;
    let read = read_settings(sync, &table.name);
    let known_columns = read_columns.iter().map(|column| column.name().to_owned()).collect();
    Ok(SelectedTable { table, read_columns, known_columns, cursor, read, notices })
}

/// Keeps the columns that the sync reads, and gives them the key that it declares.
fn take_columns(
    sync: &SyncConfig,
    table: &mut Table,
    is_full: bool,
    notices: &mut Vec<Notice>,
) -> Result<()> {
    let name = table.name.clone();
    let unsupported = |message: &str, hint: &str| {
        Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint).in_table(&name))
    };
    if table.columns.is_empty() {
        return unsupported("the table has no columns", "leave it out with --exclude");
    }
    let key = table.key();
    if let Some(selection) = sync.columns.iter().find(|selection| selection.table == name) {
        if is_full {
            let gone = selection.include.iter().filter(|column| table.column(column).is_none());
            notices.extend(gone.map(|column| {
                let message = format!("column {column:?} is chosen and does not exist any more");
                Notice::new(NoticeCode::SchemaChanged, message)
            }));
        }
        table.columns.retain(|column| selects(selection, column.name()));
        if table.columns.is_empty() {
            return unsupported(
                "none of the columns that the sync chose exists any more",
                "make the sync anew with other --columns (tidelake config delete, then config \
                 create)",
            );
        }
    }
    if let Some(declared) = sync.keys.iter().find(|declared| declared.table == name) {
        let gone = declared.columns.iter().find(|column| table.column(column).is_none());
        if let Some(column) = gone {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("the column {column:?} of the declared key does not exist any more"),
            )
            .with_hint(
                "make the sync anew with another --key (tidelake config delete, then config \
                 create)",
            )
            .in_table(&name));
        }
        for column in &mut table.columns {
            let place = declared.columns.iter().position(|key| key == column.name());
            column.key_position = place.and_then(|place| u32::try_from(place).ok());
        }
    } else if let Some(column) = key.iter().find(|column| table.column(column).is_none()) {
        // Part of a key tells no rows apart.
        notices.push(Notice::new(
            NoticeCode::Setting,
            format!("the key ({}) is not kept, since {column:?} is left out", key.join(", ")),
        ));
        table.columns.iter_mut().for_each(|column| column.key_position = None);
    }
    Ok(())
}

/// A cursor's values must stay comparable with the watermark.
fn check_cursor_cast(column: &Column, cast: &ColumnCast) -> Result<()> {
    use DataType as T;
    let kind = column.cursor.map(|cursor| cursor.kind);
    let keeps_kind = match (&cast.data_type, kind) {
        (to, Some(Kind::Integer)) => to.is_integer(),
        (T::Decimal128(..) | T::Decimal256(..), Some(Kind::Number)) => true,
        (T::Date32, Some(Kind::Date)) => true,
        (T::Timestamp(_, None), Some(Kind::Datetime)) => true,
        (T::Timestamp(_, Some(_)), Some(Kind::Timestamp)) => true,
        (T::Binary, Some(Kind::Binary)) => true,
        (T::Utf8, Some(Kind::Text)) => true,
        _ => false,
    };
    if keeps_kind {
        return Ok(());
    }
    let to = type_text(&cast.data_type, cast.extension.as_deref());
    Err(Error::new(
        ErrorKind::Configuration,
        format!("the cursor's column {:?} cannot become {to}", column.name()),
    )
    .with_hint("leave its cast out: how far a table was read is kept in the column's own type"))
}

/// What a policy makes of a column's type.
fn by_policy(mut column: Column, policies: Policies, is_cursor: bool, open_digits: bool) -> Column {
    use DataType as T;
    let times_as_text =
        policies.infinite_time == InfiniteTime::Text || policies.zero_date == ZeroDate::Text;
    match column.field.data_type() {
        T::Decimal128(..) | T::Decimal256(..)
            if policies.special_number == SpecialNumber::Text && !is_cursor =>
        {
            as_text(&mut column);
        }
        T::Date32 | T::Time32(_) | T::Time64(_) | T::Timestamp(..)
            if times_as_text && !is_cursor =>
        {
            as_text(&mut column);
        }
        T::Timestamp(TimeUnit::Nanosecond, _)
            if policies.timestamp_unit == TimestampUnit::Us && !is_cursor =>
        {
            as_text(&mut column);
            column.warning.get_or_insert_with(|| {
                "holds more digits than microseconds and is carried as text; --timestamp-unit ns \
                 keeps it a time"
                    .into()
            });
        }
        T::Timestamp(TimeUnit::Microsecond, zone)
            if policies.timestamp_unit == TimestampUnit::Ns && open_digits =>
        {
            let nanos = T::Timestamp(TimeUnit::Nanosecond, zone.clone());
            column.field.set_data_type(nanos);
            column.chosen = true;
        }
        _ => {}
    }
    column
}

/// A policy may turn a value into NULL, so a column to which it can apply holds
/// NULLs in the lake, whatever the catalogue says: `valid_to timestamptz NOT NULL
/// DEFAULT 'infinity'` is common. Columns of the key keep their promise.
fn may_become_null(column: &Column, policies: Policies) -> bool {
    use DataType as T;
    if column.key_position.is_some() {
        return false;
    }
    let is_number = column.cursor.is_some_and(|cursor| cursor.kind == Kind::Number);
    match column.field.data_type() {
        T::Decimal128(..) | T::Decimal256(..) => policies.special_number != SpecialNumber::Fail,
        T::Float16 | T::Float32 | T::Float64 => policies.special_number == SpecialNumber::Null,
        T::Utf8 if is_number => policies.special_number == SpecialNumber::Null,
        T::Date32 | T::Time32(_) | T::Time64(_) | T::Timestamp(..) => {
            matches!(policies.infinite_time, InfiniteTime::Null | InfiniteTime::Text)
                || policies.zero_date == ZeroDate::Null
        }
        _ => false,
    }
}
