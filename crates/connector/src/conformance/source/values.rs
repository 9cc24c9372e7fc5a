//! Values and names that are hard to carry.

use std::time::Duration;

use tidelake_model::{FenceMode, TableName, TableRead};
use tidelake_watermark::{Bound, Kind, Range, Value};

use super::SourceCase;
use crate::conformance::harness::{Failure, ensure, ensure_same};
use crate::conformance::subject::{Subject, tick};
use crate::conformance::{ColumnSpec, ColumnType, Need, Outcome, Row, SourceFixture, TableSpec};
use crate::source::{ClockRequest, Effort, FencePurpose, HighestRequest, LogPosition};

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("carries_and_finds_every_integer", Need::Nothing, |fixture| {
            Box::pin(each(fixture, "integers", ColumnType::Integer, Kind::Integer, &INTEGERS))
        }),
        case("carries_and_finds_every_number", Need::Nothing, |fixture| {
            let column = ColumnType::Number { precision: 22, scale: 2 };
            Box::pin(each(fixture, "numbers", column, Kind::Number, &NUMBERS))
        }),
        case("carries_and_finds_every_date", Need::Nothing, |fixture| {
            Box::pin(each(fixture, "dates", ColumnType::Date, Kind::Date, &DATES))
        }),
        case("carries_and_finds_every_naive_time", Need::Nothing, |fixture| {
            Box::pin(each(fixture, "naive", ColumnType::Datetime, Kind::Datetime, &TIMES))
        }),
        case("carries_and_finds_every_instant", Need::Nothing, |fixture| {
            Box::pin(each(fixture, "instants", ColumnType::Timestamp, Kind::Timestamp, &TIMES))
        }),
        case("carries_and_finds_every_text", Need::Nothing, |fixture| {
            Box::pin(each(fixture, "hard_texts", ColumnType::Text, Kind::Text, &TEXTS))
        }),
        case("carries_and_finds_every_byte", Need::Nothing, |fixture| {
            Box::pin(each(fixture, "bytes", ColumnType::Binary, Kind::Binary, &BYTES))
        }),
        case("odd_names_work_in_every_call", Need::Nothing, |fixture| Box::pin(odd(fixture))),
    ]
}

const INTEGERS: [&str; 5] = ["0", "-1", "42", "9223372036854775807", "-9223372036854775808"];
const NUMBERS: [&str; 6] = ["0.00", "0.01", "-0.07", "12345678901234567890.12", "-3.14", "2013.00"];
const DATES: [&str; 5] = ["1970-01-01", "0001-01-01", "9999-12-31", "2024-02-29", "1969-12-31"];
const TEXTS: [&str; 17] = [
    "",
    " ",
    "it's",
    "''",
    "'; DROP TABLE texts; --",
    r"back\slash",
    r"\",
    r"\'",
    "line\nbreak\r\ttab",
    "\"quoted\"",
    "$1 $$ $tag$",
    "%_?:name",
    "Grüße 名前 🌊",
    "e\u{301}",
    "NULL",
    "\u{202e}",
    "2026-11-30",
];
const BYTES: [&str; 6] = ["0x", "0x00", "0x27", "0x5C", "0xFF00FF", "0x00000000000007D1"];
/// Times at the ends of what most systems hold, and with every length of
/// fraction up to six.
const TIMES: [&str; 8] = [
    "1970-01-01T00:00:00",
    "1969-12-31T23:59:59.999999",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999",
    "2026-11-30T09:15:00.1",
    "2026-11-30T09:15:00.12345",
    "2026-11-30T09:15:00.123456",
    "2026-11-30T09:15:00.000001",
];

