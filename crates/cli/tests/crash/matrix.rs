//! A run that dies right after a step, for every step, on every combination of
//! source, storage and state store.

use tidelake_model::Step;

use crate::fleet::{Dice, each, seed};
use crate::place::{Fault, Parts, Place, Seen, is_before, same};
use crate::reader::Reader;
use crate::shop::{Cells, TABLES};

/// Every step where a run can die, and the second time of those that come more
/// than once in a table. Each is met in every table.
fn faults(parts: Parts) -> Vec<Fault> {
    let mut faults = vec![];
    for step in Step::ALL {
        match step {
            Step::Lease | Step::Finished => faults.push(Fault { step, table: None, time: 1 }),
            Step::Committed | Step::Published if !parts.publishes => {}
            _ => faults.extend(TABLES.map(|table| Fault { step, table: Some(table), time: 1 })),
        }
        match step {
            // A server's table is read in two slices, a file's in one.
            Step::Begin | Step::Batch | Step::Completed if parts.server_source => {
                faults.extend(TABLES.map(|table| Fault { step, table: Some(table), time: 2 }));
            }
            Step::Begin | Step::Batch | Step::Completed => {
                faults.extend([2, 3].map(|time| Fault { step, table: None, time }));
            }
            _ => {}
        }
    }
    // A full table has no window to fix.
    faults.retain(|fault| (fault.step, fault.table) != (Step::Clock, Some("units")));
    faults
}

/// The same with one table for each step.
fn fewer_faults(parts: Parts) -> Vec<Fault> {
    let mut turn = 0;
    let mut last: Option<(Step, u32)> = None;
    let mut group: Vec<Fault> = vec![];
    let mut fewer = vec![];
    for fault in faults(parts).into_iter().map(Some).chain([None]) {
        let now = fault.as_ref().map(|fault| (fault.step, fault.time));
        if last != now && !group.is_empty() {
            fewer.push(group[turn % group.len()].clone());
            group.clear();
            turn += 1;
        }
        last = now;
        group.extend(fault);
    }
    fewer
}

/// One fault after another in one sync, each followed by a plain run.
fn chain(parts: Parts, faults: Vec<Fault>) {
    let Some(reader) = Reader::start() else { return };
    let Some(place) = Place::make(parts, "") else { return };
    place.shop.grow(6);
    let report = place.sync();
    place.is_whole(&reader, &report, "the first run");
    let mut left = place.uploads(&reader);
    for fault in faults {
        place.shop.grow(6);
        dies_and_recovers(&place, &reader, &fault);
        let now = place.uploads(&reader);
        let new: Vec<_> = now.iter().filter(|upload| !left.contains(upload)).collect();
        // An object of one part is on no record before the list of a commit is.
        let is_listed = !is_before(fault.step, Step::Committing);
        let is_whole = fault.step == Step::Finished;
        let listed =
            new.iter().filter(|(of, _)| is_whole || (is_listed && fault.table == Some(of)));
        assert_eq!(listed.count(), 0, "{}: {new:?}", fault.text());
        left = now;
    }
    assert_eq!(place.runs_under_way().len(), 0);
}

/// The heart of it.
fn dies_and_recovers(place: &Place, reader: &Reader, fault: &Fault) {
    let text = fault.text();
    let before = place.seen(reader);
    let source = place.source();
    place.die(&text);
    fault.allows(&place.seen(reader), &before, &source);
    for table in TABLES {
        // A look into the folder shows no file that is not whole.
        reader.folder(&place.lake, &format!("main/{table}")).unwrap();
    }
    place.shop.grow(3);
    let report = place.sync();
    place.is_whole(reader, &report, &format!("after {text}"));
}

#[test]
fn files_and_folders() {
    let parts = Parts::default();
    chain(parts, faults(parts));
}

/// The other combinations, by what they have of servers.
fn combination(server_source: bool, bucket: bool, server_state: bool) {
    let parts = Parts { server_source, bucket, server_state, publishes: false };
    chain(parts, fewer_faults(parts));
}

#[test]
fn from_a_server() {
    combination(true, false, false);
}

#[test]
fn into_a_bucket() {
    combination(false, true, false);
}

#[test]
fn from_a_server_into_a_bucket() {
    combination(true, true, false);
}

#[test]
fn state_on_a_server() {
    combination(false, false, true);
}

#[test]
fn from_a_server_with_its_state() {
    combination(true, false, true);
}

#[test]
fn into_a_bucket_with_state_on_a_server() {
    combination(false, true, true);
}

