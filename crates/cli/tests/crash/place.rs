//! A source, a lake and a state store, and a sync from one into the other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidelake_model::Step;

use crate::reader::{Reader, Rows, folder};
use crate::server::Server;
use crate::shop::{Cells, Shop, TABLES};
use crate::terminal::{Desk, file, server};

/// What a place is made of; everything that is not said is a file or a folder.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts {
    pub(crate) server_source: bool,
    pub(crate) bucket: bool,
    pub(crate) server_state: bool,
    pub(crate) publishes: bool,
}

impl Parts {
    /// Every combination of source, storage and state store.
    pub(crate) fn all() -> Vec<Self> {
        let numbers = 0..8u8;
        let parts = numbers.map(|number| Self {
            server_source: number & 1 > 0,
            bucket: number & 2 > 0,
            server_state: number & 4 > 0,
            publishes: false,
        });
        parts.collect()
    }
}

/// What counts in the lake, by table.
pub(crate) type Seen = Vec<Cells>;

pub(crate) struct Place {
    pub(crate) desk: Desk,
    pub(crate) shop: Shop,
    pub(crate) lake: Value,
    pub(crate) server: Option<Rc<Server>>,
    pub(crate) parts: Parts,
}

/// The variables that tell where the servers of a place are; each that is missing
/// is told.
fn has_servers(parts: Parts) -> bool {
    let needs_database = parts.server_source || parts.server_state || parts.publishes;
    let database = !needs_database || server("TIDELAKE_TEST_PG_HOST").is_some();
    let bucket = !parts.bucket || server("TIDELAKE_TEST_S3_ENDPOINT").is_some();
    database && bucket
}

impl Place {
    /// A place with a sync named `nightly`; `None` where a server is missing.
    pub(crate) fn make(parts: Parts, more: &str) -> Option<Self> {
        Self::with_strategy(parts, "", more)
    }

    /// The same, whose incremental tables have a strategy, such as `!delete_insert`.
    pub(crate) fn with_strategy(parts: Parts, strategy: &str, more: &str) -> Option<Self> {
        if !has_servers(parts) {
            return None;
        }
        let mut desk = Desk::new();
        let needs_database = parts.server_source || parts.server_state || parts.publishes;
        let database = needs_database.then(|| Rc::new(Server::make().unwrap()));
        if database.is_some() {
            desk.set("DESK_PASSWORD", &server("TIDELAKE_TEST_PG_PASSWORD").unwrap());
        }
        let credential = |schema: &str| database.as_ref().unwrap().credential(schema);
        let source = desk.path("source.db");
        let shop = match parts.server_source {
            true => Shop::server(Rc::clone(database.as_ref().unwrap())),
            false => Shop::file(&source),
        };
        let mut credentials = json!({
            "source": if parts.server_source { credential("none") } else { file(&source) },
            "state": if parts.server_state {
                credential("own_state")
            } else {
                file(&desk.path("state.db"))
            },
        });
        if parts.publishes {
            credentials["warehouse"] = credential("none");
        }
        let (lake, target) = if parts.bucket {
            let bucket = make_bucket();
            credentials["bucket"] = bucket_credential(&bucket);
            let endpoint = server("TIDELAKE_TEST_S3_ENDPOINT");
            let lake = json!({"endpoint": endpoint, "bucket": bucket, "prefix": "lake"});
            (lake, "--target-storage-id bucket")
        } else {
            (folder(&desk.path("lake")), "--output-dir lake")
        };
        desk.credentials(&credentials);
        let place = Self { desk, shop, lake, server: database, parts };
        let (cuts, publishing) = (
            if parts.server_source {
                "--fastbcp-table-config orders:RangeId:amount:2;\
                 events:RangeId:weight:2;units:RangeId:factor:2"
            } else {
                ""
            },
            if parts.publishes {
                "--publish-target warehouse --publish-method internal \
                 --publish-schema-pattern pub_{schema}"
            } else {
                ""
            },
        );
        place.must(&format!(
            "config create --source-db-auth-id source --source-schema-name main --sync-id nightly \
             {target} --incremental-table main.orders:updated_at:timestamp{strategy} \
             --incremental-table main.events:id:integer{strategy} {cuts} {publishing} {more}"
        ));
        Some(place)
    }

    /// A command line on the place's state store.
    pub(crate) fn must(&self, line: &str) -> String {
        self.desk.must(&format!("{line} -a credentials.json --lxdb-auth-id state"))
    }

    /// The same, as JSON.
    pub(crate) fn told(&self, line: &str) -> Value {
        serde_json::from_str(&self.must(&format!("{line} --output json"))).unwrap()
    }

