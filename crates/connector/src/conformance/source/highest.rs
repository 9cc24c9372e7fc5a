//! The highest value of a cursor.

use tidelake_watermark::{Range, Value};

use super::SourceCase;
use crate::conformance::harness::{ensure, ensure_same};
use crate::conformance::subject::{Subject, tick};
use crate::conformance::{Need, Outcome, SourceFixture};
use crate::source::{Effort, Highest, HighestRequest};

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("the_highest_of_an_empty_table_is_nothing", Need::Nothing, |fixture| {
            Box::pin(nothing(fixture, "highest_empty", &[]))
        }),
        case("the_highest_of_nulls_is_nothing", Need::Nothing, |fixture| {
            Box::pin(nothing(fixture, "highest_nulls", &[None, None]))
        }),
        case("the_highest_is_the_highest_committed_value", Need::Nothing, |fixture| {
            Box::pin(highest_value(fixture))
        }),
        case("counts_are_right_where_they_are_given", Need::Nothing, |fixture| {
            Box::pin(counts(fixture))
        }),
        case("a_row_is_not_seen_before_it_is_committed", Need::LateCommits, |fixture| {
            Box::pin(uncommitted(fixture))
        }),
    ]
}

async fn ask(
    subject: &Subject,
    column: &str,
    effort: Effort,
    count: Option<Range>,
) -> Outcome<Highest> {
    let cursor = subject.by(column, None)?.cursor;
    let cursor = cursor.ok_or_else(|| crate::conformance::Failure::new("no cursor"))?;
    let table = subject.table.name.clone();
    let request = HighestRequest { table, cursor, effort, count, count_nulls: true };
    Ok(subject.source.highest(&request).await?)
}

async fn nothing(fixture: &dyn SourceFixture, name: &str, ticks: &[Option<i128>]) -> Outcome {
    let subject = Subject::stamped(fixture, name, ticks).await?;
    let scanned = ask(&subject, "changed_at", Effort::Scan, None).await?;
    ensure_same("value by a scan", &scanned.value, &Some(None))?;
    let cheap = ask(&subject, "changed_at", Effort::Cheap, None).await?;
    let fits = cheap.value.as_ref().is_none_or(Option::is_none);
    ensure(fits, || format!("value at low cost: {:?}", cheap.value))
}

async fn highest_value(fixture: &dyn SourceFixture) -> Outcome {
    // More than nine rows: as text, 9 is above 11.
    let mut ticks = vec![Some(3), None, Some(9), Some(9), Some(-4)];
    ticks.resize(11, Some(0));
    let subject = Subject::stamped(fixture, "highest", &ticks).await?;
    let wanted = [
        ("changed_at", subject.at("changed_at", tick(9))?),
        ("id", subject.at("id", Value::Integer(11))?),
    ];
    for (column, wanted) in wanted {
        let scanned = ask(&subject, column, Effort::Scan, None).await?;
        ensure_same(column, &scanned.value, &Some(Some(wanted.clone())))?;
        let cheap = ask(&subject, column, Effort::Cheap, None).await?;
        let fits = cheap.value.as_ref().is_none_or(|value| *value == Some(wanted));
        ensure(fits, || format!("{column} at low cost: {:?}", cheap.value))?;
    }
    Ok(())
}

async fn counts(fixture: &dyn SourceFixture) -> Outcome {
    let ticks = [Some(1), None, Some(2), Some(2), Some(3), None, Some(4)];
    let subject = Subject::stamped(fixture, "counts", &ticks).await?;
    let range = subject.window(1, 3)?;
    for effort in [Effort::Cheap, Effort::Scan] {
        let found = ask(&subject, "changed_at", effort, range.clone()).await?;
        ensure(found.rows.is_none_or(|rows| rows == 3), || format!("rows: {:?}", found.rows))?;
        ensure(found.nulls.is_none_or(|nulls| nulls == 2), || format!("nulls: {:?}", found.nulls))?;
    }
    Ok(())
}

async fn uncommitted(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "uncommitted", &[Some(1)]).await?;
    let read = subject.by("changed_at", None)?;
    let late = crate::conformance::subject::row(2, 2);
    let mut transaction = fixture.begin().await?;
    transaction.insert(&subject.spec, std::slice::from_ref(&late)).await?;
    subject.gives(&read, 2, &[1]).await?;
    let before = ask(&subject, "changed_at", Effort::Scan, None).await?;
    ensure_same("before", &before.value, &Some(Some(subject.at("changed_at", tick(1))?)))?;
    transaction.rollback().await?;
    subject.gives(&read, 2, &[1]).await?;
    let mut transaction = fixture.begin().await?;
    transaction.insert(&subject.spec, &[late]).await?;
    transaction.commit().await?;
    subject.gives(&read, 2, &[1, 2]).await?;
    let after = ask(&subject, "changed_at", Effort::Scan, None).await?;
    ensure_same("after", &after.value, &Some(Some(subject.at("changed_at", tick(2))?)))
}
