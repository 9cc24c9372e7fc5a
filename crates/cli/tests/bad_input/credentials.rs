//! Mistakes in the credentials file.

use serde_json::{Value, json};

use super::servers::postgres;
use super::{CREATE, credential, mistake};
use crate::terminal::{Desk, file, stable};

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
    credential("planned_ds_type", json!({"ds_type": "mssql", "auth_mode": "classic", "info": {}}));
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

/// A server that nobody asks, since the credential is wrong.
fn server(field: &str, value: Value) -> Value {
    let mut entry = json!({"ds_type": "postgres", "auth_mode": "classic", "info": {
        "server": "127.0.0.1", "username": "ann", "password": "s3cret", "database": "shop",
    }});
    entry["info"][field] = value;
    entry
}

#[test]
fn a_port_in_words() {
    credential("a_port_in_words", server("port", json!("five")));
}

#[test]
fn a_port_beyond_all_ports() {
    credential("a_port_beyond_all_ports", server("port", json!(99_999)));
}

#[test]
fn a_password_in_a_list() {
    credential("a_password_in_a_list", server("password", json!(["s3cret"])));
}

#[test]
fn a_password_of_digits() {
    credential("a_password_of_digits", server("password", json!(12_345)));
}

#[test]
fn unknown_sslmode() {
    credential("unknown_sslmode", server("sslmode", json!("verify")));
}

#[test]
fn info_is_missing() {
    credential("info_is_missing", json!({"ds_type": "sqlite"}));
}

#[test]
fn ds_type_is_missing() {
    credential("ds_type_is_missing", json!({"info": {"filepath": "shop.db"}}));
}

#[test]
fn a_key_stands_twice() {
    let desk = Desk::new();
    let text = "{\"shop\": {\"ds_type\": \"sqlite\",\n  \"info\": \
                {\"filepath\": \"old.db\", \"filepath\": \"shop.db\"}}}";
    desk.write("credentials.json", text);
    mistake("a_key_stands_twice", &desk, CREATE);
}

#[test]
fn the_file_is_empty() {
    let desk = Desk::new();
    desk.write("credentials.json", "");
    mistake("the_file_is_empty", &desk, CREATE);
}

#[test]
fn the_file_is_a_list() {
    let desk = Desk::new();
    desk.write("credentials.json", "[]");
    mistake("the_file_is_a_list", &desk, CREATE);
}

#[test]
fn the_file_is_a_folder() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("folder")).unwrap();
    mistake("the_file_is_a_folder", &desk, &CREATE.replace("credentials.json", "folder"));
}

#[test]
fn the_file_is_in_another_encoding() {
    let desk = Desk::new();
    std::fs::write(desk.path("credentials.json"), b"{\"sh\xf6p\": {}}").unwrap();
    mistake("the_file_is_in_another_encoding", &desk, CREATE);
}

/// The mistake in a storage's credential.
fn storage(name: &str, entry: Value) {
    let desk = Desk::new();
    desk.credentials(&json!({ "shop": file(&desk.path("shop.db")), "store": entry }));
    let line = CREATE.replace("--output-dir lake", "--target-storage-id store");
    mistake(name, &desk, &line);
}

fn bucket(info: Value) -> Value {
    json!({"ds_type": "s3", "auth_mode": "keys", "info": info})
}

#[test]
fn bucket_without_a_scheme() {
    storage("bucket_without_a_scheme", bucket(json!({"directory": "bucket/lake"})));
}

#[test]
fn bucket_is_a_list() {
    storage("bucket_is_a_list", bucket(json!({"directory": ["s3://bucket"]})));
}

#[test]
fn half_of_a_key() {
    storage("half_of_a_key", bucket(json!({"directory": "s3://b", "access_key_id": "AK"})));
}

#[test]
fn endpoint_is_no_address() {
    let info = json!({"directory": "s3://b", "endpoint_url": "local host",
        "access_key_id": "AK", "secret_access_key": "s3cret"});
    storage("endpoint_is_no_address", bucket(info));
}

fn container(auth_mode: &str, info: Value) -> Value {
    json!({"ds_type": "azure", "auth_mode": auth_mode, "info": info})
}

#[test]
fn container_without_an_account() {
    let info = json!({"directory": "az://lake/raw", "account_key": "czNjcmV0"});
    storage("container_without_an_account", container("account_key", info));
}

#[test]
fn container_without_its_key() {
    let info = json!({"directory": "abfss://lake@shop.dfs.core.windows.net"});
    storage("container_without_its_key", container("account_key", info));
}

#[test]
fn account_key_is_no_key() {
    let info = json!({"directory": "abfss://lake@shop.dfs.core.windows.net",
        "account_key": "no key, s3cret"});
    storage("account_key_is_no_key", container("account_key", info));
}

#[test]
fn connection_string_is_cut_off() {
    let info = json!({"directory": "az://lake", "connection_string": "DefaultEndpoints"});
    storage("connection_string_is_cut_off", container("connection_string", info));
}

#[test]
fn container_of_another_scheme() {
    let info = json!({"directory": "s3://lake", "account": "shop", "account_key": "czNjcmV0"});
    storage("container_of_another_scheme", container("account_key", info));
}

#[test]
fn key_file_that_is_not_there() {
    let info = json!({"directory": "gs://lake", "service_account_file": "nowhere.json"});
    let entry = json!({"ds_type": "gcs", "auth_mode": "profile", "info": info});
    storage("key_file_that_is_not_there", entry);
}

#[test]
fn key_file_is_no_key_file() {
    let desk = Desk::new();
    desk.write("key.json", "{\"private_key\": \"s3cret\"}");
    let info = json!({"directory": "gs://lake", "service_account_file": desk.path("key.json")});
    desk.credentials(&json!({
        "shop": file(&desk.path("shop.db")),
        "store": {"ds_type": "gcs", "auth_mode": "profile", "info": info},
    }));
    let line = CREATE.replace("--output-dir lake", "--target-storage-id store");
    mistake("key_file_is_no_key_file", &desk, &line);
}
