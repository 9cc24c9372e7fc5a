//! The JSON documents of a table: their form, and how they are read.

use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use tidelake_model::{DataFile, Error, ErrorKind, Latest, MANIFEST_FORMAT, Manifest, Result};

/// Live files of all manifests before those that `latest.json` lists, so that a
/// reader opens few documents however many runs there were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// Version of this format.
    pub(crate) format_version: u32,
    /// Generation of the files.
    pub(crate) generation: u64,
    /// The live files, oldest first.
    pub(crate) files: Vec<DataFile>,
}

/// JSON Schema of a manifest, generated from the model.
pub fn manifest_schema() -> serde_json::Value {
    schemars::schema_for!(Manifest).to_value()
}

/// JSON Schema of `latest.json`.
pub fn latest_schema() -> serde_json::Value {
    schemars::schema_for!(Latest).to_value()
}

/// Reads a document. One of a newer format is refused before anything in it is
/// understood the wrong way.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8], location: &str) -> Result<T> {
    let unreadable = |error: serde_json::Error| {
        Error::new(ErrorKind::Mismatch, format!("{location} is not readable"))
            .with_hint("restore the document, or rebuild the table with --on-mismatch rebuild")
            .with_source(error)
    };
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    // Fields without their names would be taken in order, and no format be seen.
    if !value.is_object() {
        return Err(unreadable(serde_json::Error::custom("it is no JSON object")));
    }
    let format = value.get("format_version").and_then(serde_json::Value::as_u64);
    if let Some(format) = format.filter(|format| *format > u64::from(MANIFEST_FORMAT)) {
        let message = format!(
            "{location} has format {format}, and this version reads formats up to {MANIFEST_FORMAT}"
        );
        return Err(Error::new(ErrorKind::Mismatch, message)
            .with_hint("use the newer version of tidelake that wrote it"));
    }
    T::deserialize(value).map_err(unreadable)
}

pub(crate) fn print<T: Serialize>(document: &T) -> Result<Bytes> {
    let mut bytes = serde_json::to_vec_pretty(document).map_err(|error| {
        Error::new(ErrorKind::Internal, "a document cannot be written").with_source(error)
    })?;
    bytes.push(b'\n');
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_format_is_refused_before_it_is_understood() {
        let newer = br#"{"format_version": 2, "head": 7}"#;
        let error = parse::<Latest>(newer, "x/latest.json").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.message().contains("format 2"), "{error}");
        let nameless = parse::<Checkpoint>(b"[22, 2, []]", "x/latest.json").unwrap_err();
        assert!(nameless.chain().contains("no JSON object"), "{}", nameless.chain());
        let garbage = parse::<Latest>(b"{", "x/latest.json").unwrap_err();
        assert_eq!(garbage.kind(), ErrorKind::Mismatch);
        assert!(garbage.message().contains("not readable"), "{garbage}");
    }
}
