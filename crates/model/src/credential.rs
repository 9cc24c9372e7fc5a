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
        T::deserialize(&self.0).map_err(|error| {
            let text = error.to_string();
            // What serde says before "expected" may quote the value.
            let message = match text.split_once(", expected ") {
                Some((before, expected)) if before.starts_with("unknown") => {
                    format!("{before}, expected {expected}")
                }
                Some((_, expected)) => format!("a field has the wrong type, expected {expected}"),
                None => text,
            };
            Error::new(ErrorKind::Configuration, format!("the credential's info: {message}"))
        })
    }
}
