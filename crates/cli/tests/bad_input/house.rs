//! Mistakes in the commands that look at a lake, or after one.

use super::{CREATE, Desk, mistake_later, mistake_on};

#[test]
fn verifying_an_unknown_sync() {
    mistake_later("verifying_an_unknown_sync", "verify -a credentials.json --sync-id nigthly");
}

#[test]
fn verifying_an_unknown_table() {
    let line = "verify -a credentials.json --sync-id nightly --table main.order";
    mistake_later("verifying_an_unknown_table", line);
}

#[test]
fn verifying_without_credentials() {
    mistake_later("verifying_without_credentials", "verify --sync-id nightly");
}

#[test]
fn verifying_at_most_few() {
    let line = "verify -a credentials.json --sync-id nightly --limit few";
    mistake_later("verifying_at_most_few", line);
}

#[test]
fn explaining_without_a_key() {
    let line = "explain -a credentials.json --sync-id nightly --table main.orders";
    mistake_later("explaining_without_a_key", line);
}

#[test]
fn explaining_a_key_of_another_column() {
    let line = "explain -a credentials.json --sync-id nightly --table main.orders --key nr=1";
    mistake_later("explaining_a_key_of_another_column", line);
}

#[test]
fn explaining_a_key_of_another_kind() {
    let line = "explain -a credentials.json --sync-id nightly --table main.orders --key id=first";
    mistake_later("explaining_a_key_of_another_kind", line);
}

#[test]
fn explaining_a_key_that_is_none() {
    let line = "explain -a credentials.json --sync-id nightly --table main.orders --key =1";
    mistake_later("explaining_a_key_that_is_none", line);
}

#[test]
fn explaining_an_unknown_table() {
    let line = "explain -a credentials.json --sync-id nightly --table main.order --key id=1";
    mistake_later("explaining_an_unknown_table", line);
}

#[test]
fn backfill_above_the_watermark() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.orders --to 2999-01-01";
    mistake_later("backfill_above_the_watermark", line);
}

#[test]
fn backfill_upside_down() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.orders --from 2024-02-01 --to 2024-01-01";
    mistake_later("backfill_upside_down", line);
}

#[test]
fn backfill_of_another_kind() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.orders --from 5 --to 2024-01-01";
    mistake_later("backfill_of_another_kind", line);
}

#[test]
fn backfill_without_an_end() {
    let line =
        "backfill -a credentials.json --sync-id nightly --table main.orders --from 2024-01-01";
    mistake_later("backfill_without_an_end", line);
}

#[test]
fn backfill_in_no_pieces() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.orders --to 2024-01-02 --pieces 0";
    mistake_later("backfill_in_no_pieces", line);
}

#[test]
fn backfill_in_odd_steps() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.orders --from 2024-01-01 --to 2024-01-02 --step 1y";
    mistake_later("backfill_in_odd_steps", line);
}

#[test]
fn backfill_cut_in_two_ways() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.orders --to 2024-01-02 --pieces 2 --step 1d";
    mistake_later("backfill_cut_in_two_ways", line);
}

#[test]
fn backfill_of_an_unknown_table() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.order --to 5";
    mistake_later("backfill_of_an_unknown_table", line);
}

#[test]
fn compacting_an_unknown_table() {
    let line = "compact -a credentials.json --sync-id nightly --table main.order";
    mistake_later("compacting_an_unknown_table", line);
}

#[test]
fn compacting_to_no_size() {
    let line = "compact -a credentials.json --sync-id nightly --target-size large";
    mistake_later("compacting_to_no_size", line);
}

#[test]
fn compacting_an_unknown_sync() {
    mistake_later("compacting_an_unknown_sync", "compact -a credentials.json --sync-id weekly");
}

#[test]
fn cleaning_up_after_words() {
    let line = "cleanup -a credentials.json --sync-id nightly --older-than yesterday";
    mistake_later("cleaning_up_after_words", line);
}

#[test]
fn cleaning_up_an_unknown_sync() {
    mistake_later("cleaning_up_an_unknown_sync", "cleanup -a credentials.json --sync-id weekly");
}

#[test]
fn cleaning_up_an_unknown_status() {
    let line = "cleanup -a credentials.json --sync-id nightly --status done";
    mistake_later("cleaning_up_an_unknown_status", line);
}

#[test]
fn examining_an_unknown_sync() {
    mistake_later("examining_an_unknown_sync", "doctor -a credentials.json --sync-id weekly");
}

#[test]
fn watermark_without_a_history() {
    mistake_later("watermark_without_a_history", "watermarks undo --table main.events");
}

/// A sync that has not run yet.
fn new_sync(name: &str, line: &str) {
    let desk = Desk::new();
    let tables = "--incremental-table main.orders:updated_at:datetime";
    desk.must(&format!("{CREATE} --sync-id nightly {tables}"));
    mistake_on(name, &desk, line);
}

#[test]
fn backfill_before_the_first_run() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.orders --to 2024-01-02";
    new_sync("backfill_before_the_first_run", line);
}

#[test]
fn backfill_of_a_table_that_is_exported_whole() {
    let line = "backfill -a credentials.json --sync-id nightly --table main.events --to 5";
    new_sync("backfill_of_a_table_that_is_exported_whole", line);
}
