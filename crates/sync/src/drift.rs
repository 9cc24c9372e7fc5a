//! Columns that changed since the lake's newest manifest: what is read, and what
//! the lake's schema becomes.
//!
//! A table that is read whole, or anew, takes its present columns. One that is
//! added to keeps its columns in their order, since rows in older files stay:
//!
//! | at the source | `evolve` | `ignore` | `fail` |
//! |---|---|---|---|
//! | added | appended, nullable | left out | stops |
//! | dropped | stays, NULL from now on | stays, NULL from now on | stops |
//! | renamed | as one dropped and one added | likewise | stops |
//! | a wider type | the lake's type is widened | stops | stops |
//! | any other type | stops | stops | stops |
//! | another order, NOT NULL or not | nothing stops | nothing stops | nothing stops |

use arrow::datatypes::Field;
use tidelake_lake::{TableLake, widens};
use tidelake_model::{
    Column, Error, ErrorKind, Manifest, Notice, NoticeCode, Result, SchemaDrift, WindowRecord,
};
use tidelake_watermark::Progress;

use crate::casts::{JSON, field_text};
use crate::selection::is_left_out;
use crate::table_run::TableWork;
use crate::tables::SelectedTable;

impl TableWork<'_> {
    /// Brings the columns of this run together with those of the lake, or stops
    /// before a byte is read.
    pub(crate) fn keep_schema(&mut self, window: &WindowRecord) -> Result<()> {
        let (Some(head), false) = (&self.head, window.replaces) else { return Ok(()) };
        let notices = reconcile(self.run.sync.schema_drift, head, &mut self.selected)?;
        self.note_all(notices);
        Ok(())
    }

    /// Stops where the table got a column since it was looked at: the rows that are
    /// about to be read would never get its values. `columns` are those of the
    /// snapshot that is read.
    pub(crate) fn check_no_column_is_new(&self, columns: &[String]) -> Result<()> {
        if self.selected.cursor.is_none() {
            return Ok(());
        }
        let name = &self.selected.table.name;
        let is_new = |column: &&String| {
            !is_left_out(&self.run.sync, name, column)
                && !self.selected.known_columns.contains(column)
        };
        match columns.iter().find(is_new) {
            None => Ok(()),
            Some(column) => Err(Error::new(
                ErrorKind::Data,
                format!("column {column:?} was added while the run began"),
            )
            .with_hint("run the sync again, which looks at the columns afresh")),
        }
    }
}

/// The table as the next run would read it, by what the lake holds now.
pub(crate) async fn as_planned(
    policy: SchemaDrift,
    lake: &TableLake,
    selected: &SelectedTable,
    window: &WindowRecord,
) -> Result<(SelectedTable, Vec<Notice>)> {
    let mut selected = selected.clone();
    let Progress { watermark, max_seen, .. } = &window.progress;
    let starts_anew = watermark.is_none() && max_seen.is_none();
    let latest = if window.replaces || starts_anew { None } else { lake.latest().await? };
    let Some(newest) = latest.as_ref().and_then(|latest| latest.manifests.last()) else {
        return Ok((selected, vec![]));
    };
    let notices = reconcile(policy, &lake.manifest(newest).await?, &mut selected)?;
    Ok((selected, notices))
}

/// Gives the table the columns that the lake has after this run, and tells what
/// changed. Nothing changes where it is an error.
pub(crate) fn reconcile(
    policy: SchemaDrift,
    head: &Manifest,
    selected: &mut SelectedTable,
) -> Result<Vec<Notice>> {
    let mut now = std::mem::take(&mut selected.table.columns);
    let drift = Drift { policy, head, notices: vec![] };
    match drift.columns(&now) {
        Ok((columns, notices)) => {
            let is_read = |name: &str| columns.iter().any(|column| column.name() == name);
            selected.read_columns.retain(|column| is_read(column.name()));
            // A key with a column that the lake does not have tells no rows apart.
            let lost = now.iter().any(|it| it.key_position.is_some() && !is_read(it.name()));
            selected.table.columns = columns;
            if lost {
                let columns = selected.table.columns.iter_mut();
                columns.for_each(|column| column.key_position = None);
            }
            Ok(notices)
        }
        Err(error) => {
            selected.table.columns.append(&mut now);
            Err(error.in_table(&selected.table.name))
        }
    }
}

struct Drift<'a> {
    policy: SchemaDrift,
    head: &'a Manifest,
    notices: Vec<Notice>,
}

