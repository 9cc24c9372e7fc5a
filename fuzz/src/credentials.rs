//! Credentials: whatever a file holds, no error repeats a secret.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tidelake_connector::Connector;
use tidelake_model::{Error, Result};
use tidelake_postgres::{Postgres, PostgresConfig};
use tidelake_sqlite::{SqliteConfig, SqliteConnector};
use tidelake_sync::Credentials;

use reader::{Catalogue, CredentialsFile, KnownSystem};

/// The command line's own reader, which no library exports.
#[allow(dead_code, unused_imports, reason = "the command line needs more of it")]
#[path = "../../crates/cli/src/credentials/mod.rs"]
mod reader;

/// A value that must not be repeated.
const SECRET: &str = "hunter2-9f8e7d";

static CATALOGUE: LazyLock<Arc<Catalogue>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let bucket = json!({
        "properties": {"directory": text, "access_key_id": text, "secret_access_key": text},
        "required": ["directory"],
    });
    let system = |name, auth_modes, schema| KnownSystem { name, auth_modes, schema };
    Arc::new(Catalogue {
        systems: vec![
            system("postgres", &["classic"], Some(Postgres.config_schema())),
            system("sqlite", &["filesystem"], Some(SqliteConnector.config_schema())),
            system("s3", &["profile", "keys", "role"], Some(bucket)),
            system("mysql", &["classic"], None),
        ],
        state_keys: vec!["schema"],
    })
});

pub(crate) fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    look_at(text);
    match serde_json::from_str::<Value>(text) {
        // Every value of an `info` may be the secret.
        Ok(mut document) => {
            for entry in document.as_object_mut().into_iter().flatten().map(|(_, entry)| entry) {
                if let Some(info) = entry.get_mut("info") {
                    fill(info);
                }
            }
            look_at(&document.to_string());
        }
        // What is no JSON is told by its place, wherever the secret stands.
        Err(_) => {
            let texts = text.matches('"').count();
            for place in 0..texts.min(8) {
                let mut parts: Vec<_> = text.splitn(place + 2, '"').collect();
                let behind = parts.pop().unwrap_or_default();
                let broken = format!("{}\"{SECRET}{behind}", parts.join("\""));
                if let Err(error) = load(&broken) {
                    let is_syntax = error.message().contains("is not valid JSON");
                    assert!(!is_syntax || !told(&error).contains(SECRET), "{}", told(&error));
                }
            }
        }
    }
}

/// Puts the secret into every value, and keeps what kind of value it is where
/// that is a text.
fn fill(value: &mut Value) {
    match value {
        Value::String(text) => *text = format!("{text}{SECRET}"),
        Value::Array(items) => items.iter_mut().for_each(fill),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| fill(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn load(text: &str) -> Result<CredentialsFile> {
    CredentialsFile::parse(text, PathBuf::from("credentials.json"), Arc::clone(&CATALOGUE))
}

/// Asks for every credential of the file.
fn look_at(text: &str) {
    let Ok(file) = load(text) else { return };
    let Ok(Value::Object(entries)) = serde_json::from_str(text) else { return };
    let is_secret = text.contains(SECRET);
    for id in entries.keys() {
        let outcome = file.credential(id).and_then(|credential| match credential.kind.as_str() {
            "postgres" => credential.info.parse::<PostgresConfig>().map(|_| ()),
            "sqlite" => credential.info.parse::<SqliteConfig>().map(|_| ()),
            _ => Ok(()),
        });
        let Err(error) = outcome else { continue };
        let told = told(&error);
        assert!(error.hint().is_some(), "no hint: {told}");
        // Ids and names of keys are told; a secret stands in neither.
        let in_names = names(&entries).contains(SECRET);
        assert!(!is_secret || in_names || !told.contains(SECRET), "{told}");
    }
}

/// All that may be told of a document: ids, and what stands outside an `info`,
/// and the keys inside of it.
fn names(entries: &serde_json::Map<String, Value>) -> String {
    fn keys(value: &Value, all: &mut String) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| keys(item, all)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                all.push_str(key);
                keys(value, all);
            }),
            _ => {}
        }
    }
    let mut all = String::new();
    for (id, entry) in entries {
        all.push_str(id);
        for (key, value) in entry.as_object().into_iter().flatten() {
            all.push_str(key);
            if key == "info" { keys(value, &mut all) } else { all.push_str(&value.to_string()) }
        }
    }
    all
}

/// All that a user or a log may see of an error.
fn told(error: &Error) -> String {
    format!("{error} {} {:?} {error:?}", error.chain(), error.hint())
}
