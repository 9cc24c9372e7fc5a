//! Secrets, and what a credential says about a connection.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind, Result};

/// A secret. It has neither `Display` nor `Debug`, and cannot be serialised, so
/// that it cannot reach a log, an error, a plan or a state row by accident.
#[derive(Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(with = "String", extend("format" = "password"))]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one call that sends it to a server.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The `info` of a credential with its variables filled in. It holds secrets,
/// so it has neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub struct CredentialInfo(serde_json::Value);

impl CredentialInfo {
    /// Wraps a JSON object.
    pub fn new(info: serde_json::Value) -> Self {
        Self(info)
    }

    /// The keys that are set.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
    }

    /// A text field that is no secret, such as a database's name.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    /// The same credential with one text field set, a database chosen on the
    /// command line for example.
    #[must_use]
    pub fn with(&self, key: &str, text: &str) -> Self {
        let mut info = self.0.clone();
        if let Some(object) = info.as_object_mut() {
            object.insert(key.to_owned(), text.into());
        }
        Self(info)
    }

    /// Reads the fields into a connector's own configuration. The error names
    /// the field and what it should be, never the value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        serde_path_to_error::deserialize(&self.0).map_err(|error| {
            let path = error.path().to_string();
            let text = error.into_inner().to_string();
            // What serde says before "expected" may quote the value; a field's
            // name it may tell.
            let expected = text.rsplit_once(", expected ").map(|(_, expected)| expected);
            let (message, hint) = match expected {
                _ if text.starts_with("unknown field") => {
                    (text.clone(), "leave the key out, or correct its name".to_owned())
                }
                Some(expected) => {
                    let field = if path == "." { "its info".to_owned() } else { path };
                    let hint = format!("correct {field} in the credentials file");
                    (format!("{field} must be {expected}"), hint)
                }
                None => (text, "see which keys this kind of credential takes".to_owned()),
            };
            Error::new(ErrorKind::Configuration, format!("the credential: {message}"))
                .with_hint(hint)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only reading it matters")]
    struct Server {
        port: u16,
        #[serde(default)]
        mode: Mode,
    }

    #[derive(Deserialize, Default)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        #[default]
        Plain,
        Tls,
    }

    #[test]
    fn errors_name_the_field_and_not_the_value() {
        for (info, part) in [
            (json!({"port": "hunter2"}), "port must be u16"),
            (json!({"port": 99_999}), "port must be u16"),
            (json!({"port": 1, "mode": "hunter2"}), "mode must be "),
            (json!({}), "missing field `port`"),
            (json!({"prt": 1}), "unknown field `prt`, expected `port` or `mode`"),
            (json!("hunter2"), "its info must be struct"),
        ] {
            let error = CredentialInfo::new(info).parse::<Server>().err().unwrap();
            assert!(error.message().contains(part), "{error}");
            assert!(!error.chain().contains("hunter2"), "{error}");
            assert!(error.hint().is_some(), "{error}");
        }
    }
}
