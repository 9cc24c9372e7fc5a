//! Each change between a run that died and the run that finishes it.

use std::path::Path;

use rusqlite::Connection;

use crate::bench::{Report, assert_same};
use crate::changes::{Change, SQLITE, Then};
use crate::reader::{self, Reader};
use crate::terminal::Desk;

/// Up to the list of files a window is read again, with the columns of then; from
/// it on the run is finished with its own.
const STEPS: [(&str, bool); 4] =
    [("window", true), ("batch", true), ("committing", false), ("manifest", false)];

const SYNC: &str = "sync -a credentials.json --sync-id s --output json";

/// One table in a desk of its own.
fn died_then_changed(reader: &Reader, change: &Change, policy: &str, step: &str, again: bool) {
    let case = format!("{} {policy} {step}", change.name);
    let mut desk = Desk::new();
    let path = desk.path("shop.db");
    run(&path, "DROP TABLE orders; DROP TABLE events");
    run(&path, &Change::sql(change.table, "t"));
    run(&path, &change.insert("t", 1, change.before, false));
    desk.must(&format!(
        "config create -a credentials.json --source-db-auth-id shop --output-dir lake \
         --sync-id s --on-schema-drift {policy} --incremental-table main.t:id:integer"
    ));
    desk.must(SYNC);
    run(&path, &change.insert("t", 2, change.before, false));
    desk.set("TIDELAKE_FAULT", step);
    let died = desk.run(SYNC);
    assert_ne!(died.code, 0, "{case}: {}", died.transcript());
    desk.unset("TIDELAKE_FAULT");
    run(&path, &Change::sql(change.alter, "t"));
    run(&path, &change.insert("t", 3, change.after, true));

    let answer = desk.run(SYNC);
    let report = Report::of(answer.code, &answer.stdout, answer.stderr);
    let rows = reader.union(&reader::folder(&desk.path("lake")), "main/t").unwrap();
    match change.then(policy) {
        Then::Goes(_) => {
            assert_eq!(report.code, 0, "{case}: {report:?}");
            let (exported, late): (&[u32], &[u32]) =
                if again { (&[1], &[2]) } else { (&[1, 2], &[]) };
            assert_same(&case, rows.rows, change.rows(policy, exported, late, &[3]));
        }
        Then::Stops(message) => {
            assert_ne!(report.code, 0, "{case}: {report:?}");
            let error = report.table("t")["error"]["message"].as_str().unwrap();
            assert!(error.contains(message), "{case}: {error}");
            // What was being committed is there, and nothing else.
            assert_eq!(rows.rows.len(), if again { 1 } else { 2 }, "{case}");
        }
    }
    let folder = reader.folder(&reader::folder(&desk.path("lake")), "main/t").unwrap();
    assert!(folder.unnamed.is_empty() && folder.others.is_empty(), "{case}: {folder:?}");
}

fn run(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn each_change_after_a_crash_at_each_step_under_each_policy() {
    let cases: Vec<_> = SQLITE
        .iter()
        .flat_map(|change| ["evolve", "ignore", "fail"].map(|policy| (change, policy)))
        .flat_map(|(change, policy)| STEPS.map(|(step, again)| (change, policy, step, again)))
        .collect();
    // Each waits for programs, so that four do not want four processors.
    std::thread::scope(|scope| {
        for part in cases.chunks(cases.len().div_ceil(4)) {
            scope.spawn(move || {
                let Some(reader) = Reader::start() else { return };
                for (change, policy, step, again) in part {
                    died_then_changed(&reader, change, policy, step, *again);
                }
            });
        }
    });
}
