//! The suite on MariaDB and on MySQL, and what a server can do to a store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use serde_json::json;
use tidelake_model::{
    CredentialInfo, ErrorKind, Holder, RunId, TableKey, TableName, WatermarkFilter,
};
use tidelake_state::conformance::{Outcome, Place, run_store_suite};
use tidelake_state::mysql::MysqlStore;
use tidelake_state::{BeginRun, StateStore};

/// One of the two servers.
#[derive(Clone, Copy)]
struct Server(&'static str);

const MARIADB: Server = Server("MARIADB");
/// It cannot be had everywhere, so its tests are never required to run.
const MYSQL: Server = Server("MYSQL");

impl Server {
    fn variable(self, name: &str) -> Option<String> {
        let name = format!("TIDELAKE_TEST_{}_{name}", self.0);
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    /// Whether there is one; says so where there is none.
    fn is_there(self) -> bool {
        let found = self.variable("HOST").is_some();
        let required = std::env::var("TIDELAKE_TEST_REQUIRE_SERVERS").is_ok_and(|on| on == "1");
        assert!(
            found || !required || self.0 == MYSQL.0,
            "TIDELAKE_TEST_{}_HOST is not set",
            self.0
        );
        if !found {
            println!("not run: TIDELAKE_TEST_{}_HOST is not set", self.0);
        }
        found
    }

    async fn client(self) -> Conn {
        let options = OptsBuilder::default()
            .ip_or_hostname(self.variable("HOST").unwrap())
            .tcp_port(self.variable("PORT").unwrap().parse().unwrap())
            .user(self.variable("USER"))
            .pass(self.variable("PASSWORD"))
            .prefer_socket(false);
        Conn::new(options).await.unwrap()
    }
}

/// Those that are there, by the name of a test that runs on both.
fn servers() -> Vec<Server> {
    [MARIADB, MYSQL].into_iter().filter(|server| server.is_there()).collect()
}

static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A database of its own, with a name that must be quoted.
struct InDatabase {
    server: Server,
    schema: String,
}

impl InDatabase {
    fn new(server: Server) -> Self {
        let started = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        Self { server, schema: format!("it's `state` {started} {process} {number}") }
    }

    fn quoted(&self) -> String {
        format!("`{}`", self.schema.replace('`', "``"))
    }

    fn info(&self) -> serde_json::Value {
        json!({
            "server": self.server.variable("HOST").unwrap(),
            "port": self.server.variable("PORT"),
            "username": self.server.variable("USER").unwrap(),
            "password": self.server.variable("PASSWORD"),
            "database": "mysql",
            "schema": self.schema,
        })
    }

    async fn store(&self) -> MysqlStore {
        MysqlStore::from_credential(&CredentialInfo::new(self.info())).await.unwrap()
    }

    async fn refusal(&self, info: serde_json::Value) -> tidelake_model::Error {
        MysqlStore::from_credential(&CredentialInfo::new(info)).await.err().unwrap()
    }

    async fn run(&self, statements: &str) {
        let mut client = self.server.client().await;
        client.query_drop(format!("USE {}; {statements}", self.quoted())).await.unwrap();
    }

    async fn drop_database(&self) {
        let statement = format!("DROP DATABASE IF EXISTS {}", self.quoted());
        self.server.client().await.query_drop(statement).await.unwrap();
    }
}

#[async_trait]
impl Place for InDatabase {
    async fn open(&self) -> Outcome<Arc<dyn StateStore>> {
        let info = CredentialInfo::new(self.info());
        Ok(Arc::new(MysqlStore::from_credential(&info).await?))
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

async fn suite(server: Server, name: &str) {
    let places = std::sync::Mutex::new(vec![]);
    let report = run_store_suite(name, async || {
        let place = Arc::new(InDatabase::new(server));
        places.lock().unwrap().push(place.clone());
        Ok(place)
    })
    .await;
    let places = places.into_inner().unwrap();
    for place in places {
        place.drop_database().await;
    }
    report.verdict().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_on_mariadb() {
    if MARIADB.is_there() {
        suite(MARIADB, "mariadb").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_on_mysql() {
    if MYSQL.is_there() {
        suite(MYSQL, "mysql").await;
    }
}

fn key(table: &str) -> TableKey {
    TableKey {
        env: String::new(),
        scope: "sync-1".to_owned(),
        connector_type: "mysql".to_owned(),
        source_key: "shop".to_owned(),
        table: Some(TableName::new("shop", table)),
    }
}

fn request(number: u128, tables: &[&str]) -> BeginRun {
    BeginRun {
        run_id: RunId::from_number(number),
        env: String::new(),
        scope: "sync-1".to_owned(),
        tables: tables.iter().map(|table| key(table)).collect(),
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
    for server in servers() {
        let place = InDatabase::new(server);
        let store = place.store().await;
        for round in 0..4 {
            let mut client = server.client().await;
            let find = "SELECT id FROM information_schema.processlist WHERE db = ?";
            let ids: Vec<u64> = client.exec(find, (&place.schema,)).await.unwrap();
            assert_eq!(ids.len(), 1);
            client.query_drop(format!("KILL {}", ids[0])).await.unwrap();
            if round % 2 == 1 {
                // Time enough to see the end before the next statement does.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            store.identity().await.unwrap();
        }
        place.drop_database().await;
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_transaction() {
    for server in servers() {
        let place = InDatabase::new(server);
        let store = place.store().await;
        for micros in [0, 200, 500, 1_000, 2_000, 4_000, 8_000] {
            let request = request(micros.into(), &["t"]);
            let begun = store.begin_run(&request);
            let _ = tokio::time::timeout(Duration::from_micros(micros), begun).await;
            store.release_locks(&Default::default()).await.unwrap();
        }
        store.begin_run(&request(77, &["t"])).await.unwrap();
        place.drop_database().await;
    }
}

/// Statements that make tables commit one by one, so a crash can come between any
/// two of them.
#[tokio::test]
async fn tables_that_were_made_in_part_are_completed() {
    for server in servers() {
        let place = InDatabase::new(server);
        let identity = place.store().await.identity().await.unwrap();
        for left in [
            "DELETE FROM refinery_schema_history",
            "DELETE FROM refinery_schema_history; DROP TABLE table_runs",
            "DELETE FROM refinery_schema_history; DROP TABLE table_runs; DROP TABLE runs",
        ] {
            place.run(left).await;
            let store = place.store().await;
            assert_eq!(store.identity().await.unwrap(), identity);
            store.begin_run(&request(5, &["t"])).await.unwrap();
            store.release_locks(&Default::default()).await.unwrap();
            place.run("DELETE FROM runs").await;
        }
        place.run("DROP TABLE table_runs, runs").await;
        let store = place.store().await;
        let error = store.begin_run(&request(6, &["t"])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
        assert!(error.hint().unwrap().contains("lxdb init"), "{error:?}");
        place.drop_database().await;
    }
}

#[tokio::test]
async fn tables_of_somebody_else_are_not_taken() {
    for server in servers() {
        let place = InDatabase::new(server);
        let mut client = server.client().await;
        client.query_drop(format!("CREATE DATABASE {}", place.quoted())).await.unwrap();
        place.run("CREATE TABLE Runs (id INT PRIMARY KEY)").await;
        place.run("CREATE TABLE runs (id INT PRIMARY KEY); INSERT INTO runs VALUES (7)").await;
        let error = place.refusal(place.info()).await;
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
        assert!(error.message().contains("a table runs that is not tidelake's"), "{error:?}");
        let tables: Vec<String> =
            client.query(format!("SHOW TABLES FROM {}", place.quoted())).await.unwrap();
        assert_eq!(tables.len(), 2, "{tables:?}");
        place.drop_database().await;
    }
}

/// The usual collations take these for the same name.
#[tokio::test]
async fn names_differ_by_case_accents_and_blanks() {
    for server in servers() {
        let place = InDatabase::new(server);
        let store = place.store().await;
        let names = ["t", "T", "t ", "ť", "ß", "ss", "🌊", "t\u{0}"];
        let begun = store.begin_run(&request(1, &names)).await.unwrap();
        assert_eq!(begun.tables.len(), names.len());
        for name in names {
            let again = store.begin_run(&request(2, &[name])).await.err().unwrap();
            assert_eq!(again.kind(), ErrorKind::Locked, "{name:?}: {again:?}");
        }
        let found = store.watermarks(&WatermarkFilter::default()).await.unwrap();
        assert!(found.is_empty(), "{found:?}");
        place.drop_database().await;
    }
}

#[tokio::test]
async fn a_name_that_is_too_long_is_told_and_not_cut() {
    for server in servers() {
        let place = InDatabase::new(server);
        let store = place.store().await;
        let fits = "é".repeat(255);
        store.begin_run(&request(1, &[&fits])).await.unwrap();
        let error = store.begin_run(&request(2, &[&"n".repeat(256)])).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
        assert!(error.hint().unwrap().contains("255"), "{error:?}");
        place.drop_database().await;
    }
}

/// A row that another process keeps locked for longer than the server waits.
#[tokio::test]
async fn a_wait_for_a_lock_that_was_given_up_is_repeated() {
    if !MARIADB.is_there() {
        return;
    }
    let place = InDatabase::new(MARIADB);
    let store = place.store().await;
    store.begin_run(&request(1, &["t"])).await.unwrap();
    let mut other = MARIADB.client().await;
    other.query_drop(format!("USE {}", place.quoted())).await.unwrap();
    other.query_drop("START TRANSACTION; SELECT * FROM table_state FOR UPDATE").await.unwrap();
    let started = Instant::now();
    let hold = async {
        tokio::time::sleep(Duration::from_secs(11)).await;
        other.query_drop("ROLLBACK").await.unwrap();
    };
    let filter = Default::default();
    let (released, ()) = tokio::join!(store.release_locks(&filter), hold);
    assert_eq!(released.unwrap().len(), 1);
    assert!(started.elapsed() > Duration::from_secs(11));
    place.drop_database().await;
}

/// What is stored in the time zone of the server would shift with it.
#[tokio::test]
async fn times_are_in_utc_whatever_the_server_says() {
    for server in servers() {
        let place = InDatabase::new(server);
        let store = place.store().await;
        let begun = store.begin_run(&request(1, &["t"])).await.unwrap();
        assert_eq!(begun.tables.len(), 1);
        let mut client = server.client().await;
        let zone: Option<String> = client.query_first("SELECT @@time_zone").await.unwrap();
        assert_eq!(zone.as_deref(), Some("+05:30"), "the service no longer has its odd time zone");
        let behind = format!(
            "SELECT ABS(TIMESTAMPDIFF(SECOND, started_at, UTC_TIMESTAMP())) FROM {}.runs",
            place.quoted()
        );
        let seconds: Option<i64> = client.query_first(behind).await.unwrap();
        assert!(seconds.unwrap() < 60, "{seconds:?}");
        let local = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let store_says = u128::try_from(store.now().await.unwrap()).unwrap();
        assert!(store_says.abs_diff(local) < 60_000_000_000);
        place.drop_database().await;
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_without_it() {
    for server in servers() {
        let place = InDatabase::new(server);
        let mut info = place.info();
        info["password"] = "hunter2-and-more".into();
        let error = place.refusal(info).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(error.hint().unwrap().contains("password"), "{error:?}");
    }
}

#[tokio::test]
async fn every_sslmode_connects_where_it_should() {
    for server in servers() {
        let authority = server.variable("CA").unwrap();
        let place = InDatabase::new(server);
        for (mode, root, works) in [
            ("disable", None, true),
            ("prefer", None, true),
            ("require", None, true),
            ("verify-ca", Some(&authority), true),
            ("verify-full", Some(&authority), true),
            // The system does not know the authority of a test.
            ("verify-full", None, false),
            ("verify-ca", None, false),
        ] {
            let mut info = place.info();
            info["sslmode"] = mode.into();
            info["sslrootcert"] = root.map_or(serde_json::Value::Null, |root| root.as_str().into());
            let opened = MysqlStore::from_credential(&CredentialInfo::new(info)).await;
            let told = opened.as_ref().err().map(|error| format!("{error:?}"));
            assert_eq!(opened.is_ok(), works, "{mode} with {root:?}: {told:?}");
        }
        place.drop_database().await;
    }
}

/// The certificate names the address and `localhost`, not this address of it.
#[tokio::test]
async fn a_certificate_for_another_name_is_refused_only_by_verify_full() {
    for server in servers() {
        let authority = server.variable("CA").unwrap();
        let place = InDatabase::new(server);
        let forward = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = forward.local_addr().unwrap().port();
        let target = format!("127.0.0.1:{}", server.variable("PORT").unwrap());
        let forwarding = tokio::spawn(async move {
            loop {
                let (mut near, _) = forward.accept().await.unwrap();
                let mut far = tokio::net::TcpStream::connect(&target).await.unwrap();
                tokio::spawn(async move {
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        for (mode, works) in [("verify-ca", true), ("verify-full", false)] {
            let mut info = place.info();
            info["server"] = "127.0.0.2".into();
            info["port"] = port.into();
            info["sslmode"] = mode.into();
            info["sslrootcert"] = authority.as_str().into();
            let opened = MysqlStore::from_credential(&CredentialInfo::new(info)).await;
            let told = opened.as_ref().err().map(|error| format!("{error:?}"));
            assert_eq!(opened.is_ok(), works, "{mode}: {told:?}");
        }
        forwarding.abort();
        place.drop_database().await;
    }
}

#[tokio::test]
async fn a_socket_is_reached_by_its_path() {
    for server in servers() {
        let place = InDatabase::new(server);
        let mut info = place.info();
        info["server"] = server.variable("SOCKET").unwrap().into();
        info["sslmode"] = "require".into();
        let store = MysqlStore::from_credential(&CredentialInfo::new(info)).await.unwrap();
        assert!(store.location().starts_with(&server.variable("SOCKET").unwrap()));
        store.identity().await.unwrap();
        place.drop_database().await;
    }
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    for server in servers() {
        let place = InDatabase::new(server);
        let mut client = server.client().await;
        let user = format!("poor{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let user = format!("{user}_{}", std::process::id());
        client.query_drop(format!("CREATE USER {user} IDENTIFIED BY 'Poor-1234'")).await.unwrap();
        let mut info = place.info();
        info["username"] = user.as_str().into();
        info["password"] = "Poor-1234".into();
        let error = place.refusal(info.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
        assert!(error.hint().unwrap().contains("grant"), "{error:?}");
        // All rights on its own database are enough, even to make it.
        let database = place.quoted();
        client.query_drop(format!("GRANT ALL ON {database}.* TO {user}")).await.unwrap();
        MysqlStore::from_credential(&CredentialInfo::new(info)).await.unwrap();
        client.query_drop(format!("DROP USER {user}")).await.unwrap();
        place.drop_database().await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let info = json!({
        "server": "127.0.0.1", "port": 1, "username": "u", "password": "secret-word",
    });
    let error = MysqlStore::from_credential(&CredentialInfo::new(info)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.message().contains("127.0.0.1:1/tidelake"), "{error:?}");
    assert!(!format!("{error:?}").contains("secret-word"), "{error:?}");
    let typo = json!({"server": "h", "username": "u", "sslmod": "require"});
    let error = MysqlStore::from_credential(&CredentialInfo::new(typo)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
}
