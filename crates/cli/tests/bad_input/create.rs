//! Mistakes in what a new sync is told.

use super::{CREATE, INCREMENTAL, mistake, option};
use crate::terminal::{Desk, stable};

#[test]
fn missing_table() {
    option("missing_table", "--incremental-table main.order:id:integer");
}

#[test]
fn missing_column() {
    option("missing_column", "--incremental-table main.orders:updated:datetime");
}

#[test]
fn cursor_of_wrong_type() {
    option("cursor_of_wrong_type", "--incremental-table main.orders:id:datetime");
}

#[test]
fn float_option() {
    option("float_cursor", "--incremental-table main.orders:price:number");
}

#[test]
fn unknown_cursor_type() {
    option("unknown_cursor_type", "--incremental-table main.orders:id:int");
}

#[test]
fn start_of_wrong_type() {
    option("start_of_wrong_type", "--incremental-table main.orders:id:integer@yesterday");
}

#[test]
fn one_table_twice() {
    let twice = "--incremental-table main.orders:id:integer --incremental-table orders:id:integer";
    option("one_table_twice", twice);
}

#[test]
fn lag_on_an_integer() {
    let options = "--incremental-table main.orders:id:integer --incremental-safety-lag 5m";
    option("lag_on_an_integer", options);
}

#[test]
fn lookback_with_append() {
    option("lookback_with_append", "--incremental-table main.orders:id:integer --lookback 10");
}

#[test]
fn null_cursors_with_append() {
    let options = "--incremental-table main.orders:updated_at:datetime --null-cursor include";
    option("null_cursors_with_append", options);
}

#[test]
fn upsert_without_publish() {
    option("upsert_without_publish", "--incremental-table main.orders:id:integer!upsert");
}

#[test]
fn unknown_zone() {
    let options = "--incremental-table main.orders:updated_at:datetime --cursor-zone Mars/North";
    option("unknown_zone", options);
}

#[test]
fn sub_path_leaves_the_base() {
    option("sub_path_leaves_the_base", "--sub-path raw/../../etc");
}

#[test]
fn sub_path_is_absolute() {
    option("sub_path_is_absolute", "--sub-path /raw");
}

#[test]
fn both_targets() {
    option("both_targets", "--target-storage-id bucket");
}

#[test]
fn no_target() {
    mistake("no_target", &Desk::new(), &CREATE.replace("--output-dir lake", ""));
}

#[test]
fn a_bucket_as_a_folder() {
    let line = CREATE.replace("--output-dir lake", "--output-dir s3://bucket/lake");
    mistake("a_bucket_as_a_folder", &Desk::new(), &line);
}

#[test]
fn a_file_as_a_folder() {
    let line = CREATE.replace("--output-dir lake", "--output-dir shop.db");
    mistake("a_file_as_a_folder", &Desk::new(), &line);
}

#[test]
fn bad_sync_id() {
    option("bad_sync_id", "--sync-id my.sync");
}

#[test]
fn bad_environment() {
    option("bad_environment", "--env-name 'a b'");
}

#[test]
fn no_tables_at_once() {
    option("no_tables_at_once", "--n-jobs 0");
}

#[test]
fn readers_are_no_number() {
    option("readers_are_no_number", "-p many");
}

#[test]
fn memory_is_no_size() {
    option("memory_is_no_size", "--memory-limit lots");
}

#[test]
fn pattern_without_table() {
    let options = "--publish-target shop --publish-table-pattern {schema}_all";
    option("pattern_without_table", options);
}

#[test]
fn publishing_without_a_target() {
    option("publishing_without_a_target", "--publish-method internal");
}

#[test]
fn method_that_is_not_built() {
    option("method_that_is_not_built", "--fastbcp-table-config main.orders:DataDriven:id:4");
}

#[test]
fn option_that_is_not_built() {
    option("option_that_is_not_built", "--format delta");
}

