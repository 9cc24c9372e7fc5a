//! `--incremental-table` and its like: which cursor a table follows.
//!
//! `schema.table:column:type[:i|:e][@start][!strategy]`, split on unquoted
//! `:` `.` `@` `!` only; names may stand in double quotes, with `""` for a
//! quote. A composite cursor is `updated_at,id` (types `datetime,integer`), a
//! fallback `updated_at|created_at`.

use tidelake_model::{Error, ErrorKind, Result, Strategy};
use tidelake_watermark::{Cursor, Direction};

/// How a user names the type of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorTypeName {
    /// A date column; on a time column, day ticks.
    Date,
    /// Any time column.
    Datetime,
    /// Whole numbers.
    Integer,
    /// Exact decimals.
    Number,
    /// Text.
    Text,
    /// Bytes.
    Binary,
}

impl CursorTypeName {
    /// The names that are accepted.
    pub const NAMES: &str = "date, datetime (or timestamp), integer, number, text, binary";

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "datetime" | "timestamp" => Self::Datetime,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "text" | "string" => Self::Text,
            "binary" => Self::Binary,
            _ => return None,
        })
    }
}

/// What a user asked for, before the catalogue was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncrementalRequest {
    /// Schema, if it was written.
    pub schema: Option<String>,
    /// Table.
    pub table: String,
    /// Cursor.
    pub cursor: Cursor,
    /// A type for each component of a composite cursor; one for the others.
    pub types: Vec<CursorTypeName>,
    /// Which side of a window is open.
    pub direction: Direction,
    /// Lower bound of the first run, as it was written.
    pub start: Option<String>,
    /// How rows arrive in the target.
    pub strategy: Strategy,
}

/// A piece of the text, ended by the separator that follows it.
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) separator: Option<char>,
}

/// Takes the text up to the first unquoted separator.
pub(crate) fn next_piece<'a>(text: &'a str, separators: &[char]) -> (Piece<'a>, &'a str) {
    let mut quoted = false;
    for (at, character) in text.char_indices() {
        if character == '"' {
            quoted = !quoted;
        } else if !quoted && separators.contains(&character) {
            let (before, rest) = text.split_at_checked(at).unwrap_or((text, ""));
            let rest = rest.get(character.len_utf8()..).unwrap_or("");
            return (Piece { text: before, separator: Some(character) }, rest);
        }
    }
    (Piece { text, separator: None }, "")
}

/// A plain name, or one in double quotes.
pub(crate) fn name(text: &str) -> Option<String> {
    match text.strip_prefix('"') {
        None => (!text.is_empty() && !text.contains('"')).then(|| text.to_owned()),
        Some(rest) => {
            let inner = rest.strip_suffix('"')?;
            let unescaped = inner.replace("\"\"", "\u{0}");
            let valid = !inner.is_empty() && !unescaped.contains('"');
            valid.then(|| inner.replace("\"\"", "\""))
        }
    }
}

/// `[schema.]table`, each plain or in double quotes.
pub(crate) fn table_name(text: &str) -> Option<(Option<String>, String)> {
    let (first, rest) = next_piece(text, &['.']);
    match first.separator {
        None => Some((None, name(first.text)?)),
        Some(_) => {
            let (second, _) = next_piece(rest, &['.']);
            let table = name(second.text).filter(|_| second.separator.is_none())?;
            Some((Some(name(first.text)?), table))
        }
    }
}

impl IncrementalRequest {
    /// Parses `schema.table:column:type[:i|:e][@start][!strategy]`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::new(ErrorKind::Configuration, format!("incremental table {text:?}: {what}"))
                .with_hint(
                    "write schema.table:column:type[:i|:e][@start][!strategy], for example \
                     public.orders:updated_at:datetime",
                )
        };
        let (first, mut rest) = next_piece(text, &['.', ':']);
        let first_name = name(first.text).ok_or_else(|| wrong("the table's name is missing"))?;
        let (schema, table) = if first.separator == Some('.') {
            let (second, after) = next_piece(rest, &[':']);
            rest = after;
            let table = name(second.text).ok_or_else(|| wrong("the table's name is missing"))?;
            if second.separator.is_none() {
                return Err(wrong("the cursor's column is missing"));
            }
            (Some(first_name), table)
        } else {
            (None, first_name)
        };
        let (column, after) = next_piece(rest, &[':']);
        let cursor = Cursor::parse(column.text)
            .ok_or_else(|| wrong("the cursor's column is missing or not a name"))?;
        if column.separator.is_none() {
            return Err(wrong("the cursor's type is missing"));
        }
        let (types, after) = next_piece(after, &[':', '@', '!']);
        let types = parse_types(types.text, &cursor).map_err(|what| wrong(&what))?;
        let mut separator = next_separator(rest, after);
        let mut rest = after;
        let mut request = Self {
            schema,
            table,
            cursor,
            types,
            direction: Direction::Inclusive,
            start: None,
            strategy: Strategy::Append,
        };
        while let Some(kind) = separator {
            // A start may hold colons (a time of day), so only `!` ends it.
            let ends: &[char] = if kind == '@' { &['!'] } else { &[':', '@', '!'] };
            let (piece, after) = next_piece(rest, ends);
            match kind {
                ':' => {
                    request.direction = direction(piece.text).ok_or_else(|| {
                        wrong(&format!("{:?} is not a direction, which is i or e", piece.text))
                    })?
                }
                '@' if piece.text.is_empty() => return Err(wrong("the start after @ is missing")),
                '@' => request.start = Some(name(piece.text).unwrap_or_else(|| piece.text.into())),
                _ => {
                    request.strategy = strategy(piece.text).ok_or_else(|| {
                        wrong(&format!(
                            "{:?} is not a strategy, which is append, upsert or delete_insert",
                            piece.text
                        ))
                    })?
                }
            }
            separator = piece.separator;
            rest = after;
        }
        Ok(request)
    }
}

