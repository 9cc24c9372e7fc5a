//! Options that name tables and columns.

use tidelake_model::{ReadMethod, Strategy, TableReadSettings};
use tidelake_sync::{CastRequest, IncrementalRequest, TableColumns};
use tidelake_watermark::{Cursor, Direction};

use crate::settings;

pub(crate) fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    incremental(text);
    columns(text);
    casts(text);
    reading(text);
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The table's name with a colon behind it.
fn table(schema: Option<&String>, table: &str) -> String {
    let schema = schema.map(|schema| format!("{}.", quoted(schema))).unwrap_or_default();
    format!("{schema}{}:", quoted(table))
}

fn columns(text: &str) {
    let parsed = match TableColumns::parse("--columns", text) {
        Ok(parsed) => parsed,
        Err(error) => return assert!(error.hint().is_some(), "no hint for {text:?}"),
    };
    let names: Vec<_> = parsed.columns.iter().map(|name| quoted(name)).collect();
    let written = table(parsed.schema.as_ref(), &parsed.table) + &names.join(",");
    assert_eq!(TableColumns::parse("--columns", &written).ok(), Some(parsed), "{written:?}");
}

fn casts(text: &str) {
    let decimal = CastRequest::parse_decimal(text);
    for parsed in [CastRequest::parse(text), decimal] {
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "no hint for {text:?}");
                continue;
            }
        };
        // The type is what stands behind the last colon.
        let (_, to) = text.rsplit_once(':').expect("there was a type");
        let place = table(parsed.schema.as_ref(), &parsed.table);
        let written = format!("{place}{}:{to}", quoted(&parsed.column));
        let again = match parsed.option {
            "--decimal" => CastRequest::parse_decimal(&written),
            _ => CastRequest::parse(&written),
        };
        assert_eq!(again.ok(), Some(parsed), "{text:?} written as {written:?}");
    }
}

fn reading(text: &str) {
    let parsed = match settings::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => return assert!(error.hint().is_some(), "no hint for {text:?}"),
    };
    let entry = |entry: &TableReadSettings| {
        let method = match entry.method {
            ReadMethod::Auto => "",
            ReadMethod::None => "None",
            ReadMethod::Physical => "Ctid",
            ReadMethod::Range => "RangeId",
        };
        let key = entry.key.as_ref().map(|key| quoted(key)).unwrap_or_default();
        let degree = entry.degree.map(|degree| degree.to_string()).unwrap_or_default();
        table(entry.schema.as_ref(), &entry.table) + &format!("{method}:{key}:{degree}")
    };
    let written: Vec<_> = parsed.iter().map(entry).collect();
    let written = written.join(";");
    assert_eq!(settings::parse(&written).ok(), Some(parsed), "{text:?} written as {written:?}");
}

/// What was understood is written in full, and understood as the same.
fn incremental(text: &str) {
    let request = match IncrementalRequest::parse(text) {
        Ok(request) => request,
        Err(error) => {
            assert!(error.hint().is_some(), "no hint for {text:?}");
            return;
        }
    };
    let mut written = table(request.schema.as_ref(), &request.table);
    let types: Vec<_> = request.types.iter().map(|name| spelled(*name)).collect();
    let columns: Vec<_> = request.cursor.columns().iter().map(|name| quoted(name)).collect();
    let separator = if matches!(request.cursor, Cursor::Fallback(_)) { "|" } else { "," };
    written.push_str(&columns.join(separator));
    written.push_str(&format!(":{}", types.join(",")));
    written.push_str(if request.direction == Direction::Exclusive { ":e" } else { ":i" });
    if let Some(start) = &request.start {
        written.push_str(&format!("@{}", quoted(start)));
    }
    written.push_str(match request.strategy {
        Strategy::Append => "!append",
        Strategy::Upsert => "!upsert",
        Strategy::DeleteInsert => "!delete_insert",
    });
    let again = IncrementalRequest::parse(&written);
    assert_eq!(again.ok().as_ref(), Some(&request), "{text:?} written as {written:?}");
}

fn spelled(name: tidelake_sync::CursorTypeName) -> &'static str {
    use tidelake_sync::CursorTypeName as Name;
    match name {
        Name::Date => "date",
        Name::Datetime => "datetime",
        Name::Integer => "integer",
        Name::Number => "number",
        Name::Text => "text",
        Name::Binary => "binary",
    }
}
