//! Tables made from the samples, synced by the program and read back.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::sample::{Becomes, Odd, Printed, Sample};
use crate::terminal::{Desk, server};

const GLOBAL: &str = "-a credentials.json --lxdb-auth-id state";

/// A database that samples are put into.
pub(crate) trait Database {
    /// The schema of its tables.
    fn schema(&self) -> &str;
    fn run(&self, sql: &str);
    /// One column, each cell as the database prints it.
    fn column(&self, sql: &str) -> Vec<Option<String>>;
    /// The same, floats by their bits.
    fn bits(&self, column: &str, table: &str) -> Vec<Option<String>>;
}

/// What the reader found of one column.
pub(crate) type Found = Value;

/// A desk whose credential `source` is the database.
pub(crate) struct Bench<'a> {
    pub(crate) desk: Desk,
    pub(crate) database: &'a dyn Database,
}

/// The name of a sample's column.
pub(crate) fn column(number: usize) -> String {
    format!("c{number:03}")
}

impl Bench<'_> {
    fn create(&self, id: &str, options: &str) {
        self.desk.must(&format!(
            "config create {GLOBAL} --source-db-auth-id source --output-dir lake --sync-id {id} \
             --sub-path {id} --source-schema-name {} --error-action continue {options}",
            self.database.schema()
        ));
    }

    /// Runs a sync, which may fail.
    fn sync(&self, id: &str) -> Value {
        let answer = self.desk.run(&format!("sync {GLOBAL} --sync-id {id} --output json"));
        serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.transcript()))
    }

    fn folder(&self, id: &str, table: &str) -> PathBuf {
        self.desk.path(&format!("lake/{id}/{}/{table}", self.database.schema()))
    }

    /// The newest manifest of a table.
    fn manifest(&self, id: &str, table: &str) -> Value {
        let folder = self.folder(id, table);
        let latest = document(&folder.join("_tidelake/latest.json"));
        let newest = latest["manifests"].as_array().unwrap().last().unwrap();
        document(&folder.join(newest["key"].as_str().unwrap()))
    }

    /// The paths of a table's files.
    fn files(&self, id: &str, table: &str) -> Vec<PathBuf> {
        let manifest = self.manifest(id, table);
        let files = manifest["files"].as_array().unwrap().iter();
        files.map(|file| self.folder(id, table).join(file["key"].as_str().unwrap())).collect()
    }

    /// One table with a column for each sample: a row of NULLs, then a row for
    /// each value.
    pub(crate) fn fill(&self, samples: &[Sample]) {
        let columns = samples.iter().enumerate();
        let columns: Vec<_> =
            columns.map(|(number, sample)| format!("{} {}", column(number), sample.kind)).collect();
        let mut sql = format!(
            "CREATE TABLE samples (id integer PRIMARY KEY, {}); INSERT INTO samples (id) VALUES (0);",
            columns.join(", ")
        );
        let most = samples.iter().map(|sample| sample.values.len()).max().unwrap();
        for row in 0..most {
            let given = samples.iter().enumerate();
            let given =
                given.filter_map(|(number, sample)| Some((number, sample.values.get(row)?)));
            let (names, values): (Vec<_>, Vec<_>) =
                given.map(|(number, value)| (column(number), *value)).unzip();
            sql.push_str(&format!(
                "INSERT INTO samples (id, {}) VALUES ({}, {});",
                names.join(", "),
                row + 1,
                values.join(", ")
            ));
        }
        self.database.run(&sql);
    }

    /// Syncs the samples; by column what the reader found.
    pub(crate) fn samples(&self) -> Found {
        self.create("samples", "--include samples");
        let report = self.sync("samples");
        assert_eq!(report["status"], "completed", "{report:#}");
        ask(&json!({ "samples": self.files("samples", "samples") }))["samples"].clone()
    }

    /// What differs between the database and what either engine read.
    pub(crate) fn differences(&self, samples: &[Sample], found: &Found) -> Vec<String> {
        let mut wrong = vec![];
        for (number, sample) in samples.iter().enumerate() {
            let name = column(number);
            let wanted = match sample.printed {
                Printed::As(expression) | Printed::Json(expression) => {
                    let expression = expression.replace("{c}", &name);
                    self.database.column(&format!("SELECT {expression} FROM samples ORDER BY id"))
                }
                Printed::Bits => self.database.bits(&name, "samples"),
            };
            assert_eq!(wanted[0], None, "{}", sample.kind);
            let arrow = &found[&name]["arrow"];
            if *arrow != sample.arrow {
                wrong.push(format!("{} is {arrow} and not {}", sample.kind, sample.arrow));
            }
            for engine in ["pyarrow", "duckdb"] {
                if engine == "duckdb" && sample.duckdb_differs {
                    continue;
                }
                let values = &found[&name][engine];
                let values: Vec<Option<String>> = serde_json::from_value(values.clone()).unwrap();
                for (row, wanted) in wanted.iter().enumerate() {
                    let found = values.get(row).cloned().flatten();
                    if !same(&sample.printed, wanted, &found) {
                        wrong.push(format!(
                            "{} {} by {engine}: {} and not {}",
                            sample.kind,
                            sample.values.get(row.wrapping_sub(1)).unwrap_or(&"NULL"),
                            short(&found),
                            short(wanted)
                        ));
                    }
                }
            }
        }
        wrong
    }

    /// Puts each odd value into a table of its own, syncs those with the same
    /// options together, and gives what did not become what it should.
    pub(crate) fn odd_values(&self, odd_values: &[Odd]) -> Vec<String> {
        let mut groups: BTreeMap<&str, Vec<&Odd>> = BTreeMap::new();
        for odd in odd_values {
            groups.entry(odd.options).or_default().push(odd);
        }
        let groups: Vec<_> = groups.into_iter().enumerate().collect();
        let reports: Vec<_> = groups
            .iter()
            .map(|(number, (options, group))| self.sync_group(*number, options, group))
            .collect();
        let mut files = BTreeMap::new();
        for (number, report) in reports.iter().enumerate() {
            let tables = report["tables"].as_array().unwrap().iter();
            for table in tables.filter(|table| table["error"].is_null()) {
                let name = table["table"]["table"].as_str().unwrap();
                files.insert(name, self.files(&group_id(number), name));
            }
        }
        let read = ask(&json!(files));
        let status = self.desk.must(&format!("status {GLOBAL} --limit 100 --output json"));
        let status: Value = serde_json::from_str(&status).unwrap();
        let mut wrong = vec![];
        for ((number, (options, group)), report) in groups.iter().zip(&reports) {
            let run = status.as_array().unwrap().iter();
            let run = run.clone().find(|run| run["run"]["run_id"] == report["run_id"]).unwrap();
            for (place, odd) in group.iter().enumerate() {
                let name = table_name(*number, place);
                let table = table_of(report, &name);
                let spelled = format!("{}.{name}:v", self.database.schema());
                let mut complaint = became(odd, table, &read[&name]["v"], &spelled);
                if table["error"].is_null() {
                    // The same counts wherever they are told.
                    let manifest = self.manifest(&group_id(*number), &name);
                    let told = [table_of(run, &name), &manifest].map(counted);
                    if told.iter().any(|told| *told != counted(table)) {
                        complaint = Some(format!("counted {:?} or {told:?}", counted(table)));
                    }
                }
                if let Some(complaint) = complaint {
                    let Odd { kind, value, .. } = odd;
                    wrong.push(format!("{kind} {value} {options}: {complaint}"));
                }
            }
        }
        wrong
    }

    /// Makes the tables of odd values with the same options, and syncs them.
    fn sync_group(&self, number: usize, options: &str, group: &[&Odd]) -> Value {
        let mut sql = String::new();
        let mut for_each = String::new();
        for (place, odd) in group.iter().enumerate() {
            let name = table_name(number, place);
            sql.push_str(&format!(
                "CREATE TABLE {name} (id integer PRIMARY KEY, v {}); \
                 INSERT INTO {name} VALUES (1, {});",
                odd.kind, odd.value
            ));
            if place == 0 || options.contains("{c}") {
                let column = format!("{}.{name}:v", self.database.schema());
                for_each.push_str(&format!(" {}", options.replace("{c}", &column)));
            }
        }
        self.database.run(&sql);
        let id = group_id(number);
        self.create(&id, &format!("--include {id}x%{for_each}"));
        let report = self.sync(&id);
        assert_eq!(report["tables"].as_array().unwrap().len(), group.len(), "{report:#}");
        report
    }
}

