//! Which rows a range takes.

use tidelake_model::{ErrorKind, TableRead};
use tidelake_watermark::{Bound, Range, Value};

use super::SourceCase;
use crate::conformance::harness::{Failure, ensure_same};
use crate::conformance::subject::Subject;
use crate::conformance::{Need, Outcome, SourceFixture};
use crate::source::SplitRequest;

/// Ticks of the rows 1 to 7: there are ties at 2 and at 4.
const TICKS: [Option<i128>; 7] = [Some(1), Some(2), Some(2), Some(3), Some(4), Some(4), Some(5)];
/// The same with NULLs: the rows 2 and 5.
const GAPS: [Option<i128>; 6] = [Some(1), None, Some(2), Some(3), None, Some(4)];

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("reads_nothing_at_the_low_bound", Need::Nothing, |fixture| {
            Box::pin(window(fixture, "low_bound", (2, false), (3, true), &[4]))
        }),
        case("reads_every_tie_at_the_high_bound", Need::Nothing, |fixture| {
            Box::pin(window(fixture, "high_bound", (3, false), (4, true), &[5, 6]))
        }),
        case("reads_the_low_bound_in_the_other_direction", Need::Nothing, |fixture| {
            Box::pin(window(fixture, "low_reverse", (2, true), (3, false), &[2, 3]))
        }),
        case("reads_nothing_at_the_high_bound_in_the_other_direction", Need::Nothing, |fixture| {
            Box::pin(window(fixture, "high_reverse", (3, true), (4, false), &[4]))
        }),
        case("reads_one_value_between_equal_bounds", Need::Nothing, |fixture| {
            Box::pin(window(fixture, "equal", (4, true), (4, true), &[5, 6]))
        }),
        case("reads_nothing_in_an_empty_range", Need::Nothing, |fixture| {
            Box::pin(window(fixture, "empty_range", (4, false), (4, true), &[]))
        }),
        case("reads_ranges_that_are_open_at_an_end", Need::Nothing, |fixture| {
            Box::pin(open_ends(fixture))
        }),
        case("reads_by_a_number", Need::Nothing, |fixture| Box::pin(by_number(fixture))),
        case("reads_null_cursors_once_when_asked_and_never_else", Need::Nothing, |fixture| {
            Box::pin(nulls(fixture))
        }),
        case("reads_every_row_without_a_cursor", Need::Nothing, |fixture| {
            Box::pin(no_cursor(fixture))
        }),
        case("refuses_a_range_that_no_cursor_can_meet", Need::Nothing, |fixture| {
            Box::pin(refusals(fixture))
        }),
    ]
}

async fn window(
    fixture: &dyn SourceFixture,
    name: &str,
    (low, low_inclusive): (i128, bool),
    (high, high_inclusive): (i128, bool),
    ids: &[i128],
) -> Outcome {
    let subject = Subject::stamped(fixture, name, &TICKS).await?;
    let low = subject.bound(low, low_inclusive)?;
    let high = subject.bound(high, high_inclusive)?;
    let read = subject.by("changed_at", Some(Range { low, high }))?;
    subject.gives(&read, 1, ids).await?;
    subject.gives(&read, 3, ids).await
}

async fn open_ends(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "open_ends", &TICKS).await?;
    let above = Range { low: subject.bound(3, false)?, high: None };
    let from = Range { low: subject.bound(3, true)?, high: None };
    let below = Range { low: None, high: subject.bound(2, false)? };
    let up_to = Range { low: None, high: subject.bound(2, true)? };
    let expected: [(Range, &[i128]); 5] = [
        (above, &[5, 6, 7]),
        (from, &[4, 5, 6, 7]),
        (below, &[1]),
        (up_to, &[1, 2, 3]),
        (Range::default(), &[1, 2, 3, 4, 5, 6, 7]),
    ];
    for (range, ids) in expected {
        subject.gives(&subject.by("changed_at", Some(range))?, 2, ids).await?;
    }
    Ok(())
}

async fn by_number(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "by_number", &TICKS).await?;
    let bound = |id, inclusive| {
        Outcome::Ok(Some(Bound { at: subject.at("id", Value::Integer(id))?, inclusive }))
    };
    let range = Range { low: bound(2, false)?, high: bound(5, true)? };
    subject.gives(&subject.by("id", Some(range))?, 2, &[3, 4, 5]).await
}

async fn nulls(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "nulls", &GAPS).await?;
    let above = Range { low: subject.bound(1, false)?, high: None };
    let below = Range { low: None, high: subject.bound(3, true)? };
    let expected: [(Option<Range>, &[i128], &[i128]); 5] = [
        (None, &[1, 3, 4, 6], &[1, 2, 3, 4, 5, 6]),
        (Some(Range::default()), &[1, 3, 4, 6], &[1, 2, 3, 4, 5, 6]),
        (subject.window(1, 3)?, &[3, 4], &[2, 3, 4, 5]),
        (Some(above), &[3, 4, 6], &[2, 3, 4, 5, 6]),
        (Some(below), &[1, 3, 4], &[1, 2, 3, 4, 5]),
    ];
    for (range, without, with) in expected {
        let read = subject.by("changed_at", range)?;
        let asked = TableRead { null_cursors: true, ..read.clone() };
        for degree in [1, 3] {
            subject.gives(&read, degree, without).await?;
            subject.gives(&asked, degree, with).await?;
        }
    }
    Ok(())
}

async fn no_cursor(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "no_cursor", &GAPS).await?;
    subject.gives(&subject.whole(), 1, &[1, 2, 3, 4, 5, 6]).await?;
    subject.gives(&subject.whole(), 3, &[1, 2, 3, 4, 5, 6]).await
}

async fn refusals(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "refusals", &TICKS).await?;
    let range = subject.window(1, 3)?;
    let without_cursor = TableRead { range, ..subject.whole() };
    let by_number = subject.by("id", subject.window(1, 3)?)?;
    for read in [without_cursor, by_number] {
        let request = SplitRequest { read, degree: 1, method: Default::default(), key: None };
        match subject.source.split(&request).await {
            Ok(_) => return Err(Failure::new("a meaningless range was accepted")),
            Err(error) => ensure_same("kind of error", &error.kind(), &ErrorKind::Internal)?,
        }
    }
    Ok(())
}
