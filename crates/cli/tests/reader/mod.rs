//! Another reader of the lake: a Python that knows nothing of tidelake and goes
//! by `latest.json`, the manifests and their files (`lake.py`).

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::terminal::server;

/// A Python that waits for questions; any number of threads may ask.
pub(crate) struct Reader {
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

/// What counts in a table's folder.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct Rows {
    /// The newest manifest; `None` where nothing was committed.
    #[serde(default)]
    pub(crate) head: Option<Value>,
    pub(crate) columns: Vec<String>,
    /// As the engine names them.
    pub(crate) types: Vec<String>,
    /// Sorted, NULL first.
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// Runs that `latest.json` lists, oldest first; those in a checkpoint aside.
    pub(crate) manifests: Vec<String>,
    pub(crate) files: Vec<String>,
}

/// What lies in a table's folder, as a look into it shows.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct Folder {
    /// Data files that count.
    pub(crate) live: Vec<String>,
    /// Data files that are visible and stand in no manifest.
    pub(crate) unnamed: Vec<String>,
    /// Data files that a manifest names and that count no more.
    pub(crate) dead: Vec<String>,
    /// Neither data files nor documents: temporary files.
    pub(crate) others: Vec<String>,
    /// Key and id of multipart uploads that nobody completed.
    pub(crate) uploads: Vec<(String, String)>,
}

/// The engine that opens the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Engine {
    #[default]
    PyArrow,
    DuckDb,
}

impl Reader {
    /// Starts one; `None` where no Python was made for tests.
    pub(crate) fn start() -> Option<Self> {
        let python = server("TIDELAKE_TEST_PYTHON")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reader/lake.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, pipes: Mutex::new((stdin, stdout)) })
    }

    /// Every row that counts. `lake` is [`folder`] or [`bucket`], `table` its
    /// folder below that, such as `main/orders`.
    pub(crate) fn rows(&self, lake: &Value, table: &str) -> Result<Rows, String> {
        self.rows_with(Engine::PyArrow, lake, table)
    }

    /// The same through an engine of choice.
    pub(crate) fn rows_with(
        &self,
        engine: Engine,
        lake: &Value,
        table: &str,
    ) -> Result<Rows, String> {
        let engine = match engine {
            Engine::PyArrow => "pyarrow",
            Engine::DuckDb => "duckdb",
        };
        self.ask(&json!({"ask": "rows", "lake": lake, "table": table, "engine": engine}))
    }

    /// Every row that counts, of files that may have different columns, as DuckDB
    /// reads them together.
    pub(crate) fn union(&self, lake: &Value, table: &str) -> Result<Rows, String> {
        self.ask(&json!({"ask": "union", "lake": lake, "table": table}))
    }

    /// What lies in the folder.
    pub(crate) fn folder(&self, lake: &Value, table: &str) -> Result<Folder, String> {
        self.ask(&json!({"ask": "folder", "lake": lake, "table": table}))
    }

    /// Every object in a folder: key, checksum, time of the last change.
    pub(crate) fn objects(&self, lake: &Value, table: &str) -> Vec<(String, String, String)> {
        self.ask(&json!({"ask": "objects", "lake": lake, "table": table})).unwrap()
    }

    /// A JSON document.
    pub(crate) fn document(&self, lake: &Value, table: &str, key: &str) -> Value {
        self.ask(&json!({"ask": "document", "lake": lake, "table": table, "key": key})).unwrap()
    }

    fn ask<T: DeserializeOwned>(&self, question: &Value) -> Result<T, String> {
        let mut pipes = self.pipes.lock().unwrap();
        let (stdin, stdout) = &mut *pipes;
        writeln!(stdin, "{question}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect("the reader ended");
        match answer.get("error") {
            Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
            None => Ok(serde_json::from_value(answer).unwrap()),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A lake in a local folder.
pub(crate) fn folder(path: &Path) -> Value {
    json!({ "folder": path })
}

/// A lake in a bucket of the test server, below a prefix.
pub(crate) fn bucket(prefix: &str) -> Option<Value> {
    let endpoint = server("TIDELAKE_TEST_S3_ENDPOINT")?;
    let bucket = server("TIDELAKE_TEST_S3_BUCKET")?;
    Some(json!({"endpoint": endpoint, "bucket": bucket, "prefix": prefix}))
}
