//! Names that end up in paths and statements: what they may look like.

use tidelake_model::Result;

use super::configuration;

/// Whether the text is 1 to 64 of `A-Z a-z 0-9 _ -`.
fn is_identifier(text: &str) -> bool {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(valid)
}

/// Refuses anything that is no identifier.
pub(super) fn check_identifier(what: &str, option: &str, text: &str) -> Result<()> {
    if is_identifier(text) {
        return Ok(());
    }
    Err(configuration(format!("{what} {text:?} is not valid"))
        .with_hint(format!("{option} takes 1 to 64 of A-Z a-z 0-9 _ -")))
}

/// A path below the lake's base, without slashes at its ends.
pub(super) fn sub_path(text: &str) -> Result<Option<String>> {
    let wrong = |what: &str| {
        Err(configuration(format!("the sub-path {text:?} {what}"))
            .with_hint("--sub-path is a path below the base, such as raw/shop"))
    };
    let drive = text.as_bytes().get(1) == Some(&b':');
    if text.starts_with('/') || text.starts_with('\\') || drive {
        return wrong("is absolute");
    }
    if text.contains('\\') {
        return wrong("holds a backslash");
    }
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() {
        return Ok(None);
    }
    for part in trimmed.split('/') {
        match part {
            ".." => return wrong("leaves the base with .."),
            "." | "" => return wrong("has an empty part"),
            "_tidelake" => return wrong("names the lake's own folder _tidelake"),
            part if part.chars().any(char::is_control) => {
                return wrong("holds a control character");
            }
            _ => {}
        }
    }
    Ok(Some(trimmed.to_owned()))
}

/// A pattern of names in the publish target, of known `{tokens}`.
pub(super) fn publish_pattern(option: &str, text: &str, required: Option<&str>) -> Result<String> {
    const TOKENS: [&str; 5] = ["{schema}", "{table}", "{subpath}", "{date}", "{timestamp}"];
    let wrong = |what: &str| {
        Err(configuration(format!("the pattern {text:?} {what}"))
            .with_hint(format!("{option} may hold {}", TOKENS.join(" "))))
    };
    let mut rest = text.to_owned();
    for token in TOKENS {
        rest = rest.replace(token, "");
    }
    if rest.contains(['{', '}']) {
        return wrong("holds an unknown token");
    }
    match required {
        Some(token) if !text.contains(token) => wrong(&format!("does not hold {token}")),
        None if text.is_empty() => wrong("is empty"),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sub_path_stays_below_the_base() {
        assert_eq!(sub_path("raw/shop/").unwrap().as_deref(), Some("raw/shop"));
        assert_eq!(sub_path("").unwrap(), None);
        for wrong in
            ["/raw", "../raw", "raw/..", "raw/./x", "a//b", "C:\\x", "a\\b", "_tidelake/x", "a\nb"]
        {
            assert!(sub_path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns_hold_only_known_tokens() {
        let table = Some("{table}");
        assert!(publish_pattern("--p", "{schema}_{table}_{date}", table).is_ok());
        assert!(publish_pattern("--p", "fixed", table).is_err());
        assert!(publish_pattern("--p", "{tabel}{table}", table).is_err());
        assert!(publish_pattern("--p", "fixed", None).is_ok());
        assert!(publish_pattern("--p", "", None).is_err());
    }

    #[test]
    fn identifiers_are_short_and_plain() {
        assert!(is_identifier("sync-20261130-abc_DEF"));
        assert!(!is_identifier(""));
        assert!(!is_identifier("a b"));
        assert!(!is_identifier(&"a".repeat(65)));
    }
}
