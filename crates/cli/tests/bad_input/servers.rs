//! Mistakes that a server notices.

use serde_json::{Value, json};

use super::{CREATE, mistake};
use crate::terminal::{Desk, file, server};

pub(super) fn postgres(
    server: &str,
    port: &str,
    user: &str,
    password: &str,
    database: &str,
) -> Value {
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

#[test]
fn authority_that_is_not_there() {
    let mut desk = Desk::new();
    let Some(mut entry) = test_server(&mut desk, "sslmode", "verify-full") else { return };
    entry["info"]["sslrootcert"] = "nowhere.pem".into();
    desk.credentials(&json!({ "shop": entry }));
    mistake("authority_that_is_not_there", &desk, CREATE);
}

#[test]
fn trusted_and_not_trusted() {
    let mut desk = Desk::new();
    let Some(mut entry) = test_server(&mut desk, "sslmode", "verify-full") else { return };
    entry["info"]["trust_server_certificate"] = true.into();
    desk.credentials(&json!({ "shop": entry }));
    mistake("trusted_and_not_trusted", &desk, CREATE);
}

#[test]
fn unknown_user() {
    let mut desk = Desk::new();
    let Some(entry) = test_server(&mut desk, "username", "nobody_of_tidelake") else { return };
    desk.credentials(&json!({ "shop": entry }));
    mistake("unknown_user", &desk, CREATE);
}
