//! Cursors of several columns, and of text.

use std::collections::BTreeSet;

use tidelake_model::{TableName, TableRead};
use tidelake_watermark::{Bound, Cursor, Position, Range, Value};

use super::SourceCase;
use crate::conformance::harness::{Failure, ensure_same};
use crate::conformance::subject::{Subject, first, stamped, tick};
use crate::conformance::{ColumnSpec, ColumnType, Need, Outcome, Row, SourceFixture, TableSpec};
use crate::source::{Effort, HighestRequest};

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("a_fallback_cursor_takes_the_first_value_there_is", Need::FallbackCursor, |fixture| {
            Box::pin(fallback(fixture))
        }),
        case("a_composite_cursor_compares_as_a_tuple", Need::CompositeCursor, |fixture| {
            Box::pin(composite(fixture))
        }),
        case("text_is_compared_by_the_source_alone", Need::Nothing, |fixture| {
            Box::pin(text(fixture))
        }),
    ]
}

async fn fallback(fixture: &dyn SourceFixture) -> Outcome {
    let mut spec = stamped(fixture, "fallback");
    spec.columns.push(ColumnSpec::new("created_at", ColumnType::Timestamp));
    let row = |id, changed: Option<i128>, created: Option<i128>| -> Row {
        vec![Some(Value::Integer(id)), changed.map(tick), None, created.map(tick)]
    };
    let rows = [
        row(1, Some(5), Some(1)),
        row(2, None, Some(2)),
        row(3, None, Some(6)),
        row(4, Some(3), None),
        row(5, None, None),
    ];
    let subject = Subject::make(fixture, spec, &rows).await?;
    let columns = vec!["changed_at".to_owned(), "created_at".to_owned()];
    let cursor = subject.cursor(Cursor::Fallback(columns))?;
    let range = subject.window(2, 5)?;
    let read = TableRead { cursor: Some(cursor.clone()), range, ..subject.whole() };
    let asked = TableRead { null_cursors: true, ..read.clone() };
    let open = TableRead { range: None, ..read.clone() };
    for degree in [1, 2] {
        subject.gives(&read, degree, &[1, 4]).await?;
        subject.gives(&asked, degree, &[1, 4, 5]).await?;
        subject.gives(&open, degree, &[1, 2, 3, 4]).await?;
    }
    let highest = highest(&subject, &read).await?;
    ensure_same("highest", &highest, &Some(subject.at("changed_at", tick(6))?))
}

async fn composite(fixture: &dyn SourceFixture) -> Outcome {
    let mut spec = stamped(fixture, "composite");
    spec.columns.push(ColumnSpec::new("part", ColumnType::Integer));
    let row = |id, at: Option<i128>, part: Option<i128>| -> Row {
        vec![Some(Value::Integer(id)), at.map(tick), None, part.map(Value::Integer)]
    };
    let rows = [
        row(1, Some(1), Some(9)),
        row(2, Some(2), Some(1)),
        row(3, Some(2), Some(2)),
        row(4, Some(2), Some(3)),
        row(5, Some(3), Some(1)),
        row(6, Some(3), Some(2)),
        row(7, Some(2), None),
        row(8, None, Some(2)),
    ];
    let subject = Subject::make(fixture, spec, &rows).await?;
    let cursor = subject.cursor(Cursor::Composite(vec!["changed_at".into(), "part".into()]))?;
    let bound = |at: i128, part: i128, inclusive| {
        let first = subject.at("changed_at", tick(at))?.first().clone();
        let second = subject.at("part", Value::Integer(part))?.first().clone();
        let at = Position::tuple([first, second]).ok_or_else(|| Failure::new("no tuple"))?;
        Outcome::Ok(Some(Bound { at, inclusive }))
    };
    let expected: [(Range, &[i128]); 4] = [
        (Range { low: bound(2, 1, false)?, high: bound(3, 1, true)? }, &[3, 4, 5]),
        (Range { low: bound(2, 1, true)?, high: bound(3, 1, false)? }, &[2, 3, 4]),
        (Range { low: bound(1, 9, false)?, high: None }, &[2, 3, 4, 5, 6]),
        (Range { low: None, high: bound(2, 2, true)? }, &[1, 2, 3]),
    ];
    for (range, ids) in expected {
        let read =
            TableRead { cursor: Some(cursor.clone()), range: Some(range), ..subject.whole() };
        subject.gives(&read, 2, ids).await?;
        // A tuple with a NULL in it is a NULL cursor, whichever part it is.
        let asked = TableRead { null_cursors: true, ..read };
        let with: Vec<_> = ids.iter().copied().chain([7, 8]).collect();
        subject.gives(&asked, 2, &with).await?;
    }
    let read = TableRead { cursor: Some(cursor), ..subject.whole() };
    let highest = highest(&subject, &read).await?;
    ensure_same("highest", &highest, &bound(3, 2, true)?.map(|bound| bound.at))
}

