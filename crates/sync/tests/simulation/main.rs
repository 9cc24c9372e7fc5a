//! The promise, simulated.
//!
//! Each schedule is a small world made from one seed: a database with open
//! transactions, late commits, ties and NULLs, a clock that steps back up to the
//! safety lag, a state store, a lake, a publish target, and runners that crash
//! after any step, fail, lose answers, sleep while their lease goes to another,
//! and are edited by hand in between. In the end the lake must hold each
//! committed row exactly once, and at no moment may a reader that goes by the
//! manifest see a row twice or a row that was never committed.
//!
//! `TIDELAKE_SCHEDULES` sets how many schedules run, `TIDELAKE_SEED` where the
//! seeds begin. A seed that once failed is kept in `seeds.txt` and is run first.

// A schedule stops at the first surprise, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stderr)]

mod check;
mod doubles;
mod flaky;
mod house;
mod schedule;
mod world;

use schedule::run_schedule;

/// Schedules over all tests of this file, unless set otherwise.
const SCHEDULES: u64 = 10_000;
/// The tests share the schedules, so that they run on all cores.
const PARTS: u64 = 4;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn part(part: u64) {
    let schedules = number("TIDELAKE_SCHEDULES").unwrap_or(SCHEDULES);
    let first = number("TIDELAKE_SEED").unwrap_or(1);
    for seed in (first..first + schedules).filter(|seed| seed % PARTS == part) {
        run_schedule(seed);
    }
}

#[test]
fn each_row_arrives_exactly_once_part_1() {
    part(0);
}

#[test]
fn each_row_arrives_exactly_once_part_2() {
    part(1);
}

#[test]
fn each_row_arrives_exactly_once_part_3() {
    part(2);
}

#[test]
fn each_row_arrives_exactly_once_part_4() {
    part(3);
}

#[test]
fn seeds_that_once_failed() {
    for line in include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#')) {
        run_schedule(line.trim().parse().expect("a seed a line"));
    }
}