/// Each value comes back as it was, and a range of exactly that value finds the
/// row, so that literals are as exact as results are.
async fn each(
    fixture: &dyn SourceFixture,
    name: &str,
    column_type: ColumnType,
    kind: Kind,
    texts: &[&str],
) -> Outcome {
    let spec = TableSpec {
        name: TableName::new(fixture.schema(), name),
        columns: vec![
            ColumnSpec::new("id", ColumnType::Integer).key(0),
            ColumnSpec::new("value", column_type).indexed(),
        ],
    };
    let values: Result<Vec<_>, _> = texts.iter().map(|text| Value::parse(kind, text)).collect();
    let values = values?;
    let id = |id| Some(Value::Integer(id));
    let mut rows: Vec<Row> = vec![vec![id(0), None]];
    rows.extend((1..).zip(&values).map(|(number, value)| vec![id(number), Some(value.clone())]));
    let subject = Subject::make(fixture, spec, &rows).await?;
    let found = subject.read(&subject.whole(), 2).await?;
    for (found, wanted) in found.iter().zip(subject.wanted(&rows)?) {
        ensure_same("row", found, &wanted)?;
    }
    ensure_same("rows", &found.len(), &rows.len())?;
    if subject.table.column("value").is_none_or(|column| column.cursor.is_none()) {
        return Ok(());
    }
    for (number, value) in (1..).zip(values) {
        let bound = Some(Bound { at: subject.at("value", value)?, inclusive: true });
        let read = subject.by("value", Some(Range { low: bound.clone(), high: bound }))?;
        subject.gives(&read, 1, &[number]).await?;
    }
    Ok(())
}

/// Characters that end names, statements, patterns and paths somewhere.
const ODD: &str = "We\"ird 'Täble'.名:;%_$1--[x]`\\";

async fn odd(fixture: &dyn SourceFixture) -> Outcome {
    let (id, at) = ("Sel\"ect.Id:1", "ORDER by 'Zeit' ü");
    let spec = TableSpec {
        name: TableName::new(fixture.schema(), ODD),
        columns: vec![
            ColumnSpec::new(id, ColumnType::Integer).key(0),
            ColumnSpec::new(at, ColumnType::Timestamp).indexed(),
            ColumnSpec::new("user", ColumnType::Text),
            ColumnSpec::new("\"", ColumnType::Text),
        ],
    };
    let row = |id: i128, at: Option<i128>| -> Row {
        vec![Some(Value::Integer(id)), at.map(tick), None, Some(Value::Text("\"".to_owned()))]
    };
    let rows = [row(1, Some(1)), row(2, Some(2)), row(3, None)];
    let subject = Subject::make(fixture, spec, &rows).await?;
    ensure_same("key", &subject.table.key(), &vec![id.to_owned()])?;
    let found = subject.read(&subject.whole(), 2).await?;
    ensure_same("rows", &found, &subject.wanted(&rows)?)?;

    let bound = Some(Bound { at: subject.at(at, tick(1))?, inclusive: false });
    let read = subject.by(at, Some(Range { low: bound, high: None }))?;
    let asked = TableRead { null_cursors: true, ..read.clone() };
    subject.gives(&read, 2, &[2]).await?;
    subject.gives(&asked, 2, &[2, 3]).await?;
    let slices = subject.split(&read, 1).await?;
    for slice in &slices.slices {
        let statement = subject.source.statement(slice);
        ensure(!statement.is_empty(), || "an empty statement".to_owned())?;
    }

    let table = subject.table.name.clone();
    let cursor = read.cursor.ok_or_else(|| Failure::new("no cursor"))?;
    let count = read.range;
    let effort = Effort::Scan;
    let highest = HighestRequest { table, cursor, effort, count, count_nulls: true };
    let highest = subject.source.highest(&highest).await?;
    ensure_same("highest", &highest.value, &Some(Some(subject.at(at, tick(2))?)))?;
    for purpose in [FencePurpose::None, FencePurpose::Time, FencePurpose::Identifier] {
        let request = ClockRequest {
            table: subject.table.name.clone(),
            purpose,
            mode: FenceMode::Auto,
            wait: Duration::ZERO,
            ignore_users: vec!["no 'such' \"user\"".to_owned()],
            log: LogPosition::Unasked,
        };
        subject.source.clock(&request).await?;
    }
    Ok(())
}
