//! What the server tests share: a database of their own on the test server.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::print_stdout, reason = "a test that is not run says so")]

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use futures::TryStreamExt;
use tidelake_connector::{Connector, Publisher, Slices, Source, SplitRequest, TableFilter};
use tidelake_model::{CredentialInfo, Error, Policies, ReadMethod, Table, TableRead};
use tidelake_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// A database that is made for one test and dropped after it.
pub(crate) struct Database {
    pub(crate) name: String,
    admin: Client,
}

impl Database {
    /// `None` where no server is at hand.
    pub(crate) async fn make() -> Option<Self> {
        if std::env::var("TIDELAKE_TEST_PG_HOST").is_err() {
            let required = std::env::var("TIDELAKE_TEST_REQUIRE_SERVERS");
            assert!(required.is_err(), "TIDELAKE_TEST_PG_HOST is not set");
            println!("not run: TIDELAKE_TEST_PG_HOST is not set");
            return None;
        }
        let admin = connect(&variable("TIDELAKE_TEST_PG_DATABASE")).await;
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let name = format!("tide {} {nanos}", std::process::id());
        admin.batch_execute(&format!("CREATE DATABASE \"{name}\"")).await.unwrap();
        Some(Self { name, admin })
    }

    /// A plain session in the database.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.name).await
    }

    pub(crate) fn info(&self) -> serde_json::Value {
        serde_json::json!({
            "username": variable("TIDELAKE_TEST_PG_USER"),
            "password": variable("TIDELAKE_TEST_PG_PASSWORD"),
            "server": variable("TIDELAKE_TEST_PG_HOST"),
            "port": variable("TIDELAKE_TEST_PG_PORT"),
            "database": self.name,
        })
    }

    pub(crate) fn info_with(&self, changes: serde_json::Value) -> CredentialInfo {
        let mut info = self.info();
        for (key, value) in changes.as_object().unwrap() {
            info[key] = value.clone();
        }
        CredentialInfo::new(info)
    }

    pub(crate) async fn source(&self) -> Arc<dyn Source> {
        Postgres.source(&CredentialInfo::new(self.info())).await.unwrap()
    }

    pub(crate) async fn publisher(&self) -> Arc<dyn Publisher> {
        Postgres.publisher(&CredentialInfo::new(self.info())).await.unwrap().unwrap()
    }

    /// Drops the database, whoever is still connected to it.
    pub(crate) async fn drop_now(&self) {
        let statement = format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name);
        self.admin.batch_execute(&statement).await.unwrap();
    }
}

/// The standby of the test server. What its tests do to its replay concerns all:
/// one test at a time.
pub(crate) struct Standby {
    database: String,
    client: Client,
    primary: Client,
}

impl Standby {
    /// `None` where there is none.
    pub(crate) async fn of(database: &Database) -> Option<Self> {
        if std::env::var("TIDELAKE_TEST_PG_STANDBY_PORT").is_err() {
            let required = std::env::var("TIDELAKE_TEST_REQUIRE_SERVERS");
            assert!(required.is_err(), "TIDELAKE_TEST_PG_STANDBY_PORT is not set");
            println!("not run: TIDELAKE_TEST_PG_STANDBY_PORT is not set");
            database.drop_now().await;
            return None;
        }
        let port = variable("TIDELAKE_TEST_PG_STANDBY_PORT");
        let client = connect_to(&port, &variable("TIDELAKE_TEST_PG_DATABASE")).await;
        let primary = database.client().await;
        let standby = Self { database: database.name.clone(), client, primary };
        // A test that died may have left it so.
        standby.resume().await;
        standby.catch_up().await;
        Some(standby)
    }

