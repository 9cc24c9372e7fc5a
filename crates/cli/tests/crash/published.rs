//! Runs that die between the commit and the end, with a database that shows the
//! rows.

use tidelake_model::Step;

use crate::place::{Fault, Parts, Place, same};
use crate::reader::Reader;
use crate::shop::{Cells, TABLES};

const STEPS: [Step; 9] = [
    Step::Staged,
    Step::Committing,
    Step::Completed,
    Step::Manifest,
    Step::Latest,
    Step::Committed,
    Step::Published,
    Step::Advanced,
    Step::Cleaned,
];

/// What the target shows.
fn target(place: &Place, table: &str) -> Cells {
    let stamp = match place.parts.server_source {
        true => "to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US') || 'Z'",
        false => "to_char(updated_at, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')",
    };
    let columns = match table {
        "orders" => format!("id, {stamp}, amount, note"),
        "events" => "id, kind, weight".to_owned(),
        _ => "name, factor".to_owned(),
    };
    let server = place.server.as_ref().unwrap();
    let schema = format!("SELECT to_regclass('pub_main.{table}')");
    if server.select(&schema)[0][0].is_none() {
        return vec![];
    }
    let mut rows = server.select(&format!("SELECT {columns} FROM pub_main.{table}"));
    rows.sort();
    rows
}

/// Runs whose load of a table is on record, and their rows.
fn ledger(place: &Place, table: &str) -> Vec<(String, u64)> {
    let rows = place.server.as_ref().unwrap().select(&format!(
        "SELECT run_id, rows FROM pub_main._tidelake_loads
         WHERE schema_name = 'pub_main' AND table_name = '{table}' ORDER BY run_id"
    ));
    let entry = |row: Vec<Option<String>>| {
        (row[0].clone().unwrap(), row[1].as_ref().unwrap().parse().unwrap())
    };
    rows.into_iter().map(entry).collect()
}

/// Target, ledger and lake say the same.
fn agree(place: &Place, reader: &Reader, because: &str) {
    for table in TABLES {
        let lake = place.lake_rows(reader, table);
        let rows = target(place, table);
        same(&rows, &lake.rows, &format!("{because}: the target's {table}"));
        let ledger = ledger(place, table);
        let loaded: u64 = match table {
            // Each run replaces the rows of the one before.
            "units" => ledger.last().unwrap().1,
            _ => ledger.iter().map(|(_, rows)| rows).sum(),
        };
        assert_eq!(loaded, u64::try_from(rows.len()).unwrap(), "{because}: {table}: {ledger:?}");
        let runs: Vec<_> = ledger.iter().map(|(run, _)| run).collect();
        match table {
            "units" => assert_eq!(runs.last(), lake.manifests.last().as_ref(), "{because}"),
            _ => assert_eq!(runs, lake.manifests.iter().collect::<Vec<_>>(), "{because}"),
        }
    }
}

fn chain(parts: Parts) {
    let Some(reader) = Reader::start() else { return };
    let Some(place) = Place::make(parts, "") else { return };
    place.shop.grow(6);
    let report = place.sync();
    place.is_whole(&reader, &report, "the first run");
    agree(&place, &reader, "the first run");
    for (turn, step) in STEPS.into_iter().enumerate() {
        for (number, table) in TABLES.into_iter().enumerate() {
            // A bucket is slow: each step there in one of the tables.
            if parts.bucket && turn % TABLES.len() != number {
                continue;
            }
            let fault = Fault { step, table: Some(table), time: 1 };
            let text = fault.text();
            place.shop.grow(6);
            let (before, source) = (place.seen(&reader), place.source());
            place.die(&text);
            fault.allows(&place.seen(&reader), &before, &source);
            // The target shows a run whole or not at all, too.
            for (at, name) in TABLES.iter().enumerate() {
                let rows = target(&place, name);
                let is_new = rows.len() > before[at].len() || rows != before[at];
                let expected = if is_new { &source[at] } else { &before[at] };
                same(&rows, expected, &format!("the target after {text}: {name}"));
            }
            place.shop.grow(3);
            let report = place.sync();
            place.is_whole(&reader, &report, &format!("after {text}"));
            agree(&place, &reader, &format!("after {text}"));
        }
    }
}

#[test]
fn rows_of_a_file() {
    chain(Parts { publishes: true, ..Parts::default() });
}

#[test]
fn rows_of_a_server_in_a_bucket() {
    chain(Parts { server_source: true, bucket: true, server_state: true, publishes: true });
}

/// The watermark waits for the target: a run of the first half leaves it where it
/// is, and whoever dies in the second half is followed by another.
#[test]
fn in_two_halves() {
    let Some(reader) = Reader::start() else { return };
    let parts = Parts { publishes: true, ..Parts::default() };
    let Some(place) = Place::make(parts, "") else { return };
    for step in [Step::Load, Step::Published, Step::Advanced] {
        let because = format!("after {}", step.name());
        place.shop.grow(5);
        let source = place.source();
        let watermarks = place.told("watermarks list");
        place.must("sync --sync-id nightly --export-only");
        assert_eq!(place.told("watermarks list"), watermarks, "{because}");
        assert_eq!(place.seen(&reader), source, "{because}");
        place.shop.grow(2);
        place.must("sync --sync-id nightly --export-only");
        assert_eq!(place.seen(&reader), source, "{because}: nothing is exported before");
        let mut command = place.command();
        command.arg("--publish-only").env("TIDELAKE_FAULT", format!("{}:main.orders", step.name()));
        assert_eq!(command.output().unwrap().status.code(), None, "{because}");
        place.must("sync --sync-id nightly --publish-only");
        agree(&place, &reader, &because);
        let report = place.sync();
        place.is_whole(&reader, &report, &because);
        agree(&place, &reader, &because);
    }
}
