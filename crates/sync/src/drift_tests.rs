use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Schema};
use tidelake_model::{
    MANIFEST_FORMAT, ReadMethod, RunId, Table, TableKind, TableName, TableReadSettings,
};

use super::*;

use SchemaDrift::{Evolve, Fail, Ignore};

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn column(field: Field) -> Column {
    Column {
        source_type: field.data_type().to_string().to_lowercase(),
        cursor: None,
        key_position: (field.name() == "id").then_some(0),
        indexed: false,
        warning: None,
        chosen: false,
        field,
    }
}

/// A head that was written with these fields; those in `gone` were dropped before.
fn head(fields: &[Field], gone: &[&str]) -> Manifest {
    let source_types: BTreeMap<_, _> = fields
        .iter()
        .filter(|field| !gone.contains(&field.name().as_str()))
        .map(|field| (field.name().clone(), field.data_type().to_string().to_lowercase()))
        .collect();
    Manifest {
        format_version: MANIFEST_FORMAT,
        run_id: RunId::from_number(1),
        attempt: 1,
        table: TableName::new("shop", "orders"),
        generation: 1,
        window: None,
        schema_version: 1,
        schema: Schema::new(fields.to_vec()),
        source_types,
        key: vec!["id".into()],
        files: vec![],
        taken_out: vec![],
        counters: BTreeMap::new(),
        live_highest: None,
        notices: vec![],
        started_at: String::new(),
        finished_at: String::new(),
        tool_version: String::new(),
    }
}

fn selected(fields: &[Field]) -> SelectedTable {
    let columns: Vec<_> = fields.iter().cloned().map(column).collect();
    SelectedTable {
        table: Table {
            name: TableName::new("shop", "orders"),
            kind: TableKind::Table,
            columns: columns.clone(),
            estimated_rows: None,
            estimated_bytes: None,
        },
        read_columns: columns,
        known_columns: vec![],
        cursor: None,
        read: TableReadSettings {
            schema: None,
            table: "orders".into(),
            method: ReadMethod::Auto,
            key: None,
            degree: None,
        },
        notices: vec![],
    }
}

/// The lake's columns after a run, nullable ones with a `?`; what is read; and
/// what was told.
fn after(
    policy: SchemaDrift,
    lake: &[Field],
    gone: &[&str],
    now: &[Field],
) -> Result<(String, String, String)> {
    let mut selected = selected(now);
    let notices = reconcile(policy, &head(lake, gone), &mut selected)?;
    let shown = |field: &Field| {
        let null = if field.is_nullable() { "?" } else { "" };
        format!("{} {}{null}", field.name(), field_text(field))
    };
    let columns: Vec<_> = selected.table.columns.iter().map(|it| shown(&it.field)).collect();
    let read: Vec<_> = selected.read_columns.iter().map(|it| it.name().to_owned()).collect();
    let told: Vec<_> = notices.into_iter().map(|notice| notice.message).collect();
    Ok((columns.join(", "), read.join(", "), told.join("; ")))
}

#[test]
fn what_did_not_change_is_told_of_by_nobody() {
    let lake = [field("id", DataType::Int64), field("a", DataType::Utf8)];
    for policy in [Evolve, Fail, Ignore] {
        let (columns, read, told) = after(policy, &lake, &[], &lake).unwrap();
        assert_eq!((columns.as_str(), read.as_str()), ("id int64, a text", "id, a"));
        assert_eq!(told, "");
    }
}

#[test]
fn another_order_changes_nothing() {
    let lake = [field("id", DataType::Int64), field("a", DataType::Utf8)];
    let now = [lake[1].clone(), lake[0].clone()];
    for policy in [Evolve, Fail, Ignore] {
        let (columns, _, told) = after(policy, &lake, &[], &now).unwrap();
        assert_eq!((columns.as_str(), told.as_str()), ("id int64, a text", ""));
    }
}

#[test]
fn a_new_column_comes_last_or_is_left_out_or_stops() {
    let lake = [field("id", DataType::Int64), field("z", DataType::Utf8)];
    let now = [lake[0].clone(), field("new", DataType::Int32), lake[1].clone()];
    let (columns, read, told) = after(Evolve, &lake, &[], &now).unwrap();
    assert_eq!(columns, "id int64, z text, new int32?");
    assert_eq!(read, "id, new, z");
    assert_eq!(
        told,
        "column \"new\" (int32) was added; rows that are in the lake already are NULL in it"
    );
    let (columns, read, told) = after(Ignore, &lake, &[], &now).unwrap();
    assert_eq!((columns.as_str(), read.as_str()), ("id int64, z text", "id, z"));
    assert_eq!(told, "column \"new\" (int32) was added and is left out");
    let error = after(Fail, &lake, &[], &now).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert_eq!(error.message(), "column \"new\" (int32) was added since the last run");
    assert!(error.hint().unwrap().contains("--on-schema-drift evolve"));
}

#[test]
fn a_dropped_column_stays_and_is_null() {
    let lake = [field("a", DataType::Utf8), field("id", DataType::Int64)];
    let now = [lake[1].clone()];
    for policy in [Evolve, Ignore] {
        let (columns, read, told) = after(policy, &lake, &[], &now).unwrap();
        assert_eq!((columns.as_str(), read.as_str()), ("a text?, id int64", "id"));
        assert!(told.starts_with("column \"a\" (text) was dropped; it stays"), "{told}");
    }
    let error = after(Fail, &lake, &[], &now).unwrap_err();
    assert_eq!(error.message(), "column \"a\" (text) was dropped since the last run");
}

