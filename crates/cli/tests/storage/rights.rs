//! Folders and files that the program's user may not write, from the beginning or
//! from some moment on. The program runs as somebody who is not root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::corner::watermarks;
use crate::place::{Parts, Place, said};
use crate::reader::{Reader, folder};
use crate::shop::Shop;
use crate::terminal::{Desk, file};

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// A command as that user.
fn as_nobody(mut command: Command) -> Command {
    command.uid(NOBODY).gid(NOBODY);
    command
}

fn own(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path(), user);
        }
    }
}

/// Takes a folder away from the program: root's, and for others to read alone.
fn close(path: &Path) {
    own(path, 0);
    for folder in [path.to_owned(), path.join("main"), path.join("main/orders")] {
        if folder.is_dir() {
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

/// A place that belongs to nobody; `None`, with a line that says so, where this
/// user cannot become another one.
fn place() -> Option<Place> {
    let desk = Desk::new();
    let is_root = fs::metadata(desk.path("shop.db")).unwrap().uid() == 0;
    let tried = is_root.then(|| {
        fs::set_permissions(desk.path("."), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = as_nobody(desk.command());
        command.arg("--version").stdout(Stdio::null()).status()
    });
    if !matches!(&tried, Some(Ok(status)) if status.success()) {
        #[allow(clippy::print_stdout, reason = "the reason must be seen")]
        {
            println!("not run: the program cannot be started as another user: {tried:?}");
        }
        return None;
    }
    let source = desk.path("source.db");
    let shop = Shop::file(&source);
    shop.grow(5);
    let state = desk.path("state.db");
    desk.credentials(&json!({"source": file(&source), "state": file(&state)}));
    let lake = folder(&desk.path("lake"));
    fs::create_dir(desk.path("lake")).unwrap();
    own(&desk.path("."), NOBODY);
    Some(Place { desk, shop, lake, server: None, parts: Parts::default() })
}

fn run(place: &Place, line: &str) -> Output {
    let mut command = as_nobody(place.desk.command());
    command.args(line.split_whitespace());
    command.args(["-a", "credentials.json", "--lxdb-auth-id", "state"]).output().unwrap()
}

const CREATE: &str = "config create --source-db-auth-id source --source-schema-name main \
    --sync-id nightly --output-dir lake --incremental-table main.orders:updated_at:timestamp \
    --incremental-table main.events:id:integer --n-jobs 1";

fn must(place: &Place, line: &str) -> Output {
    let output = run(place, line);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    output
}

/// That a failure names what may not be done, where, and what to do.
fn is_denied(output: &Output, parts: &[&str]) {
    let said = said(output);
    assert_ne!(output.status.code(), Some(0), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_folder_that_is_read_only_is_refused_before_anything_is_stored() {
    let Some(place) = place() else { return };
    close(&place.desk.path("lake"));
    let output = run(&place, CREATE);
    let lake = place.desk.path("lake").display().to_string();
    let hint = format!("hint: give tidelake's user the right to read and write in {lake}");
    is_denied(&output, &["Permission denied", &hint]);
    let listed = must(&place, "config list --output json");
    assert_eq!(String::from_utf8_lossy(&listed.stdout).trim(), "[]");
    own(&place.desk.path("lake"), NOBODY);
    must(&place, CREATE);
}

#[test]
fn rights_that_are_lost_in_the_middle_end_the_run_at_once() {
    let Some(reader) = Reader::start() else { return };
    for step in ["window", "begin", "staged", "completed"] {
        let Some(place) = place() else { return };
        must(&place, CREATE);
        must(&place, "sync --sync-id nightly");
        let reached = || {
            let told = must(&place, "watermarks list --output json").stdout;
            let all = watermarks(&serde_json::from_slice(&told).unwrap());
            all.into_iter().find(|(table, _)| table == "orders")
        };
        let before = reached();
        place.shop.grow(5);
        let hold = place.desk.path("hold");
        let mut command = as_nobody(place.command());
        command.env("TIDELAKE_FAULT", format!("{step}:main.orders"));
        let mut child = command.env("TIDELAKE_FAULT_HOLD", &hold).spawn().unwrap();
        let started = Instant::now();
        while !hold.exists() {
            let waits = child.try_wait().unwrap().is_none();
            assert!(waits && started.elapsed() < Duration::from_secs(30), "{step}");
            std::thread::sleep(Duration::from_millis(2));
        }
        close(&place.desk.path("lake"));
        let started = Instant::now();
        fs::remove_file(hold).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(started.elapsed() < Duration::from_secs(10), "{step}: {:?}", started.elapsed());
        let parts = ["Permission denied", "hint: give tidelake's user the right to read and write"];
        is_denied(&output, &parts);
        assert_eq!(reached(), before, "{step}");
        own(&place.desk.path("lake"), NOBODY);
        place.shop.grow(2);
        let report = must(&place, "sync --sync-id nightly --output json").stdout;
        let report = serde_json::from_slice(&report).unwrap();
        place.is_whole(&reader, &report, step);
    }
}

#[test]
fn a_state_file_that_is_read_only_is_told_as_such() {
    let Some(reader) = Reader::start() else { return };
    let Some(place) = place() else { return };
    must(&place, CREATE);
    must(&place, "sync --sync-id nightly");
    place.shop.grow(5);
    let files = || -> Vec<PathBuf> {
        let found = fs::read_dir(place.desk.path(".")).unwrap().map(|entry| entry.unwrap().path());
        found.filter(|path| path.display().to_string().contains("state.db")).collect()
    };
    // The file alone, then its folder too.
    for closes_folder in [false, true] {
        for path in files() {
            chown(&path, Some(0), Some(0)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        if closes_folder {
            chown(place.desk.path("."), Some(0), Some(0)).unwrap();
        }
        let output = run(&place, "sync --sync-id nightly");
        is_denied(&output, &["state.db", "hint: "]);
        let said = said(&output);
        assert!(!said.contains("integrity_check"), "{said}");
        assert!(said.contains("the right to write") || said.contains("permissions"), "{said}");
    }
    own(&place.desk.path("."), NOBODY);
    let report = must(&place, "sync --sync-id nightly --output json").stdout;
    place.is_whole(&reader, &serde_json::from_slice(&report).unwrap(), "with rights again");
}