/// The separator that stands just before `after` in `text`.
fn next_separator(text: &str, after: &str) -> Option<char> {
    let before = text.len().checked_sub(after.len())?;
    let separator = text.get(..before)?.chars().next_back()?;
    [':', '@', '!'].contains(&separator).then_some(separator)
}

fn parse_types(text: &str, cursor: &Cursor) -> Result<Vec<CursorTypeName>, String> {
    let types: Vec<_> = text
        .split(',')
        .map(|part| {
            CursorTypeName::from_name(part).ok_or_else(|| {
                format!("{part:?} is not a cursor type, which is {}", CursorTypeName::NAMES)
            })
        })
        .collect::<Result<_, _>>()?;
    let wanted = if matches!(cursor, Cursor::Composite(_)) { cursor.columns().len() } else { 1 };
    if types.len() == wanted {
        return Ok(types);
    }
    Err(format!("{wanted} cursor type(s) are needed for {cursor}, {} were given", types.len()))
}

fn direction(text: &str) -> Option<Direction> {
    match text {
        "i" => Some(Direction::Inclusive),
        "e" => Some(Direction::Exclusive),
        _ => None,
    }
}

fn strategy(text: &str) -> Option<Strategy> {
    match text {
        "append" => Some(Strategy::Append),
        "upsert" => Some(Strategy::Upsert),
        "delete_insert" | "delete-insert" => Some(Strategy::DeleteInsert),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read() {
        let request = IncrementalRequest::parse(
            "sales.orders:updated_at:datetime:e@2024-01-01T00:00:00!delete-insert",
        )
        .unwrap();
        assert_eq!(request.schema.as_deref(), Some("sales"));
        assert_eq!(request.table, "orders");
        assert_eq!(request.cursor, Cursor::Single("updated_at".into()));
        assert_eq!(request.types, [CursorTypeName::Datetime]);
        assert_eq!(request.direction, Direction::Exclusive);
        assert_eq!(request.start.as_deref(), Some("2024-01-01T00:00:00"));
        assert_eq!(request.strategy, Strategy::DeleteInsert);
    }

    #[test]
    fn quoted_names_hold_separators() {
        let request = IncrementalRequest::parse(r#""my.sch":"we""ird : tab.le":"c@l!":integer"#);
        assert!(request.is_err(), "a colon after the schema is no dot");
        let request =
            IncrementalRequest::parse(r#""my.sch"."we""ird : tab.le":"c@l!":integer"#).unwrap();
        assert_eq!(request.schema.as_deref(), Some("my.sch"));
        assert_eq!(request.table, "we\"ird : tab.le");
        assert_eq!(request.cursor, Cursor::Single("c@l!".into()));
    }

    #[test]
    fn composite_and_fallback_cursors() {
        let request = IncrementalRequest::parse("t:updated_at,id:datetime,integer").unwrap();
        assert_eq!(request.cursor.columns(), ["updated_at", "id"]);
        assert_eq!(request.types.len(), 2);
        let request = IncrementalRequest::parse("t:updated_at|created_at:datetime!upsert").unwrap();
        assert!(matches!(request.cursor, Cursor::Fallback(_)));
        assert_eq!(request.strategy, Strategy::Upsert);
        assert!(IncrementalRequest::parse("t:a,b:integer").is_err());
    }

    #[test]
    fn mistakes_name_themselves() {
        for (text, part) in [
            ("", "table's name"),
            ("orders", "column"),
            ("s.orders", "column"),
            ("s.orders:id", "type is missing"),
            ("s.orders:id:int", "not a cursor type"),
            ("s.orders:id:integer:x", "not a direction"),
            ("s.orders:id:integer@", "start"),
            ("s.orders:id:integer!merge", "not a strategy"),
            ("s.orders::integer", "column"),
        ] {
            let error = IncrementalRequest::parse(text).unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
            assert!(error.hint().is_some());
        }
    }
}
