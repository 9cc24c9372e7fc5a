//! What the cases of a source share: a table under test and ways to read it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use tidelake_model::{CursorRead, Policies, ReadMethod, Slice, Table, TableName, TableRead};
use tidelake_watermark::{Bound, Cursor, Decimal, Kind, Position, Range, Value};

use super::harness::{ensure, ensure_same};
use super::{ColumnSpec, ColumnType, Failure, Outcome, Row, SourceFixture, TableSpec};
use crate::extent::value_at;
use crate::source::{Slices, Source, SplitRequest, TableFilter};

/// 2026-11-30T09:15:00.123456Z. Ticks are microseconds from here, so that
/// fractions of five and six digits are among them.
const BASE: i128 = 1_796_030_100_123_456_000;

/// An instant that many microseconds after the base.
pub(super) fn tick(count: i128) -> Value {
    Value::Timestamp(BASE + count * 1_000)
}

/// A row of a [`stamped`] table.
pub(super) fn row(id: i128, at: impl Into<Option<i128>>) -> Row {
    let note = Value::Text(format!("row {id}"));
    vec![Some(Value::Integer(id)), at.into().map(tick), Some(note)]
}

/// Rows numbered from 1.
pub(super) fn numbered(ticks: &[Option<i128>]) -> Vec<Row> {
    (1..).zip(ticks).map(|(id, at)| row(id, *at)).collect()
}

/// A table of `id`, `changed_at` (may be NULL) and `note`.
pub(super) fn stamped(fixture: &dyn SourceFixture, name: &str) -> TableSpec {
    TableSpec {
        name: TableName::new(fixture.schema(), name),
        columns: vec![
            ColumnSpec::new("id", ColumnType::Integer).key(0),
            ColumnSpec::new("changed_at", ColumnType::Timestamp).indexed(),
            ColumnSpec::new("note", ColumnType::Text),
        ],
    }
}

/// The value in another kind that the catalogue gave to its column.
fn as_kind(value: Value, kind: Kind) -> Value {
    match (value, kind) {
        (Value::Timestamp(nanos), Kind::Datetime) => Value::Datetime(nanos),
        (Value::Datetime(nanos), Kind::Timestamp) => Value::Timestamp(nanos),
        (Value::Integer(number), Kind::Number) => {
            Decimal::parse(&number.to_string()).map_or(Value::Integer(number), Value::Number)
        }
        (value, _) => value,
    }
}

/// A filter for exactly one table: patterns with everything escaped.
pub(super) fn exactly(name: &TableName) -> TableFilter {
    let escape = |text: &str| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    TableFilter {
        schemas: vec![escape(&name.schema)],
        include: vec![escape(&name.table)],
        exclude: vec![],
    }
}

/// A table under test, as the source's catalogue describes it.
pub(super) struct Subject {
    pub(super) source: Arc<dyn Source>,
    pub(super) spec: TableSpec,
    pub(super) table: Table,
}

impl Subject {
    /// Makes the table, fills it, and looks it up.
    pub(super) async fn make(
        fixture: &dyn SourceFixture,
        spec: TableSpec,
        rows: &[Row],
    ) -> Outcome<Self> {
        fixture.create_table(&spec).await?;
        if !rows.is_empty() {
            fixture.insert(&spec, rows).await?;
        }
        let source = fixture.source();
        let mut found = source.tables(&exactly(&spec.name)).await?;
        ensure(found.len() == 1, || format!("{} tables are {}", found.len(), spec.name))?;
        let table = found.pop().ok_or_else(|| Failure::new("no table"))?;
        Ok(Self { source, spec, table })
    }

    /// A [`stamped`] table whose rows are numbered from 1.
    pub(super) async fn stamped(
        fixture: &dyn SourceFixture,
        name: &str,
        ticks: &[Option<i128>],
    ) -> Outcome<Self> {
        Self::make(fixture, stamped(fixture, name), &numbered(ticks)).await
    }

    /// A read of all rows and columns.
    pub(super) fn whole(&self) -> TableRead {
        TableRead {
            table: self.table.name.clone(),
            columns: self.table.columns.clone(),
            cursor: None,
            range: None,
            null_cursors: false,
            policies: Policies::default(),
            batch_bytes: 1 << 20,
        }
    }

    /// The kind that the catalogue gives to a column, else the one it was made
    /// with.
    pub(super) fn kind(&self, name: &str) -> Outcome<Kind> {
        let column = self.table.column(name);
        let found = column.and_then(|column| column.cursor).map(|cursor| cursor.kind);
        let made = self.spec.columns.iter().find(|column| column.name == name);
        found
            .or(made.and_then(|column| column.column_type.kind()))
            .ok_or_else(|| Failure::new(format!("column {name:?} has no kind")))
    }

    pub(super) fn cursor(&self, cursor: Cursor) -> Outcome<CursorRead> {
        let mut kinds = cursor.columns().iter().map(|name| self.kind(name));
        let kinds = match cursor {
            Cursor::Composite(_) => kinds.collect::<Outcome<Vec<_>>>()?,
            _ => kinds.next().into_iter().collect::<Outcome<Vec<_>>>()?,
        };
        Ok(CursorRead { cursor, kinds })
    }

