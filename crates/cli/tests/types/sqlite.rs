//! The types of SQLite, end to end.

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::json;

use crate::bench::{Bench, Database};
use crate::sqlite_table::{ODD, SAMPLES};
use crate::terminal::{Desk, file, server};

pub(crate) struct Sqlite(Connection);

/// A desk with an empty database; `None` where there is no second reader.
pub(crate) fn sqlite() -> Option<(Desk, Sqlite)> {
    server("TIDELAKE_TEST_PYTHON")?;
    let desk = Desk::new();
    let credential = |name: &str| file(&desk.path(name));
    desk.credentials(&json!({"state": credential("state.db"), "source": credential("types.db")}));
    let database = Sqlite(Connection::open(desk.path("types.db")).unwrap());
    Some((desk, database))
}

impl Database for Sqlite {
    fn schema(&self) -> &str {
        "main"
    }

    fn run(&self, sql: &str) {
        self.0.execute_batch(sql).unwrap_or_else(|error| panic!("{error} in {sql}"));
    }

    fn column(&self, sql: &str) -> Vec<Option<String>> {
        let mut statement = self.0.prepare(sql).unwrap_or_else(|error| panic!("{error} in {sql}"));
        let cells = statement.query_map([], |row| {
            Ok(match row.get_ref(0)? {
                ValueRef::Null => None,
                ValueRef::Integer(number) => Some(number.to_string()),
                ValueRef::Real(number) => Some(hexadecimal(&number.to_be_bytes())),
                ValueRef::Text(text) => Some(String::from_utf8(text.to_vec()).unwrap()),
                ValueRef::Blob(bytes) => Some(hexadecimal(bytes)),
            })
        });
        cells.unwrap().map(Result::unwrap).collect()
    }

    fn bits(&self, column: &str, table: &str) -> Vec<Option<String>> {
        self.column(&format!("SELECT {column} FROM {table} ORDER BY id"))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_type_of_sqlite_is_what_the_database_says() {
    let Some((desk, database)) = sqlite() else { return };
    let bench = Bench { desk, database: &database };
    bench.fill(SAMPLES);
    let wrong = bench.differences(SAMPLES, &bench.samples());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn odd_values_of_sqlite_follow_their_policies_and_are_counted() {
    let Some((desk, database)) = sqlite() else { return };
    let bench = Bench { desk, database: &database };
    let wrong = bench.odd_values(ODD);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
