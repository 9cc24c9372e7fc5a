//! A workbench: a desk with the program, a database to read, a lake to look into.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::database::{Database, Row, Server};
use crate::proxy::Proxy;
use crate::reader::{self, Reader};
use crate::terminal::{Answer, Desk, file};

pub(crate) const GLOBAL: &str = "-a credentials.json --lxdb-auth-id state";
/// Longer than any run here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ids of the credentials: `state` and `source`.
pub(crate) struct Bench {
    pub(crate) desk: Desk,
    pub(crate) database: Database,
    pub(crate) reader: Reader,
    lake: Value,
    pub(crate) credentials: Value,
}

impl Bench {
    /// With tables made by the statements; its state store is a file.
    pub(crate) fn new(server: Server, sql: &str) -> Option<Self> {
        let reader = Reader::start()?;
        let database = Database::make(server);
        database.run(sql);
        let mut desk = Desk::new();
        desk.hide(&server.setting("PASSWORD"));
        let credentials =
            json!({"state": file(&desk.path("state.db")), "source": database.credential()});
        desk.credentials(&credentials);
        let lake = reader::folder(&desk.path("lake"));
        Some(Self { desk, database, reader, lake, credentials })
    }

    /// Adds a credential, or replaces one.
    pub(crate) fn credential(&mut self, id: &str, credential: Value) {
        self.credentials[id] = credential;
        self.desk.credentials(&self.credentials);
    }

    /// The credential goes through a proxy from now on.
    pub(crate) fn through_a_proxy(&mut self, id: &str, more: &Value) -> Proxy {
        let server = self.database.server;
        let proxy =
            Proxy::before(&format!("{}:{}", server.setting("HOST"), server.setting("PORT")));
        let mut credential = self.database.credential();
        credential["info"]["server"] = json!("127.0.0.1");
        credential["info"]["port"] = json!(proxy.port());
        // What the proxy counts are the bytes of rows.
        credential["info"]["sslmode"] = json!("disable");
        for (key, value) in more.as_object().unwrap() {
            credential["info"][key] = value.clone();
        }
        self.credential(id, credential);
        proxy
    }

    /// `config create` into the folder `lake`; `{db}` is the database's name.
    pub(crate) fn create(&self, options: &str) {
        let answer = self.try_create(options);
        assert_eq!(answer.code, 0, "{}", answer.transcript());
    }

    pub(crate) fn try_create(&self, options: &str) -> Answer {
        let id = if options.contains("--sync-id") { "" } else { "--sync-id s" };
        let options = options.replace("{db}", &self.database.name);
        self.desk.run(&format!(
            "config create {GLOBAL} --source-db-auth-id source --output-dir lake {id} {options}"
        ))
    }

    /// A sync that must succeed.
    pub(crate) fn sync(&self) -> Report {
        self.sync_as("")
    }

    pub(crate) fn sync_as(&self, options: &str) -> Report {
        let report = self.try_sync(options);
        assert_eq!(report.code, 0, "{report:?}");
        report
    }

    /// A sync that may fail.
    pub(crate) fn try_sync(&self, options: &str) -> Report {
        let id = if options.contains("--sync-id") { "" } else { "--sync-id s" };
        let answer = self.desk.run(&format!("sync {GLOBAL} {id} --output json {options}"));
        Report::of(answer.code, &answer.stdout, answer.stderr)
    }

    /// What counts of a table, below a path of its sync.
    pub(crate) fn look(&self, path: &str, table: &str) -> Vec<Row> {
        let folder = format!("{path}{}/{table}", self.database.name);
        let found = self.reader.rows(&self.lake, &folder);
        found.unwrap_or_else(|error| panic!("{folder}: {error}")).rows
    }

    /// The types of a table's columns, as the engine names them.
    pub(crate) fn types(&self, table: &str) -> Vec<String> {
        let folder = format!("{}/{table}", self.database.name);
        self.reader.rows(&self.lake, &folder).unwrap().types
    }

    /// Nothing lies about in a table's folder.
    pub(crate) fn is_tidy(&self, table: &str, because: &str) {
        let found = self.reader.folder(&self.lake, &format!("{}/{table}", self.database.name));
        let found = found.unwrap();
        let odd = [&found.unnamed, &found.dead, &found.others];
        assert!(odd.iter().all(|list| list.is_empty()), "{because}: {found:?}");
    }

    /// The lake holds exactly what the query finds, each row once.
    pub(crate) fn same(&self, table: &str, query: &str, because: &str) {
        self.same_in("", table, query, because);
    }

