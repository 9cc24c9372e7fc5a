//! Tables of odd names, synced twice and compared row by row.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::Value;

use crate::reader::{self, Reader};
use crate::terminal::Desk;

/// A desk whose credentials are `state` and `source`.
pub(crate) struct Bench {
    pub(crate) desk: Desk,
    pub(crate) reader: Reader,
}

/// Names that every database takes; those that differ by case alone are not among
/// them.
pub(crate) const NAMES: [&str; 34] = [
    "quo\"te",
    "\"\"",
    "a.b",
    ".hidden",
    "..",
    "a:b:integer",
    "two  words",
    " edges ",
    "UPPER",
    "Mixed Case",
    "select",
    "order",
    "Ünïcode",
    "名前",
    "🌊",
    "new\nline",
    "tab\tand\u{7}bell",
    "\u{1b}[31mred",
    "100%41",
    "sl/ash",
    "back\\slash",
    "it's",
    "$HOME `id` |;&",
    "a,b|c",
    "at@it!",
    "day=1",
    "[a]{b}*?<>#",
    "_tidelake",
    "latest.json",
    "x.parquet",
    "e\u{301}",
    "é",
    "אבג\u{202e}x",
    "--dashes",
];

/// The name at a place, from the start again behind the end.
pub(crate) fn name(place: usize) -> &'static str {
    NAMES[place % NAMES.len()]
}

/// A name as the program's options and SQL have it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table with a key, a cursor and a text, each of another odd name.
pub(crate) struct Odd {
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) columns: [String; 3],
}

impl Odd {
    /// The name as options and SQL have it.
    pub(crate) fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }

    pub(crate) fn create(&self) -> String {
        let [key, cursor, text] = self.columns.each_ref().map(|column| quoted(column));
        format!(
            "CREATE TABLE {} ({key} bigint PRIMARY KEY, {cursor} bigint, {text} text);",
            self.quoted()
        )
    }

    pub(crate) fn insert(&self, key: u32) -> String {
        let text = self.table.replace('\'', "''");
        format!("INSERT INTO {} VALUES ({key}, {}, '{text}');", self.quoted(), key * 10)
    }

    /// As `--incremental-table` has it.
    pub(crate) fn incremental(&self) -> String {
        format!("{}:{}:integer", self.quoted(), quoted(&self.columns[1]))
    }
}

impl Bench {
    /// The program with words that no shell took apart.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.desk.command().args(words).output().unwrap()
    }

    /// The same, which must succeed, with a JSON answer.
    pub(crate) fn json(&self, command: &[&str], words: &[&str]) -> Value {
        let global = ["-a", "credentials.json", "--lxdb-auth-id", "state", "--output", "json"];
        let output = self.run(&[command, &global, words].concat());
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{words:?}\n{stdout}\n{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    pub(crate) fn create(&self, id: &str, words: &[&str]) -> Value {
        let common = ["--source-db-auth-id", "source", "--output-dir", "lake", "--sync-id", id];
        self.json(&["config", "create"], &[&common, words].concat())
    }

    pub(crate) fn sync(&self, id: &str) -> Value {
        let report = self.json(&["sync"], &["--sync-id", id]);
        assert_eq!(report["status"], "completed", "{report:#}");
        report
    }

    /// Each table's folder, by schema and table. All are different, whatever a
    /// file system makes of them.
    pub(crate) fn folders(&self, report: &Value) -> BTreeMap<(String, String), String> {
        let lake = self.desk.path("lake");
        let tables = report["tables"].as_array().unwrap().iter();
        let folders = tables.map(|table| {
            let part = |name: &str| table["table"][name].as_str().unwrap().to_owned();
            let location = table["location"].as_str().unwrap();
            let (_, folder) = location.split_once("/lake/").unwrap();
            for segment in folder.split('/') {
                assert!(!matches!(segment, "" | "." | ".."), "{folder}");
                assert!(!segment.contains(['\n', '\\', ':']) && segment.len() < 256, "{folder}");
            }
            assert!(lake.join(folder).join("_tidelake/latest.json").is_file(), "{folder}");
            ((part("schema"), part("table")), folder.to_owned())
        });
        folders.collect()
    }

    /// Fails unless the lake holds exactly those rows of the table, in its columns.
    pub(crate) fn same(
        &self,
        folders: &BTreeMap<(String, String), String>,
        odd: &Odd,
        mut wanted: Vec<Vec<Option<String>>>,
    ) {
        let folder = &folders[&(odd.schema.clone(), odd.table.clone())];
        let lake = reader::folder(&self.desk.path("lake"));
        let found =
            self.reader.rows(&lake, folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
        assert_eq!(found.columns, odd.columns, "{folder}");
        wanted.sort();
        let mut rows = found.rows;
        rows.sort();
        assert_eq!(rows, wanted, "{folder}");
    }

    /// A watermark's value by the quoted name of its table.
    pub(crate) fn watermark(&self, id: &str, table: &str) -> String {
        let found = self.json(&["watermarks", "get"], &["--sync-id", id, "--table", table]);
        let value = &found["progress"]["watermark"];
        value["value"].as_str().unwrap_or_else(|| panic!("{found:#}")).to_owned()
    }
}