#[test]
fn duplicate_sync() {
    let desk = Desk::new();
    desk.must(&format!("{CREATE} --sync-id nightly"));
    let answer = desk.run(&format!("{CREATE} --sync-id nightly"));
    stable().bind(|| insta::assert_snapshot!("duplicate_sync", answer.transcript()));
    assert_eq!(answer.code, 2);
    assert_eq!(desk.lake_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn zone_in_lower_case() {
    let options = "--incremental-table main.orders:updated_at:datetime --cursor-zone europe/berlin";
    option("zone_in_lower_case", options);
}

#[test]
fn zone_is_a_city() {
    let options = "--incremental-table main.orders:updated_at:datetime --cursor-zone berlin";
    option("zone_is_a_city", options);
}

#[test]
fn cursor_without_a_type() {
    option("cursor_without_a_type", "--incremental-table main.orders:id");
}

#[test]
fn cursor_without_a_column() {
    option("cursor_without_a_column", "--incremental-table main.orders");
}

#[test]
fn unknown_direction() {
    option("unknown_direction", "--incremental-table main.orders:id:integer:x");
}

#[test]
fn unknown_strategy() {
    option("unknown_strategy", "--incremental-table main.orders:id:integer!merge");
}

#[test]
fn start_is_missing() {
    option("start_is_missing", "--incremental-table main.orders:id:integer@");
}

#[test]
fn one_type_for_two_columns() {
    option("one_type_for_two_columns", "--incremental-table main.orders:updated_at,id:datetime");
}

#[test]
fn lag_of_an_unknown_unit() {
    option("lag_of_an_unknown_unit", &format!("{INCREMENTAL} --incremental-safety-lag 5minutes"));
}

#[test]
fn lag_below_nothing() {
    option("lag_below_nothing", &format!("{INCREMENTAL} --incremental-safety-lag=-5"));
}

#[test]
fn lookback_of_words() {
    option("lookback_of_words", &format!("{INCREMENTAL}!delete_insert --lookback yesterday"));
}

#[test]
fn gap_on_a_time() {
    option("gap_on_a_time", &format!("{INCREMENTAL} --safety-gap 10"));
}

#[test]
fn gap_below_nothing() {
    option("gap_below_nothing", "--incremental-table main.orders:id:integer --safety-gap -1");
}

#[test]
fn wait_of_words() {
    option("wait_of_words", "--inflight-wait soon");
}

#[test]
fn fewer_rows_than_none() {
    option("fewer_rows_than_none", "--min-rows 10 --max-rows 5");
}

#[test]
fn rows_are_no_number() {
    option("rows_are_no_number", "--min-rows few");
}

#[test]
fn no_table_of_that_pattern() {
    option("no_table_of_that_pattern", "--include 'invoice%'");
}

#[test]
fn no_schema_of_that_name() {
    option("no_schema_of_that_name", "--source-schema-name sales");
}

#[test]
fn an_empty_pattern() {
    option("an_empty_pattern", "--include ,");
}

#[test]
fn home_behind_an_equals_sign() {
    let line = CREATE.replace("--output-dir lake", "--output-dir=~/lake");
    mistake("home_behind_an_equals_sign", &Desk::new(), &line);
}

#[test]
fn documents_that_are_not_written() {
    option("documents_that_are_not_written", "--manifest-name Shop");
}

#[test]
fn publishing_into_a_file() {
    option("publishing_into_a_file", "--publish-target shop --publish-method internal");
}

#[test]
fn slices_without_a_key() {
    option("slices_without_a_key", "--fastbcp-table-config main.orders:RangeId::4");
}

#[test]
fn slices_of_an_unknown_method() {
    option("slices_of_an_unknown_method", "--fastbcp-table-config main.orders:Fast:id:4");
}

#[test]
fn too_little_memory() {
    option("too_little_memory", "--memory-limit 1MB");
}

#[test]
fn unknown_compression() {
    option("unknown_compression", "--compression-type brotli");
}

#[test]
fn generations_below_nothing() {
    option("generations_below_nothing", "--keep-generations=-1");
}
