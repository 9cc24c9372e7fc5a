//! Slices of a table see one state of it, whatever writers do meanwhile.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use rusqlite::Connection;
use support::{Database, cells, window};
use tidelake_connector::{
    ClockRequest, FencePurpose, LogPosition, Slices, SplitRequest, TableFilter,
};
use tidelake_model::{FenceMode, ReadMethod, TableRead};
use tidelake_watermark::Kind;

/// The first column of each slice, all slices read at once.
async fn slices_of(database: &Database, slices: &Slices) -> Vec<Vec<i64>> {
    let reads = slices.slices.iter().map(|slice| async move {
        let reading = database.source.read(slice).await?;
        let batches: Vec<_> = reading.batches.try_collect().await?;
        let numbers = batches.iter().flat_map(cells).map(|row| row[0].parse().unwrap());
        Ok::<Vec<i64>, tidelake_model::Error>(numbers.collect())
    });
    futures::future::try_join_all(reads).await.unwrap()
}

const NUMBERED: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO t SELECT i, 'row ' || i FROM n;";

#[tokio::test]
async fn a_table_is_cut_into_even_slices() {
    let database = Database::new(NUMBERED).await;
    let slices = database.split(&database.whole("t").await).await.unwrap();
    let found = slices_of(&database, &slices).await;
    let counts: Vec<_> = found.iter().map(Vec::len).collect();
    assert_eq!(counts.len(), 4);
    assert!(counts.iter().all(|count| (4_500..5_500).contains(count)), "{counts:?}");
    assert_eq!(found.concat(), (1..=20_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn slices_tile_whatever_the_row_numbers() {
    let min = i64::MIN;
    let shapes: [(&str, &[i64]); 5] = [
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", &[min, min + 1, -1, 0, 1, i64::MAX]),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", &[7]),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", &[]),
        // Every name of the row's number is taken, or there is none.
        ("CREATE TABLE t (id INT, rowid TEXT, oid TEXT, _rowid_ TEXT)", &[1, 2, 3]),
        ("CREATE TABLE t (id INT PRIMARY KEY, v TEXT) WITHOUT ROWID", &[1, 2, 3]),
    ];
    for (table, numbers) in shapes {
        let database = Database::new(table).await;
        for number in numbers {
            database.execute(&format!("INSERT INTO t (id) VALUES ({number})"));
        }
        let slices = database.split(&database.whole("t").await).await.unwrap();
        let mut found = slices_of(&database, &slices).await.concat();
        found.sort_unstable();
        assert_eq!(found, numbers, "{table}");
    }
}

#[tokio::test]
async fn only_what_has_no_lower_bound_is_cut() {
    let database = Database::new(NUMBERED).await;
    database.execute("CREATE INDEX by_v ON t (v); CREATE VIEW all_of_t AS SELECT * FROM t");
    let count = async |read: TableRead, method, degree| {
        let request = SplitRequest { read, degree, method, key: None };
        database.source.split(&request).await.unwrap().slices.len()
    };
    let open = database.by("t", "id", window(Kind::Integer, None, Some("15000"))).await;
    let found = slices_of(&database, &database.split(&open).await.unwrap()).await;
    assert_eq!(found.len(), 4);
    assert_eq!(found.concat(), (1..=15_000).collect::<Vec<_>>());
    let text = database.by("t", "v", window(Kind::Text, None, Some("row 2"))).await;
    let slices = database.split(&text).await.unwrap();
    // The cuts serve, not the index on the cursor.
    let statement = database.source.statement(&slices.slices[1]);
    let explain = format!("EXPLAIN QUERY PLAN {statement}");
    let plan: String = database.writer.query_row(&explain, [], |row| row.get("detail")).unwrap();
    assert!(plan.contains("USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"), "{plan}");
    assert_eq!(slices_of(&database, &slices).await.concat().len(), 11_112);

    let bounded = database.by("t", "id", window(Kind::Integer, Some("10"), None)).await;
    assert_eq!(count(bounded, ReadMethod::Auto, 4).await, 1);
    assert_eq!(count(database.whole("all_of_t").await, ReadMethod::Auto, 4).await, 1);
    let whole = database.whole("t").await;
    assert_eq!(count(whole.clone(), ReadMethod::None, 4).await, 1);
    assert_eq!(count(whole.clone(), ReadMethod::Physical, 3).await, 3);
    assert_eq!(count(whole, ReadMethod::Auto, 1).await, 1);
}

#[tokio::test]
async fn numbers_that_are_times_are_of_one_unit_over_all_slices() {
    let table = |left: &str, right: &str| {
        format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
             INSERT INTO t SELECT i, NULL FROM n;
             UPDATE t SET at = {left} WHERE id = 1500; UPDATE t SET at = {right} WHERE id = 3200"
        )
    };
    let seconds = "1796030100";
    for (left, right) in [(seconds, "1796030100000"), ("1796030100000000", seconds)] {
        let database = Database::new(&table(left, right)).await;
        let read = database.whole("t").await;
        assert_eq!(database.split(&read).await.unwrap().slices.len(), 4);
        let error = database.batches(&read).await.unwrap_err();
        assert!(error.message().contains("among"), "{error:?}");
        assert!(error.message().contains("(rowid 3200)"), "{error:?}");
    }
    // A number that alone could be a julian day as well is told by the others.
    let database = Database::new(&table(seconds, "1796031")).await;
    let rows = database.rows(&database.whole("t").await).await.unwrap();
    assert_eq!(rows[3199], ["3200", "1970-01-21T18:53:51"]);
}

/// Each commit adds a row at either end of the table: whoever sees a state of the
/// table sees as many on the left as on the right.
async fn both_ends(mode: &str) {
    let database = Database::new(&format!("PRAGMA journal_mode = {mode}; {NUMBERED}")).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (path, stop) = (database.path.clone(), stop.clone());
        move || {
            let writer = Connection::open(path).unwrap();
            writer.pragma_update(None, "synchronous", false).unwrap();
            writer.busy_timeout(Duration::from_secs(20)).unwrap();
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                writer
                    .execute_batch(&format!(
                        "BEGIN IMMEDIATE; INSERT INTO t VALUES ({}, ''); \
                         INSERT INTO t VALUES ({}, ''); COMMIT",
                        -number,
                        20_000 + number
                    ))
                    .unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
            number
        }
    });
    let read = database.whole("t").await;
    let mut cut = 0;
    for _ in 0..60 {
        let slices = database.split(&read).await.unwrap();
        let found = slices_of(&database, &slices).await;
        cut += usize::from(found.len() > 1);
        let all = found.concat();
        let left = all.iter().filter(|number| **number < 0).count();
        let right = all.iter().filter(|number| **number > 20_000).count();
        assert_eq!(left, right, "{} slices", found.len());
    }
    stop.store(true, Ordering::Relaxed);
    let commits = writer.join().unwrap();
    assert!(commits > 20, "only {commits} commits in {mode}");
    assert!(cut > 5, "{cut} of 60 reads were cut in {mode}");
}

