//! A source with rows of some years, of which a sync reads the last ones alone.

#![allow(dead_code, reason = "each test file uses its own part")]

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::reader::{Reader, folder};
use crate::terminal::{Desk, file};

/// Rows as text, sorted.
pub(crate) type Cells = Vec<Vec<Option<String>>>;

/// The place, with a sync named `s`.
pub(crate) struct Years {
    pub(crate) desk: Desk,
    lake: Value,
}

const COMMON: &str = "-a credentials.json --lxdb-auth-id state";

/// Where the ordinary runs begin.
pub(crate) const START: &str = "2024-07-01T00:00:00";

impl Years {
    /// `cursor` is what follows the table's name in `--incremental-table`.
    pub(crate) fn make(cursor: &str) -> Self {
        let desk = Desk::new();
        let lake = folder(&desk.path("lake"));
        desk.credentials(&json!({
            "years": file(&desk.path("years.db")),
            "state": file(&desk.path("state.db")),
        }));
        let years = Self { desk, lake };
        years.execute(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE sales (id INTEGER PRIMARY KEY, at DATETIME, amount DECIMAL(10, 2));
             CREATE INDEX sales_by_time ON sales (at);
             CREATE TABLE units (name TEXT PRIMARY KEY);
             INSERT INTO units VALUES ('kg')",
        );
        // Thirty rows a month, and a few without a time.
        let months = (1..=12).flat_map(|month| (1..=30).map(move |day| (month, day)));
        let rows: Vec<_> = months
            .filter(|(month, day)| *month != 2 || *day <= 29)
            .zip(1..)
            .map(|((month, day), id)| format!("({id}, '2024-{month:02}-{day:02} 10:00:00', 1.5)"))
            .collect();
        years.execute(&format!("INSERT INTO sales VALUES {}", rows.join(", ")));
        years.execute("INSERT INTO sales VALUES (1001, NULL, 1), (1002, NULL, 2)");
        years.desk.must(&format!(
            "config create --source-db-auth-id years --sync-id s --output-dir lake \
             --incremental-table main.sales:{cursor} {COMMON}"
        ));
        years
    }

    pub(crate) fn execute(&self, sql: &str) {
        let connection = Connection::open(self.desk.path("years.db")).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    pub(crate) fn must(&self, line: &str) -> String {
        self.desk.must(&format!("{line} {COMMON}"))
    }

    pub(crate) fn told(&self, line: &str) -> Value {
        serde_json::from_str(&self.must(&format!("{line} --output json"))).unwrap()
    }

    /// The program's answer, whatever it is.
    pub(crate) fn answer(&self, line: &str) -> crate::terminal::Answer {
        self.desk.run(&format!("{line} {COMMON}"))
    }

    /// A command that dies right after a step.
    pub(crate) fn die(&self, line: &str, fault: &str) {
        use std::os::unix::process::ExitStatusExt;
        let line = format!("{line} {COMMON}");
        let mut command = self.desk.command();
        command.args(line.split_whitespace()).env("TIDELAKE_FAULT", fault);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(6), "{fault} was not reached: {said}");
    }

    /// What the source holds with a time, and without.
    pub(crate) fn source(&self, condition: &str) -> Cells {
        let connection = Connection::open(self.desk.path("years.db")).unwrap();
        let query = format!("SELECT CAST(id AS TEXT) FROM sales WHERE {condition}");
        let mut statement = connection.prepare(&query).unwrap();
        let rows = statement.query_map([], |row| Ok(vec![row.get(0)?])).unwrap();
        let mut rows: Cells = rows.map(Result::unwrap).collect();
        rows.sort();
        rows
    }

    /// The ids in the lake, to somebody who goes by the manifests.
    pub(crate) fn lake(&self, reader: &Reader) -> Cells {
        let rows = reader.rows(&self.lake, "main/sales").unwrap();
        let id = rows.columns.iter().position(|column| column == "id").unwrap();
        let mut ids: Cells = rows.rows.into_iter().map(|row| vec![row[id].clone()]).collect();
        ids.sort();
        ids
    }

    /// Data files that no manifest names, and temporary ones.
    pub(crate) fn left(&self, reader: &Reader) -> Vec<String> {
        let folder = reader.folder(&self.lake, "main/sales").unwrap();
        folder.unnamed.into_iter().chain(folder.others).collect()
    }

    pub(crate) fn watermark(&self) -> String {
        let record = self.told("watermarks get --sync-id s --table main.sales");
        record["progress"]["watermark"]["value"].as_str().unwrap().to_owned()
    }
}
