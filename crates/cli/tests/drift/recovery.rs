//! Changes of a server's table around a crash, and while a run reads.

use crate::bench::{Bench, assert_same};
use crate::changes::{Change, POSTGRES, Then};

#[test]
fn a_change_of_a_server_after_a_crash() {
    let Some(mut bench) = Bench::new("") else { return };
    let changes = ["added", "dropped", "widened"];
    let changes: Vec<_> = POSTGRES.iter().filter(|it| changes.contains(&it.name)).collect();
    for (step, again) in [("window", true), ("batch", true), ("committing", false)] {
        for policy in ["evolve", "fail"] {
            for change in &changes {
                died_then_changed(&mut bench, change, policy, step, again);
            }
        }
    }
}

fn died_then_changed(bench: &mut Bench, change: &Change, policy: &str, step: &str, again: bool) {
    let name = format!("{}_{policy}_{step}", change.name);
    let run = |sql: &str| bench.database.run(sql);
    run(&Change::sql(change.table, &name));
    run(&change.insert(&name, 1, change.before, false));
    let id = format!("--sync-id {name}");
    bench.create(&format!(
        "{id} --include {} --on-schema-drift {policy} --incremental-table public.{name}:id:integer",
        name.replace('_', "\\_")
    ));
    bench.sync_as(&id);
    bench.database.run(&change.insert(&name, 2, change.before, false));
    bench.desk.set("TIDELAKE_FAULT", step);
    assert_ne!(bench.try_sync(&id).code, 0, "{name}");
    bench.desk.unset("TIDELAKE_FAULT");
    bench.database.run(&Change::sql(change.alter, &name));
    bench.database.run(&change.insert(&name, 3, change.after, true));
    let report = bench.try_sync(&id);
    let rows = bench.reader.union(&bench.lake, &format!("public/{name}")).unwrap();
    match change.then(policy) {
        Then::Goes(_) => {
            assert_eq!(report.code, 0, "{name}: {report:?}");
            let (exported, late): (&[u32], &[u32]) =
                if again { (&[1], &[2]) } else { (&[1, 2], &[]) };
            assert_same(&name, rows.rows, change.rows(policy, exported, late, &[3]));
        }
        Then::Stops(message) => {
            let error = report.table(&name)["error"]["message"].as_str().unwrap();
            assert!(error.contains(message), "{name}: {error}");
            assert_eq!(rows.rows.len(), if again { 1 } else { 2 }, "{name}");
        }
    }
}

/// Rows that are read again replace those of files with older columns.
#[test]
fn files_of_older_columns_are_rewritten_with_the_newer_ones() {
    let Some(bench) = Bench::new(
        "CREATE TABLE r (id bigint PRIMARY KEY, a integer, gone text);
         INSERT INTO r SELECT n, n, 'g' || n FROM generate_series(1, 6) n",
    ) else {
        return;
    };
    bench.create(
        "--on-schema-drift evolve --lookback 3 --incremental-table \
         public.r:id:integer!delete_insert",
    );
    bench.sync();
    bench.database.run(
        "ALTER TABLE r ALTER a TYPE bigint, DROP gone, ADD b text DEFAULT 'd';
         UPDATE r SET a = 5000000000 WHERE id = 5;
         INSERT INTO r VALUES (7, 7, 'new')",
    );
    bench.sync();
    let rows = bench.reader.union(&bench.lake, "public/r").unwrap();
    assert_eq!(rows.columns, ["id", "a", "gone", "b"]);
    let row = |cells: [&str; 4]| cells.map(|cell| (cell != "~").then(|| cell.to_owned())).to_vec();
    // Ids 4 to 6 were read again, 1 to 3 are as they were.
    assert_same(
        "r",
        rows.rows,
        vec![
            row(["1", "1", "g1", "~"]),
            row(["2", "2", "g2", "~"]),
            row(["3", "3", "g3", "~"]),
            row(["4", "4", "~", "d"]),
            row(["5", "5000000000", "~", "d"]),
            row(["6", "6", "~", "d"]),
            row(["7", "7", "~", "new"]),
        ],
    );
}

/// What was dropped and comes back goes on in its old place.
#[test]
fn a_column_that_comes_back_has_values_again() {
    let Some(bench) =
        Bench::new("CREATE TABLE b (id bigint PRIMARY KEY, a text); INSERT INTO b VALUES (1, 'x')")
    else {
        return;
    };
    bench.create("--on-schema-drift evolve --incremental-table public.b:id:integer");
    bench.sync();
    bench.database.run("ALTER TABLE b DROP a; INSERT INTO b VALUES (2)");
    let report = bench.sync();
    assert!(report.notices("b").contains("column \"a\" (text) was dropped"), "{report:?}");
    bench.database.run("INSERT INTO b VALUES (3)");
    let report = bench.sync();
    assert!(!report.notices("b").contains("schema_changed"), "{report:?}");
    bench.database.run("ALTER TABLE b ADD a text; INSERT INTO b VALUES (4, 'y')");
    let report = bench.sync();
    assert!(report.notices("b").contains("column \"a\" is back"), "{report:?}");
    let rows = bench.look("public/b");
    // It could be NULL all the time, so that nothing of the schema changed.
    assert_eq!(rows.head.as_ref().unwrap()["schema_version"], 1);
    let values: Vec<_> = rows.rows.iter().map(|row| row[1].as_deref()).collect();
    assert_eq!(values, [Some("x"), None, None, Some("y")]);
}

