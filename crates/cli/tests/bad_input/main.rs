//! Mistakes of a first-time user: each is told what was wrong and what to do,
//! and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod columns;
mod commands;
mod create;
mod credentials;
mod house;
mod servers;
#[path = "../terminal/mod.rs"]
mod terminal;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use terminal::{Desk, stable};

const CREATE: &str = "config create -a credentials.json --source-db-auth-id shop --output-dir lake";

/// What is to be read of a shop that has a sync.
const INCREMENTAL: &str = "--incremental-table main.orders:updated_at:datetime";

/// The mistake's answer is as stored, is an error with a hint, and left nothing.
fn mistake(name: &str, desk: &Desk, line: &str) {
    told(name, desk, line);
    nothing_left(desk);
}

/// The same on a desk with a sync, called `nightly`, that has run once: what was
/// there before is there after.
fn mistake_later(name: &str, line: &str) {
    let desk = busy_desk();
    mistake_on(name, &desk, line);
}

fn mistake_on(name: &str, desk: &Desk, line: &str) {
    let before = (known(desk), desk.lake_files());
    told(name, desk, line);
    assert_eq!((known(desk), desk.lake_files()), before, "the mistake changed something");
}

fn told(name: &str, desk: &Desk, line: &str) {
    let answer = desk.run(line);
    stable().bind(|| insta::assert_snapshot!(name, answer.transcript()));
    assert_ne!(answer.code, 0, "{}", answer.transcript());
    assert_eq!(answer.stdout, "", "an error is no result");
    assert!(answer.stderr.contains("error: "), "{}", answer.stderr);
    let last = answer.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("hint: "), "{}", answer.stderr);
}

fn busy_desk() -> Desk {
    let desk = Desk::new();
    // One table, so that what is told of it has one order.
    desk.must(&format!("{CREATE} --sync-id nightly --include orders {INCREMENTAL}"));
    desk.must("sync -a credentials.json --sync-id nightly");
    desk
}

/// All that is remembered.
fn known(desk: &Desk) -> [String; 4] {
    ["config list", "status", "watermarks list", "lxdb locks"]
        .map(|command| desk.must(&format!("{command} --output json")))
}

fn nothing_left(desk: &Desk) {
    assert_eq!(desk.lake_files(), Vec::<PathBuf>::new(), "files in the lake");
    assert_eq!(known(desk), ["[]\n"; 4]);
}

/// The same for options of `config create`.
fn option(name: &str, options: &str) {
    mistake(name, &Desk::new(), &format!("{CREATE} {options}"));
}

/// The same for a wrong credential.
fn credential(name: &str, entry: Value) {
    let desk = Desk::new();
    desk.credentials(&json!({ "shop": entry }));
    mistake(name, &desk, CREATE);
}

/// So many mistakes at least are tried.
const MISTAKES: usize = 180;

#[test]
fn every_mistake_that_is_stored_has_a_hint() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_input/snapshots");
    let tests = [
        include_str!("columns.rs"),
        include_str!("commands.rs"),
        include_str!("create.rs"),
        include_str!("credentials.rs"),
        include_str!("house.rs"),
        include_str!("servers.rs"),
    ]
    .concat();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if text.trim_end().ends_with("--- exit 0") {
            continue;
        }
        count += 1;
        let name = path.file_stem().unwrap().to_string_lossy();
        assert!(tests.contains(&format!("\"{name}\"")), "no test makes {}", path.display());
        let mut lines = text.lines().rev();
        let hint = lines.find(|line| line.starts_with("hint: "));
        assert!(hint.is_some_and(|hint| hint.len() > 20), "{} has no hint", path.display());
    }
    assert!(count >= MISTAKES, "{count} mistakes are stored, of at least {MISTAKES}");
}
