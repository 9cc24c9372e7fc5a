//! As much of SQL's lexical rules as tells where a literal or a name ends.

/// A piece of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// `'…'`, with the doubled quotes made single.
    Text(String),
    /// `"…"`, the same.
    Name(String),
    /// Letters, digits, `_` and `.`.
    Word(String),
    /// Anything else, one character each.
    Sign(char),
}

/// The tokens of a statement; `None` where a quote is not closed, or where a
/// server would stop at a NUL character.
pub(crate) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = vec![];
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..)?;
        match character {
            '\0' => return None,
            '\'' | '"' => {
                let (inner, behind) = quoted(after, character)?;
                tokens.push(if character == '"' { Token::Name(inner) } else { Token::Text(inner) });
                rest = behind;
            }
            ' ' => rest = after,
            character if is_word(character) => {
                let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
                let (word, behind) = rest.split_at_checked(end)?;
                tokens.push(Token::Word(word.to_owned()));
                rest = behind;
            }
            sign => {
                tokens.push(Token::Sign(sign));
                rest = after;
            }
        }
    }
    Some(tokens)
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '.'
}

/// What stands before the closing quote, and what behind it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inner = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once(quote)?;
        if before.contains('\0') {
            return None;
        }
        inner.push_str(before);
        match behind.strip_prefix(quote) {
            Some(behind) => {
                inner.push(quote);
                rest = behind;
            }
            None => return Some((inner, behind)),
        }
    }
}
