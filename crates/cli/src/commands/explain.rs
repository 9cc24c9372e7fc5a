//! `explain`: why a row was or was not synced.

use tidelake_model::Result;
use tidelake_sync::explain::{ExplainRequest, Explanation, LakeRow, explain as find_out};

use super::Session;
use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::output::{fields, second};
use crate::settings::configuration;
use crate::terminal::Terminal;

/// Explains, and shows what is known.
pub(super) async fn explain(session: &Session, args: &ExplainArgs) -> Result<Exit> {
    let mut key = vec![];
    for text in &args.key {
        key.extend(parse_key(text)?);
    }
    let app = session.application().await?;
    let request = ExplainRequest {
        env: session.env().to_owned(),
        sync_id: args.sync_id.clone(),
        table: args.table.clone(),
        key,
    };
    let explanation = find_out(&app, request).await?;
    session.output.emit(&explanation, |terminal| described(&explanation, terminal))?;
    Ok(Exit::Done)
}

fn described(explanation: &Explanation, terminal: &Terminal) -> String {
    let key: Vec<_> = explanation
        .key
        .iter()
        .map(|(name, value)| match value.as_str() {
            Some(value) => format!("{name}={value}"),
            None => format!("{name} is NULL"),
        })
        .collect();
    let mut rows: Vec<(&str, String)> =
        explanation.reasons.iter().map(|reason| ("why", reason.clone())).collect();
    if let Some(cursor) = &explanation.cursor {
        for row in &explanation.source {
            let value = row.cursor.as_deref().unwrap_or("NULL");
            rows.push(("source", format!("{cursor} is {value}")));
        }
        let mark = explanation.watermark.as_deref().unwrap_or("none yet");
        rows.push(("watermark", mark.to_owned()));
        if explanation.max_seen != explanation.watermark
            && let Some(seen) = &explanation.max_seen
        {
            rows.push(("max seen", seen.clone()));
        }
        let next = explanation.next_window.as_deref().unwrap_or("nothing can be read now");
        rows.push(("next run", next.to_owned()));
    }
    for row in &explanation.lake {
        rows.push(("lake", lake_text(row)));
    }
    for notice in &explanation.notices {
        rows.push(("note", notice.message.clone()));
    }
    if let Some(hint) = &explanation.hint {
        rows.push(("hint", hint.clone()));
    }
    format!(
        "{} {}: {}\n{}",
        explanation.table,
        key.join(", "),
        verdict(explanation),
        fields(2, &rows, terminal.width())
    )
}

fn lake_text(row: &LakeRow) -> String {
    let mut text = match &row.cursor {
        Some(cursor) => format!("at {cursor}, in {}", row.file),
        None => format!("in {}", row.file),
    };
    if let Some(run) = row.run_id {
        text.push_str(&format!("\nof {} {run}", row.purpose.unwrap_or("run")));
    }
    if let Some(at) = &row.read_at {
        text.push_str(&format!(" at {}", second(at)));
    }
    text
}

fn verdict(explanation: &Explanation) -> &'static str {
    use tidelake_sync::explain::Verdict;

    match explanation.verdict {
        Verdict::Carried => "is in the lake",
        Verdict::NextRun => "the next run reads it",
        Verdict::HeldBack => "is held back",
        Verdict::WithoutCursor => "has no cursor value",
        Verdict::Unreachable => "is in no window",
        Verdict::NeverRead => "was never read",
        Verdict::BelowStart => "is below the start of the sync",
        Verdict::Unknown => "is not in the lake",
        Verdict::Deleted => "is in the lake alone",
        Verdict::NoSuchRow => "does not exist",
        Verdict::NotInSync => "is not in the sync",
    }
}

/// `column=value` joined by commas; a name or a value that holds a comma or an
/// equals sign stands in double quotes, with `""` for a quote.
fn parse_key(text: &str) -> Result<Vec<(String, Option<String>)>> {
    let wrong = |what: &str| {
        configuration(format!("--key {text:?}: {what}")).with_hint(
            "write column=value, for example --key id=42 or --key 'shop=north,number=7'; what \
             holds a comma stands in double quotes",
        )
    };
    let mut key = vec![];
    let mut rest = text;
    loop {
        let (name, after) =
            word(rest, &['=', ',']).ok_or_else(|| wrong("a quote is not closed"))?;
        if name.is_empty() {
            return Err(wrong("a column's name is missing"));
        }
        let (value, after) = match after.strip_prefix('=') {
            None => (None, after),
            Some(after) => {
                let (value, after) =
                    word(after, &[',']).ok_or_else(|| wrong("a quote is not closed"))?;
                (Some(value), after)
            }
        };
        key.push((name, value));
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(key),
            None => return Err(wrong("something follows a closing quote")),
        }
    }
}

/// Takes one plain or quoted word off the front, up to one of the separators.
fn word<'a>(text: &'a str, separators: &[char]) -> Option<(String, &'a str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(separators).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end)?;
        return Some((word.to_owned(), rest));
    };
    let mut word = String::new();
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"')?;
        word.push_str(part);
        match after.strip_prefix('"') {
            Some(next) => {
                word.push('"');
                rest = next;
            }
            None => return Some((word, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, Option<String>)> {
        parse_key(text).unwrap()
    }

    #[test]
    fn keys_are_pairs_and_quotes_hold_anything() {
        let pair = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        assert_eq!(parsed("id=42"), [pair("id", Some("42"))]);
        assert_eq!(parsed("a=1,b=x y"), [pair("a", Some("1")), pair("b", Some("x y"))]);
        assert_eq!(parsed("a"), [pair("a", None)]);
        assert_eq!(parsed("a=,b"), [pair("a", Some("")), pair("b", None)]);
        assert_eq!(parsed("url=a=b"), [pair("url", Some("a=b"))]);
        assert_eq!(
            parsed(r#""we,ird=""x"="1,2 ""three""""#),
            [pair(r#"we,ird="x"#, Some(r#"1,2 "three""#))]
        );
        for text in ["", "=1", "a=1,", "\"a", "a=\"1\"2"] {
            assert!(parse_key(text).is_err(), "{text}");
        }
    }
}
