//! Reading the file.

use std::path::Path;

use serde_json::{Map, Value};
use tidelake_model::{Error, ErrorKind, Result};

use super::strict::Document;

/// The text of a credentials file.
pub(super) fn read(path: &Path) -> Result<String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let (message, hint) = match error.kind() {
            std::io::ErrorKind::NotFound => (
                format!("the credentials file {shown} does not exist"),
                "name an existing file with -a FILE (--auth-file)",
            ),
            std::io::ErrorKind::InvalidData => (
                format!("the credentials file {shown} is not valid UTF-8"),
                "save it as UTF-8 text",
            ),
            _ => (
                format!("the credentials file {shown} cannot be read"),
                "check that it is a file that you may read",
            ),
        };
        Error::new(ErrorKind::Configuration, message).with_hint(hint).with_source(error)
    })?;
    warn_if_public(path);
    Ok(text)
}

/// The entries of a credentials file's text, by id.
pub(super) fn parse(text: &str, path: &Path) -> Result<Map<String, Value>> {
    let shown = path.display();
    // Some editors begin a file with a mark of its byte order.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let wrong = |what: String| {
        let message = format!("the credentials file {shown} {what}");
        Error::new(ErrorKind::Configuration, message)
    };
    const FORM: &str =
        "it has the form {\"<id>\": {\"ds_type\": …, \"auth_mode\": …, \"info\": {…}}}";
    // Parsed as plain JSON: such messages name a place, never a value.
    match serde_json::from_str(text) {
        Ok(Document(Value::Object(entries))) => Ok(entries),
        Ok(_) => Err(wrong("holds no JSON object".to_owned()).with_hint(FORM)),
        Err(error) if error.is_data() => {
            Err(wrong(format!("says something twice: {error}")).with_hint("keep one of the two"))
        }
        Err(error) => Err(wrong(format!("is not valid JSON: {error}")).with_hint(FORM)),
    }
}

#[cfg(unix)]
fn warn_if_public(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o006 != 0) {
        let path = path.display();
        tracing::warn!(
            "every user of this machine can read {path}; close it with chmod 600 {path}"
        );
    }
}

#[cfg(not(unix))]
fn warn_if_public(_: &Path) {}
