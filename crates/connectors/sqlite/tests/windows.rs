//! Windows tile whatever the stored form, and the snapshot holds.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::collections::BTreeMap;

use futures::StreamExt;
use proptest::prelude::*;
use support::{Database, window};
use tidelake_connector::{Effort, HighestRequest};
use tidelake_model::{CursorRead, ErrorKind, TableRead};
use tidelake_watermark::{Bound, Cursor, Kind, Position, Range, Value};

/// Spellings of one time; the first digit of the form chooses.
fn spelled(nanos: i128, spelling: u8) -> String {
    let offset = |hours: i128| Value::Datetime(nanos + hours * 3_600_000_000_000).to_string();
    let iso = offset(0);
    match spelling {
        0 => iso.replace('T', " "),
        1 => iso,
        2 => format!("{iso}Z"),
        3 => format!("{}+14:00", offset(14)),
        4 => format!("{} -12:00", offset(-12).replace('T', " ")),
        // All six digits, or as many as there are.
        _ => {
            let (whole, fraction) = iso.split_once('.').unwrap_or((&iso, ""));
            format!("{}.{fraction:0<6}", whole.replace('T', " "))
        }
    }
}

/// Each row is in exactly the window that holds its time, for windows between
/// all of the cuts.
async fn tiles(stored: &[(i128, String)], cuts: &[i128], indexed: bool) {
    let index = if indexed { "CREATE INDEX by_at ON t (at);" } else { "" };
    let statements = format!("CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME); {index}");
    let database = Database::new(&statements).await;
    {
        let transaction = database.writer.unchecked_transaction().unwrap();
        for (place, (_, value)) in stored.iter().enumerate() {
            let statement = format!("INSERT INTO t VALUES ({place}, {value})");
            transaction.execute_batch(&statement).unwrap();
        }
        transaction.commit().unwrap();
    }
    let mut cuts = cuts.to_vec();
    cuts.sort_unstable();
    let ends = cuts.iter().copied().map(Some).chain([None]);
    let mut low = None;
    for high in ends {
        for inclusive in [true, false] {
            let bound = |at: i128, inclusive| Bound { at: Value::Datetime(at).into(), inclusive };
            // `(low, high]` and `[low, high)`.
            let range = Range {
                low: low.map(|at| bound(at, !inclusive)),
                high: high.map(|at| bound(at, inclusive)),
            };
            let mut wanted: Vec<String> = vec![];
            for (place, (at, _)) in stored.iter().enumerate() {
                if range.contains(&Value::Datetime(*at).into()).unwrap() {
                    wanted.push(place.to_string());
                }
            }
            let read = database.by("t", "at", range).await;
            let mut found: Vec<_> =
                database.rows(&read).await.unwrap().into_iter().map(|row| row[0].clone()).collect();
            found.sort_by_key(|id| id.parse::<usize>().unwrap());
            assert_eq!(found, wanted, "{stored:?} {:?}", read.range);
        }
        low = high;
    }
    let read = database.by("t", "at", Range::default()).await;
    let request = HighestRequest {
        table: read.table,
        cursor: read.cursor.unwrap(),
        effort: Effort::Scan,
        count: Some(Range::default()),
        count_nulls: true,
    };
    let highest = database.source.highest(&request).await.unwrap();
    let wanted = stored.iter().map(|(at, _)| *at).max().map(|at| Value::Datetime(at).into());
    assert_eq!(highest.value, Some(wanted), "{stored:?}");
    let rows = u64::try_from(stored.len()).unwrap();
    assert_eq!(highest.rows, indexed.then_some(rows));
    assert_eq!(highest.nulls, indexed.then_some(0));
}

const BASE: i128 = 1_796_030_100_000_000_000;

/// Times that differ by microseconds, halves of seconds, hours and days.
fn moments() -> impl Strategy<Value = i128> {
    let part = |unit: i128| (-3i128..3).prop_map(move |count| count * unit);
    let (micro, half) = (part(1_000), part(500_000_000));
    let (hour, day) = (part(7 * 3_600_000_000_000), part(86_400_000_000_000));
    (micro, half, hour, day).prop_map(|(a, b, c, d)| BASE + a + b + c + d)
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn windows_of_text_in_any_spelling_tile(
        rows in prop::collection::vec((moments(), 0u8..6), 1..12),
        cuts in prop::collection::vec(moments(), 1..4),
        indexed: bool,
    ) {
        let stored: Vec<_> = rows
            .iter()
            .map(|(at, spelling)| (*at, format!("'{}'", spelled(*at, *spelling))))
            .collect();
        run(tiles(&stored, &cuts, indexed));
    }

    #[test]
    fn windows_of_numbers_tile(
        rows in prop::collection::vec(moments(), 1..12),
        cuts in prop::collection::vec(moments(), 1..4),
        form in 0u8..5,
        indexed: bool,
    ) {
        let stored: Vec<_> = rows
            .iter()
            .map(|at| match form {
                0 => (at.div_euclid(1_000_000_000), 1_000_000_000, ""),
                1 => (at.div_euclid(1_000_000), 1_000_000, ""),
                2 => (at.div_euclid(1_000), 1_000, ""),
                3 => (at.div_euclid(1_000), 1_000, "seconds"),
                _ => (at.div_euclid(1_000_000), 1_000_000, "julian"),
            })
            .map(|(count, unit, how)| {
                let value = match how {
                    "" => count.to_string(),
                    "seconds" => format!("{}.{:06}", count / 1_000_000, count % 1_000_000),
                    _ => format!("julianday('{}')", Value::Datetime(count * unit)),
                };
                (count * unit, value)
            })
            .collect();
        run(tiles(&stored, &cuts, indexed));
    }
}

