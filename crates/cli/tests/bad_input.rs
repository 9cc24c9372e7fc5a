//! Mistakes of a first-time user: each is told what was wrong and what to do,
//! and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod terminal;

use serde_json::{Value, json};
use terminal::{Desk, file, server, stable};

const CREATE: &str = "config create -a credentials.json --source-db-auth-id shop --output-dir lake";

/// The mistake's answer is as stored, is an error with a hint, and left nothing.
fn mistake(name: &str, desk: &Desk, line: &str) {
    let answer = desk.run(line);
    stable().bind(|| insta::assert_snapshot!(name, answer.transcript()));
    assert_ne!(answer.code, 0, "{}", answer.transcript());
    assert_eq!(answer.stdout, "", "an error is no result");
    assert!(answer.stderr.contains("error: "), "{}", answer.stderr);
    let last = answer.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("hint: "), "{}", answer.stderr);
    nothing_left(desk);
}

fn nothing_left(desk: &Desk) {
    assert_eq!(desk.lake_files(), Vec::<std::path::PathBuf>::new(), "files in the lake");
    for command in ["config list", "status", "watermarks list", "lxdb locks"] {
        assert_eq!(desk.must(&format!("{command} --output json")), "[]\n", "{command}");
    }
}

/// The same for a cursor that does not fit.
fn cursor(name: &str, options: &str) {
    mistake(name, &Desk::new(), &format!("{CREATE} {options}"));
}

/// The same for a wrong credential.
fn credential(name: &str, entry: Value) {
    let desk = Desk::new();
    desk.credentials(&json!({ "shop": entry }));
    mistake(name, &desk, CREATE);
}

#[test]
fn missing_auth_file() {
    mistake("missing_auth_file", &Desk::new(), &CREATE.replace("credentials.json", "nowhere.json"));
}

#[test]
fn no_auth_file() {
    mistake("no_auth_file", &Desk::new(), &CREATE.replace("-a credentials.json", ""));
}

#[test]
fn bad_json() {
    let desk = Desk::new();
    desk.write(
        "credentials.json",
        "{\n  \"shop\": {\n    \"ds_type\": \"sqlite\"\n    \"info\": 1\n",
    );
    mistake("bad_json", &desk, CREATE);
}

#[test]
fn unknown_credential() {
    mistake("unknown_credential", &Desk::new(), &CREATE.replace("shop", "shopp"));
}

#[test]
fn unknown_key() {
    credential("unknown_key", json!({"ds_type": "sqlite", "auth_mod": "filesystem", "info": {}}));
}

#[test]
fn unknown_info_key() {
    let info = json!({"ds_type": "sqlite", "info": {"filepth": "shop.db"}});
    credential("unknown_info_key", info);
}

#[test]
fn missing_info_key() {
    credential("missing_info_key", json!({"ds_type": "sqlite", "info": {}}));
}

#[test]
fn unknown_ds_type() {
    credential("unknown_ds_type", json!({"ds_type": "sqlte", "info": {}}));
}

#[test]
fn planned_ds_type() {
    credential("planned_ds_type", json!({"ds_type": "mysql", "auth_mode": "classic", "info": {}}));
}

#[test]
fn wrong_auth_mode() {
    credential("wrong_auth_mode", json!({"ds_type": "postgres", "auth_mode": "iam", "info": {}}));
}

#[test]
fn unset_variable() {
    let entry = postgres("127.0.0.1", "1", "ann", "$env{SHOP_PASSWORD}", "shop");
    credential("unset_variable", entry);
}

#[test]
fn storage_as_source() {
    let entry = json!({"ds_type": "s3", "auth_mode": "profile", "info": {"directory": "s3://b"}});
    credential("storage_as_source", entry);
}

#[test]
fn refused_port() {
    credential("refused_port", postgres("127.0.0.1", "1", "ann", "s3cret", "shop"));
}

#[test]
fn file_missing() {
    let desk = Desk::new();
    desk.credentials(&json!({ "shop": file(&desk.path("shopp.db")) }));
    mistake("file_missing", &desk, CREATE);
}

