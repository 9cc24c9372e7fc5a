//! The suite on PostgreSQL, and what a server can do to a store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tidelake_model::{CredentialInfo, ErrorKind, Holder, RunId, TableKey, TableName};
use tidelake_state::conformance::{Outcome, Place, run_store_suite};
use tidelake_state::postgres::PostgresStore;
use tidelake_state::{BeginRun, StateStore};
use tokio_postgres::NoTls;

fn variable(name: &str) -> Option<String> {
    std::env::var(format!("TIDELAKE_TEST_PG_{name}")).ok().filter(|value| !value.is_empty())
}

/// Whether there is a server; says so where there is none.
fn has_server() -> bool {
    let found = variable("HOST").is_some();
    let required = std::env::var("TIDELAKE_TEST_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
    assert!(found || !required, "TIDELAKE_TEST_PG_HOST is not set");
    if !found {
        println!("not run: TIDELAKE_TEST_PG_HOST is not set");
    }
    found
}

static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// A schema of its own, with a name that must be quoted.
struct InSchema {
    schema: String,
}

impl InSchema {
    fn new() -> Self {
        let started = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        Self { schema: format!("it's \"state\" {started} {process} {number}") }
    }

    fn info(&self) -> serde_json::Value {
        json!({
            "server": variable("HOST").unwrap(),
            "port": variable("PORT"),
            "username": variable("USER").unwrap(),
            "password": variable("PASSWORD"),
            "database": variable("DATABASE").unwrap(),
            "schema": self.schema,
        })
    }

    async fn store(&self) -> PostgresStore {
        PostgresStore::from_credential(&CredentialInfo::new(self.info())).await.unwrap()
    }

    async fn drop_schema(&self) {
        let quoted = self.schema.replace('"', "\"\"");
        let statement = format!("DROP SCHEMA IF EXISTS \"{quoted}\" CASCADE");
        client().await.batch_execute(&statement).await.unwrap();
    }
}

async fn client() -> tokio_postgres::Client {
    let mut config = tokio_postgres::Config::new();
    config
        .host(variable("HOST").unwrap())
        .port(variable("PORT").unwrap().parse().unwrap())
        .user(variable("USER").unwrap())
        .password(variable("PASSWORD").unwrap_or_default())
        .dbname(variable("DATABASE").unwrap());
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[async_trait]
impl Place for InSchema {
    async fn open(&self) -> Outcome<Arc<dyn StateStore>> {
        let info = CredentialInfo::new(self.info());
        Ok(Arc::new(PostgresStore::from_credential(&info).await?))
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    if !has_server() {
        return;
    }
    let places = std::sync::Mutex::new(vec![]);
    let report = run_store_suite("postgres", async || {
        let place = Arc::new(InSchema::new());
        places.lock().unwrap().push(place.clone());
        Ok(place)
    })
    .await;
    let places = places.into_inner().unwrap();
    for place in places {
        place.drop_schema().await;
    }
    report.verdict().unwrap();
}

fn request(number: u128) -> BeginRun {
    BeginRun {
        run_id: RunId::from_number(number),
        env: String::new(),
        scope: "sync-1".to_owned(),
        tables: vec![TableKey {
            env: String::new(),
            scope: "sync-1".to_owned(),
            connector_type: "postgres".to_owned(),
            source_key: "shop".to_owned(),
            table: Some(TableName::new("public", "t")),
        }],
        holder: Holder {
            host: "here".to_owned(),
            boot_id: "now".to_owned(),
            process_id: 1,
            process_started: 1,
        },
        ttl: Duration::from_secs(60),
    }
}

#[tokio::test]
async fn a_connection_that_was_cut_is_made_again() {
    if !has_server() {
        return;
    }
    // A database of its own tells its sessions from those of other tests.
    let database = InSchema::new().schema;
    let quoted = database.replace('"', "\"\"");
    client().await.batch_execute(&format!("CREATE DATABASE \"{quoted}\"")).await.unwrap();
    let mut info = InSchema::new().info();
    info["database"] = database.clone().into();
    let store = PostgresStore::from_credential(&CredentialInfo::new(info)).await.unwrap();
    for round in 0..4 {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
        assert_eq!(client().await.query(cut, &[&database]).await.unwrap().len(), 1);
        if round % 2 == 1 {
            // Time enough to see the end before the next statement does.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        store.identity().await.unwrap();
    }
    drop(store);
    let drop = format!("DROP DATABASE \"{quoted}\" WITH (FORCE)");
    client().await.batch_execute(&drop).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_transaction() {
    if !has_server() {
        return;
    }
    let place = InSchema::new();
    let store = place.store().await;
    for micros in [0, 200, 500, 1_000, 2_000, 4_000] {
        let request = request(micros.into());
        let begun = store.begin_run(&request);
        let _ = tokio::time::timeout(Duration::from_micros(micros), begun).await;
        store.release_locks(&Default::default()).await.unwrap();
    }
    store.begin_run(&request(77)).await.unwrap();
    place.drop_schema().await;
}

#[tokio::test]
async fn a_wrong_password_is_told_without_it() {
    if !has_server() {
        return;
    }
    let mut info = InSchema::new().info();
    info["password"] = "hunter2-and-more".into();
    let error = PostgresStore::from_credential(&CredentialInfo::new(info)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert!(error.hint().unwrap().contains("password"), "{error:?}");
}

#[tokio::test]
async fn every_sslmode_connects_where_it_should() {
    let (true, Some(authority)) = (has_server(), variable("CA")) else { return };
    let place = InSchema::new();
    for (mode, root, works) in [
        ("disable", None, true),
        ("prefer", None, true),
        ("require", None, true),
        ("require", Some(&authority), true),
        ("verify-ca", Some(&authority), true),
        ("verify-full", Some(&authority), true),
        // The system does not know the authority of a test.
        ("verify-full", None, false),
        ("verify-ca", None, false),
    ] {
        let mut info = place.info();
        info["sslmode"] = mode.into();
        info["sslrootcert"] = root.map_or(serde_json::Value::Null, |root| root.as_str().into());
        let opened = PostgresStore::from_credential(&CredentialInfo::new(info)).await;
        let told = opened.as_ref().err().map(|error| format!("{error:?}"));
        assert_eq!(opened.is_ok(), works, "{mode} with {root:?}: {told:?}");
    }
    place.drop_schema().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let info = json!({
        "server": "127.0.0.1", "port": 1, "username": "u", "password": "secret-word",
        "database": "d",
    });
    let error = PostgresStore::from_credential(&CredentialInfo::new(info)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.message().contains("127.0.0.1:1/d"), "{error:?}");
    assert!(!format!("{error:?}").contains("secret-word"), "{error:?}");
    let typo = json!({"server": "h", "username": "u", "database": "d", "sslmod": "require"});
    let error = PostgresStore::from_credential(&CredentialInfo::new(typo)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
}
