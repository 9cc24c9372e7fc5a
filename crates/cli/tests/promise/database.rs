//! A database of its own on the test server, for one test.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::terminal::server;

/// A row, each value in the server's own text.
pub(crate) type Row = Vec<Option<String>>;

// Tests block; the connections need somebody who does not.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
});

/// Dropped from the server with its last handle.
pub(crate) struct Database {
    pub(crate) name: String,
    admin: Config,
    first: Session,
}

/// A connection to it.
pub(crate) struct Session(Client);

fn admin() -> Option<Config> {
    let mut admin = Config::new();
    admin
        .host(server("TIDELAKE_TEST_PG_HOST")?)
        .port(server("TIDELAKE_TEST_PG_PORT")?.parse().unwrap())
        .user(server("TIDELAKE_TEST_PG_USER")?)
        .password(server("TIDELAKE_TEST_PG_PASSWORD")?)
        .dbname(server("TIDELAKE_TEST_PG_DATABASE")?);
    Some(admin)
}

impl Database {
    /// Makes one; `None` where there is no server.
    pub(crate) fn make() -> Option<Self> {
        Self::make_named(&format!("promise_{}", ulid::Ulid::new().to_string().to_lowercase()))
    }

    /// Makes one of that name.
    pub(crate) fn make_named(name: &str) -> Option<Self> {
        let admin = admin()?;
        Session::open(&admin).run(&format!("CREATE DATABASE {}", quoted(name)));
        let first = Session::open(admin.clone().dbname(name));
        Some(Self { name: name.to_owned(), admin, first })
    }

    /// A connection to the server's own database.
    pub(crate) fn admin_session() -> Option<Session> {
        Some(Session::open(&admin()?))
    }

    /// Another connection.
    pub(crate) fn session(&self) -> Session {
        Session::open(self.admin.clone().dbname(&self.name))
    }

    /// Another connection, under another user.
    pub(crate) fn session_of(&self, user: &str, password: &str) -> Session {
        let mut config = self.admin.clone();
        Session::open(config.dbname(&self.name).user(user).password(password))
    }

    /// Statements outside any transaction that is left open.
    pub(crate) fn run(&self, sql: &str) {
        self.first.run(sql);
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<Row> {
        self.first.rows(sql)
    }

    pub(crate) fn value(&self, sql: &str) -> String {
        self.first.value(sql)
    }

    /// A credential of the server's administrator for this database.
    pub(crate) fn credential(&self) -> Value {
        let setting = |name: &str| server(&format!("TIDELAKE_TEST_PG_{name}")).unwrap();
        self.credential_of(&setting("USER"), &setting("PASSWORD"))
    }

    pub(crate) fn credential_of(&self, user: &str, password: &str) -> Value {
        let setting = |name: &str| server(&format!("TIDELAKE_TEST_PG_{name}")).unwrap();
        json!({"ds_type": "postgres", "auth_mode": "classic", "info": {
            "server": setting("HOST"), "port": setting("PORT"), "username": user,
            "password": password, "database": self.name,
        }})
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let admin = Session::open(&self.admin);
        let prepared = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()";
        for row in self.first.rows(prepared) {
            let _ =
                self.first.try_run(&format!("ROLLBACK PREPARED '{}'", row[0].as_ref().unwrap()));
        }
        // Not waited for: the server may first wait for somebody else's backend
        // that is stuck in a write to a client which was stopped.
        let drop = format!("DROP DATABASE {} WITH (FORCE)", quoted(&self.name));
        let _ = RUNTIME.block_on(async {
            tokio::time::timeout(Duration::from_millis(500), admin.0.batch_execute(&drop)).await
        });
    }
}

impl Session {
    pub(crate) fn open(config: &Config) -> Self {
        RUNTIME.block_on(async {
            let (client, connection) = config.connect(NoTls).await.unwrap();
            tokio::spawn(connection);
            Self(client)
        })
    }

    pub(crate) fn run(&self, sql: &str) {
        if let Err(error) = self.try_run(sql) {
            panic!("{error:?} in {sql}");
        }
    }

    pub(crate) fn try_run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        RUNTIME.block_on(self.0.batch_execute(sql))
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<Row> {
        let messages = RUNTIME.block_on(self.0.simple_query(sql));
        let messages = messages.unwrap_or_else(|error| panic!("{error:?} in {sql}"));
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
            }
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    }

    /// The one value of the one row.
    pub(crate) fn value(&self, sql: &str) -> String {
        self.rows(sql)[0][0].clone().unwrap_or_else(|| panic!("NULL: {sql}"))
    }
}

/// A name as the server's SQL has it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
