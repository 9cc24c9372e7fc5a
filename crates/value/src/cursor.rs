//! Which columns a watermark follows.

use std::fmt;

/// The columns whose values say how far a table was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cursor {
    /// One column.
    Single(String),
    /// Several columns, compared as a tuple, so that ties never matter.
    Composite(Vec<String>),
    /// The first of several columns that is not NULL.
    Fallback(Vec<String>),
}

impl Cursor {
    /// Parses `column`, `a,b` (composite) or `a|b` (fallback). A name may stand
    /// in double quotes, with `""` for a quote, to hold any character.
    pub fn parse(text: &str) -> Option<Self> {
        let mut names = vec![];
        let mut separators = vec![];
        let mut rest = text;
        loop {
            let (name, after) = split_name(rest)?;
            names.push(name);
            let mut characters = after.chars();
            match characters.next() {
                None => break,
                Some(separator @ (',' | '|')) => separators.push(separator),
                Some(_) => return None,
            }
            rest = characters.as_str();
        }
        match separators.first() {
            None => names.pop().map(Self::Single),
            Some(first) if separators.iter().any(|separator| separator != first) => None,
            Some(',') => Some(Self::Composite(names)),
            Some(_) => Some(Self::Fallback(names)),
        }
    }

    /// The column names in order.
    pub fn columns(&self) -> &[String] {
        match self {
            Self::Single(name) => std::slice::from_ref(name),
            Self::Composite(names) | Self::Fallback(names) => names,
        }
    }
}

/// Takes one plain or quoted name off the front.
fn split_name(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', '|']).unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end)?;
        return (!name.is_empty() && !name.contains('"')).then(|| (name.to_owned(), rest));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(next) => {
                name.push('"');
                rest = next;
            }
            None => return (!name.is_empty()).then_some((name, after)),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if matches!(self, Self::Fallback(_)) { "|" } else { "," };
        for (at, name) in self.columns().iter().enumerate() {
            formatter.write_str(if at == 0 { "" } else { separator })?;
            if name.contains([',', '|', '"']) {
                write!(formatter, "\"{}\"", name.replace('"', "\"\""))?;
            } else {
                formatter.write_str(name)?;
            }
        }
        Ok(())
    }
}
