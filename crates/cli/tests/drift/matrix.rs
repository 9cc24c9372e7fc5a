//! Each change under each policy, without a crash.

use rusqlite::Connection;
use serde_json::Value;

use crate::bench::{Bench, GLOBAL, Report, assert_same};
use crate::changes::{Change, POSTGRES, SQLITE, Then};
use crate::reader::{self, Reader, Rows};
use crate::terminal::Desk;

const POLICIES: [&str; 3] = ["evolve", "ignore", "fail"];

/// Schema and table of a change under a policy.
fn table(change: &Change, policy: &str) -> String {
    format!("{}_{policy}", change.name)
}

fn incremental(changes: &[Change], schema: &str, policy: &str) -> String {
    let tables = changes.iter().map(|change| {
        format!("--incremental-table {schema}.{}:id:integer ", table(change, policy))
    });
    tables.collect()
}

/// The lake of one table after the change, against what it was told to do.
fn check(change: &Change, policy: &str, report: &Report, rows: &Rows) {
    let name = table(change, policy);
    let found = report.table(&name);
    match change.then(policy) {
        Then::Goes(columns) => {
            assert_eq!(found["error"], Value::Null, "{name}: {report:?}");
            let shown: Vec<_> = rows
                .columns
                .iter()
                .zip(&rows.types)
                .map(|(name, kind)| format!("{name} {kind}"))
                .collect();
            assert_eq!(shown.join(", "), columns, "{name}");
            assert_same(&name, rows.rows.clone(), change.rows(policy, &[1], &[], &[2]));
            let version = rows.head.as_ref().unwrap()["schema_version"].as_u64().unwrap();
            let changed = policy == "evolve" && change.name != "reordered"
                || matches!(change.name, "dropped" | "nullable");
            assert_eq!(version, if changed { 2 } else { 1 }, "{name}");
            let told = report.notices(&name);
            assert_eq!(
                told.contains("schema_changed"),
                change.name != "reordered",
                "{name}: {told}"
            );
        }
        Then::Stops(message) => {
            let error = &found["error"];
            let text = error["message"].as_str().unwrap_or_default();
            assert!(text.contains(message), "{name}: {text}");
            let hint = error["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("watermarks reset"), "{name}: {hint}");
            assert_eq!(rows.rows.len(), 1, "{name} was added to");
        }
    }
}

#[test]
fn each_change_of_a_server_under_each_policy() {
    let Some(mut bench) = Bench::new("") else { return };
    for policy in POLICIES {
        bench.database.run(&format!("CREATE SCHEMA {policy}"));
        for change in POSTGRES {
            let name = format!("{policy}.{}", table(change, policy));
            bench.database.run(&Change::sql(change.table, &name));
            bench.database.run(&change.insert(&name, 1, change.before, false));
        }
        bench.create(&format!(
            "--sync-id {policy} --source-schema-name {policy} --on-schema-drift {policy} \
             --error-action continue {}",
            incremental(POSTGRES, policy, policy)
        ));
        bench.sync_as(&format!("--sync-id {policy}"));
        for change in POSTGRES {
            let short = table(change, policy);
            let name = format!("{policy}.{short}");
            let alter = Change::sql(change.alter, &name);
            // A new name has no schema.
            let renamed = format!("RENAME TO {name}_before");
            bench.database.run(&alter.replace(&renamed, &format!("RENAME TO {short}_before")));
            bench.database.run(&change.insert(&name, 2, change.after, true));
        }
    }
    for policy in POLICIES {
        let report = bench.try_sync(&format!("--sync-id {policy}"));
        for change in POSTGRES {
            let folder = format!("{policy}/{}", table(change, policy));
            let rows = bench.reader.union(&bench.lake, &folder).unwrap();
            check(change, policy, &report, &rows);
        }
        // Nothing drifts twice, and what stopped goes on stopping.
        let again = bench.try_sync(&format!("--sync-id {policy}"));
        assert_eq!(report.code, again.code, "{again:?}");
    }
    a_reset_takes_the_present_columns(&mut bench);
}

fn a_reset_takes_the_present_columns(bench: &mut Bench) {
    let report = bench.try_sync("--sync-id evolve --reset-watermarks");
    assert_eq!(report.code, 0, "{report:?}");
    for change in POSTGRES {
        let folder = format!("evolve/{}", table(change, "evolve"));
        let rows = bench.look(&folder);
        assert_eq!(rows.rows.len(), 2, "{folder}");
        let table = format!("evolve.{}", table(change, "evolve"));
        let columns = bench.database.rows(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass
             AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        ));
        let columns: Vec<_> = columns.into_iter().map(|row| row[0].clone().unwrap()).collect();
        assert_eq!(rows.columns, columns, "{folder}");
    }
}

#[test]
fn each_change_of_a_file_under_each_policy() {
    let Some(reader) = Reader::start() else { return };
    for policy in POLICIES {
        let desk = Desk::new();
        let shop = || Connection::open(desk.path("shop.db")).unwrap();
        shop().execute_batch("DROP TABLE orders; DROP TABLE events").unwrap();
        for change in SQLITE {
            let name = table(change, policy);
            shop().execute_batch(&Change::sql(change.table, &name)).unwrap();
            shop().execute_batch(&change.insert(&name, 1, change.before, false)).unwrap();
        }
        desk.must(&format!(
            "config create -a credentials.json --source-db-auth-id shop --output-dir lake \
             --sync-id s --on-schema-drift {policy} --error-action continue {}",
            incremental(SQLITE, "main", policy)
        ));
        desk.must("sync -a credentials.json --sync-id s");
        for change in SQLITE {
            let name = table(change, policy);
            shop().execute_batch(&Change::sql(change.alter, &name)).unwrap();
            shop().execute_batch(&change.insert(&name, 2, change.after, true)).unwrap();
        }
        let answer = desk.run("sync -a credentials.json --sync-id s --output json");
        let report = Report::of(answer.code, &answer.stdout, answer.stderr);
        let lake = reader::folder(&desk.path("lake"));
        for change in SQLITE {
            let rows = reader.union(&lake, &format!("main/{}", table(change, policy))).unwrap();
            check(change, policy, &report, &rows);
        }
    }
}

#[test]
fn a_full_table_takes_its_present_columns_whatever_the_policy() {
    let Some(bench) =
        Bench::new("CREATE TABLE f (a text, b integer); INSERT INTO f VALUES ('x', 1)")
    else {
        return;
    };
    for policy in POLICIES {
        bench.create(&format!("--sync-id {policy} --on-schema-drift {policy} --sub-path {policy}"));
        bench.sync_as(&format!("--sync-id {policy}"));
    }
    bench.database.run("ALTER TABLE f ALTER b TYPE smallint, ADD c date, DROP a");
    for policy in POLICIES {
        bench.sync_as(&format!("--sync-id {policy}"));
        bench.same_in(&format!("{policy}/public/f"), "public", "f", "true");
        let head = bench.look(&format!("{policy}/public/f")).head.unwrap();
        assert_eq!(head["schema_version"], 2);
    }
    // A plan says the same as the run.
    let answer = bench.desk.run(&format!("plan {GLOBAL} --sync-id fail"));
    assert_eq!(answer.code, 0, "{}", answer.transcript());
}