async fn highest(subject: &Subject, read: &TableRead) -> Outcome<Option<Position>> {
    let request = HighestRequest {
        table: read.table.clone(),
        cursor: read.cursor.clone().ok_or_else(|| Failure::new("no cursor"))?,
        effort: Effort::Scan,
        count: None,
        count_nulls: false,
    };
    let highest = subject.source.highest(&request).await?;
    highest.value.ok_or_else(|| Failure::new("a scan did not give the highest value"))
}

/// Only the source knows the order of text, so the case asks for nothing but
/// that it has one: at every value the rows fall into those up to it and those
/// above it, and up to the highest value there are all of them.
async fn text(fixture: &dyn SourceFixture) -> Outcome {
    let texts = ["b", "a", "B", "A", "ä", "", "a b", "a-b", "10", "9", "_", "it's", "b"];
    let spec = TableSpec {
        name: TableName::new(fixture.schema(), "texts"),
        columns: vec![
            ColumnSpec::new("id", ColumnType::Integer).key(0),
            ColumnSpec::new("code", ColumnType::Text).indexed(),
        ],
    };
    let rows: Vec<Row> = (1..)
        .zip(texts)
        .map(|(id, text)| vec![Some(Value::Integer(id)), Some(Value::Text(text.to_owned()))])
        .collect();
    let subject = Subject::make(fixture, spec, &rows).await?;
    let ids = |range| {
        let subject = &subject;
        async move {
            let read = subject.by("code", Some(range))?;
            let rows = subject.read(&read, 2).await?;
            Outcome::Ok(rows.iter().filter_map(first).collect::<BTreeSet<_>>())
        }
    };
    let all: BTreeSet<i128> = (1..).zip(texts).map(|(id, _)| id).collect();
    for (id, text) in (1..).zip(texts) {
        let at = subject.at("code", Value::Text(text.to_owned()))?;
        let bound = Some(Bound { at, inclusive: true });
        let above = bound.clone().map(|bound| Bound { inclusive: false, ..bound });
        let up_to = ids(Range { low: None, high: bound.clone() }).await?;
        let above = ids(Range { low: above, high: None }).await?;
        ensure_same(&format!("rows in both of {text:?}"), &up_to.intersection(&above).count(), &0)?;
        let both: BTreeSet<_> = up_to.union(&above).copied().collect();
        ensure_same(&format!("rows around {text:?}"), &both, &all)?;
        let equal = ids(Range { low: bound.clone(), high: bound }).await?;
        ensure_same(&format!("row {id} at {text:?}"), &equal.contains(&id), &true)?;
    }
    let read = subject.by("code", None)?;
    let highest = highest(&subject, &read).await?.ok_or_else(|| Failure::new("no highest"))?;
    let bound = Some(Bound { at: highest.clone(), inclusive: true });
    let up_to = ids(Range { low: None, high: bound.clone() }).await?;
    ensure_same("rows up to the highest", &up_to, &all)?;
    let above = bound.map(|bound| Bound { inclusive: false, ..bound });
    let above = ids(Range { low: above, high: None }).await?;
    ensure_same("rows above the highest", &above, &BTreeSet::new())
}
