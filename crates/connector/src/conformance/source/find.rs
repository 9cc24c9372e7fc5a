//! Rows by their keys.

use futures::TryStreamExt;
use tidelake_model::{ErrorKind, TableName, TableRead};
use tidelake_watermark::{Kind, Value};

use super::SourceCase;
use crate::conformance::harness::{ensure, ensure_same};
use crate::conformance::subject::{Subject, first, tick};
use crate::conformance::{ColumnSpec, ColumnType, Need, Outcome, Row, SourceFixture, TableSpec};
use crate::source::FindRequest;

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("finds_rows_by_a_key_of_one_column", Need::Nothing, |fixture| {
            Box::pin(by_one(fixture))
        }),
        case("finds_rows_by_several_columns_and_by_null", Need::Nothing, |fixture| {
            Box::pin(by_several(fixture))
        }),
        case("finds_every_kind_of_key", Need::Nothing, |fixture| Box::pin(every_kind(fixture))),
        case("finds_nothing_for_hostile_keys", Need::Nothing, |fixture| Box::pin(hostile(fixture))),
        case("names_a_value_that_does_not_fit_its_column", Need::Nothing, |fixture| {
            Box::pin(misfit(fixture))
        }),
        case("sees_the_newest_rows_when_it_looks_up", Need::Nothing, |fixture| {
            Box::pin(newest(fixture))
        }),
    ]
}

type Key<'a> = Vec<Option<&'a str>>;