    /// A read by a cursor of one column.
    pub(super) fn by(&self, column: &str, range: Option<Range>) -> Outcome<TableRead> {
        let cursor = self.cursor(Cursor::Single(column.to_owned()))?;
        Ok(TableRead { cursor: Some(cursor), range, ..self.whole() })
    }

    /// A position of a cursor of one column.
    pub(super) fn at(&self, column: &str, value: Value) -> Outcome<Position> {
        Ok(as_kind(value, self.kind(column)?).into())
    }

    /// One end of a range of `changed_at`.
    pub(super) fn bound(&self, count: i128, inclusive: bool) -> Outcome<Option<Bound>> {
        Ok(Some(Bound { at: self.at("changed_at", tick(count))?, inclusive }))
    }

    /// `(low, high]` of `changed_at`.
    pub(super) fn window(&self, low: i128, high: i128) -> Outcome<Option<Range>> {
        Ok(Some(Range { low: self.bound(low, false)?, high: self.bound(high, true)? }))
    }

    pub(super) async fn split(&self, read: &TableRead, degree: u32) -> Outcome<Slices> {
        self.split_by(read, degree, ReadMethod::Auto, None).await
    }

    /// Splits, and checks what holds for every split.
    pub(super) async fn split_by(
        &self,
        read: &TableRead,
        degree: u32,
        method: ReadMethod,
        key: Option<&str>,
    ) -> Outcome<Slices> {
        let key = key.map(ToOwned::to_owned);
        let request = SplitRequest { read: read.clone(), degree, method, key };
        let mut slices = self.source.split(&request).await?;
        let count = u32::try_from(slices.slices.len())?;
        ensure(count <= degree.max(1), || format!("{count} slices for degree {degree}"))?;
        for (number, slice) in (0..).zip(&mut slices.slices) {
            ensure_same("number of the slice", &slice.number, &number)?;
            ensure(slice.read == *read, || "a slice reads something else".to_owned())?;
            // Slices travel: what arrives is what was written down.
            *slice = serde_json::from_str::<Slice>(&serde_json::to_string(slice)?)?;
        }
        Ok(slices)
    }

    /// The batches of a slice, each of exactly the schema of the read.
    pub(super) async fn batches(&self, slice: &Slice) -> Outcome<Vec<RecordBatch>> {
        let reading = self.source.read(slice).await?;
        let schema = slice.read.schema();
        ensure_same("schema of the reading", &reading.schema, &schema)?;
        let batches: Vec<RecordBatch> = reading.batches.try_collect().await?;
        for batch in &batches {
            ensure_same("schema of a batch", &batch.schema(), &schema)?;
        }
        Ok(batches)
    }

    /// The rows of a batch, in the kinds that the catalogue gave.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Outcome<Vec<Row>> {
        let schema = batch.schema();
        (0..batch.num_rows())
            .map(|row| {
                let columns = schema.fields().iter().zip(batch.columns());
                columns
                    .map(|(field, column)| {
                        if column.is_null(row) {
                            return Ok(None);
                        }
                        Ok(Some(value_at(column, row, self.kind(field.name())?)?))
                    })
                    .collect()
            })
            .collect()
    }

    /// All rows of some slices, in the order of their first column.
    pub(super) async fn collect(&self, slices: &Slices) -> Outcome<Vec<Row>> {
        let mut rows = vec![];
        for slice in &slices.slices {
            for batch in self.batches(slice).await? {
                rows.extend(self.rows(&batch)?);
            }
        }
        rows.sort_by_key(first);
        Ok(rows)
    }

    /// What a read gives in slices of that degree.
    pub(super) async fn read(&self, read: &TableRead, degree: u32) -> Outcome<Vec<Row>> {
        let slices = self.split(read, degree).await?;
        self.collect(&slices).await
    }

    /// Checks that a read gives the rows of these ids, each once.
    pub(super) async fn gives(&self, read: &TableRead, degree: u32, ids: &[i128]) -> Outcome {
        let found: Vec<_> = self.read(read, degree).await?.iter().map(first).collect();
        let wanted: Vec<_> = ids.iter().copied().map(Some).collect();
        ensure_same(&format!("ids at degree {degree}"), &found, &wanted)
    }

    /// Rows as they were inserted, in the kinds that the catalogue gave.
    pub(super) fn wanted(&self, rows: &[Row]) -> Outcome<Vec<Row>> {
        let convert = |row: &Row| {
            let cells = row.iter().cloned().zip(&self.spec.columns);
            cells
                .map(|(cell, column)| match cell {
                    None => Ok(None),
                    Some(value) => Ok(Some(as_kind(value, self.kind(&column.name)?))),
                })
                .collect::<Outcome<Row>>()
        };
        rows.iter().map(convert).collect()
    }
}

/// The number in the first column.
pub(super) fn first(row: &Row) -> Option<i128> {
    match row.first() {
        Some(Some(Value::Integer(number))) => Some(*number),
        _ => None,
    }
}
