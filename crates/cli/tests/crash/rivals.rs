//! Two who want to run the same sync.

use std::time::{Duration, Instant};

use serde_json::Value;
use tidelake_model::Step;

use crate::fleet::each;
use crate::place::{Parts, Place, said};
use crate::reader::Reader;

/// What the first locked table of a report, or the failure, says.
fn message(output: &std::process::Output) -> String {
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["error"]["message"].as_str().unwrap_or_default().to_owned()
}

fn states() -> Vec<Parts> {
    [false, true].map(|server_state| Parts { server_state, ..Parts::default() }).to_vec()
}

#[test]
fn the_second_is_told_who_runs() {
    let Some(reader) = Reader::start() else { return };
    for parts in states() {
        let Some(place) = Place::make(parts, "") else { return };
        place.shop.grow(5);
        let first = place.hold("window:main.orders");
        let locks = place.told("lxdb locks");
        let run = locks[0]["run_id"].as_str().unwrap();
        let started = Instant::now();
        let second = place.command().output().unwrap();
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(second.status.code(), Some(4), "{}", said(&second));
        let message = message(&second);
        let process = format!("process {}", first.id());
        assert!(message.contains(run) && message.contains(&process), "{message}");
        assert!(message.contains(locks[0]["holder"]["host"].as_str().unwrap()), "{message}");
        let talk = String::from_utf8(second.stderr).unwrap();
        assert!(talk.contains(run) && talk.contains("hint: "), "{talk}");
        let output = first.end();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        place.shop.grow(1);
        let report = place.sync();
        place.is_whole(&reader, &report, "after both");
    }
}

#[test]
fn many_at_once_do_no_harm() {
    let cases = Parts::all().into_iter().filter(|parts| parts.server_source == parts.bucket);
    each(cases.collect(), 2, |parts| {
        let Some(reader) = Reader::start() else { return };
        let Some(place) = Place::make(parts, "") else { return };
        let mut worked = 0;
        for round in 0..4 {
            place.shop.grow(5);
            let runs: Vec<_> = (0..3).map(|_| place.start()).collect();
            for run in runs {
                let output = run.end();
                match output.status.code() {
                    Some(0) => worked += 1,
                    Some(4) => {}
                    _ => panic!("round {round}: {}", said(&output)),
                }
            }
        }
        assert!(worked >= 4, "{worked}");
        place.shop.grow(1);
        let report = place.sync();
        place.is_whole(&reader, &report, "after all");
    });
}

#[test]
fn a_dead_one_is_followed_at_once() {
    let Some(reader) = Reader::start() else { return };
    for parts in states() {
        let Some(place) = Place::make(parts, "") else { return };
        for step in [Step::Lease, Step::Batch, Step::Committing, Step::Latest] {
            place.shop.grow(5);
            let first = place.hold(step.name());
            first.signal("KILL");
            place.shop.grow(1);
            // Nobody has asked yet how it ended: it is a zombie.
            let started = Instant::now();
            let report = place.sync();
            assert!(started.elapsed() < Duration::from_secs(5));
            place.is_whole(&reader, &report, step.name());
            first.end();
        }
    }
}

#[test]
fn a_dead_one_elsewhere_is_waited_for() {
    let cases = states();
    each(cases, 2, |parts| {
        let Some(reader) = Reader::start() else { return };
        let Some(place) = Place::make(parts, "") else { return };
        place.shop.grow(5);
        let mut command = place.command();
        command.args(["--lease-seconds", "4"]).env("TIDELAKE_FAULT", "batch:main.orders");
        assert_eq!(command.output().unwrap().status.code(), None);
        let died = Instant::now();
        place.tamper("UPDATE table_state SET host = 'elsewhere', boot_id = 'another'");
        let second = place.command().output().unwrap();
        if died.elapsed() < Duration::from_secs(3) {
            assert_eq!(second.status.code(), Some(4), "{}", said(&second));
            assert!(message(&second).contains("host elsewhere"), "{}", said(&second));
        }
        std::thread::sleep(Duration::from_secs(4).saturating_sub(died.elapsed()));
        place.shop.grow(2);
        let report = place.sync();
        place.is_whole(&reader, &report, "after the lease has ended");
    });
}

/// A process that was stopped so long that another took its place, and then goes
/// on: it must not move, overwrite or delete anything.
#[test]
fn one_who_slept_too_long_does_no_harm() {
    let steps = [
        Step::Lease,
        Step::Load,
        Step::Clock,
        Step::Split,
        Step::Window,
        Step::Batch,
        Step::Staged,
        Step::Committing,
        Step::Completed,
        Step::Manifest,
        Step::Latest,
        Step::Committed,
        Step::Published,
    ];
    let kinds = [
        Parts::default(),
        Parts { server_source: true, bucket: true, server_state: true, publishes: true },
    ];
    let cases: Vec<_> = kinds
        .into_iter()
        .flat_map(|parts| steps.map(|step| (parts, step)))
        .filter(|(parts, step)| {
            parts.publishes || !matches!(step, Step::Committed | Step::Published)
        })
        .collect();
    each(cases, 2, |(parts, step)| {
        let Some(reader) = Reader::start() else { return };
        // One table at a time: nothing else is under way when it falls asleep, which
        // in a file could be a transaction that everybody waits for.
        let Some(place) = Place::make(parts, "--n-jobs 1") else { return };
        // Where all is on servers, and slow, the later runs alone.
        let rounds = if parts.publishes { vec!["later"] } else { vec!["first", "later"] };
        for round in rounds {
            if round == "later" {
                place.shop.grow(2);
                place.sync();
            }
            let because = format!("{} in the {round} run", step.name());
            place.shop.grow(5);
            let fault = match step {
                Step::Lease => "lease".to_owned(),
                _ => format!("{}:main.orders", step.name()),
            };
            let mut sleeper = place.hold(&fault);
            sleeper.signal("STOP");
            place.tamper("UPDATE table_state SET expires_at = '2020-01-01T00:00:00.000000Z'");
            place.shop.grow(2);
            let report = place.sync();
            place.is_whole(&reader, &report, &because);
            sleeper.go_on();
            sleeper.signal("CONT");
            let output = sleeper.end();
            let code = output.status.code();
            assert!(matches!(code, Some(1 | 3 | 5 | 130)), "{because}: {}", said(&output));
            place.is_whole(&reader, &report, &format!("{because}, woken up"));
            place.shop.grow(2);
            let report = place.sync();
            place.is_whole(&reader, &report, &format!("{because}, and later"));
        }
    });
}
