//! What no further try would mend: the run ends at once and says why.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::{Bench, Held};
use crate::database::{Server, servers};

const TABLES: &str = "
    CREATE TABLE events (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(20) NOT NULL);
    CREATE TABLE other (id INT PRIMARY KEY);
    INSERT INTO events (note) VALUES ('first')";

/// A user of its own, dropped with the test.
struct Reader<'a>(&'a Bench, String);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let _ = self.0.database.session().try_run(&format!("DROP USER IF EXISTS {}", self.1));
    }
}

fn name_of(bench: &Bench) -> String {
    format!("r_{}", bench.database.name.trim_start_matches("e2e_"))
}

fn make_reader(bench: &Bench) -> Reader<'_> {
    let user = name_of(bench);
    bench.database.run(&format!(
        "CREATE USER {user} IDENTIFIED BY 'First-1'; GRANT SELECT ON {}.* TO {user};
         GRANT PROCESS ON *.* TO {user}",
        bench.database.name
    ));
    Reader(bench, user)
}

fn bench(server: Server) -> Option<Bench> {
    let mut bench = Bench::new(server, TABLES)?;
    let credential = bench.database.credential_of(&name_of(&bench), "First-1");
    bench.credential("source", credential);
    Some(bench)
}

#[test]
fn a_password_that_was_changed_is_not_tried_again() {
    for server in servers() {
        let Some(bench) = bench(server) else { return };
        let reader = make_reader(&bench);
        bench.create("--incremental-table {db}.events:id:integer");
        bench.database.run(&format!("ALTER USER {} IDENTIFIED BY 'Second-2'", reader.1));
        let began = Instant::now();
        let report = bench.try_sync("");
        assert!(began.elapsed() < Duration::from_secs(10), "{server:?}: {report:?}");
        assert_ne!(report.code, 0, "{server:?}: {report:?}");
        assert!(!report.stderr.contains("trying again"), "{server:?}: {report:?}");
        assert!(
            report.stderr.contains("hint: ") && report.stderr.contains("password"),
            "{report:?}"
        );
        assert!(!report.stderr.contains("First-1"), "{server:?}: {report:?}");
    }
}

#[test]
fn a_privilege_that_was_taken_meanwhile_is_not_tried_again() {
    for server in servers() {
        let Some(bench) = bench(server) else { return };
        let reader = make_reader(&bench);
        bench.create("--incremental-table {db}.events:id:integer");
        let run = Held::start(&bench, "clock:{db}.events");
        let name = &bench.database.name;
        bench.database.run(&format!(
            "REVOKE SELECT ON {name}.* FROM {0}; GRANT SELECT ON {name}.other TO {0}",
            reader.1
        ));
        let report = run.end();
        let error = &report.table("events")["error"];
        assert_eq!(error["kind"], "denied", "{server:?}: {report:?}");
        assert!(!report.stderr.contains("trying again"), "{server:?}: {report:?}");
    }
}

#[test]
fn a_column_that_vanished_is_not_tried_again() {
    for server in servers() {
        let Some(bench) = Bench::new(server, TABLES) else { return };
        bench.create("--incremental-table {db}.events:id:integer");
        let run = Held::start(&bench, "load:{db}.events");
        bench.database.run("ALTER TABLE events DROP COLUMN note");
        let report = run.end();
        let again = report.stderr.lines().filter(|line| line.contains("trying again"));
        let of_the_column = again.filter(|line| line.contains("note")).count();
        assert_eq!(of_the_column, 0, "{server:?}: {report:?}");
        // What is there is read, or the run says that it is not the table it knew.
        let error = &report.table("events")["error"];
        assert!(report.code == 0 || error["hint"].is_string(), "{server:?}: {report:?}");
        bench.sync();
    }
}

#[test]
fn a_server_of_the_other_kind_is_told_with_a_hint() {
    for server in servers() {
        let Some(mut bench) = Bench::new(server, TABLES) else { return };
        let mut credential = bench.database.credential();
        let other = if server == Server::MariaDb { "mysql" } else { "mariadb" };
        credential["ds_type"] = json!(other);
        bench.credential("source", credential);
        let answer = bench.try_create("");
        assert_ne!(answer.code, 0, "{}", answer.transcript());
        assert!(answer.stderr.contains(server.ds_type()), "{}", answer.transcript());
        assert!(answer.stderr.contains("hint: "), "{}", answer.transcript());
    }
}
