//! What a sync may read, and what it must leave alone.

use crate::bench::{Bench, GLOBAL};
use crate::terminal::server;

#[test]
fn a_table_that_may_not_be_read_is_told_when_the_sync_is_made() {
    let Some(mut bench) = Bench::new(
        "CREATE TABLE open (id integer); CREATE TABLE closed (id integer);
         INSERT INTO open VALUES (1)",
    ) else {
        return;
    };
    let user = format!("reader_{}", bench.database.name);
    bench.database.run(&format!(
        "CREATE ROLE {user} LOGIN PASSWORD 'of-the-reader'; GRANT SELECT ON open TO {user}"
    ));
    bench.credential("source", bench.database.credential_of(&user, "of-the-reader"));
    let answer = bench.try_create("");
    let text = answer.transcript();
    assert_eq!(answer.code, 1, "{text}");
    assert!(answer.stderr.contains("may not read public.closed"), "{text}");
    assert!(answer.stderr.contains("hint: grant the user the right to read"), "{text}");
    bench.create("--exclude closed");
    bench.sync();
    bench.same("open", "true");
    bench.database.run(&format!("DROP OWNED BY {user}; DROP ROLE {user}"));
}

#[test]
fn the_state_store_of_the_same_database_is_not_exported() {
    let Some(mut bench) = Bench::new(
        "CREATE TABLE mine (id integer); CREATE TABLE runs (id integer); INSERT INTO mine VALUES (1)",
    ) else {
        return;
    };
    let setting = |name: &str| server(&format!("TIDELAKE_TEST_PG_{name}")).unwrap();
    let (user, password) = (setting("USER"), setting("PASSWORD"));
    bench.credential("state", bench.database.credential_of(&user, &password));
    bench.create("");
    let report = bench.sync();
    let tables: Vec<_> = report.json["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| table["location"].as_str().unwrap().rsplit_once("lake/").unwrap().1)
        .collect();
    // A table that only has the name of one of the store's is the user's.
    assert_eq!(tables, ["public/mine", "public/runs"]);
    let plan = bench.desk.must(&format!("plan {GLOBAL} --sync-id s"));
    assert!(!plan.contains("table_state"), "{plan}");
}