#[test]
fn what_was_dropped_before_is_told_once_and_may_come_back() {
    let lake = [field("id", DataType::Int64), field("a", DataType::Utf8).with_nullable(true)];
    let (columns, _, told) = after(Evolve, &lake, &["a"], &lake[..1]).unwrap();
    assert_eq!((columns.as_str(), told.as_str()), ("id int64, a text?", ""));
    let back = [lake[0].clone(), field("a", DataType::Utf8)];
    let (columns, read, told) = after(Evolve, &lake, &["a"], &back).unwrap();
    assert_eq!((columns.as_str(), read.as_str()), ("id int64, a text?", "id, a"));
    assert_eq!(told, "column \"a\" is back, and has values again");
    let other = [lake[0].clone(), field("a", DataType::Int32)];
    assert!(after(Evolve, &lake, &["a"], &other).is_err());
}

#[test]
fn a_rename_is_one_that_went_and_one_that_came() {
    let lake = [field("id", DataType::Int64), field("a", DataType::Utf8)];
    let now = [lake[0].clone(), field("b", DataType::Utf8)];
    let (columns, _, told) = after(Evolve, &lake, &[], &now).unwrap();
    assert_eq!(columns, "id int64, a text?, b text?");
    assert!(told.contains("column \"a\" (text) was dropped, or renamed to \"b\""), "{told}");
    assert!(told.contains("(utf8, here text) was added, or \"a\" was renamed to it"), "{told}");
    let error = after(Fail, &lake, &[], &now).unwrap_err();
    assert!(error.message().contains("renamed to \"b\""), "{error}");
}

#[test]
fn a_wider_type_is_taken_a_narrower_or_another_stops() {
    let cases = [
        (DataType::Int16, DataType::Int32, true),
        (DataType::Int32, DataType::Int64, true),
        (DataType::UInt32, DataType::Int64, true),
        (DataType::Float32, DataType::Float64, true),
        (DataType::Decimal128(10, 2), DataType::Decimal256(40, 4), true),
        (DataType::Int64, DataType::Int32, false),
        (DataType::Decimal128(10, 2), DataType::Decimal128(10, 4), false),
        (DataType::Int32, DataType::Utf8, false),
        (DataType::Utf8, DataType::Int32, false),
        (DataType::Date32, DataType::Utf8, false),
    ];
    for (was, is, wider) in cases {
        let lake = [field("id", DataType::Int64), field("a", was.clone())];
        let now = [lake[0].clone(), field("a", is.clone())];
        let evolved = after(Evolve, &lake, &[], &now);
        match evolved {
            Ok((columns, _, told)) => {
                assert!(wider, "{was} to {is}");
                assert!(columns.ends_with(&field_text(&now[1])), "{columns}");
                assert!(told.contains("is widened to"), "{told}");
            }
            Err(error) => {
                assert!(!wider, "{was} to {is}");
                assert!(error.message().contains("column \"a\" changed since the last run"));
                assert!(!error.hint().unwrap().contains("evolve"), "{error}");
            }
        }
        for policy in [Fail, Ignore] {
            let error = after(policy, &lake, &[], &now).unwrap_err();
            assert_eq!(error.hint().unwrap().contains("evolve"), wider, "{was} to {is}");
        }
    }
}

#[test]
fn json_may_become_any_text_and_not_the_other_way() {
    let json = |name| {
        field(name, DataType::Utf8)
            .with_metadata([("ARROW:extension:name".to_owned(), JSON.to_owned())].into())
    };
    let (lake, now) = ([json("a")], [field("a", DataType::Utf8)]);
    let (columns, _, told) = after(Evolve, &lake, &[], &now).unwrap();
    assert_eq!(
        (columns.as_str(), told.as_str()),
        ("a text", "column \"a\" was json and is widened to text")
    );
    assert!(after(Evolve, &now, &[], &lake).is_err());
    assert!(after(Fail, &lake, &[], &now).is_err());
}

#[test]
fn null_is_allowed_from_then_on_and_never_forbidden_again() {
    let nullable = [field("a", DataType::Utf8).with_nullable(true)];
    let strict = [field("a", DataType::Utf8)];
    for policy in [Evolve, Fail, Ignore] {
        let (columns, _, told) = after(policy, &strict, &[], &nullable).unwrap();
        assert_eq!(columns, "a text?");
        assert_eq!(told, "column \"a\" may be NULL from now on");
        let (columns, _, told) = after(policy, &nullable, &[], &strict).unwrap();
        assert_eq!((columns.as_str(), told.as_str()), ("a text?", ""));
    }
}

#[test]
fn a_key_that_is_left_out_in_part_is_no_key() {
    let lake = [field("a", DataType::Utf8)];
    let now = [field("id", DataType::Int64), lake[0].clone()];
    let mut selected = selected(&now);
    reconcile(Ignore, &head(&lake, &[]), &mut selected).unwrap();
    assert_eq!(selected.table.key(), Vec::<String>::new());
}

#[test]
fn a_table_that_stops_is_as_it_was() {
    let lake = [field("id", DataType::Int64)];
    let now = [lake[0].clone(), field("new", DataType::Int32)];
    let mut selected = selected(&now);
    let error = reconcile(Fail, &head(&lake, &[]), &mut selected).unwrap_err();
    assert_eq!(error.table(), Some(&TableName::new("shop", "orders")));
    assert_eq!(selected.table.columns.len(), 2);
}
