//! A run that goes on while the test does something to it.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::{Bench, GLOBAL, Report};
use crate::proxy::Proxy;
use crate::terminal::server;

/// Longer than any run here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rows of a width such that a table of some thousands takes many packets.
pub(crate) const TABLES: &str = "
    CREATE TABLE kinds AS SELECT g AS id, md5(g::text) || repeat('k', 200) AS text
        FROM generate_series(1, 12000) g;
    CREATE TABLE events (id int PRIMARY KEY, at timestamptz, text text);
    INSERT INTO events SELECT g, now() - interval '2 h' + g * interval '100 ms',
        md5(g::text) || repeat('e', 200) FROM generate_series(1, 12000) g;
    INSERT INTO events VALUES (20001, NULL, 'without a time'), (20002, NULL, 'another');
    CREATE INDEX ON events (at);
    ANALYZE;
";

/// More events after the first run.
pub(crate) const MORE: &str = "
    INSERT INTO events SELECT g, now() - interval '1 h' + (g - 30000) * interval '100 ms',
        md5(g::text) || repeat('m', 200) FROM generate_series(30000, 42000) g;
";

/// Little memory makes small batches, so that rows arrive before a cut.
pub(crate) const CURSOR: &str =
    "--incremental-table public.events:at:datetime --n-jobs 1 --memory-limit 16MiB --parallel 16";

/// A bench whose source is reached through a proxy. Its `source` has more fields
/// than the plain credential.
pub(crate) fn behind_proxy(sql: &str, more: &Value) -> Option<(Bench, Proxy)> {
    let mut bench = Bench::new(sql)?;
    let (host, port) = (server("TIDELAKE_TEST_PG_HOST")?, server("TIDELAKE_TEST_PG_PORT")?);
    let proxy = Proxy::before(&format!("{host}:{port}"));
    let mut credential = bench.database.credential();
    credential["info"]["server"] = json!("127.0.0.1");
    credential["info"]["port"] = json!(proxy.port());
    // What the proxy counts are the bytes of rows.
    credential["info"]["sslmode"] = json!("disable");
    for (key, value) in more.as_object().unwrap() {
        credential["info"][key] = value.clone();
    }
    bench.credential("source", credential);
    Some((bench, proxy))
}

/// A `sync` under way.
pub(crate) struct Running {
    child: Option<Child>,
    hold: PathBuf,
}

impl Running {
    /// Starts one.
    pub(crate) fn start(bench: &Bench) -> Self {
        Self::begin(bench, None)
    }

    /// Starts one that is held after a step, and waits until it is there.
    pub(crate) fn held(bench: &Bench, fault: &str) -> Self {
        let running = Self::begin(bench, Some(fault));
        let began = Instant::now();
        while !running.hold.exists() {
            assert!(began.elapsed() < PATIENCE, "the run never came to {fault}");
            std::thread::sleep(Duration::from_millis(5));
        }
        running
    }

    fn begin(bench: &Bench, fault: Option<&str>) -> Self {
        let hold = bench.desk.path("held");
        let mut command = bench.desk.command();
        command.args(format!("sync {GLOBAL} --sync-id s --output json").split(' '));
        if let Some(fault) = fault {
            command.env("TIDELAKE_FAULT", fault).env("TIDELAKE_FAULT_HOLD", &hold);
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child: Some(child), hold }
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Lets it go on, and waits for its end.
    pub(crate) fn end(mut self) -> Report {
        let _ = std::fs::remove_file(&self.hold);
        let child = self.child.take().unwrap();
        Report::of_output(&child.wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
