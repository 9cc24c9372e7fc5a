//! The types of PostgreSQL, end to end.

use serde_json::json;

use crate::bench::{Bench, Database};
use crate::database;
use crate::postgres_table::{ODD, SAMPLES, TYPES};
use crate::terminal::{Desk, file, server};

pub(crate) struct Postgres(database::Database);

/// A desk with a database that knows the types; `None` where there is no server.
pub(crate) fn postgres() -> Option<(Desk, Postgres)> {
    server("TIDELAKE_TEST_PYTHON")?;
    let database = database::Database::make()?;
    // How the program's own sessions print.
    database.run(&format!("SET intervalstyle = iso_8601; SET timezone = 'UTC'; {TYPES}"));
    let mut desk = Desk::new();
    desk.hide(&server("TIDELAKE_TEST_PG_PASSWORD")?);
    let state = file(&desk.path("state.db"));
    desk.credentials(&json!({"state": state, "source": database.credential()}));
    Some((desk, Postgres(database)))
}

impl Database for Postgres {
    fn schema(&self) -> &str {
        "public"
    }

    fn run(&self, sql: &str) {
        self.0.run(sql);
    }

    fn column(&self, sql: &str) -> Vec<Option<String>> {
        self.0.rows(sql).into_iter().map(|mut row| row.remove(0)).collect()
    }

    fn bits(&self, column: &str, table: &str) -> Vec<Option<String>> {
        self.column(&format!(
            "SELECT encode(CASE pg_typeof({column})::text WHEN 'real' THEN float4send({column}::real)
             ELSE float8send({column}) END, 'hex') FROM {table} ORDER BY id"
        ))
    }
}

#[test]
fn every_type_of_postgres_is_what_the_server_says() {
    let Some((desk, database)) = postgres() else { return };
    let bench = Bench { desk, database: &database };
    bench.fill(SAMPLES);
    let wrong = bench.differences(SAMPLES, &bench.samples());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn odd_values_of_postgres_follow_their_policies_and_are_counted() {
    let Some((desk, database)) = postgres() else { return };
    let bench = Bench { desk, database: &database };
    let wrong = bench.odd_values(ODD);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
