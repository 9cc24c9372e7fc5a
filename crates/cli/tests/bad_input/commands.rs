//! Mistakes in the commands that work with a sync.

use serde_json::Value;

use super::{CREATE, busy_desk, mistake, mistake_later, mistake_on};
use crate::terminal::{Desk, stable};

#[test]
fn command_that_is_not_built() {
    mistake("command_that_is_not_built", &Desk::new(), "serve --bind 127.0.0.1:8470");
}

#[test]
fn mistyped_command() {
    mistake("mistyped_command", &Desk::new(), "snyc --sync-id s");
}

#[test]
fn mistyped_option() {
    mistake("mistyped_option", &Desk::new(), &CREATE.replace("--output-dir", "--output-dr"));
}

#[test]
fn missing_option() {
    mistake("missing_option", &Desk::new(), "sync -a credentials.json");
}

#[test]
fn bad_log_level() {
    mistake("bad_log_level", &Desk::new(), "config list --log-level LOUD");
}

#[test]
fn unknown_sync() {
    let desk = Desk::new();
    mistake("unknown_sync", &desk, "sync -a credentials.json --sync-id nightly");
}

#[test]
fn unknown_sync_among_others() {
    let desk = Desk::new();
    desk.must(&format!("{CREATE} --sync-id nightly"));
    let answer = desk.run("sync -a credentials.json --sync-id nihgtly");
    stable().bind(|| insta::assert_snapshot!("unknown_sync_among_others", answer.transcript()));
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("nightly"), "{}", answer.stderr);
}

#[test]
fn bad_run_id() {
    mistake("bad_run_id", &Desk::new(), "status --run-id 12");
}

#[test]
fn unknown_watermark() {
    mistake("unknown_watermark", &Desk::new(), "watermarks set --table main.orders 5");
}

#[test]
fn drop_without_confirm() {
    mistake("drop_without_confirm", &Desk::new(), "lxdb drop");
}

#[test]
fn locks_without_a_choice() {
    mistake("locks_without_a_choice", &Desk::new(), "lxdb release-locks");
}

#[test]
fn errors_are_json_where_results_are() {
    let desk = Desk::new();
    let answer = desk.run("sync --sync-id nightly --output json");
    let stdout: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(stdout["error"]["kind"], "not_found");
    assert_eq!(stdout["exit_code"], answer.code);
    assert!(stdout["error"]["hint"].is_string());
}

#[test]
fn run_that_is_unknown() {
    mistake_later("run_that_is_unknown", "status --run-id 01ARZ3NDEKTSV4RRFFQ69G5FAV");
}

#[test]
fn resuming_an_unknown_run() {
    let line = "sync -a credentials.json --sync-id nightly --run-id 01ARZ3NDEKTSV4RRFFQ69G5FAV";
    mistake_later("resuming_an_unknown_run", line);
}

#[test]
fn resuming_while_nothing_failed() {
    let line = "sync -a credentials.json --sync-id nightly --resume";
    mistake_later("resuming_while_nothing_failed", line);
}

#[test]
fn forgetting_what_is_taken_up() {
    let line = "sync -a credentials.json --sync-id nightly --resume --reset-watermarks";
    mistake_later("forgetting_what_is_taken_up", line);
}

#[test]
fn exporting_and_publishing_alone() {
    let line = "sync -a credentials.json --sync-id nightly --export-only --publish-only";
    mistake_later("exporting_and_publishing_alone", line);
}

#[test]
fn unknown_engine() {
    mistake_later("unknown_engine", "sync -a credentials.json --sync-id nightly --engine spark");
}

#[test]
fn lease_too_short() {
    let line = "sync -a credentials.json --sync-id nightly --lease-seconds 1";
    mistake_later("lease_too_short", line);
}

#[test]
fn sync_without_credentials() {
    mistake_later("sync_without_credentials", "sync --sync-id nightly");
}