#[test]
fn the_hard_neighbours_tile() {
    let texts = [
        ("2026-11-30 09:15:00", 0),
        ("2026-11-30 09:15:00.5", 500_000_000),
        ("2026-11-30T09:15:00", 0),
        ("2026-11-30T09:15:00Z", 0),
        ("2026-11-30T09:15:00.5Z", 500_000_000),
        ("2026-11-30T09:15:00.50Z", 500_000_000),
        ("2026-11-30T09:14:59.999999Z", -1_000),
        ("2026-11-30 09:15", 0),
    ];
    let stored: Vec<_> =
        texts.iter().map(|(text, after)| (BASE + after, format!("'{text}'"))).collect();
    for indexed in [false, true] {
        run(tiles(&stored, &[BASE - 1_000, BASE, BASE + 500_000_000], indexed));
    }
}

#[tokio::test]
async fn dates_are_windows_of_days() {
    let database = Database::new(
        "CREATE TABLE t (d DATE);
         INSERT INTO t VALUES ('2026-11-28'), ('2026-11-29 00:00:00'), ('2026-11-30'), (NULL)",
    )
    .await;
    let range = window(Kind::Date, Some("2026-11-28"), Some("2026-11-29"));
    let read = database.by("t", "d", range).await;
    assert_eq!(database.rows(&read).await.unwrap(), [["2026-11-29"]]);
    let with_nulls = TableRead { null_cursors: true, ..read };
    assert_eq!(database.rows(&with_nulls).await.unwrap(), [["2026-11-29"], ["-"]]);
}

#[tokio::test]
async fn composite_cursors_compare_as_tuples() {
    let database = Database::new(
        "CREATE TABLE t (at DATETIME, id INTEGER);
         INSERT INTO t VALUES ('2026-11-30T09:00:00Z', 1), ('2026-11-30 09:00', 2),
             ('2026-11-30 09:00:00.000', 3), ('2026-11-30 08:00:00', 9), (NULL, 4), ('2026-11-30', NULL)",
    )
    .await;
    let names = vec!["at".to_owned(), "id".to_owned()];
    let cursor =
        CursorRead { cursor: Cursor::Composite(names), kinds: vec![Kind::Datetime, Kind::Integer] };
    let at = |id: i128| {
        Position::tuple([
            Value::parse(Kind::Datetime, "2026-11-30 09:00").unwrap(),
            Value::Integer(id),
        ])
        .unwrap()
    };
    let range = Range {
        low: Some(Bound { at: at(1), inclusive: false }),
        high: Some(Bound { at: at(3), inclusive: true }),
    };
    let read =
        TableRead { cursor: Some(cursor.clone()), range: Some(range), ..database.whole("t").await };
    let ids =
        |rows: Vec<Vec<String>>| rows.into_iter().map(|row| row[1].clone()).collect::<Vec<_>>();
    assert_eq!(ids(database.rows(&read).await.unwrap()), ["2", "3"]);
    let nulls = TableRead { null_cursors: true, ..read.clone() };
    assert_eq!(ids(database.rows(&nulls).await.unwrap()), ["2", "3", "4", "-"]);
    let request = HighestRequest {
        table: read.table.clone(),
        cursor,
        effort: Effort::Scan,
        count: None,
        count_nulls: false,
    };
    assert_eq!(database.source.highest(&request).await.unwrap().value, Some(Some(at(3))));
}

#[tokio::test]
async fn a_value_that_is_no_time_is_never_left_out() {
    let database = Database::new(
        "CREATE TABLE t (at DATETIME); CREATE INDEX by_at ON t (at);
         INSERT INTO t VALUES ('2026-11-30 09:00:00'), ('2026-11-30 99:00:00'), ('2026-12-01')",
    )
    .await;
    let range = window(Kind::Datetime, Some("2026-11-30"), Some("2026-11-30 10:00"));
    let error = database.rows(&database.by("t", "at", range).await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.message().contains("(rowid 2)"), "{error:?}");
}

