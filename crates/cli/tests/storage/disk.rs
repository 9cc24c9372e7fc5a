//! A disk without space, below the lake and below the state store.
//!
//! A small file system of its own shows it where this user may mount one, a limit
//! on the size of files everywhere.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::corner::watermarks;
use crate::place::{Parts, Place, said};
use crate::reader::{Reader, folder};
use crate::shop::Shop;
use crate::terminal::{Desk, file};

/// A table of 3 MB that no codec makes smaller.
const PICTURES: &str = "
    CREATE TABLE main.pictures (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 300)
    INSERT INTO pictures SELECT n, randomblob(10000) FROM numbers";

const GLOBAL: &str = "-a credentials.json --lxdb-auth-id state";

/// A file system of a few bytes; gone when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with a line that says so, where this user may not mount one.
    fn mount(path: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir_all(&path).unwrap();
        let options = format!("size={size},mode=0777");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&path)
            .output();
        let before = fs::metadata(path.parent().unwrap()).unwrap().dev();
        let is_mounted = fs::metadata(&path).unwrap().dev() != before;
        if !is_mounted {
            #[allow(clippy::print_stdout, reason = "the reason must be seen")]
            {
                println!("not run: no file system can be mounted here: {mount:?}");
            }
            return None;
        }
        Some(Self(path))
    }

    fn grow(&self) {
        let options = "remount,size=64m";
        let status = Command::new("mount").args(["-o", options]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }

    /// Takes all space that is left; the file that did it.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let of = format!("of={}", path.display());
        let filled = Command::new("dd").args(["if=/dev/zero", &of, "bs=4k"]).output().unwrap();
        assert!(!filled.status.success(), "{filled:?}");
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A place whose lake and state are where they are told to be.
fn place(desk: Desk, lake: &Path, state: &Path) -> Place {
    let source = desk.path("source.db");
    let shop = Shop::file(&source);
    shop.execute(PICTURES);
    shop.grow(5);
    desk.credentials(&json!({"source": file(&source), "state": file(state)}));
    let place = Place { desk, shop, lake: folder(lake), server: None, parts: Parts::default() };
    place.must(&format!(
        "config create --source-db-auth-id source --source-schema-name main --sync-id nightly \
         --output-dir {} --incremental-table main.orders:updated_at:timestamp \
         --incremental-table main.events:id:integer --compression-type None --n-jobs 1 \
         --error-action continue",
        lake.display()
    ));
    place
}

/// A run that may write no file of more than so many KiB, and hears of it as of any
/// other error.
fn run_with_limit(place: &Place, kibibytes: u32) -> Output {
    let command = place.command();
    let mut shell = Command::new("bash");
    // bash counts in blocks of 1024 bytes.
    let script = format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$@\"");
    shell.args(["-c", &script, "bash"]).arg(command.get_program()).args(command.get_args());
    shell.env_clear().current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.output().unwrap()
}

fn hidden_files(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(hidden_files(&path));
        } else if entry.file_name().to_string_lossy().starts_with('.') {
            found.push(path);
        }
    }
    found
}

/// What a run says that found no space for the large table, and what it leaves.
fn is_told_and_tidied(output: &Output, lake: &Path) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(3), "the small tables have room: {said}");
    let pictures = lake.join("main/pictures");
    assert!(said.contains(&format!("cannot write {}", pictures.display())), "{said}");
    let hint = format!("hint: free some space for {}, then run again", pictures.display());
    assert!(said.contains(&hint), "{said}");
    assert_eq!(hidden_files(lake), Vec::<PathBuf>::new(), "{said}");
}

fn is_whole_after(place: &Place, reader: &Reader) {
    place.shop.grow(3);
    let report = place.sync();
    place.is_whole(reader, &report, "with space again");
    assert_eq!(place.lake_rows(reader, "pictures").rows.len(), 300);
}

#[test]
fn a_lake_without_space_is_told_with_its_folder() {
    let Some(reader) = Reader::start() else { return };
    let desk = Desk::new();
    let Some(disk) = SmallDisk::mount(desk.path("small"), "2m") else { return };
    let (lake, state) = (desk.path("small/lake"), desk.path("state.db"));
    let place = place(desk, &lake, &state);
    let output = place.command().output().unwrap();
    is_told_and_tidied(&output, &lake);
    assert!(said(&output).contains("No space left on device"), "{}", said(&output));
    disk.grow();
    is_whole_after(&place, &reader);
}

#[test]
fn a_file_that_may_not_grow_is_told_with_its_folder() {
    let Some(reader) = Reader::start() else { return };
    let desk = Desk::new();
    let (lake, state) = (desk.path("lake"), desk.path("state.db"));
    let place = place(desk, &lake, &state);
    let output = run_with_limit(&place, 2048);
    is_told_and_tidied(&output, &lake);
    assert!(said(&output).contains("File too large"), "{}", said(&output));
    is_whole_after(&place, &reader);
}

/// That a failure was put down to the disk, and to nothing else.
fn blames_the_disk(output: &Output, words: &[&str]) {
    let said = said(output);
    assert!([1, 3].contains(&output.status.code().unwrap()), "{said}");
    assert!(words.iter().any(|word| said.contains(word)), "{said}");
    assert!(said.contains("state.db") && said.contains("hint: "), "{said}");
    assert!(!said.contains("integrity_check"), "{said}");
}

#[test]
fn a_state_store_without_space_is_told_as_such() {
    let Some(reader) = Reader::start() else { return };
    let desk = Desk::new();
    let Some(disk) = SmallDisk::mount(desk.path("small"), "4m") else { return };
    let (lake, state) = (desk.path("lake"), desk.path("small/state.db"));
    let place = place(desk, &lake, &state);
    let before = place.told("watermarks list");
    // When the run begins, and in the middle of it.
    let filler = disk.fill();
    let output = place.command().output().unwrap();
    blames_the_disk(&output, &["the disk is full", "disk failed", "disk has space"]);
    fs::remove_file(filler).unwrap();
    let run = place.hold("batch:main.orders");
    let filler = disk.fill();
    let output = run.end();
    blames_the_disk(&output, &["the disk is full", "disk failed", "disk has space"]);
    fs::remove_file(filler).unwrap();
    // Other tables may have been done by then.
    let of_orders = |told: &serde_json::Value| {
        watermarks(told).into_iter().find(|(table, _)| table == "orders")
    };
    assert_eq!(of_orders(&place.told("watermarks list")), of_orders(&before));
    is_whole_after(&place, &reader);
}

#[test]
fn a_state_store_that_may_not_grow_is_told_as_such() {
    let Some(reader) = Reader::start() else { return };
    let desk = Desk::new();
    let (lake, state) = (desk.path("lake"), desk.path("state.db"));
    let place = place(desk, &lake, &state);
    let output = run_with_limit(&place, 16);
    blames_the_disk(&output, &["the disk is full", "disk failed"]);
    is_whole_after(&place, &reader);
    assert!(place.desk.run(&format!("lxdb locks {GLOBAL}")).code == 0);
}
