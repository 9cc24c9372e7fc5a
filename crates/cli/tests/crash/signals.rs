//! Ctrl-C and SIGTERM.

use std::time::Duration;

use serde_json::Value;
use tidelake_model::Step;

use crate::fleet::each;
use crate::place::{Parts, Place, is_before, said, same};
use crate::reader::Reader;
use crate::shop::TABLES;

/// Steps at which a signal may arrive, and how often it does.
const STEPS: [Step; 11] = [
    Step::Lease,
    Step::Load,
    Step::Clock,
    Step::Split,
    Step::Window,
    Step::Begin,
    Step::Batch,
    Step::Staged,
    Step::Committing,
    Step::Completed,
    Step::Latest,
];

fn watermark(place: &Place, table: &str) -> Option<Value> {
    let list = place.told("watermarks list");
    let found =
        list.as_array().unwrap().iter().find(|entry| entry["key"]["table"]["table"] == table);
    found.map(|entry| entry["progress"].clone())
}

/// One run at a time: what the signal finds under way is known.
#[test]
fn what_is_durable_is_kept() {
    let kinds = [Parts::default(), Parts { server_source: true, bucket: true, ..Parts::default() }];
    let cases = kinds.into_iter().flat_map(|parts| ["INT", "TERM"].map(|signal| (parts, signal)));
    each(cases.collect(), 2, |(parts, signal)| {
        let Some(reader) = Reader::start() else { return };
        let Some(place) = Place::make(parts, "--n-jobs 1") else { return };
        place.shop.grow(4);
        place.sync();
        for step in STEPS {
            let because = format!("{signal} at {}", step.name());
            place.shop.grow(4);
            let (before, source) = (place.seen(&reader), place.source());
            let watermarks = TABLES.map(|table| watermark(&place, table));
            let fault = match step {
                Step::Lease => "lease".to_owned(),
                _ => format!("{}:main.orders", step.name()),
            };
            let mut run = place.hold(&fault);
            let earlier = place.seen(&reader);
            run.signal(signal);
            std::thread::sleep(Duration::from_millis(60));
            run.go_on();
            let output = run.end();
            let code = output.status.code();
            let is_kept = !is_before(step, Step::Committing);
            let seen = place.seen(&reader);
            for (at, table) in TABLES.iter().enumerate() {
                let (was_done, is_it) = (earlier[at] != before[at], *table == "orders");
                let is_new = was_done || (is_it && is_kept);
                let expected = if is_new { &source[at] } else { &before[at] };
                same(&seen[at], expected, &format!("{because}: {table}: {}", said(&output)));
                let moved = watermark(&place, table) != watermarks[at];
                let is_incremental = *table != "units";
                assert_eq!(moved, is_new && is_incremental, "{because}: {table}");
            }
            // Only where every table was done before it could stop, all is well.
            let all_done = seen == source;
            assert_eq!(code, Some(if all_done { 0 } else { 130 }), "{because}: {}", said(&output));
            assert_eq!(place.told("lxdb locks"), Value::Array(vec![]), "{because}");
            assert_eq!(place.uploads(&reader), [], "{because}");
            place.shop.grow(1);
            let report = place.sync();
            place.is_whole(&reader, &report, &because);
        }
        assert_eq!(place.runs_under_way().len(), 0);
    });
}

/// Who is in a hurry presses it again.
#[test]
fn the_second_ends_it_at_once() {
    let Some(reader) = Reader::start() else { return };
    let Some(place) = Place::make(Parts::default(), "") else { return };
    for step in [Step::Window, Step::Committing, Step::Latest] {
        place.shop.grow(4);
        let (before, source) = (place.seen(&reader), place.source());
        let run = place.hold(&format!("{}:main.orders", step.name()));
        run.signal("INT");
        std::thread::sleep(Duration::from_millis(60));
        run.signal("INT");
        // It ends although nobody lets it go on.
        let output = run.end_as_it_is();
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        let seen = place.seen(&reader);
        let expected = if step == Step::Latest { &source[0] } else { &before[0] };
        same(&seen[0], expected, step.name());
        place.shop.grow(1);
        let report = place.sync();
        place.is_whole(&reader, &report, step.name());
    }
}
