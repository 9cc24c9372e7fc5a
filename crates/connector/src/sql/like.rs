//! Patterns of schema and table names.

use tidelake_model::TableName;

use crate::source::TableFilter;

/// One element of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    /// `%`: any characters, none as well.
    Many,
    /// `_`: one character.
    One,
    /// The character itself.
    Exactly(char),
}

fn elements(pattern: &str) -> Vec<Element> {
    let mut elements = vec![];
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        elements.push(match character {
            '%' => Element::Many,
            '_' => Element::One,
            // A backslash that escapes nothing stands for itself.
            '\\' => Element::Exactly(characters.next().unwrap_or('\\')),
            other => Element::Exactly(other),
        });
    }
    elements
}

/// Whether a text matches an SQL LIKE pattern: `%` stands for any characters,
/// `_` for one, `\` takes the special meaning from what follows. The whole text
/// has to match, in exact spelling.
///
/// ```
/// use tidelake_connector::sql::like_matches;
///
/// assert!(like_matches(r"order\_%", "order_lines"));
/// assert!(!like_matches(r"order\_%", "orders"));
/// ```
pub fn like_matches(pattern: &str, text: &str) -> bool {
    // Which beginnings of the pattern match the text so far; time is bounded by
    // the product of both lengths, whatever the pattern.
    let elements = elements(pattern);
    let mut matched = vec![true];
    for element in &elements {
        let before = matched.last().copied().unwrap_or(false);
        matched.push(before && *element == Element::Many);
    }
    for character in text.chars() {
        let mut next = vec![false];
        let pairs = matched.iter().zip(matched.iter().skip(1));
        for (element, (before, here)) in elements.iter().zip(pairs) {
            let above = next.last().copied().unwrap_or(false);
            next.push(match element {
                Element::Many => above || *here,
                Element::One => *before,
                Element::Exactly(wanted) => *before && *wanted == character,
            });
        }
        matched = next;
    }
    matched.last().copied().unwrap_or(false)
}

/// The one text that a pattern matches; `None` where it has a wildcard.
///
/// ```
/// use tidelake_connector::sql::like_literal;
///
/// assert_eq!(like_literal(r"order\_lines").as_deref(), Some("order_lines"));
/// assert_eq!(like_literal("order_lines"), None);
/// ```
pub fn like_literal(pattern: &str) -> Option<String> {
    let exactly = |element| match element {
        Element::Exactly(character) => Some(character),
        Element::Many | Element::One => None,
    };
    elements(pattern).into_iter().map(exactly).collect()
}

/// The pattern that matches that text alone.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

impl TableFilter {
    /// Means that table alone.
    pub fn only(name: &TableName) -> Self {
        Self {
            schemas: vec![escaped(&name.schema)],
            include: vec![escaped(&name.table)],
            exclude: vec![],
        }
    }

    /// Whether the table is meant. Schema patterns are matched against the
    /// schema, the others against the table's name alone.
    pub fn matches(&self, name: &TableName) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.iter().any(|pattern| like_matches(pattern, text))
        };
        (self.schemas.is_empty() || any(&self.schemas, &name.schema))
            && (self.include.is_empty() || any(&self.include, &name.table))
            && !any(&self.exclude, &name.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_whole_text_in_exact_case() {
        for (pattern, text, wanted) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%", "anything at all", true),
            ("_", "", false),
            ("_", "é", true),
            ("_", "ab", false),
            ("a%b", "ab", true),
            ("a%b", "axxbxb", true),
            ("a%b", "abx", false),
            ("%a%a%", "xaxax", true),
            ("%a%a%", "xax", false),
            ("Orders", "orders", false),
            (r"a\%", "a%", true),
            (r"a\%", "ab", false),
            (r"a\_b", "a_b", true),
            (r"a\_b", "axb", false),
            (r"a\\b", r"a\b", true),
            (r"a\", r"a\", true),
            (r"\a", "a", true),
            ("a.b", "a.b", true),
            ("a.b", "axb", false),
            ("a*", "aa", false),
        ] {
            assert_eq!(like_matches(pattern, text), wanted, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer() {
        let pattern = "%a".repeat(200);
        assert!(!like_matches(&pattern, &"a".repeat(199)));
        assert!(like_matches(&pattern, &"a".repeat(400)));
    }

    #[test]
    fn a_filter_can_mean_one_table() {
        let odd = r"100%_\x";
        let filter = TableFilter::only(&TableName::new("my_schema", odd));
        assert!(filter.matches(&TableName::new("my_schema", odd)));
        assert!(!filter.matches(&TableName::new("myxschema", odd)));
        assert!(!filter.matches(&TableName::new("my_schema", r"100xx\x")));
        assert_eq!(like_literal(&filter.include[0]).as_deref(), Some(odd));
        assert_eq!(like_literal(r"a\").as_deref(), Some(r"a\"));
        assert_eq!(like_literal("a%"), None);
    }

    #[test]
    fn a_filter_needs_schema_and_table_and_no_exclusion() {
        let filter = TableFilter {
            schemas: vec!["sales%".to_owned()],
            include: vec!["order%".to_owned(), "item".to_owned()],
            exclude: vec![r"%\_old".to_owned()],
        };
        for (schema, table, wanted) in [
            ("sales", "orders", true),
            ("sales_eu", "item", true),
            ("sales", "items", false),
            ("public", "orders", false),
            ("sales", "orders_old", false),
        ] {
            assert_eq!(filter.matches(&TableName::new(schema, table)), wanted, "{schema}.{table}");
        }
        assert!(TableFilter::default().matches(&TableName::new("any", "thing")));
    }
}