#[test]
fn file_is_no_database() {
    let desk = Desk::new();
    desk.write(
        "shop.db",
        "a file of at least one page of text, but no database".repeat(99).as_str(),
    );
    mistake("file_is_no_database", &desk, CREATE);
}

#[test]
fn missing_table() {
    cursor("missing_table", "--incremental-table main.order:id:integer");
}

#[test]
fn missing_column() {
    cursor("missing_column", "--incremental-table main.orders:updated:datetime");
}

#[test]
fn cursor_of_wrong_type() {
    cursor("cursor_of_wrong_type", "--incremental-table main.orders:id:datetime");
}

#[test]
fn float_cursor() {
    cursor("float_cursor", "--incremental-table main.orders:price:number");
}

#[test]
fn unknown_cursor_type() {
    cursor("unknown_cursor_type", "--incremental-table main.orders:id:int");
}

#[test]
fn start_of_wrong_type() {
    cursor("start_of_wrong_type", "--incremental-table main.orders:id:integer@yesterday");
}

#[test]
fn one_table_twice() {
    let twice = "--incremental-table main.orders:id:integer --incremental-table orders:id:integer";
    cursor("one_table_twice", twice);
}

#[test]
fn lag_on_an_integer() {
    let options = "--incremental-table main.orders:id:integer --incremental-safety-lag 5m";
    cursor("lag_on_an_integer", options);
}

#[test]
fn lookback_with_append() {
    cursor("lookback_with_append", "--incremental-table main.orders:id:integer --lookback 10");
}

#[test]
fn null_cursors_with_append() {
    let options = "--incremental-table main.orders:updated_at:datetime --null-cursor include";
    cursor("null_cursors_with_append", options);
}

#[test]
fn upsert_without_publish() {
    cursor("upsert_without_publish", "--incremental-table main.orders:id:integer!upsert");
}

#[test]
fn unknown_zone() {
    let options = "--incremental-table main.orders:updated_at:datetime --cursor-zone Mars/North";
    cursor("unknown_zone", options);
}

#[test]
fn sub_path_leaves_the_base() {
    cursor("sub_path_leaves_the_base", "--sub-path raw/../../etc");
}

#[test]
fn sub_path_is_absolute() {
    cursor("sub_path_is_absolute", "--sub-path /raw");
}

#[test]
fn both_targets() {
    cursor("both_targets", "--target-storage-id bucket");
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
    cursor("bad_sync_id", "--sync-id my.sync");
}

#[test]
fn bad_environment() {
    cursor("bad_environment", "--env-name 'a b'");
}

#[test]
fn no_tables_at_once() {
    cursor("no_tables_at_once", "--n-jobs 0");
}

#[test]
fn readers_are_no_number() {
    cursor("readers_are_no_number", "-p many");
}

#[test]
fn memory_is_no_size() {
    cursor("memory_is_no_size", "--memory-limit lots");
}

#[test]
fn pattern_without_table() {
    let options = "--publish-target shop --publish-table-pattern {schema}_all";
    cursor("pattern_without_table", options);
}

#[test]
fn publishing_without_a_target() {
    cursor("publishing_without_a_target", "--publish-method internal");
}

#[test]
fn method_that_is_not_built() {
    cursor("method_that_is_not_built", "--fastbcp-table-config main.orders:DataDriven:id:4");
}

