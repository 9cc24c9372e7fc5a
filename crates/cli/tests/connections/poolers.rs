//! PgBouncer between the program and the server.

use serde_json::json;

use crate::bench::Bench;
use crate::running::{CURSOR, MORE, TABLES};
use crate::terminal::server;

fn behind(mode: &str) -> Option<Bench> {
    let port = server(&format!("TIDELAKE_TEST_PGBOUNCER_{mode}_PORT"))?;
    let mut bench = Bench::new(TABLES)?;
    let mut credential = bench.database.credential();
    credential["info"]["port"] = json!(port);
    bench.credential("source", credential);
    Some(bench)
}

#[test]
fn a_pool_in_session_mode_is_as_good_as_none() {
    let Some(bench) = behind("SESSION") else { return };
    bench.create(CURSOR);
    bench.sync();
    bench.database.run(MORE);
    let report = bench.sync();
    assert_eq!(report.rows("events"), 12_001, "{report:?}");
    bench.same("events", "true");
    bench.same("kinds", "true");
}

#[test]
fn a_pool_in_transaction_mode_is_refused_with_the_remedy() {
    let Some(bench) = behind("TRANSACTION") else { return };
    let answer = bench.try_create(CURSOR);
    assert_eq!(answer.code, 2, "{}", answer.transcript());
    assert!(answer.stderr.contains("pooler"), "{}", answer.transcript());
    assert!(answer.stderr.contains("pool_mode = session"), "{}", answer.transcript());
}
