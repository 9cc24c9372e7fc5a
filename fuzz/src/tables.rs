//! Options that name tables and columns.

use tidelake_sync::IncrementalRequest;
use tidelake_watermark::{Cursor, Direction};

pub(crate) fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    incremental(text);
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
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let mut written = String::new();
    if let Some(schema) = &request.schema {
        written.push_str(&format!("{}.", quoted(schema)));
    }
    let types: Vec<_> = request.types.iter().map(|name| spelled(*name)).collect();
    let columns: Vec<_> = request.cursor.columns().iter().map(|name| quoted(name)).collect();
    let separator = if matches!(request.cursor, Cursor::Fallback(_)) { "|" } else { "," };
    written.push_str(&format!("{}:{}", quoted(&request.table), columns.join(separator)));
    written.push_str(&format!(":{}", types.join(",")));
    written.push_str(if request.direction == Direction::Exclusive { ":e" } else { ":i" });
    if let Some(start) = &request.start {
        written.push_str(&format!("@{}", quoted(start)));
    }
    written.push_str(match request.strategy {
        tidelake_model::Strategy::Append => "!append",
        tidelake_model::Strategy::Upsert => "!upsert",
        tidelake_model::Strategy::DeleteInsert => "!delete_insert",
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
