//! `kill -9` at any moment, while rows arrive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::fleet::{Dice, seed};
use crate::matrix::is_all_up_to;
use crate::place::{Parts, Place, same};
use crate::reader::Reader;
use crate::shop::{TABLES, behind};

/// Rows before the first run, in each table.
const ROWS: u64 = 20_000;

/// Kills on each combination.
const KILLS: u32 = 5;

fn kills(parts: Parts, seed: u64) {
    let Some(reader) = Reader::start() else { return };
    let Some(place) = Place::make(parts, "") else { return };
    let mut dice = Dice::new(seed);
    for _ in 0..ROWS / 1000 {
        let more = place.shop.more(1000);
        place.shop.execute(&format!("BEGIN; {more} COMMIT"));
    }
    // How long a whole run takes here: the kills are spread over it.
    let started = Instant::now();
    place.sync();
    let whole = started.elapsed();

    let stop = AtomicBool::new(false);
    let mut writer = place.shop.writer();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                writer(20);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        // A failure must not leave the writer alone.
        let work = || {
            for kill in 0..KILLS {
                let because = format!("seed {seed}, kill {kill}");
                let mut run = place.start();
                let most = u64::try_from(whole.as_micros()).unwrap();
                let after = Duration::from_micros(dice.roll(most));
                std::thread::sleep(after);
                let was_over = run.is_over();
                if !was_over {
                    run.signal("KILL");
                }
                run.end();
                let because = format!("{because} after {after:?}, over: {was_over}");
                shows_no_half(&place, &reader, &because);
                // Some are followed by another death, some by a run to the end.
                if dice.roll(2) == 0 {
                    place.sync();
                    shows_no_half(&place, &reader, &because);
                }
            }
        };
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = worked {
            std::panic::resume_unwind(panic);
        }
    });
    // What was written last must lie in the window as well.
    std::thread::sleep(behind(!parts.server_source));
    place.shop.grow(2);
    let report = place.sync();
    place.is_whole(&reader, &report, &format!("seed {seed}"));
    assert_eq!(place.runs_under_way().len(), 0);
}

/// Whatever is there, is there from the beginning up to one moment.
fn shows_no_half(place: &Place, reader: &Reader, because: &str) {
    let seen = place.seen(reader);
    let source = place.source();
    is_all_up_to(&seen[0], &source[0], 1, &format!("{because}: orders"));
    is_all_up_to(&seen[1], &source[1], 0, &format!("{because}: events"));
    // Units are only added here, and one export holds them all up to one moment.
    let number = |row: &Vec<Option<String>>| {
        row[0].as_ref().unwrap().trim_start_matches("unit ").parse::<u64>().unwrap()
    };
    let highest = seen[2].iter().map(number).max().unwrap_or(0);
    let expected = source[2].iter().filter(|row| number(row) <= highest).cloned().collect();
    same(&seen[2], &expected, &format!("{because}: units"));
    for table in TABLES {
        reader.folder(&place.lake, &format!("main/{table}")).unwrap();
    }
}

fn combination(number: usize) {
    kills(Parts::all()[number], seed() + 1000 + u64::try_from(number).unwrap());
}

#[test]
fn files_and_folders() {
    combination(0);
}

#[test]
fn from_a_server() {
    combination(1);
}

#[test]
fn into_a_bucket() {
    combination(2);
}

#[test]
fn from_a_server_into_a_bucket() {
    combination(3);
}

#[test]
fn state_on_a_server() {
    combination(4);
}

#[test]
fn from_a_server_with_its_state() {
    combination(5);
}

#[test]
fn into_a_bucket_with_state_on_a_server() {
    combination(6);
}

#[test]
fn nothing_but_servers() {
    combination(7);
}
