//! What the catalogue says.

use tidelake_model::{TableKind, TableName};
use tidelake_watermark::Kind;

use super::SourceCase;
use crate::conformance::harness::{ensure, ensure_same};
use crate::conformance::subject::{Subject, exactly, stamped};
use crate::conformance::{ColumnSpec, ColumnType, Need, Outcome, SourceFixture, TableSpec};
use crate::source::TableFilter;

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("lists_columns_in_order_with_key_and_nullability", Need::Nothing, |fixture| {
            Box::pin(columns(fixture))
        }),
        case("offers_no_float_as_a_cursor", Need::Nothing, |fixture| Box::pin(floats(fixture))),
        case("lists_tables_by_pattern_in_exact_spelling", Need::Nothing, |fixture| {
            Box::pin(patterns(fixture))
        }),
        case("finds_tables_only_in_the_schemas_asked_for", Need::Nothing, |fixture| {
            Box::pin(schemas(fixture))
        }),
        case("an_empty_catalogue_is_no_error", Need::Nothing, |fixture| Box::pin(nothing(fixture))),
    ]
}

async fn columns(fixture: &dyn SourceFixture) -> Outcome {
    let spec = TableSpec {
        name: TableName::new(fixture.schema(), "catalogue"),
        columns: vec![
            ColumnSpec::new("line", ColumnType::Integer).key(1),
            ColumnSpec::new("order", ColumnType::Integer).key(0),
            ColumnSpec::new("changed_at", ColumnType::Timestamp).required().indexed(),
            ColumnSpec::new("day", ColumnType::Date),
            ColumnSpec::new("title", ColumnType::Text).required(),
            ColumnSpec::new("note", ColumnType::Text),
        ],
    };
    let subject = Subject::make(fixture, spec, &[]).await?;
    let table = &subject.table;
    let names: Vec<_> = table.columns.iter().map(tidelake_model::Column::name).collect();
    let wanted = vec!["line", "order", "changed_at", "day", "title", "note"];
    ensure_same("columns", &names, &wanted)?;
    ensure_same("key", &table.key(), &vec!["order".to_owned(), "line".to_owned()])?;
    ensure_same("kind of table", &table.kind, &TableKind::Table)?;
    let nullable: Vec<_> = table.columns.iter().map(|column| column.field.is_nullable()).collect();
    ensure_same("nullable", &nullable, &vec![false, false, false, true, false, true])?;
    let indexed = |name: &str| table.column(name).is_some_and(|column| column.indexed);
    ensure_same("indexed", &(indexed("order"), indexed("changed_at")), &(true, true))?;
    ensure_same("indexed without an index", &indexed("note"), &false)?;
    ensure_same("kind of a number", &subject.kind("order")?, &Kind::Integer)?;
    ensure_same("kind of a day", &subject.kind("day")?, &Kind::Date)?;
    ensure_same("kind of text", &subject.kind("note")?, &Kind::Text)?;
    ensure(subject.kind("changed_at")?.is_time(), || "an instant is no time".to_owned())?;
    let named = table.columns.iter().all(|column| !column.source_type.is_empty());
    ensure(named, || "a column without a source type".to_owned())
}

async fn floats(fixture: &dyn SourceFixture) -> Outcome {
    let mut spec = stamped(fixture, "floats");
    spec.columns.push(ColumnSpec::new("measure", ColumnType::Float));
    let subject = Subject::make(fixture, spec, &[]).await?;
    let cursor = subject.table.column("measure").map(|column| column.cursor);
    ensure_same("cursor type of a float", &cursor, &Some(None))
}

async fn patterns(fixture: &dyn SourceFixture) -> Outcome {
    let names = ["like_b", "like_a_1", "like_a_2", "likexa_1", "like%a", "Upper_like"];
    for name in names {
        fixture.create_table(&stamped(fixture, name)).await?;
    }
    let cases: [(&[&str], &[&str], &[&str]); 8] = [
        (&["like_a_1"], &[], &["like_a_1", "likexa_1"]),
        (&[r"like\_a\_1"], &[], &["like_a_1"]),
        (&[r"like\_%"], &[], &["like_a_1", "like_a_2", "like_b"]),
        (&[r"like\%_"], &[], &["like%a"]),
        (&[r"like\_%"], &[r"%\_a\_%"], &["like_b"]),
        (&["like_b", "like_b", r"like\_a%"], &["%2"], &["like_a_1", "like_b"]),
        (&["Upper%"], &[], &["Upper_like"]),
        (&["upper%", "LIKE%"], &[], &[]),
    ];
    let owned = |patterns: &[&str]| patterns.iter().map(|text| (*text).to_owned()).collect();
    for (include, exclude, wanted) in cases {
        let schemas = exactly(&TableName::new(fixture.schema(), "")).schemas;
        let filter = TableFilter { schemas, include: owned(include), exclude: owned(exclude) };
        let found = fixture.source().tables(&filter).await?;
        let found: Vec<_> = found.into_iter().map(|table| table.name).collect();
        let wanted: Vec<_> =
            wanted.iter().map(|name| TableName::new(fixture.schema(), *name)).collect();
        ensure_same(&format!("tables like {include:?} but {exclude:?}"), &found, &wanted)?;
    }
    Ok(())
}

async fn schemas(fixture: &dyn SourceFixture) -> Outcome {
    let spec = stamped(fixture, "in_schema");
    fixture.create_table(&spec).await?;
    let found = |filter: TableFilter| async move {
        let tables = fixture.source().tables(&filter).await?;
        Outcome::Ok(tables.into_iter().any(|table| table.name.table == "in_schema"))
    };
    let all = TableFilter::default();
    ensure_same("in all schemas", &found(all).await?, &true)?;
    ensure_same("in its schema", &found(exactly(&spec.name)).await?, &true)?;
    let other = TableFilter { schemas: vec!["no such schema".to_owned()], ..Default::default() };
    ensure_same("in another schema", &found(other).await?, &false)
}

async fn nothing(fixture: &dyn SourceFixture) -> Outcome {
    let filter = exactly(&TableName::new(fixture.schema(), "no such table"));
    let found = fixture.source().tables(&filter).await?;
    ensure_same("tables", &found.len(), &0)
}