fn group_id(number: usize) -> String {
    format!("g{number:02}")
}

fn table_name(group: usize, place: usize) -> String {
    format!("{}x{place:02}", group_id(group))
}

/// What a run or a report says of a table.
fn table_of<'a>(run: &'a Value, name: &str) -> &'a Value {
    let mut tables = run["tables"].as_array().unwrap().iter();
    tables.find(|table| table["table"]["table"] == *name).unwrap()
}

/// Counts of what followed a policy.
fn counted(table: &Value) -> BTreeMap<String, u64> {
    let counters = table["counters"].as_object().unwrap().iter();
    let counters = counters.filter(|(name, _)| name.contains(':'));
    counters.map(|(name, count)| (name.clone(), count.as_u64().unwrap())).collect()
}

/// What is wrong with what an odd value became.
fn became(odd: &Odd, table: &Value, found: &Found, spelled: &str) -> Option<String> {
    let counters = counted(table);
    let one = |name: Option<&str>| -> BTreeMap<_, _> {
        name.map(|name| (format!("{name}:v"), 1)).into_iter().collect()
    };
    let error = &table["error"];
    let is_as_wanted = match odd.becomes {
        Becomes::Text(text, count) => found["pyarrow"] == json!([text]) && counters == one(count),
        Becomes::Null(count) => found["pyarrow"] == json!([null]) && counters == one(Some(count)),
        Becomes::Error(message, hint) => {
            let has = |part: &str, text: &str| error[part].as_str().unwrap_or("").contains(text);
            has("message", message)
                && has("message", "\"v\"")
                && has("hint", &hint.replace("{c}", spelled))
        }
    };
    let what = format!("became {found} with {counters:?} and {error}");
    (!is_as_wanted).then_some(what)
}

fn same(printed: &Printed, wanted: &Option<String>, found: &Option<String>) -> bool {
    match (printed, wanted, found) {
        (Printed::Json(_), Some(wanted), Some(found)) => {
            let without = |text: &str| text.replace([' ', '\n'], "");
            serde_json::from_str::<Value>(found).is_ok() && without(wanted) == without(found)
        }
        _ => wanted == found,
    }
}

fn short(value: &Option<String>) -> String {
    match value {
        Some(text) => format!("{:?} ({})", text.chars().take(60).collect::<String>(), text.len()),
        None => "NULL".to_owned(),
    }
}

fn document(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

fn ask(request: &Value) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/types/values.py");
    let mut python = Command::new(server("TIDELAKE_TEST_PYTHON").unwrap())
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