    pub(crate) fn same_in(&self, path: &str, table: &str, query: &str, because: &str) {
        let differ = differences(self.look(path, table), self.database.rows(query));
        assert!(differ.is_empty(), "{because}: {table}: {differ:?}");
    }

    /// Syncs until the lake holds what the query finds. Who is in flight anywhere on
    /// the server, and many tests share it, keeps rows back for a while.
    pub(crate) fn all_arrive(&self, id: &str, path: &str, table: &str, query: &str) {
        let began = Instant::now();
        loop {
            let report = self.sync_as(id);
            let differ = differences(self.look(path, table), self.database.rows(query));
            if differ.is_empty() {
                break;
            }
            assert!(differ.iter().all(|(_, count)| *count < 0), "too often: {differ:?}");
            assert!(began.elapsed() < PATIENCE, "never came: {differ:?}: {report:?}");
            sleep(Duration::from_millis(300));
        }
        let idle = self.sync_as(id);
        assert_eq!(idle.rows(table), 0, "{idle:?}");
        self.same_in(path, table, query, "after a further run");
    }
}

/// Rows that are there more often than they should be, or less often.
pub(crate) fn differences(found: Vec<Row>, wanted: Vec<Row>) -> Vec<(Row, i64)> {
    let mut counts: BTreeMap<Row, i64> = BTreeMap::new();
    for row in found {
        *counts.entry(row).or_default() += 1;
    }
    for row in wanted {
        *counts.entry(row).or_default() -= 1;
    }
    counts.retain(|_, count| *count != 0);
    counts.into_iter().take(10).collect()
}

/// A time as the reader prints it; `zone` is `Z` where it is one of UTC.
pub(crate) fn time(column: &str, zone: &str) -> String {
    format!(
        "CONCAT(DATE_FORMAT({column}, '%Y-%m-%dT%H:%i:%s'), IF(MICROSECOND({column}) = 0, '', \
         CONCAT('.', LPAD(MICROSECOND({column}), 6, '0'))), '{zone}')"
    )
}

/// What a run said of itself.
pub(crate) struct Report {
    pub(crate) code: i32,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

impl Report {
    fn of(code: i32, stdout: &str, stderr: String) -> Self {
        Self { code, json: serde_json::from_str(stdout).unwrap_or(Value::Null), stderr }
    }

    pub(crate) fn of_output(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8_lossy(&output.stdout);
        Self::of(output.status.code().unwrap_or(-1), &stdout, stderr)
    }

    /// The report of the one table of that name.
    pub(crate) fn table(&self, name: &str) -> &Value {
        let tables = self.json["tables"].as_array().unwrap_or_else(|| panic!("{self:?}"));
        let found = tables.iter().find(|table| table["table"]["table"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    pub(crate) fn rows(&self, name: &str) -> u64 {
        self.table(name)["rows"].as_u64().unwrap_or(0)
    }

    /// Codes and messages of a table's notices.
    pub(crate) fn notices(&self, name: &str) -> String {
        self.table(name)["notices"].to_string()
    }

    pub(crate) fn counter(&self, name: &str, counter: &str) -> Option<u64> {
        self.table(name)["counters"][counter].as_u64()
    }
}

impl std::fmt::Debug for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "exit {}\n{:#}\n{}", self.code, self.json, self.stderr)
    }
}

/// A `sync` under way that is held after a step.
pub(crate) struct Held {
    child: Option<Child>,
    hold: PathBuf,
}

impl Held {
    /// Starts one, and waits until it is there.
    pub(crate) fn start(bench: &Bench, fault: &str) -> Self {
        let hold = bench.desk.path("held");
        let fault = fault.replace("{db}", &bench.database.name);
        let mut command = bench.desk.command();
        command.args(format!("sync {GLOBAL} --sync-id s --output json").split(' '));
        command.env("TIDELAKE_FAULT", &fault).env("TIDELAKE_FAULT_HOLD", &hold);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut held = Self { child: Some(child), hold };
        let began = Instant::now();
        while !held.hold.exists() {
            if held.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                panic!("the run ended before {fault}: {:?}", held.end());
            }
            assert!(began.elapsed() < PATIENCE, "the run never came to {fault}");
            sleep(Duration::from_millis(5));
        }
        held
    }

    /// Lets it go on, and waits for its end.
    pub(crate) fn end(mut self) -> Report {
        let _ = std::fs::remove_file(&self.hold);
        let child = self.child.take().unwrap();
        Report::of_output(&child.wait_with_output().unwrap())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