#[tokio::test]
async fn slices_see_one_state_while_a_writer_commits_to_a_wal() {
    both_ends("WAL").await;
}

#[tokio::test]
async fn slices_see_one_state_while_a_writer_commits_by_a_rollback_journal() {
    both_ends("DELETE").await;
}

/// Set for the process that [`a_look_beside_a_read_gives_no_lock_up`] starts.
const OTHER_PROCESS: &str = "TIDELAKE_TEST_SQLITE_WRITER";

/// Locks on a file belong to a process, which loses all of them when it closes the
/// file anywhere: a writer of another process must stay out until the read is over.
#[tokio::test]
async fn a_look_beside_a_read_gives_no_lock_up() {
    if let Some(path) = std::env::var_os(OTHER_PROCESS) {
        let writer = Connection::open(path).unwrap();
        writer.busy_timeout(Duration::ZERO).unwrap();
        writer.execute("DELETE FROM t", []).unwrap();
        return;
    }
    let database = Database::new(&format!("PRAGMA journal_mode = DELETE; {NUMBERED}")).await;
    let slices = database.split(&database.whole("t").await).await.unwrap();
    let request = ClockRequest {
        table: slices.slices[0].read.table.clone(),
        purpose: FencePurpose::None,
        mode: FenceMode::Auto,
        wait: Duration::ZERO,
        ignore_users: vec![],
        log: LogPosition::Unasked,
    };
    database.source.clock(&request).await.unwrap();
    database.source.tables(&TableFilter::default()).await.unwrap();
    support::connect(serde_json::json!({ "filepath": database.path })).await.unwrap();
    let delete = || {
        let test = ["a_look_beside_a_read_gives_no_lock_up", "--exact"];
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(test).env(OTHER_PROCESS, &database.path).output().unwrap()
    };
    let refused = delete();
    assert!(!refused.status.success(), "another process wrote while a read was going on");
    let words = String::from_utf8_lossy(&refused.stdout).into_owned();
    let words = words + &String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("database is locked"), "{words}");
    assert_eq!(slices_of(&database, &slices).await.concat().len(), 20_000);
    drop(slices);
    assert!(delete().status.success());
}
