//! What is shown of odd names.

use crate::bench::{Bench, NAMES, Odd, quoted};
use crate::sqlite;

fn shown(bench: &Bench, words: &[&str]) -> String {
    let global = ["-a", "credentials.json", "--lxdb-auth-id", "state"];
    let output = bench.run(&[words, &global].concat());
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// No character of a name is a command to the terminal, and none begins a line.
fn is_harmless(text: &str) {
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("line")), "{text}");
}

#[test]
fn a_name_keeps_to_its_line_and_its_column() {
    let Some((bench, database)) = sqlite::bench() else { return };
    let odd = ["new\nline", "tab\tand\u{7}bell", "\u{1b}[31mred", "plain"].map(|name| Odd {
        schema: "main".to_owned(),
        table: name.to_owned(),
        columns: ["id".to_owned(), "at\nline".to_owned(), "new\nline".to_owned()],
    });
    let mut create = vec!["config", "create", "--source-db-auth-id", "source", "--sync-id", "s"];
    create.extend(["--output-dir", "lake"]);
    let incremental: Vec<_> = odd.iter().map(Odd::incremental).collect();
    for (odd, incremental) in odd.iter().zip(&incremental) {
        database.execute_batch(&[odd.create(), odd.insert(1)].concat()).unwrap();
        create.extend(["--incremental-table", incremental]);
    }
    is_harmless(&shown(&bench, &create));
    is_harmless(&shown(&bench, &["plan", "--sync-id", "s"]));
    is_harmless(&shown(&bench, &["config", "show", "--sync-id", "s"]));
    database.execute_batch("INSERT INTO \"new\nline\" VALUES (2, 'no number', '')").unwrap();
    let failed = shown(&bench, &["sync", "--sync-id", "s", "--log-level", "DEBUG"]);
    assert!(failed.contains("new\\nline"), "{failed}");
    is_harmless(&failed);
    database.execute_batch("DELETE FROM \"new\nline\" WHERE id = 2").unwrap();
    let table = shown(&bench, &["sync", "--sync-id", "s"]);
    is_harmless(&table);
    // As many lines as there are tables, between the header and the sum.
    let rows = table.lines().skip_while(|line| !line.starts_with("TABLE")).skip(1);
    assert_eq!(rows.take_while(|line| !line.is_empty()).count(), odd.len(), "{table}");
    for words in [
        &["status", "--verbose"][..],
        &["watermarks", "list"],
        &["watermarks", "get", "--table", "\"main\".\"new\nline\""],
        &["watermarks", "history", "--table", "\"new\nline\""],
        &["watermarks", "reset", "--table", "\"new\nline\""],
        &["watermarks", "get", "--table", "\"no\nsuch\""],
        &["lxdb", "locks"],
    ] {
        is_harmless(&shown(&bench, words));
    }
}

#[test]
fn a_table_without_a_name_holds_up_no_other() {
    let Some((bench, database)) = sqlite::bench() else { return };
    database
        .execute_batch(
            "CREATE TABLE \"\" (id INT); CREATE TABLE \" \" (id INT, \"\" INT);
             INSERT INTO \"\" VALUES (1); INSERT INTO \" \" VALUES (1, 2);",
        )
        .unwrap();
    let create = ["config", "create", "--source-db-auth-id", "source", "--sync-id", "s"];
    shown(&bench, &[&create[..], &["--output-dir", "lake"]].concat());
    let told = shown(&bench, &["sync", "--sync-id", "s"]);
    assert!(told.contains("its name is empty") && told.contains("completed: 1 row"), "{told}");
}

#[test]
fn a_name_that_is_not_there_is_told_with_what_is() {
    let Some((bench, database)) = sqlite::bench() else { return };
    for name in NAMES {
        database.execute_batch(&format!("CREATE TABLE {} (id INT)", quoted(name))).unwrap();
    }
    let create = ["config", "create", "--source-db-auth-id", "source", "--output-dir", "lake"];
    for (table, found) in
        [("select:id", "column"), ("\"selec\":id:integer", "select"), ("\"a.b:id:integer", "name")]
    {
        let told = shown(&bench, &[&create[..], &["--incremental-table", table]].concat());
        assert!(told.contains("error: ") && told.contains("hint: "), "{told}");
        assert!(told.contains(found), "{table}: {told}");
        is_harmless(&told);
    }
}
