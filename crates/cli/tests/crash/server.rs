//! A database of its own on the test server.

use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use serde_json::{Value, json};

use crate::terminal::server;

/// A database; gone when it is dropped.
pub(crate) struct Server {
    runtime: Runtime,
    client: Option<Client>,
    name: String,
    admin: Config,
}

impl Server {
    /// Makes one; `None` where there is no test server.
    pub(crate) fn make() -> Option<Self> {
        let mut admin = Config::new();
        admin
            .host(server("TIDELAKE_TEST_PG_HOST")?)
            .port(server("TIDELAKE_TEST_PG_PORT")?.parse().unwrap())
            .user(server("TIDELAKE_TEST_PG_USER")?)
            .password(server("TIDELAKE_TEST_PG_PASSWORD")?)
            .dbname(server("TIDELAKE_TEST_PG_DATABASE")?);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let name = format!("crash_{}", ulid::Ulid::new().to_string().to_lowercase());
        let client = runtime.block_on(async {
            let create = format!("CREATE DATABASE {name}");
            connect(&admin).await.batch_execute(&create).await.unwrap();
            connect(admin.clone().dbname(&name)).await
        });
        Some(Self { runtime, client: Some(client), name, admin })
    }

    /// A credential for it; the password is in a variable.
    pub(crate) fn credential(&self, schema: &str) -> Value {
        json!({"ds_type": "postgres", "auth_mode": "classic", "info": {
            "server": server("TIDELAKE_TEST_PG_HOST"), "port": server("TIDELAKE_TEST_PG_PORT"),
            "username": server("TIDELAKE_TEST_PG_USER"), "password": "$env{DESK_PASSWORD}",
            "database": self.name, "schema": schema,
        }})
    }

    fn client(&self) -> &Client {
        self.client.as_ref().unwrap()
    }

    pub(crate) fn execute(&self, statements: &str) {
        self.runtime.block_on(self.client().batch_execute(statements)).unwrap();
    }

    /// Every row of a query, as text.
    pub(crate) fn select(&self, query: &str) -> Vec<Vec<Option<String>>> {
        let answer = self.runtime.block_on(self.client().simple_query(query)).unwrap();
        let row = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
            }
            _ => None,
        };
        answer.into_iter().filter_map(row).collect()
    }

    /// A second connection, for a thread of its own.
    pub(crate) fn another(&self) -> Client {
        self.runtime.block_on(connect(self.admin.clone().dbname(&self.name)))
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.client = None;
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        self.runtime.block_on(async {
            connect(&self.admin).await.batch_execute(&drop).await.unwrap();
        });
    }
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
