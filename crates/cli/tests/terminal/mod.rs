//! A user's desk: a home folder, a small shop, credentials, and the program.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A desk of its own for one test; gone when it is dropped.
pub(crate) struct Desk {
    folder: TempDir,
    environment: Vec<(String, String)>,
    secrets: Vec<String>,
}

/// What the program said.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    transcript: String,
}

impl Desk {
    /// A desk with a shop and credentials for it.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("desk").tempdir().unwrap();
        let desk = Self { folder, environment: vec![], secrets: vec![] };
        let shop = Connection::open(desk.path("shop.db")).unwrap();
        shop.execute_batch(SHOP).unwrap();
        desk.credentials(&json!({ "shop": file(&desk.path("shop.db")) }));
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the credentials file.
    pub(crate) fn credentials(&self, credentials: &Value) {
        self.write("credentials.json", &credentials.to_string());
    }

    /// Writes a file that only its owner may read.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    /// Sets a variable for all later commands.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Takes a variable away again.
    pub(crate) fn unset(&mut self, name: &str) {
        self.environment.retain(|(other, _)| other != name);
    }

    /// Hides a value that differs between machines.
    pub(crate) fn hide(&mut self, value: &str) {
        self.secrets.push(value.to_owned());
    }

    /// Works on the shop.
    pub(crate) fn shop(&self, sql: &str) {
        Connection::open(self.path("shop.db")).unwrap().execute_batch(sql).unwrap();
    }

    /// The program with an environment of its own.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tidelake"));
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("USER", "ann")
            .env("TMPDIR", self.folder.path())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        // A build that measures its coverage writes where it is told.
        if let Some(profile) = std::env::var_os("LLVM_PROFILE_FILE") {
            command.env("LLVM_PROFILE_FILE", profile);
        }
        command
    }

    /// Runs a command line, split at blanks; a part in single quotes is one word.
    pub(crate) fn run(&self, line: &str) -> Answer {
        let output = self.command().args(words(line)).output().unwrap();
        let text = |bytes: &[u8]| self.filtered(&String::from_utf8_lossy(bytes));
        let code = output.status.code().unwrap_or(-1);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let mut transcript = format!("$ tidelake {}\n", self.filtered(line));
        transcript.push_str(&stdout);
        if !stderr.is_empty() {
            transcript.push_str("--- stderr\n");
            transcript.push_str(&stderr);
        }
        transcript.push_str(&format!("--- exit {code}\n"));
        Answer { code, stdout, stderr, transcript }
    }

    /// Runs a command line that must succeed, and returns what it printed.
    pub(crate) fn must(&self, line: &str) -> String {
        let answer = self.run(line);
        assert_eq!(answer.code, 0, "{}", answer.transcript);
        answer.stdout
    }

    fn filtered(&self, text: &str) -> String {
        let folder = self.folder.path();
        let real = fs::canonicalize(folder).unwrap();
        let mut text = text
            .replace(&*real.to_string_lossy(), "[DESK]")
            .replace(&*folder.to_string_lossy(), "[DESK]");
        for secret in &self.secrets {
            text = text.replace(secret, "[HIDDEN]");
        }
        text
    }

    /// Files below the lake's folder.
    pub(crate) fn lake_files(&self) -> Vec<PathBuf> {
        let mut files = vec![];
        let mut folders = vec![self.path("lake")];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for entry in entries {
                let entry = entry.unwrap();
                let list =
                    if entry.file_type().unwrap().is_dir() { &mut folders } else { &mut files };
                list.push(entry.path());
            }
        }
        files.sort();
        files
    }
}

impl Answer {
    /// The whole exchange, for a snapshot.
    pub(crate) fn transcript(&self) -> &str {
        &self.transcript
    }
}

const SHOP: &str = "
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY,
        updated_at DATETIME,
        price REAL,
        note TEXT
    );
    CREATE INDEX orders_by_time ON orders (updated_at);
    CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL);
    INSERT INTO orders VALUES
        (1, '2024-01-01 08:00:00', 1.5, 'first'), (2, '2024-01-02 09:30:00', 2.5, NULL);
    INSERT INTO events (kind) VALUES ('visit'), ('basket'), ('payment');
";

/// A credential for a file.
pub(crate) fn file(path: &Path) -> Value {
    json!({"ds_type": "sqlite", "auth_mode": "filesystem", "info": {"filepath": path}})
}

fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Settings that make a transcript the same on every machine and day.
pub(crate) fn stable() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // As wide as what they stand for, so that columns stay columns.
    let filters = [
        (r#""20(2[6-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z?""#, r#""<now>""#),
        (r"\b[0-9A-HJKMNP-TV-Z]{26}(-\d+-\d+-\d+\.parquet)", "<---------- run --------->$1"),
        (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "<---------- run --------->"),
        (r"sync-\d{8}-[0-9a-z]{6}", "sync-<-day-->-<--->"),
        (r"\b\d+\.\ds\b", "<s>"),
        (r"tidelake-20\d\d-\d\d-\d\d\.jsonl", "tidelake-<- day ->.jsonl"),
        (r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<------- now ------>"),
        (r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z?", "<---------- now --------->"),
        (r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z?", "<now>"),
        (r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d", "<------ now ------>"),
        (r"\b\d+(\.\d)? (B|KiB|bytes)\b", "<size>"),
        (r#""bytes": [1-9]\d*"#, r#""bytes": <bytes>"#),
    ];
    for (pattern, replacement) in filters {
        settings.add_filter(pattern, replacement);
    }
    settings
}

/// A variable that tells where a test server is. Without it the test is not run,
/// unless servers are required.
pub(crate) fn server(name: &str) -> Option<String> {
    if let Ok(value) = std::env::var(name) {
        return Some(value);
    }
    let required = std::env::var_os("TIDELAKE_TEST_REQUIRE_SERVERS").is_some_and(|on| on == "1");
    assert!(!required, "{name} is not set, and servers are required");
    println!("not run: {name} is not set");
    None
}