impl Drift<'_> {
    fn columns(mut self, now: &[Column]) -> Result<(Vec<Column>, Vec<Notice>)> {
        let head = self.head;
        let mut columns = vec![];
        let mut dropped = vec![];
        for field in head.schema.fields() {
            match now.iter().find(|column| column.name() == field.name()) {
                Some(column) => columns.push(self.kept(field, column)?),
                None => {
                    // Without a source type it was dropped before, and told then.
                    if head.source_types.contains_key(field.name()) {
                        dropped.push(field.as_ref());
                    }
                    columns.push(gone(field));
                }
            }
        }
        let is_new = |column: &&Column| head.schema.field_with_name(column.name()).is_err();
        let added: Vec<_> = now.iter().filter(is_new).collect();
        let renamed = renamed(&dropped, &added);
        for field in dropped {
            self.dropped(field, renamed)?;
        }
        for column in added {
            self.added(column, renamed)?;
            if self.policy == SchemaDrift::Evolve {
                let mut column = column.clone();
                // Rows in older files have no value.
                column.field.set_nullable(true);
                columns.push(column);
            }
        }
        Ok((columns, self.notices))
    }

    /// A column that both have.
    fn kept(&mut self, lake: &Field, column: &Column) -> Result<Column> {
        let name = column.name();
        let (before, after) = (field_text(lake), field_text(&column.field));
        let same_type = lake.data_type() == column.field.data_type()
            && lake.extension_type_name() == column.field.extension_type_name();
        let mut kept = column.clone();
        if !same_type {
            let wider = is_wider(lake, &column.field);
            if !wider || self.policy != SchemaDrift::Evolve {
                let change = format!(
                    "column {name:?} changed since the last run: it was {}, now it is {}",
                    self.with_source_type(lake, &before),
                    with_type(&column.source_type, &after)
                );
                return Err(stopped(change, wider));
            }
            self.tell(format!("column {name:?} was {before} and is widened to {after}"));
        }
        if !self.head.source_types.contains_key(name) {
            self.tell(format!("column {name:?} is back, and has values again"));
        }
        if lake.is_nullable() {
            kept.field.set_nullable(true);
        } else if column.field.is_nullable() {
            self.tell(format!("column {name:?} may be NULL from now on"));
        }
        Ok(kept)
    }

    fn dropped(&mut self, field: &Field, renamed: Option<(&str, &str)>) -> Result<()> {
        let name = field.name();
        let mut message = format!("column {name:?} ({}) was dropped", field_text(field));
        if let Some((_, to)) = renamed.filter(|(from, _)| from == name) {
            message = format!("{message}, or renamed to {to:?}");
        }
        if self.policy == SchemaDrift::Fail {
            return Err(stopped(format!("{message} since the last run"), true));
        }
        self.tell(format!("{message}; it stays in the lake, and is NULL from now on"));
        Ok(())
    }

    fn added(&mut self, column: &Column, renamed: Option<(&str, &str)>) -> Result<()> {
        let name = column.name();
        let described = with_type(&column.source_type, &field_text(&column.field));
        let mut message = format!("column {name:?} ({described}) was added");
        if let Some((from, _)) = renamed.filter(|(_, to)| *to == name) {
            message = format!("{message}, or {from:?} was renamed to it");
        }
        let message = match self.policy {
            SchemaDrift::Fail => {
                return Err(stopped(format!("{message} since the last run"), true));
            }
            SchemaDrift::Evolve => {
                format!("{message}; rows that are in the lake already are NULL in it")
            }
            SchemaDrift::Ignore => format!("{message} and is left out"),
        };
        self.tell(message);
        Ok(())
    }

    fn tell(&mut self, message: String) {
        self.notices.push(Notice::new(NoticeCode::SchemaChanged, message));
    }

    fn with_source_type(&self, field: &Field, text: &str) -> String {
        match self.head.source_types.get(field.name()) {
            Some(source_type) => with_type(source_type, text),
            None => text.to_owned(),
        }
    }
}

/// The source's name of a type, and the lake's where that is another.
fn with_type(source_type: &str, lake: &str) -> String {
    match source_type.eq_ignore_ascii_case(lake) {
        true => source_type.to_owned(),
        false => format!("{source_type}, here {lake}"),
    }
}

/// Whether the lake's type can be widened to the present one: every value of the
/// old is one of the new, and every reader can read the old as the new.
fn is_wider(lake: &Field, now: &Field) -> bool {
    match (lake.extension_type_name(), now.extension_type_name()) {
        (None, None) => widens(lake.data_type(), now.data_type()),
        // All JSON is text.
        (Some(JSON), None) => lake.data_type() == now.data_type(),
        _ => false,
    }
}

/// A column that the source has no more. It has no source type, which is how the
/// next run knows that it was dropped before.
fn gone(field: &Field) -> Column {
    Column {
        field: field.clone().with_nullable(true),
        source_type: String::new(),
        cursor: None,
        key_position: None,
        indexed: false,
        warning: None,
        chosen: false,
    }
}

/// One column that went and one of the same type that came look like a rename.
fn renamed<'a>(dropped: &[&'a Field], added: &[&'a Column]) -> Option<(&'a str, &'a str)> {
    match (dropped, added) {
        ([from], [to]) if from.data_type() == to.field.data_type() => {
            Some((from.name(), to.name()))
        }
        _ => None,
    }
}

/// The error that stops the table. `evolves` tells that another policy would go on.
fn stopped(message: String, evolves: bool) -> Error {
    let anew = "reset the watermark (tidelake watermarks reset), so that the next sync exports the \
                table anew with its present columns";
    let hint = if evolves {
        format!(
            "{anew}; or let the lake follow: make the sync anew with --on-schema-drift evolve \
             (tidelake config delete, config create with the same --sync-id, then sync \
             --on-mismatch adopt)"
        )
    } else {
        format!("{anew}; or change the column back")
    };
    Error::new(ErrorKind::Data, message).with_hint(hint)
}

#[cfg(test)]
#[path = "drift_tests.rs"]
mod tests;
