//! What the server tests share: a database of their own on the test server.

#![allow(dead_code)]

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tidelake_connector::{Connector, Publisher, Source};
use tidelake_model::CredentialInfo;
use tidelake_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

fn variable(name: &str) -> String {
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

/// A session of the test's own, by another way than the connector's.
pub(crate) async fn connect(database: &str) -> Client {
    let mut config = tokio_postgres::Config::new();
    config
        .host(variable("TIDELAKE_TEST_PG_HOST"))
        .port(variable("TIDELAKE_TEST_PG_PORT").parse().unwrap())
        .user(variable("TIDELAKE_TEST_PG_USER"))
        .password(variable("TIDELAKE_TEST_PG_PASSWORD"))
        .dbname(database);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