    /// Waits until all that is committed is replayed.
    pub(crate) async fn catch_up(&self) {
        // What was committed without waiting is written by now.
        let write = "SET synchronous_commit = on; CREATE TEMP TABLE w (); DROP TABLE w";
        self.primary.batch_execute(write).await.unwrap();
        let place = "SELECT pg_current_wal_flush_lsn()::text";
        let place: String = self.primary.query_one(place, &[]).await.unwrap().get(0);
        let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{place}'");
        while !self.client.query_one(&replayed, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn pause(&self) {
        self.client.batch_execute("SELECT pg_wal_replay_pause()").await.unwrap();
        let state = "SELECT pg_get_wal_replay_pause_state()";
        while self.client.query_one(state, &[]).await.unwrap().get::<_, String>(0) != "paused" {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn resume(&self) {
        self.client.batch_execute("SELECT pg_wal_replay_resume()").await.unwrap();
    }

    /// When the last transaction that it replayed had ended, in nanoseconds.
    pub(crate) async fn replayed_until(&self) -> i128 {
        let micros = "SELECT (extract(epoch FROM pg_last_xact_replay_timestamp()) * 1e6)::int8";
        i128::from(self.client.query_one(micros, &[]).await.unwrap().get::<_, i64>(0)) * 1_000
    }

    pub(crate) async fn source(&self) -> Arc<dyn Source> {
        let info = serde_json::json!({
            "username": variable("TIDELAKE_TEST_PG_USER"),
            "password": variable("TIDELAKE_TEST_PG_PASSWORD"),
            "server": variable("TIDELAKE_TEST_PG_STANDBY_HOST"),
            "port": variable("TIDELAKE_TEST_PG_STANDBY_PORT"),
            "database": self.database,
        });
        Postgres.source(&CredentialInfo::new(info)).await.unwrap()
    }
}

/// A session of the test's own, by another way than the connector's.
pub(crate) async fn connect(database: &str) -> Client {
    connect_to(&variable("TIDELAKE_TEST_PG_PORT"), database).await
}

/// The same through another port.
pub(crate) async fn connect_to(port: &str, database: &str) -> Client {
    let mut config = tokio_postgres::Config::new();
    config
        .host(variable("TIDELAKE_TEST_PG_HOST"))
        .port(port.parse().unwrap())
        .user(variable("TIDELAKE_TEST_PG_USER"))
        .password(variable("TIDELAKE_TEST_PG_PASSWORD"))
        .dbname(database);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The table of that name in `public`, as the source describes it.
pub(crate) async fn table(source: &Arc<dyn Source>, name: &str) -> Table {
    let filter = TableFilter {
        schemas: vec!["public".to_owned()],
        include: vec![name.to_owned()],
        exclude: vec![],
    };
    source.tables(&filter).await.unwrap().pop().unwrap()
}

/// A read of all rows and columns.
pub(crate) fn whole(table: &Table) -> TableRead {
    TableRead {
        table: table.name.clone(),
        columns: table.columns.clone(),
        cursor: None,
        range: None,
        null_cursors: false,
        policies: Policies::default(),
        batch_bytes: 1 << 20,
    }
}

pub(crate) async fn split(source: &Arc<dyn Source>, read: TableRead, degree: u32) -> Slices {
    let request = SplitRequest { read, degree, method: ReadMethod::Auto, key: None };
    source.split(&request).await.unwrap()
}

/// All rows of some slices, one batch for each slice that has rows.
pub(crate) async fn collect(
    source: &Arc<dyn Source>,
    slices: &Slices,
) -> Result<Vec<RecordBatch>, Error> {
    let mut batches = vec![];
    for slice in &slices.slices {
        let reading = source.read(slice).await?;
        let found: Vec<_> = reading.batches.try_collect().await?;
        batches.push(arrow::compute::concat_batches(&reading.schema, &found).unwrap());
    }
    Ok(batches)
}

/// The numbers of a column over some batches, in order.
pub(crate) fn numbers(batches: &[RecordBatch], column: &str) -> Vec<i64> {
    let mut numbers: Vec<_> = batches
        .iter()
        .flat_map(|batch| {
            let column = batch.column_by_name(column).unwrap();
            let column = arrow::compute::cast(column, &DataType::Int64).unwrap();
            column.as_primitive::<Int64Type>().values().to_vec()
        })
        .collect();
    numbers.sort_unstable();
    numbers
}