#[tokio::test]
async fn an_index_serves_a_window_of_times() {
    let database =
        Database::new("CREATE TABLE t (at DATETIME); CREATE INDEX by_at ON t (at)").await;
    for value in ["'2026-11-30 09:00:00'", "1796030100", "2461374.5"] {
        database.execute(&format!("DELETE FROM t; INSERT INTO t VALUES ({value})"));
        let range = window(Kind::Datetime, Some("2026-11-30"), Some("2026-11-30 10:00"));
        let slices = database.split(&database.by("t", "at", range).await).await.unwrap();
        let statement = database.source.statement(&slices.slices[0]);
        assert!(statement.contains("\"at\" >= "), "{statement}");
        // The plan alone: the writer does not know the function.
        let coarse = statement.split(" AND ((").next().unwrap();
        let plan: String = database
            .writer
            .query_row(&format!("EXPLAIN QUERY PLAN {coarse}"), [], |row| row.get(3))
            .unwrap();
        assert!(plan.contains("USING") && plan.contains("by_at"), "{plan}");
    }
}

#[tokio::test]
async fn the_snapshot_is_the_one_of_the_split() {
    let database =
        Database::new("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
            .await;
    let read = database.whole("t").await;
    let slices = database.split(&read).await.unwrap();
    database.execute("INSERT INTO t VALUES (3); DELETE FROM t WHERE id = 1");
    for _ in 0..2 {
        let mut rows = vec![];
        for slice in &slices.slices {
            let reading = database.source.read(slice).await.unwrap();
            let batches: Vec<_> = reading.batches.map(Result::unwrap).collect().await;
            rows.extend(batches.iter().flat_map(support::cells));
        }
        assert_eq!(rows, [["1"], ["2"]]);
    }
    let slice = slices.slices[0].clone();
    drop(slices);
    let error = database.source.read(&slice).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(database.rows(&read).await.unwrap(), [["2"], ["3"]]);
}

#[tokio::test]
async fn a_rollback_journal_keeps_writers_out_until_the_hold_is_dropped() {
    let database = Database::new(
        "PRAGMA journal_mode = DELETE; CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1)",
    )
    .await;
    let slices = database.split(&database.whole("t").await).await.unwrap();
    database.writer.busy_timeout(std::time::Duration::ZERO).unwrap();
    assert!(database.writer.execute("INSERT INTO t VALUES (2)", []).is_err());
    drop(slices);
    database.writer.execute("INSERT INTO t VALUES (2)", []).unwrap();
}

#[tokio::test]
async fn batches_stay_below_their_bytes_and_rows() {
    let database = Database::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)").await;
    database.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70000)
         INSERT INTO t SELECT i, 'row ' || i FROM n",
    );
    let mut read = database.whole("t").await;
    read.batch_bytes = 1 << 30;
    let sizes = |batches: Vec<arrow::array::RecordBatch>| {
        batches.iter().map(arrow::array::RecordBatch::num_rows).collect::<Vec<_>>()
    };
    assert_eq!(sizes(database.batches_by(&read, 1).await.unwrap()), [65_536, 4_464]);
    read.batch_bytes = 100_000;
    let sizes = sizes(database.batches_by(&read, 1).await.unwrap());
    assert_eq!(sizes.iter().sum::<usize>(), 70_000);
    assert!(sizes.iter().all(|rows| *rows < 7_000), "{sizes:?}");
}

#[tokio::test]
async fn a_large_cell_is_a_batch_of_its_own() {
    let database = Database::new(
        "CREATE TABLE t (v TEXT, b BLOB);
         INSERT INTO t VALUES ('a', x'00');
         INSERT INTO t VALUES (printf('%.*c', 1048576, 'x'), zeroblob(1048576)), ('b', NULL)",
    )
    .await;
    let mut read = database.whole("t").await;
    read.batch_bytes = 65_536;
    let batches = database.batches_by(&read, 1).await.unwrap();
    let rows: BTreeMap<usize, usize> =
        batches.iter().map(arrow::array::RecordBatch::num_rows).enumerate().collect();
    assert_eq!(rows, BTreeMap::from([(0, 1), (1, 1), (2, 1)]));
    let rows: Vec<_> = batches.iter().flat_map(support::cells).collect();
    assert_eq!(rows[1][0].len(), 1 << 20);
    assert_eq!(rows[1][1].len(), 2 << 20);
}

#[tokio::test]
async fn dropping_the_stream_ends_the_read_soon() {
    let database = Database::new(
        "CREATE TABLE t (v TEXT);
         CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
             SELECT i FROM n WHERE i < 0;",
    )
    .await;
    let slices = database.split(&database.whole("endless").await).await.unwrap();
    let mut reading = database.source.read(&slices.slices[0]).await.unwrap();
    let pause = std::time::Duration::from_millis(100);
    assert!(tokio::time::timeout(pause, reading.batches.next()).await.is_err());
    drop(reading);
    // The connection is free again: the second reader gets to wait, not to hang.
    let mut again = database.source.read(&slices.slices[0]).await.unwrap();
    assert!(tokio::time::timeout(pause, again.batches.next()).await.is_err());
}