#[test]
fn option_that_is_not_built() {
    cursor("option_that_is_not_built", "--format delta");
}

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
fn duplicate_sync() {
    let desk = Desk::new();
    desk.must(&format!("{CREATE} --sync-id nightly"));
    let answer = desk.run(&format!("{CREATE} --sync-id nightly"));
    stable().bind(|| insta::assert_snapshot!("duplicate_sync", answer.transcript()));
    assert_eq!(answer.code, 2);
    assert_eq!(desk.lake_files(), Vec::<std::path::PathBuf>::new());
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
fn the_state_is_a_folder() {
    let desk = Desk::new();
    let (shop, lake) = (file(&desk.path("shop.db")), file(&desk.path("state")));
    std::fs::create_dir(desk.path("state")).unwrap();
    desk.credentials(&json!({ "shop": shop, "state": lake }));
    mistake("the_state_is_a_folder", &desk, &format!("{CREATE} --lxdb-auth-id state"));
}

#[test]
fn the_state_is_no_store() {
    let desk = Desk::new();
    desk.credentials(&json!({
        "shop": file(&desk.path("shop.db")),
        "bucket": {"ds_type": "s3", "auth_mode": "profile", "info": {"directory": "s3://b"}},
    }));
    mistake("the_state_is_no_store", &desk, &format!("{CREATE} --lxdb-auth-id bucket"));
}

#[test]
fn unknown_profile() {
    let desk = Desk::new();
    desk.credentials(&json!({
        "shop": file(&desk.path("shop.db")),
        "bucket": {"ds_type": "s3", "auth_mode": "profile",
            "info": {"directory": "s3://b", "profile": "nobody"}},
    }));
    let line = CREATE.replace("--output-dir lake", "--target-storage-id bucket");
    mistake("unknown_profile", &desk, &line);
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
#[cfg(unix)]
fn a_public_credentials_file_draws_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let public = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(desk.path("credentials.json"), public).unwrap();
    let answer = desk.run("config list -a credentials.json");
    stable().bind(|| insta::assert_snapshot!("public_credentials", answer.transcript()));
    assert_eq!(answer.code, 0);
}

fn postgres(server: &str, port: &str, user: &str, password: &str, database: &str) -> Value {
    json!({"ds_type": "postgres", "auth_mode": "classic", "info": {
        "server": server, "port": port, "username": user, "password": password,
        "database": database,
    }})
}

/// The credential of the test server, with one field changed.
fn test_server(desk: &mut Desk, field: &str, value: &str) -> Option<Value> {
    let host = server("TIDELAKE_TEST_PG_HOST")?;
    let port = server("TIDELAKE_TEST_PG_PORT")?;
    let user = server("TIDELAKE_TEST_PG_USER")?;
    let password = server("TIDELAKE_TEST_PG_PASSWORD")?;
    let database = server("TIDELAKE_TEST_PG_DATABASE")?;
    for value in [&host, &port] {
        desk.hide(value);
    }
    let mut entry = postgres(&host, &port, &user, &password, &database);
    entry["info"][field] = value.into();
    Some(entry)
}

#[test]
fn wrong_password() {
    let mut desk = Desk::new();
    let Some(entry) = test_server(&mut desk, "password", "not the password") else { return };
    desk.credentials(&json!({ "shop": entry }));
    mistake("wrong_password", &desk, CREATE);
}

#[test]
fn missing_database() {
    let mut desk = Desk::new();
    let Some(entry) = test_server(&mut desk, "database", "no_such_database") else { return };
    desk.credentials(&json!({ "shop": entry }));
    mistake("missing_database", &desk, CREATE);
}

#[test]
fn missing_bucket() {
    let mut desk = Desk::new();
    let Some(endpoint) = server("TIDELAKE_TEST_S3_ENDPOINT") else { return };
    desk.hide(&endpoint);
    desk.credentials(&json!({
        "shop": file(&desk.path("shop.db")),
        "bucket": {"ds_type": "s3", "auth_mode": "keys", "info": {
            "directory": "s3://no-such-bucket-of-tidelake/lake",
            "endpoint_url": endpoint,
            "access_key_id": std::env::var("TIDELAKE_TEST_S3_ACCESS_KEY").unwrap_or_default(),
            "secret_access_key": std::env::var("TIDELAKE_TEST_S3_SECRET_KEY").unwrap_or_default(),
        }},
    }));
    let line = CREATE.replace("--output-dir lake", "--target-storage-id bucket");
    mistake("missing_bucket", &desk, &line);
}
