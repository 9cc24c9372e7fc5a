//! `$env{NAME}` and `${NAME}` inside strings.

use serde_json::Value;
use tidelake_model::{Error, ErrorKind, Result};

/// Looks a variable up.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Fills in the variables of every string below `place`. What a variable holds
/// is not looked at again.
pub(super) fn fill_in(value: &mut Value, place: &str, lookup: Lookup<'_>) -> Result<()> {
    match value {
        Value::String(text) => {
            if let Some(filled) = filled(text, place, lookup)? {
                *text = filled;
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                fill_in(item, &format!("{place}[{number}]"), lookup)?;
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                fill_in(field, &format!("{place}.{key}"), lookup)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// The text with its variables filled in; `None` where it has none.
fn filled(text: &str, place: &str, lookup: Lookup<'_>) -> Result<Option<String>> {
    let mut filled = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(dollar) = rest.find('$') {
        let (before, after) = rest.split_at_checked(dollar).unwrap_or((rest, ""));
        filled.push_str(before);
        match variable(after) {
            Some((name, behind)) => {
                filled.push_str(&lookup(name).ok_or_else(|| missing(name, place))?);
                found = true;
                rest = behind;
            }
            None => {
                filled.push('$');
                rest = after.get(1..).unwrap_or("");
            }
        }
    }
    filled.push_str(rest);
    Ok(found.then_some(filled))
}

/// The name of the variable that the text begins with, and what follows it.
fn variable(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("$env{").or_else(|| text.strip_prefix("${"))?;
    let (name, behind) = inner.split_once('}')?;
    let first = name.chars().next()?;
    let valid = (first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    valid.then_some((name, behind))
}

fn missing(name: &str, place: &str) -> Error {
    let message = format!("the environment variable {name}, named by {place}, is not set");
    Error::new(ErrorKind::Configuration, message)
        .with_hint(format!("set it before the command, for example with export {name}=…"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(mut value: Value) -> Result<Value> {
        let lookup = |name: &str| match name {
            "USER_1" => Some("ann".to_owned()),
            "TRICKY" => Some("${USER_1}$env{NONE}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        fill_in(&mut value, "shop", &lookup)?;
        Ok(value)
    }

    #[test]
    fn variables_stand_anywhere_in_a_string() {
        let value = json!({"a": "$env{USER_1}", "b": ["x-${USER_1}-$env{EMPTY}y"], "c": 5});
        let expected = json!({"a": "ann", "b": ["x-ann-y"], "c": 5});
        assert_eq!(fill(value).unwrap(), expected);
    }

    #[test]
    fn other_dollars_are_text() {
        let value = json!("pa$$word$ $env $env{no name} ${ ${1} §$é");
        assert_eq!(fill(value.clone()).unwrap(), value);
    }

    #[test]
    fn what_a_variable_holds_is_not_filled_in_again() {
        assert_eq!(fill(json!("$env{TRICKY}")).unwrap(), json!("${USER_1}$env{NONE}"));
    }

    #[test]
    fn a_missing_variable_is_named_with_its_place() {
        let error = fill(json!({"info": {"password": "x$env{NONE}"}})).unwrap_err();
        assert!(error.message().contains("NONE"), "{error}");
        assert!(error.message().contains("shop.info.password"), "{error}");
    }
}
