//! How often a run asks its source, its state store and its lake for something.

use std::thread::sleep;
use std::time::Duration;

use crate::bench::Bench;

/// What the last line of a time line says.
#[derive(Debug, PartialEq)]
struct Asked {
    transactions: u64,
    reads: u64,
    state_trips: u64,
    source_trips: u64,
    written: u64,
}

fn asked(bench: &Bench, options: &str) -> Asked {
    let report = bench.sync_as(&format!("--log-level DEBUG {options}"));
    let line = report.stderr.lines().rfind(|line| line.contains("time line: state")).unwrap();
    let part = |name: &str| line.split("; ").find(|part| part.contains(name)).unwrap();
    let number = |part: &str, what: &str| {
        let counts = part.rsplit(": ").next().unwrap().split(", ");
        let count =
            counts.filter_map(|count| count.split_once(' ')).find(|(_, name)| *name == what);
        count.map_or(0, |(count, _)| count.parse().unwrap())
    };
    let state = part("state: ");
    Asked {
        transactions: number(state, "transactions"),
        reads: number(state, "reads"),
        state_trips: number(state, "round trips"),
        source_trips: number(part("source: "), "round trips"),
        written: number(part("lake: "), "objects written"),
    }
}

/// To encrypt, to log in and to pin what a session's settings are.
const LOGIN: u64 = 6;
/// On a busy machine an answer comes in pieces, and what is written between them is
/// counted once more.
const PIECES: u64 = 3;
/// Tables, and their columns.
const CATALOGUE: u64 = 2;
/// Clock and fence together, and the highest value.
const LOOK: u64 = 2;

fn tables(count: u64) -> String {
    let table = |number| {
        format!(
            "CREATE TABLE t{number} (id bigserial PRIMARY KEY, at timestamptz NOT NULL);
             CREATE INDEX ON t{number} (at);
             INSERT INTO t{number} (at) SELECT now() - i * interval '1 s'
             FROM generate_series(1, 50) AS i;"
        )
    };
    (0..count).map(table).collect()
}

fn create(bench: &Bench, count: u64) {
    let table = |number| format!(" --incremental-table public.t{number}:at:datetime");
    let tables: String = (0..count).map(table).collect();
    bench.create(&format!("--n-jobs 1{tables}"));
    sleep(Duration::from_millis(400));
    let first = bench.sync();
    assert_eq!(first.rows("t0"), 50, "{first:?}");
}

#[test]
fn nothing_new_costs_two_state_transactions_and_the_advance_of_each_table() {
    for count in [1, 5] {
        let Some(bench) = Bench::new(&tables(count)) else { return };
        create(&bench, count);
        let asked = asked(&bench, "");
        assert_eq!(asked.transactions, 2 + count, "{asked:?}");
        assert_eq!(asked.reads, 2, "whether the store is as it should be, and the sync: {asked:?}");
        assert_eq!(asked.written, 0, "{asked:?}");
        let trips = LOGIN + PIECES + CATALOGUE + LOOK * count;
        assert!(asked.source_trips <= trips && asked.source_trips > 0, "{asked:?}");
    }
}

#[test]
fn a_few_rows_cost_a_snapshot_and_a_copy_more() {
    let Some(bench) = Bench::new(&tables(1)) else { return };
    create(&bench, 1);
    bench.database.run("INSERT INTO t0 (at) SELECT now() FROM generate_series(1, 5000)");
    sleep(Duration::from_millis(400));
    let asked = asked(&bench, "");
    bench.same("t0", "true");
    // The snapshot, the rows, and the end of the transaction.
    assert!(asked.source_trips <= LOGIN + PIECES + CATALOGUE + LOOK + 3, "{asked:?}");
    // Window, the upload, the list of files: beside those of every run.
    assert!(asked.transactions <= 3 + 3, "{asked:?}");
    // The rows, the manifest, and what leads to it.
    assert_eq!(asked.written, 3, "{asked:?}");
}

#[test]
fn a_state_store_on_a_server_is_asked_little_too() {
    let Some(mut bench) = Bench::new(&tables(1)) else { return };
    bench.credential("state", bench.database.credential());
    bench
        .create("--n-jobs 1 --source-schema-name public --incremental-table public.t0:at:datetime");
    sleep(Duration::from_millis(400));
    bench.sync();
    let asked = asked(&bench, "");
    assert_eq!((asked.transactions, asked.reads), (3, 2), "{asked:?}");
    // Logging in is the driver's own; then two for each read, and no more than seven
    // for each of the others.
    assert!(asked.state_trips <= 2 * 2 + 3 * 8 && asked.state_trips > 0, "{asked:?}");
}