    /// A `sync` that can be watched.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.desk.command();
        let line = "sync -a credentials.json --lxdb-auth-id state --sync-id nightly --output json";
        command.args(line.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// One that was started.
    pub(crate) fn start(&self) -> Running {
        Running { child: self.command().spawn().unwrap(), hold: None }
    }

    /// One that was started and waits after a step, where it dies or is let go.
    pub(crate) fn hold(&self, fault: &str) -> Running {
        let hold = self.desk.path(&format!("hold-{}", ulid::Ulid::new()));
        let mut command = self.command();
        command.env("TIDELAKE_FAULT", fault).env("TIDELAKE_FAULT_HOLD", &hold);
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        while !hold.exists() {
            if child.try_wait().unwrap().is_some() {
                panic!("{fault} was never reached: {}", said(&child.wait_with_output().unwrap()));
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{fault} was never reached");
            std::thread::sleep(Duration::from_millis(2));
        }
        Running { child, hold: Some(hold) }
    }

    /// A run that dies right after a step.
    pub(crate) fn die(&self, fault: &str) -> ExitStatus {
        let output = self.command().env("TIDELAKE_FAULT", fault).output().unwrap();
        assert_eq!(output.status.signal(), Some(6), "{fault} was not reached: {}", said(&output));
        output.status
    }

    /// A plain `sync` that ends well; its report.
    pub(crate) fn sync(&self) -> Value {
        let started = Instant::now();
        let output = self.command().output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(10), "it waited {took:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What the source holds.
    pub(crate) fn source(&self) -> Seen {
        TABLES.iter().map(|table| self.shop.rows(table)).collect()
    }

    pub(crate) fn lake_rows(&self, reader: &Reader, table: &str) -> Rows {
        let mut rows = reader.rows(&self.lake, &format!("main/{table}")).unwrap();
        rows.rows.sort();
        rows
    }

    /// What the lake holds, to somebody who goes by the manifests.
    pub(crate) fn seen(&self, reader: &Reader) -> Seen {
        TABLES.iter().map(|table| self.lake_rows(reader, table).rows).collect()
    }

    /// After a plain sync that ended well: the lake holds the source, each row
    /// once, nothing lies about, and the state store knows how far it got.
    pub(crate) fn is_whole(&self, reader: &Reader, report: &Value, because: &str) {
        let watermarks = self.told("watermarks list");
        for table in TABLES {
            let rows = self.lake_rows(reader, table);
            same(&rows.rows, &self.shop.rows(table), &format!("{because}: {table}"));
            self.is_tidy(reader, table, because);
            let told = of_table(report["tables"].as_array().unwrap(), "/table/table", table);
            assert_eq!(told.unwrap()["status"], "completed", "{because}: {report}");
            let record = of_table(watermarks.as_array().unwrap(), "/key/table/table", table);
            assert_eq!(record.is_some(), table != "units", "{because}: {watermarks}");
            let Some(record) = record else { continue };
            let progress = &record["progress"];
            let reached = progress["watermark"]["value"].as_str().unwrap();
            assert_eq!(told.unwrap()["watermark_after"], reached, "{because}");
            // The last window ends there, whether or not there was a row in it.
            let window = told.unwrap()["window"].as_str().unwrap();
            assert!(window.contains(&format!(", {reached}]")), "{because}: {window}: {record}");
            let seen = rows.rows.iter().map(|row| row[usize::from(table == "orders")].as_ref());
            let highest = seen.flatten().max_by_key(|text| (text.len(), *text)).unwrap();
            assert_eq!(progress["max_seen"]["value"], *highest, "{because}: {record}");
            if table == "events" {
                assert_eq!(reached, highest, "{because}: {record}");
            }
            let committed = &rows.head.unwrap()["window"]["progress"];
            assert_eq!(progress["max_seen"], committed["max_seen"], "{because}: {record}");
        }
        assert_eq!(self.told("lxdb locks"), json!([]), "{because}");
    }

    fn is_tidy(&self, reader: &Reader, table: &str, because: &str) {
        let found = reader.folder(&self.lake, &format!("main/{table}")).unwrap();
        let nothing: [String; 0] = [];
        assert_eq!(found.unnamed, nothing, "{because}: {table}");
        assert_eq!(found.dead, nothing, "{because}: {table}");
        assert_eq!(found.others, nothing, "{because}: {table}");
    }

    /// Multipart uploads that nobody completed or gave up, each with its table.
    pub(crate) fn uploads(&self, reader: &Reader) -> Vec<(&'static str, String)> {
        let folder = |table| reader.folder(&self.lake, &format!("main/{table}")).unwrap();
        let of_table = |table| folder(table).uploads.into_iter().map(move |(_, id)| (table, id));
        TABLES.into_iter().flat_map(of_table).collect()
    }

    /// Runs that are not known to have ended.
    pub(crate) fn runs_under_way(&self) -> Vec<Value> {
        let runs = self.told("status --sync-id nightly --limit 0");
        let runs = runs.as_array().unwrap().iter();
        runs.filter(|run| run["status"] == "running").cloned().collect()
    }

    /// Works on the state store behind everybody's back.
    pub(crate) fn tamper(&self, statement: &str) {
        match (&self.server, self.parts.server_state) {
            (Some(server), true) => {
                server.execute(&format!("SET search_path = own_state; {statement}"));
            }
            _ => {
                let connection = rusqlite::Connection::open(self.desk.path("state.db")).unwrap();
                connection.busy_timeout(Duration::from_secs(10)).unwrap();
                connection.execute_batch(statement).unwrap();
            }
        }
    }
}

fn of_table<'a>(list: &'a [Value], pointer: &str, table: &str) -> Option<&'a Value> {
    list.iter().find(|entry| entry.pointer(pointer).is_some_and(|name| name == table))
}

/// A bucket of its own, since the emulator looks at all objects of a bucket when it
/// lists some.
pub(crate) fn make_bucket() -> String {
    let endpoint = server("TIDELAKE_TEST_S3_ENDPOINT").unwrap();
    let host = endpoint.trim_start_matches("http://").trim_end_matches('/');
    let bucket = format!("crash-{}", ulid::Ulid::new().to_string().to_lowercase());
    let mut stream = TcpStream::connect(host).unwrap();
    let signature = "AWS4-HMAC-SHA256 Credential=desk/20260101/us-east-1/s3/aws4_request, \
                     SignedHeaders=host, Signature=none";
    let request = format!(
        "PUT /{bucket} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {signature}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    bucket
}

fn bucket_credential(bucket: &str) -> Value {
    let setting = |name: &str| server(&format!("TIDELAKE_TEST_S3_{name}")).unwrap();
    json!({"ds_type": "s3", "auth_mode": "keys", "info": {
        "directory": format!("s3://{bucket}/lake"),
        "endpoint_url": setting("ENDPOINT"), "region": setting("REGION"),
        "access_key_id": setting("ACCESS_KEY"), "secret_access_key": setting("SECRET_KEY"),
    }})
}

/// Compares rows, and says which are missing, doubled or made up.
pub(crate) fn same(found: &Cells, expected: &Cells, because: &str) {
    if found == expected {
        return;
    }
    let difference = |left: &Cells, right: &Cells| {
        let mut right = right.iter().peekable();
        let mut only = vec![];
        for row in left {
            while right.next_if(|other| *other < row).is_some() {}
            if right.next_if(|other| *other == row).is_none() {
                only.push(row.clone());
            }
        }
        only
    };
    let missing = difference(expected, found);
    let surplus = difference(found, expected);
    let first = |rows: &Cells| rows.iter().take(5).cloned().collect::<Vec<_>>();
    panic!(
        "{because}: {} rows are missing, such as {:?}; {} are too many, such as {:?}",
        missing.len(),
        first(&missing),
        surplus.len(),
        first(&surplus)
    );
}

/// Everything a process said.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// A `sync` that runs.
pub(crate) struct Running {
    child: Child,
    hold: Option<PathBuf>,
}

impl Running {
    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &process]).status().unwrap();
        assert!(sent.success());
    }

    /// Lets it go on.
    pub(crate) fn go_on(&mut self) {
        if let Some(hold) = self.hold.take() {
            std::fs::remove_file(hold).unwrap();
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, which comes although nobody lets it go on.
    pub(crate) fn end_as_it_is(self) -> Output {
        self.child.wait_with_output().unwrap()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Output {
        self.go_on();
        self.child.wait_with_output().unwrap()
    }
}

/// A step, a table and a time: what `TIDELAKE_FAULT` wants to be told.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) step: Step,
    pub(crate) table: Option<&'static str>,
    pub(crate) time: u32,
}

impl Fault {
    pub(crate) fn text(&self) -> String {
        let Self { step, table, time } = self;
        match table {
            Some(table) => format!("{}:main.{table}:{time}", step.name()),
            None => format!("{}:{time}", step.name()),
        }
    }

    /// What the lake may show after it, given what it showed before and what the
    /// source held: each table is as it was, or as it is, and nothing in between.
    pub(crate) fn allows(&self, seen: &Seen, before: &Seen, source: &Seen) {
        let text = self.text();
        for (at, table) in TABLES.iter().enumerate() {
            let is_old = seen[at] == before[at];
            let (is_here, early) = (self.table == Some(table), is_before(self.step, Step::Latest));
            let must_be_old = (is_here && early) || self.step == Step::Lease;
            let must_be_new = (is_here && !early) || self.step == Step::Finished;
            if must_be_old || (is_old && !must_be_new) {
                same(&seen[at], &before[at], &format!("before {text}: {table}"));
            } else {
                same(&seen[at], &source[at], &format!("after {text}: {table}"));
            }
        }
    }
}

/// Whether a step comes before another.
pub(crate) fn is_before(step: Step, other: Step) -> bool {
    let place = |wanted| Step::ALL.iter().position(|step| *step == wanted);
    place(step) < place(other)
}