#[test]
fn nothing_but_servers() {
    let parts = Parts { server_source: true, bucket: true, server_state: true, publishes: false };
    chain(parts, fewer_faults(parts));
}

/// Rows that are read again take the place of those that were read before: files
/// go, and some are written anew without a part of their rows.
#[test]
fn files_that_are_rewritten() {
    let cases = [Parts::default(), Parts { server_source: true, bucket: true, ..Parts::default() }];
    each(cases.to_vec(), 2, |parts| {
        let Some(reader) = Reader::start() else { return };
        let Some(place) = Place::with_strategy(parts, "!delete_insert", "--lookback 10") else {
            return;
        };
        place.shop.grow(15);
        place.sync();
        for fault in fewer_faults(parts) {
            let because = fault.text();
            place.shop.correct();
            place.shop.grow(4);
            let (before, source) = (place.seen(&reader), place.source());
            place.die(&because);
            fault.allows(&place.seen(&reader), &before, &source);
            place.shop.correct();
            place.shop.grow(3);
            let report = place.sync();
            place.is_whole(&reader, &report, &format!("after {because}"));
        }
    });
}

#[test]
fn the_very_first_run() {
    let cases = [Parts::default(), Parts { server_source: true, ..Parts::default() }]
        .into_iter()
        .flat_map(|parts| fewer_faults(parts).into_iter().map(move |fault| (parts, fault)))
        .collect();
    each(cases, 2, |(parts, fault)| {
        let Some(reader) = Reader::start() else { return };
        let Some(place) = Place::make(parts, "") else { return };
        place.shop.grow(9);
        dies_and_recovers(&place, &reader, &fault);
        place.shop.grow(3);
        let report = place.sync();
        place.is_whole(&reader, &report, "the next run");
    });
}

/// Whoever finishes what another left may die as well, and the next, too.
#[test]
fn those_who_recover_die_too() {
    let seeds = (seed()..seed() + 12).collect();
    each(seeds, 2, |seed: u64| {
        let Some(reader) = Reader::start() else { return };
        let mut dice = Dice::new(seed);
        let parts = dice.pick(&[
            Parts::default(),
            Parts::default(),
            Parts { server_source: true, ..Parts::default() },
            Parts { server_source: true, bucket: true, server_state: true, publishes: false },
        ]);
        let Some(place) = Place::make(parts, "") else { return };
        let mut past = Past::default();
        for _ in 0..3 {
            let mut story = vec![];
            for _ in 0..=dice.roll(3) {
                place.shop.grow(6);
                past.remember(&place);
                let fault = dice.pick(&faults(parts)).text();
                let output = place.command().env("TIDELAKE_FAULT", &fault).output().unwrap();
                story.push(format!("{fault} ({})", output.status));
                past.fits(&place.seen(&reader), &format!("seed {seed}: {story:?}"));
            }
            place.shop.grow(2);
            past.remember(&place);
            let report = place.sync();
            place.is_whole(&reader, &report, &format!("seed {seed}: {story:?}"));
        }
    });
}

/// States that the source was in.
#[derive(Default)]
pub(crate) struct Past {
    source: Seen,
    units: Vec<Cells>,
    at: usize,
}

impl Past {
    pub(crate) fn remember(&mut self, place: &Place) {
        self.source = place.source();
        self.units.push(self.source[2].clone());
    }

    /// What a reader sees is what the source was at some time, and never earlier
    /// than what was seen before.
    pub(crate) fn fits(&mut self, seen: &Seen, because: &str) {
        is_all_up_to(&seen[0], &self.source[0], 1, &format!("{because}: orders"));
        is_all_up_to(&seen[1], &self.source[1], 0, &format!("{because}: events"));
        if seen[2].is_empty() && self.at == 0 {
            return;
        }
        let found = (self.at..self.units.len()).find(|at| self.units[*at] == seen[2]);
        self.at = found.unwrap_or_else(|| panic!("{because}: units are torn: {:?}", seen[2]));
    }
}

/// All rows up to the highest value that is there, each once.
pub(crate) fn is_all_up_to(seen: &Cells, source: &Cells, cursor: usize, because: &str) {
    // Ids have no leading zeros.
    let value = |row: &Vec<Option<String>>| {
        let text = row[cursor].clone().unwrap();
        (if cursor == 0 { text.len() } else { 0 }, text)
    };
    let highest = seen.iter().map(value).max();
    let expected: Cells = match highest {
        Some(highest) => source.iter().filter(|row| value(row) <= highest).cloned().collect(),
        None => vec![],
    };
    same(seen, &expected, because);
}