#[test]
fn a_cursor_that_changed_or_went_names_the_remedy() {
    let Some(bench) = Bench::new(
        "CREATE TABLE c (id integer, at date); INSERT INTO c VALUES (1, '2024-01-01');
         CREATE TABLE w (id integer); INSERT INTO w VALUES (1)",
    ) else {
        return;
    };
    bench.create(
        "--on-schema-drift evolve --error-action continue --incremental-table public.c:id:integer \
         --incremental-table public.w:id:integer",
    );
    bench.sync();
    bench.database.run(
        "ALTER TABLE c ALTER id TYPE text; ALTER TABLE w ALTER id TYPE bigint;
         INSERT INTO w VALUES (5000000000)",
    );
    let report = bench.try_sync("");
    assert_eq!(report.code, 3, "{report:?}");
    let error = &report.table("c")["error"];
    assert!(error["message"].as_str().unwrap().contains("is now of kind text"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("config delete"), "{error}");
    // A wider number is the same cursor.
    assert_eq!(report.watermark("w"), "5000000000");
    bench.database.run("ALTER TABLE c DROP id");
    let report = bench.try_sync("");
    let error = &report.table("c")["error"];
    assert!(error["message"].as_str().unwrap().contains("does not exist any more"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("config delete"), "{error}");
    // Made anew, the sync takes its lake over and goes on.
    bench.desk.must(&format!("config delete {} --sync-id s", crate::bench::GLOBAL));
}

/// The remedy that the errors name: the same sync under another policy goes on
/// from what the lake says.
#[test]
fn a_sync_made_anew_with_another_policy_goes_on() {
    let Some(bench) =
        Bench::new("CREATE TABLE p (id bigint PRIMARY KEY); INSERT INTO p VALUES (1), (2)")
    else {
        return;
    };
    bench.create("--incremental-table public.p:id:integer");
    bench.sync();
    bench.database.run("ALTER TABLE p ADD a text; INSERT INTO p VALUES (3, 'x')");
    let report = bench.try_sync("");
    assert_ne!(report.code, 0);
    let hint = report.table("p")["error"]["hint"].as_str().unwrap().to_owned();
    for words in ["--on-schema-drift evolve", "config delete", "--on-mismatch adopt"] {
        assert!(hint.contains(words), "{hint}");
    }
    bench.desk.must(&format!("config delete {} --sync-id s", crate::bench::GLOBAL));
    bench.create("--on-schema-drift evolve --incremental-table public.p:id:integer");
    let report = bench.sync_as("--on-mismatch adopt");
    assert_eq!(report.rows("p"), 1, "{report:?}");
    let rows = bench.reader.union(&bench.lake, "public/p").unwrap();
    let row = |id: &str, a: Option<&str>| vec![Some(id.to_owned()), a.map(str::to_owned)];
    assert_same("p", rows.rows, vec![row("1", None), row("2", None), row("3", Some("x"))]);
}

/// The catalogue is looked at when a run begins, a table perhaps much later.
#[test]
fn a_change_between_the_look_at_the_columns_and_the_snapshot_is_no_loss() {
    let Some(mut bench) = Bench::new("CREATE TABLE l (id bigint PRIMARY KEY, a integer)") else {
        return;
    };
    bench.create("--on-schema-drift evolve --incremental-table public.l:id:integer");
    bench.sync();
    bench.database.run("INSERT INTO l VALUES (1, 1)");
    let hold = bench.desk.path("hold");
    for (change, words) in [
        (
            "ALTER TABLE l ADD b text; INSERT INTO l VALUES (2, 2, 'b')",
            "column \"b\" was added while the run began",
        ),
        ("ALTER TABLE l ALTER a TYPE bigint", "column \"a\" was of type integer and now is bigint"),
        ("ALTER TABLE l DROP b", "column \"b\" of type text does not exist any more"),
    ] {
        bench.desk.set("TIDELAKE_FAULT", "clock");
        bench.desk.set("TIDELAKE_FAULT_HOLD", hold.to_str().unwrap());
        std::thread::scope(|scope| {
            let run = scope.spawn(|| bench.try_sync(""));
            while !hold.exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            bench.database.run(change);
            std::fs::remove_file(&hold).unwrap();
            let report = run.join().unwrap();
            let error = report.table("l")["error"]["message"].as_str().unwrap_or_default();
            assert!(error.contains(words), "{change}: {report:?}");
        });
        bench.desk.unset("TIDELAKE_FAULT");
        bench.desk.unset("TIDELAKE_FAULT_HOLD");
        bench.sync();
        bench.database.run("INSERT INTO l (id, a) SELECT max(id) + 1, 0 FROM l");
    }
    bench.sync();
    let rows = bench.reader.union(&bench.lake, "public/l").unwrap();
    let values: Vec<_> = rows.rows.iter().map(|row| row[2].as_deref()).collect();
    assert_eq!(values, [None, Some("b"), None, None, None]);
}
