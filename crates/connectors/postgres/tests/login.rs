//! Logins, encryption and privileges.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

mod common;

use common::{Database, collect, split, table, whole};
use serde_json::json;
use tidelake_connector::Connector;
use tidelake_model::{CredentialInfo, Error, ErrorKind};
use tidelake_postgres::Postgres;

async fn refused(info: &CredentialInfo) -> Error {
    match Postgres.source(info).await {
        Ok(_) => panic!("the login succeeded"),
        Err(error) => {
            let password = std::env::var("TIDELAKE_TEST_PG_PASSWORD").unwrap();
            let shown = format!("{error:?} {:?}", error.hint());
            assert!(!shown.contains(&password) && !shown.contains("hunter2"), "{shown}");
            error
        }
    }
}

#[tokio::test]
async fn each_way_to_encrypt() {
    let Some(database) = Database::make().await else { return };
    let ca = std::env::var("TIDELAKE_TEST_PG_CA").unwrap();
    for (changes, encrypted) in [
        (json!({}), true),
        (json!({"sslmode": "disable"}), false),
        (json!({"sslmode": "require"}), true),
        (json!({"trust_server_certificate": true}), true),
        (json!({"sslmode": "verify-ca", "sslrootcert": ca}), true),
        (json!({"sslmode": "verify-full", "sslrootcert": ca}), true),
    ] {
        let source = Postgres.source(&database.info_with(changes.clone())).await;
        let source = source.unwrap_or_else(|error| panic!("{changes}: {error:?}"));
        let client = database.client().await;
        let statement = "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                         WHERE a.datname = current_database() AND a.application_name LIKE 'tidelake%'";
        let row = client.query_one(statement, &[]).await.unwrap();
        assert_eq!(row.get::<_, bool>(0), encrypted, "{changes}");
        drop(source);
        let gone = "SELECT count(*) FROM pg_stat_activity \
                    WHERE datname = current_database() AND application_name LIKE 'tidelake%'";
        while client.query_one(gone, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    // An authority that signed something else.
    let other = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(other.path(), OTHER_AUTHORITY).unwrap();
    for mode in ["verify-ca", "verify-full"] {
        let changes = json!({"sslmode": mode, "sslrootcert": other.path()});
        let error = refused(&database.info_with(changes)).await;
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    }
    let changes = json!({"sslmode": "verify-full", "sslrootcert": "/does/not/exist"});
    assert_eq!(refused(&database.info_with(changes)).await.kind(), ErrorKind::Configuration);
    database.drop_now().await;
}

/// A certificate made for this test, whose key was thrown away.
const OTHER_AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBjzCCATWgAwIBAgIUTEJx+0MCtdVe+nTe8UwUZ1uLEfEwCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRYW5vdGhlciBhdXRob3JpdHkwIBcNMjYxMTMwMTgwNjU4WhgP
MjEyNjExMDYxODA2NThaMBwxGjAYBgNVBAMMEWFub3RoZXIgYXV0aG9yaXR5MFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEiIVWCrn+ztY4p6ikpxP6mVfr0kf6fVfA
RrsFUEkD4WK9ZZpxSB1abUUVCFBNnVmbburF7QtEb/ukxISuj0mV36NTMFEwHQYD
VR0OBBYEFOQEL19KbenvwWdxXk1ApowWToixMB8GA1UdIwQYMBaAFOQEL19Kbenv
wWdxXk1ApowWToixMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIg
IZqt3IcRiYo3nrkt5iEnUKLdlCeBK1cNkmObgNZ15I8CIQDkdiuPFGn9Rbwr89V+
Dr549paXhU8k0aYeqcURx3/7XQ==
-----END CERTIFICATE-----
";

#[tokio::test]
async fn rows_are_read_through_encryption() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client
        .batch_execute("CREATE TABLE t AS SELECT g AS id, repeat('x', 300) AS v FROM generate_series(1, 20000) g")
        .await
        .unwrap();
    for mode in ["disable", "require"] {
        let source = Postgres.source(&database.info_with(json!({"sslmode": mode}))).await.unwrap();
        let found = table(&source, "t").await;
        // The second read uses a session that was given back.
        for _ in 0..2 {
            let batches = collect(&source, &split(&source, whole(&found), 1).await).await.unwrap();
            assert_eq!(batches[0].num_rows(), 20_000);
        }
    }
    database.drop_now().await;
}

#[tokio::test]
async fn refusals_say_what_can_be_done() {
    let Some(database) = Database::make().await else { return };
    let error = refused(&database.info_with(json!({"password": "hunter2"}))).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.hint().unwrap().contains("password"));
    let error = refused(&database.info_with(json!({"database": "no such database"}))).await;
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    let error = refused(&database.info_with(json!({"port": 1}))).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    let error = refused(&database.info_with(json!({"server": "host.invalid"}))).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    let mut info = database.info();
    info.as_object_mut().unwrap().remove("password");
    let error = refused(&CredentialInfo::new(info)).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    database.drop_now().await;
}

#[tokio::test]
async fn a_table_without_the_privilege_and_a_policy_are_errors() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    let role = format!("reader {}", database.name);
    client
        .batch_execute(&format!(
            "CREATE ROLE \"{role}\" LOGIN PASSWORD 'hunter2'; \
             CREATE TABLE hidden (id int); CREATE TABLE policed (id int); \
             ALTER TABLE policed ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY part ON policed USING (id > 1); \
             INSERT INTO policed VALUES (1), (2); GRANT SELECT ON policed TO \"{role}\""
        ))
        .await
        .unwrap();
    let info = database.info_with(json!({"username": role, "password": "hunter2"}));
    let source = Postgres.source(&info).await.unwrap();
    for (name, hint) in [("hidden", "SELECT"), ("policed", "BYPASSRLS")] {
        let found = table(&source, name).await;
        let request = tidelake_connector::SplitRequest {
            read: whole(&found),
            degree: 1,
            method: tidelake_model::ReadMethod::Auto,
            key: None,
        };
        let error = match source.split(&request).await {
            Ok(slices) => collect(&source, &slices).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
        assert!(
            error.to_string().contains(name) && error.hint().unwrap().contains(hint),
            "{error:?}"
        );
    }
    drop(source);
    client.batch_execute(&format!("DROP OWNED BY \"{role}\"; DROP ROLE \"{role}\"")).await.unwrap();
    database.drop_now().await;
}