/// What a look-up gives, in the order of the first column.
async fn found(
    subject: &Subject,
    read: TableRead,
    key: &[&str],
    values: &[Key<'_>],
) -> Outcome<Vec<Row>> {
    let schema = read.schema();
    let request = FindRequest {
        read,
        key: key.iter().map(|name| (*name).to_owned()).collect(),
        values: values
            .iter()
            .map(|row| row.iter().map(|value| value.map(str::to_owned)).collect())
            .collect(),
    };
    let reading = subject.source.find(&request).await?;
    ensure_same("schema of the reading", &reading.schema, &schema)?;
    let batches: Vec<_> = reading.batches.try_collect().await?;
    let mut rows = vec![];
    for batch in &batches {
        ensure_same("schema of a batch", &batch.schema(), &schema)?;
        rows.extend(subject.rows(batch)?);
    }
    rows.sort_by_key(first);
    Ok(rows)
}

async fn ids(subject: &Subject, key: &[&str], values: &[Key<'_>]) -> Outcome<Vec<Option<i128>>> {
    Ok(found(subject, subject.whole(), key, values).await?.iter().map(first).collect())
}

async fn by_one(fixture: &dyn SourceFixture) -> Outcome {
    let ticks: Vec<_> = (1..=20).map(Some).collect();
    let subject = Subject::stamped(fixture, "found", &ticks).await?;
    let wanted = [vec![Some("3")], vec![Some("17")], vec![Some("99")], vec![Some("-1")]];
    ensure_same("ids", &ids(&subject, &["id"], &wanted).await?, &vec![Some(3), Some(17)])?;
    ensure_same("ids", &ids(&subject, &["id"], &[]).await?, &vec![])?;
    // Only the columns that are asked for, whatever range the read has.
    let read = subject.by("changed_at", subject.window(1, 2)?)?;
    let columns = read.columns.iter().filter(|column| column.name() != "note").cloned().collect();
    let rows = found(&subject, TableRead { columns, ..read }, &["id"], &[vec![Some("5")]]).await?;
    let wanted = subject.wanted(&[vec![Some(Value::Integer(5)), Some(tick(5))]])?;
    ensure_same("rows", &rows, &wanted)
}

async fn by_several(fixture: &dyn SourceFixture) -> Outcome {
    let spec = TableSpec {
        name: TableName::new(fixture.schema(), "found_by_two"),
        columns: vec![
            ColumnSpec::new("id", ColumnType::Integer).key(0),
            ColumnSpec::new("shop", ColumnType::Text),
            ColumnSpec::new("number", ColumnType::Integer),
        ],
    };
    let row = |id: i128, shop: Option<&str>, number: Option<i128>| -> Row {
        let shop = shop.map(|shop| Value::Text(shop.to_owned()));
        vec![Some(Value::Integer(id)), shop, number.map(Value::Integer)]
    };
    let rows = [
        row(1, Some("north"), Some(1)),
        row(2, Some("north"), Some(2)),
        row(3, Some("south"), Some(1)),
        row(4, None, Some(1)),
        row(5, Some("south"), None),
        row(6, Some(""), Some(1)),
        // Two rows of one key are both found.
        row(7, Some("north"), Some(1)),
    ];
    let subject = Subject::make(fixture, spec, &rows).await?;
    let key = ["shop", "number"];
    for (values, wanted) in [
        (vec![vec![Some("north"), Some("1")]], vec![1, 7]),
        (vec![vec![Some("north"), Some("2")], vec![Some("south"), Some("1")]], vec![2, 3]),
        (vec![vec![None, Some("1")]], vec![4]),
        (vec![vec![Some("south"), None]], vec![5]),
        (vec![vec![Some(""), Some("1")]], vec![6]),
        (vec![vec![None, None]], vec![]),
    ] {
        let wanted: Vec<_> = wanted.into_iter().map(Some).collect();
        ensure_same(&format!("ids of {values:?}"), &ids(&subject, &key, &values).await?, &wanted)?;
    }
    // The key's columns need not be among those that are read.
    let columns: Vec<_> = subject.table.columns.iter().take(1).cloned().collect();
    let read = TableRead { columns, ..subject.whole() };
    let rows = found(&subject, read, &key, &[vec![Some("south"), Some("1")]]).await?;
    ensure_same("rows", &rows, &vec![vec![Some(Value::Integer(3))]])
}

/// One value of each kind, in canonical text.
const KINDS: [(&str, ColumnType, Kind, &str); 6] = [
    ("a_number", ColumnType::Number { precision: 20, scale: 2 }, Kind::Number, "-1234567.89"),
    ("a_text", ColumnType::Text, Kind::Text, "Grüße, 'it''s'; 🌊"),
    ("a_date", ColumnType::Date, Kind::Date, "2024-02-29"),
    ("a_naive_time", ColumnType::Datetime, Kind::Datetime, "2026-11-30T09:15:00.123456"),
    ("an_instant", ColumnType::Timestamp, Kind::Timestamp, "2026-11-30T09:15:00.12Z"),
    ("an_integer", ColumnType::Integer, Kind::Integer, "-9223372036854775808"),
];

async fn every_kind(fixture: &dyn SourceFixture) -> Outcome {
    let mut columns = vec![ColumnSpec::new("id", ColumnType::Integer).key(0)];
    columns.extend(KINDS.iter().map(|(name, column, ..)| ColumnSpec::new(name, *column)));
    let spec = TableSpec { name: TableName::new(fixture.schema(), "found_by_kind"), columns };
    let mut full = vec![Some(Value::Integer(1))];
    for (_, _, kind, text) in KINDS {
        full.push(Some(Value::parse(kind, text)?));
    }
    let mut empty: Row = vec![None; full.len()];
    if let Some(id) = empty.first_mut() {
        *id = Some(Value::Integer(2));
    }
    let subject = Subject::make(fixture, spec, &[full, empty]).await?;
    for (name, _, _, text) in KINDS {
        let is_found = ids(&subject, &[name], &[vec![Some(text)]]).await?;
        ensure_same(&format!("ids by {name}"), &is_found, &vec![Some(1)])?;
        let nulls = ids(&subject, &[name], &[vec![None]]).await?;
        ensure_same(&format!("ids by {name} of NULL"), &nulls, &vec![Some(2)])?;
    }
    Ok(())
}

/// Texts that end a literal somewhere.
const HOSTILE: [&str; 8] = [
    "' OR '1'='1",
    "'; DROP TABLE found_by_text; --",
    r"\' OR 1=1 --",
    "\"",
    "$1",
    "%",
    "nul\0inside",
    "NULL",
];

async fn hostile(fixture: &dyn SourceFixture) -> Outcome {
    let spec = TableSpec {
        name: TableName::new(fixture.schema(), "found_by_text"),
        columns: vec![
            ColumnSpec::new("id", ColumnType::Integer).key(0),
            ColumnSpec::new("Na\"me", ColumnType::Text),
        ],
    };
    let name = Value::Text("plain".to_owned());
    let subject =
        Subject::make(fixture, spec, &[vec![Some(Value::Integer(1)), Some(name)]]).await?;
    for text in HOSTILE {
        let rows = ids(&subject, &["Na\"me"], &[vec![Some(text)]]).await?;
        ensure_same(&format!("ids by {text:?}"), &rows, &vec![])?;
    }
    let rows = ids(&subject, &["Na\"me"], &[vec![Some("plain")]]).await?;
    ensure_same("ids", &rows, &vec![Some(1)])
}

async fn misfit(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "found_misfit", &[Some(1)]).await?;
    let values = [vec![Some("1")], vec![Some("twelve")]];
    let Err(failure) = ids(&subject, &["id"], &values).await else {
        return ensure(false, || "'twelve' was taken for an integer".to_owned());
    };
    let text = failure.to_string();
    ensure(text.contains("twelve") && text.contains("id"), || format!("it says {text:?}"))?;
    let request = FindRequest {
        read: subject.whole(),
        key: vec!["no such column".to_owned()],
        values: vec![vec![Some("1".to_owned())]],
    };
    match subject.source.find(&request).await {
        Ok(_) => ensure(false, || "a column that does not exist was looked up".to_owned()),
        Err(error) => ensure_same("kind", &error.kind(), &ErrorKind::Configuration),
    }
}

async fn newest(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "found_later", &[Some(1)]).await?;
    let key = [vec![Some("1")], vec![Some("2")]];
    ensure_same("ids", &ids(&subject, &["id"], &key).await?, &vec![Some(1)])?;
    let row = crate::conformance::subject::row(2, 2);
    fixture.insert(&subject.spec, &[row]).await?;
    ensure_same("ids", &ids(&subject, &["id"], &key).await?, &vec![Some(1), Some(2)])
}
