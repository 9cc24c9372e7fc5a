//! Runs that die after any step, with source and state store on one server.

use std::os::unix::process::ExitStatusExt;

use tidelake_model::Step;

use crate::bench::{Bench, GLOBAL, Held};
use crate::database::{Server, servers};

const TABLES: &str = "
    CREATE TABLE events (id BIGINT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40) NOT NULL);
    CREATE TABLE kinds (name VARCHAR(40) PRIMARY KEY, factor INT NOT NULL);
    INSERT INTO events (note) VALUES ('first'), ('second');
    INSERT INTO kinds VALUES ('a', 1), ('b', 2)";
const EVENTS: &str = "SELECT id, note FROM events";
const KINDS: &str = "SELECT name, factor FROM kinds";
const OPTIONS: &str = "--incremental-table {db}.events:id:integer";

fn bench(server: Server) -> Option<Bench> {
    let mut bench = Bench::new(server, TABLES)?;
    let credential = bench.database.credential();
    bench.credential("state", credential);
    bench.create(OPTIONS);
    Some(bench)
}

fn grow(bench: &Bench, because: &str) {
    bench.database.run(&format!(
        "INSERT INTO events (note) VALUES ('{because}'), ('and more');
         UPDATE kinds SET factor = factor + 1 WHERE name < 'c';
         INSERT INTO kinds VALUES ('{because}', 0)"
    ));
}

#[test]
fn a_run_that_dies_after_any_step_loses_and_doubles_nothing() {
    for server in servers() {
        let Some(bench) = bench(server) else { return };
        for step in Step::ALL {
            // Nothing is published here.
            if matches!(step, Step::Committed | Step::Published) {
                continue;
            }
            let fault = match step {
                Step::Lease | Step::Finished => step.name().to_owned(),
                _ => format!("{}:{}.events", step.name(), bench.database.name),
            };
            grow(&bench, step.name());
            let mut command = bench.desk.command();
            command.args(format!("sync {GLOBAL} --sync-id s").split(' '));
            let output = command.env("TIDELAKE_FAULT", &fault).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // A full read leaves a file behind only where one is replaced.
            if output.status.signal() != Some(6) {
                assert_eq!(
                    (step, output.status.code()),
                    (Step::Cleaned, Some(0)),
                    "{fault}: {said}"
                );
            }
            let report = bench.sync();
            assert_eq!(report.table("events")["status"], "completed", "{fault}: {report:?}");
            let because = format!("{server:?}: {fault}");
            bench.same("events", EVENTS, &because);
            bench.same("kinds", KINDS, &because);
            bench.is_tidy("events", &because);
            bench.is_tidy("kinds", &because);
        }
        let locks = bench.desk.must(&format!("lxdb locks {GLOBAL} --output json"));
        assert_eq!(locks.trim(), "[]", "{server:?}");
    }
}

/// The server ends every connection, those of the state store too.
#[test]
fn a_state_store_whose_connection_is_killed_goes_on() {
    for server in servers() {
        let Some(bench) = bench(server) else { return };
        bench.sync();
        for step in ["load", "window", "staged", "committing", "latest"] {
            grow(&bench, step);
            let run = Held::start(&bench, &format!("{step}:{{db}}.events"));
            let state = bench.database.state_name();
            let admin = bench.database.session();
            let found = admin.rows(&format!(
                "SELECT id FROM information_schema.processlist WHERE db = '{state}'"
            ));
            assert!(!found.is_empty(), "{server:?}: {step}");
            for row in found {
                admin.run(&format!("KILL {}", row[0].as_ref().unwrap()));
            }
            let report = run.end();
            assert_eq!(report.code, 0, "{server:?}: {step}: {report:?}");
            bench.sync();
            bench.same("events", EVENTS, step);
            bench.same("kinds", KINDS, step);
        }
    }
}

/// Each finds an empty store, and one of them makes it.
#[test]
fn many_first_runs_at_once_share_a_state_store() {
    for server in servers() {
        let Some(mut bench) = Bench::new(server, TABLES) else { return };
        let credential = bench.database.credential();
        bench.credential("state", credential);
        let runs: Vec<_> = (0..4)
            .map(|number| {
                let mut command = bench.desk.command();
                let line = format!(
                    "config create {GLOBAL} --source-db-auth-id source --output-dir lake{number} \
                     --sync-id s{number}"
                );
                command.args(line.split_whitespace());
                command.stdout(std::process::Stdio::piped());
                command.stderr(std::process::Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        for run in runs {
            let output = run.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let list = bench.desk.must(&format!("config list {GLOBAL} --output json"));
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list.as_array().unwrap().len(), 4, "{server:?}: {list}");
    }
}
