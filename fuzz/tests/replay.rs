//! Every input that the fuzzer kept, and every one that ever broke a law.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "these are tests")]

use std::fs;
use std::path::Path;

use tidelake_fuzz::{TARGETS, Target};

fn replay(name: &str) {
    let found = TARGETS.into_iter().find(|target| target.name == name);
    let Some(Target { run, .. }) = found else { panic!("there is no target {name}") };
    let mut count = 0;
    for kept in ["corpus", "regressions"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kept).join(name);
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            run(&fs::read(path).unwrap());
            count += 1;
        }
    }
    assert!(count >= 10, "{count} inputs are kept for {name}");
}

#[test]
fn copies_are_replayed() {
    replay("copy");
}

#[test]
fn credentials_are_replayed() {
    replay("credentials");
}

#[test]
fn documents_are_replayed() {
    replay("documents");
}

#[test]
fn patterns_are_replayed() {
    replay("like");
}

#[test]
fn literals_are_replayed() {
    replay("literal");
}

#[test]
fn pages_are_replayed() {
    replay("pages");
}

#[test]
fn packets_are_replayed() {
    replay("packets");
}

#[test]
fn rows_are_replayed() {
    replay("rows");
}

#[test]
fn tables_are_replayed() {
    replay("tables");
}

#[test]
fn times_are_replayed() {
    replay("times");
}

#[test]
fn watermarks_are_replayed() {
    replay("watermark");
}

#[test]
fn every_target_is_replayed() {
    let here = include_str!("replay.rs");
    for target in TARGETS {
        assert!(here.contains(&format!("replay(\"{}\")", target.name)), "{}", target.name);
    }
}
