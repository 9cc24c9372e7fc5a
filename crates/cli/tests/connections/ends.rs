//! What no further try would mend: the run ends at once and says why.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::Bench;
use crate::database::{Database, quoted};
use crate::running::{CURSOR, Running, TABLES, behind_proxy};

const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'tidelake%'";

/// A role of its own, dropped with the test.
struct Role<'a> {
    database: &'a Database,
    name: String,
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let name = quoted(&self.name);
        let _ = self.database.session().try_run(&format!("DROP OWNED BY {name}; DROP ROLE {name}"));
    }
}

fn make_role(bench: &Bench) -> Role<'_> {
    let name = format!("{}_reader", bench.database.name);
    let quoted = quoted(&name);
    bench.database.run(&format!(
        "CREATE ROLE {quoted} LOGIN PASSWORD 'first'; GRANT pg_read_all_stats TO {quoted};
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {quoted}"
    ));
    Role { database: &bench.database, name }
}

#[test]
fn a_password_that_was_changed_meanwhile() {
    for fault in ["clock:public.events", "split:public.events", "batch:public.events"] {
        let Some(mut bench) = Bench::new(TABLES) else { return };
        let name = format!("{}_reader", bench.database.name);
        let credential = bench.database.credential_of(&name, "first");
        bench.credential("source", credential);
        let role = make_role(&bench);
        bench.create(CURSOR);
        let run = Running::held(&bench, fault);
        bench.database.run(&format!("ALTER ROLE {} PASSWORD 'second'", quoted(&role.name)));
        bench.database.run(END_SESSIONS);
        let began = Instant::now();
        let report = run.end();
        assert!(began.elapsed() < Duration::from_secs(5), "{fault}: {report:?}");
        assert!([1, 3].contains(&report.code), "{fault}: {report:?}");
        // The rows of a table may all have been on their way.
        let mut errors = ["events", "kinds"].map(|table| &report.table(table)["error"]).into_iter();
        let error = errors.find(|error| !error.is_null()).unwrap();
        assert_eq!(error["kind"], "denied", "{fault}: {report:?}");
        assert!(error["message"].as_str().unwrap().contains("28P01"), "{fault}: {report:?}");
        assert!(error["hint"].as_str().unwrap().contains("password"), "{fault}: {report:?}");
        // A lost connection was tried once more, the refusal was not.
        let again = report.stderr.matches("trying again").count();
        assert!(again <= 1, "{fault}: {report:?}");
        let second = bench.database.credential_of(&role.name, "second");
        let credentials = json!({"state": bench.credentials["state"], "source": second});
        bench.desk.credentials(&credentials);
        bench.sync();
        bench.same("events", "true");
        bench.same("kinds", "true");
    }
}

#[test]
fn a_privilege_that_was_taken_meanwhile() {
    let Some(mut bench) = Bench::new(TABLES) else { return };
    let name = format!("{}_reader", bench.database.name);
    let credential = bench.database.credential_of(&name, "first");
    bench.credential("source", credential);
    let role = make_role(&bench);
    bench.create(CURSOR);
    let run = Running::held(&bench, "clock:public.events");
    bench.database.run(&format!("REVOKE SELECT ON events FROM {}", quoted(&role.name)));
    let report = run.end();
    let error = &report.table("events")["error"];
    assert_eq!(error["kind"], "denied", "{report:?}");
    assert!(!report.stderr.contains("trying again"), "{report:?}");
}

#[test]
fn a_limit_that_the_user_set() {
    let sql = format!(
        "{TABLES} CREATE FUNCTION slow(n int) RETURNS int VOLATILE LANGUAGE sql
             AS 'SELECT n FROM pg_catalog.pg_sleep(0.1)';
         CREATE VIEW slowly AS SELECT public.slow(id) AS id FROM kinds LIMIT 40"
    );
    let Some((bench, _proxy)) = behind_proxy(&sql, &json!({"statement_timeout": 1})) else {
        return;
    };
    bench.create("--include slowly");
    let report = bench.try_sync("");
    assert_eq!(report.code, 1, "{report:?}");
    let error = &report.table("slowly")["error"];
    assert!(error["hint"].as_str().unwrap().contains("statement_timeout"), "{report:?}");
    assert!(!report.stderr.contains("trying again"), "{report:?}");
}
