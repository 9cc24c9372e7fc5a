//! Changes the lake behind the program's back.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::terminal::server;

/// Changes rows of a table's folder, and says in which files; `None` where no
/// Python was made for tests.
pub(crate) fn inject(folder: &Path, edits: &Value) -> Option<Vec<String>> {
    let python = server("TIDELAKE_TEST_PYTHON")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify/inject.py");
    let output =
        Command::new(python).arg(script).arg(folder).arg(edits.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// The only table of a verification.
pub(crate) fn only(json: &Value) -> &Value {
    let tables = json["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 1, "{json:#}");
    &tables[0]
}

/// Class and key of what was found, in the order in which it was told.
pub(crate) fn found(table: &Value) -> Vec<(String, String)> {
    let findings = table["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or("NULL").to_owned();
    findings.map(|finding| (text(&finding["class"]), text(&finding["key"]["id"]))).collect()
}
