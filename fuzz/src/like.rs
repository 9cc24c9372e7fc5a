//! Patterns of names, against the definition written in another way.

use tidelake_connector::sql::like_matches;

pub(crate) fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (pattern, text) = text.split_once('\n').unwrap_or((text, text));
    let matches = like_matches(pattern, text);
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    // By the definition it takes time beyond all bounds.
    let many = pattern.iter().filter(|character| **character == '%').count();
    if many <= 3 && text.len() <= 60 {
        assert_eq!(matches, by_definition(&pattern, &text), "{pattern:?} {text:?}");
    }
}

fn by_definition(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        (['%', rest @ ..], text) => {
            (0..=text.len()).any(|skipped| by_definition(rest, text.split_at(skipped).1))
        }
        (['_', rest @ ..], [_, text @ ..]) => by_definition(rest, text),
        (['\\'], ['\\']) => true,
        (['\\', wanted, rest @ ..], [first, text @ ..]) => {
            wanted == first && by_definition(rest, text)
        }
        (['\\' | '_', ..], _) => false,
        ([wanted, rest @ ..], [first, text @ ..]) => wanted == first && by_definition(rest, text),
        ([_, ..], []) => false,
    }
}