#[test]
fn unknown_decision() {
    let line = "sync -a credentials.json --sync-id nightly --on-mismatch guess";
    mistake_later("unknown_decision", line);
}

#[test]
fn watermark_of_another_kind() {
    mistake_later("watermark_of_another_kind", "watermarks set --table main.orders yesterday");
}

#[test]
fn watermark_of_nothing() {
    mistake_later("watermark_of_nothing", "watermarks set --table main.orders ''");
}

#[test]
fn watermark_of_an_older_version() {
    let line = "watermarks set --table main.orders 2024-01-01 --expected-version 77";
    mistake_later("watermark_of_an_older_version", line);
}

#[test]
fn watermark_of_two_values() {
    let line = "watermarks set --table main.orders 2024-01-01 --value 2024-01-02";
    mistake_later("watermark_of_two_values", line);
}

#[test]
fn watermark_of_an_unknown_table() {
    mistake_later("watermark_of_an_unknown_table", "watermarks get --table main.events");
}

#[test]
fn config_that_is_unknown() {
    mistake_later("config_that_is_unknown", "config show --sync-id nigthly");
}

#[test]
fn deleting_what_is_unknown() {
    mistake_later("deleting_what_is_unknown", "config delete --sync-id weekly");
}

#[test]
fn other_environment() {
    let line = "sync -a credentials.json --sync-id nightly --env-name test";
    mistake_later("other_environment", line);
}

#[test]
fn plan_without_its_source() {
    mistake_later("plan_without_its_source", "plan -a credentials.json --sync-id daily");
}

#[test]
fn the_cursor_is_gone() {
    let desk = busy_desk();
    desk.shop("DROP INDEX orders_by_time; ALTER TABLE orders DROP COLUMN updated_at");
    failed_table("the_cursor_is_gone", &desk);
}

#[test]
fn the_cursor_is_another_type() {
    let desk = busy_desk();
    desk.shop(
        "DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, updated_at INTEGER, \
         price REAL, note TEXT); INSERT INTO orders VALUES (1, 5, 1.0, NULL)",
    );
    failed_table("the_cursor_is_another_type", &desk);
}

#[test]
fn the_table_is_gone() {
    let desk = busy_desk();
    desk.shop("DROP TABLE orders");
    failed_table("the_table_is_gone", &desk);
}

#[test]
fn a_column_is_gone() {
    let desk = busy_desk();
    desk.shop("ALTER TABLE orders DROP COLUMN note");
    failed_table("a_column_is_gone", &desk);
}

#[test]
fn the_lake_is_gone() {
    let desk = busy_desk();
    std::fs::remove_dir_all(desk.path("lake")).unwrap();
    failed_table("the_lake_is_gone", &desk);
}

/// A table that fails is told in the result; why, and what to do, with it.
pub(crate) fn failed_table(name: &str, desk: &Desk) {
    let answer = desk.run("sync -a credentials.json --sync-id nightly --no-progress");
    stable().bind(|| insta::assert_snapshot!(name, answer.transcript()));
    assert_ne!(answer.code, 0, "{}", answer.transcript());
    assert!(answer.stderr.contains("hint: "), "{}", answer.stderr);
}

#[test]
fn a_demo_among_other_files() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("full")).unwrap();
    desk.write("full/notes.txt", "mine");
    mistake("a_demo_among_other_files", &desk, "demo --dir full");
}

#[test]
fn completions_for_an_unknown_shell() {
    mistake("completions_for_an_unknown_shell", &Desk::new(), "completions csh");
}

#[test]
fn logs_into_a_file() {
    let desk = Desk::new();
    desk.write("logs", "a file");
    mistake_on("logs_into_a_file", &desk, "config list --log-dir logs");
}

#[test]
fn no_home_for_the_state() {
    let mut desk = Desk::new();
    desk.set("HOME", "");
    let answer = desk.run("config list");
    stable().bind(|| insta::assert_snapshot!("no_home_for_the_state", answer.transcript()));
    assert_eq!(answer.code, 2, "{}", answer.transcript());
}
