//! The types of MySQL and MariaDB, end to end.

use serde_json::json;

use crate::bench::{Bench, Database};
use crate::mysql_database::{self, Server};
use crate::mysql_table::{ODD, SAMPLES, SAMPLES_OF_MARIADB};
use crate::sample::Sample;
use crate::terminal::{Desk, file, server};

pub(crate) struct Mysql(mysql_database::Database);

/// A desk with an empty database; `None` where there is no server.
pub(crate) fn mysql(of: Server) -> Option<(Desk, Mysql)> {
    server("TIDELAKE_TEST_PYTHON")?;
    if !of.is_there() {
        return None;
    }
    let database = mysql_database::Database::make(of);
    // Days that no calendar has are among the values.
    database.run("SET sql_mode = 'ALLOW_INVALID_DATES'");
    let mut desk = Desk::new();
    desk.hide(&of.setting("PASSWORD"));
    let state = file(&desk.path("state.db"));
    desk.credentials(&json!({"state": state, "source": database.credential()}));
    Some((desk, Mysql(database)))
}

/// The samples of a server.
pub(crate) fn samples(of: Server) -> Vec<Sample> {
    let more = if of == Server::MariaDb { SAMPLES_OF_MARIADB } else { &[] };
    SAMPLES.iter().chain(more).copied().collect()
}

impl Database for Mysql {
    fn schema(&self) -> &str {
        &self.0.name
    }

    fn run(&self, sql: &str) {
        self.0.run(sql);
    }

    fn column(&self, sql: &str) -> Vec<Option<String>> {
        self.0.rows(sql).into_iter().map(|mut row| row.remove(0)).collect()
    }

    fn bits(&self, column: &str, table: &str) -> Vec<Option<String>> {
        let is_single = self.0.value(&format!(
            "SELECT data_type FROM information_schema.columns WHERE table_schema = DATABASE()
             AND table_name = '{table}' AND column_name = '{column}'"
        )) == "float";
        // As a double a float is printed with all of its digits.
        let texts = self.column(&format!("SELECT {column} + 0E0 FROM {table} ORDER BY id"));
        let bits = |text: String| {
            let double: f64 = text.parse().unwrap();
            #[allow(clippy::cast_possible_truncation)]
            let single = double as f32;
            let bytes = if is_single {
                single.to_be_bytes().to_vec()
            } else {
                double.to_be_bytes().to_vec()
            };
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        texts.into_iter().map(|text| text.map(bits)).collect()
    }
}

#[test]
fn every_type_of_mysql_and_mariadb_is_what_the_server_says() {
    for of in [Server::MariaDb, Server::MySql] {
        let Some((desk, database)) = mysql(of) else { continue };
        let samples = samples(of);
        let bench = Bench { desk, database: &database };
        bench.fill(&samples);
        let wrong = bench.differences(&samples, &bench.samples());
        assert!(wrong.is_empty(), "{of:?}: {}", wrong.join("\n"));
    }
}

#[test]
fn odd_values_of_mysql_and_mariadb_follow_their_policies_and_are_counted() {
    for of in [Server::MariaDb, Server::MySql] {
        let Some((desk, database)) = mysql(of) else { continue };
        let bench = Bench { desk, database: &database };
        let wrong = bench.odd_values(ODD);
        assert!(wrong.is_empty(), "{of:?}: {}", wrong.join("\n"));
    }
}
