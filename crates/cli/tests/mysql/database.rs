//! A database of its own on a test server, for one test.

use std::sync::{LazyLock, Mutex};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Value as Cell};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::terminal;

/// A row, each value in the server's own text.
pub(crate) type Row = Vec<Option<String>>;

// Tests block; the connections need somebody who does not.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
});

/// One of the two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    MariaDb,
    MySql,
}

impl Server {
    pub(crate) fn ds_type(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
        }
    }

    /// Whether there is one; MySQL cannot be had everywhere.
    pub(crate) fn is_there(self) -> bool {
        let name = self.name("HOST");
        match self {
            Self::MariaDb => terminal::server(&name).is_some(),
            Self::MySql => {
                let found = std::env::var_os(&name).is_some();
                if !found {
                    println!("not run: {name} is not set");
                }
                found
            }
        }
    }

    fn name(self, setting: &str) -> String {
        format!("TIDELAKE_TEST_{}_{setting}", self.ds_type().to_uppercase())
    }

    pub(crate) fn setting(self, name: &str) -> String {
        std::env::var(self.name(name)).unwrap()
    }

    /// A series of whole numbers from 1, as the rows `n` of a table in FROM.
    pub(crate) fn series(self, to: u64) -> String {
        match self {
            Self::MariaDb => format!("(SELECT seq AS n FROM seq_1_to_{to}) AS series"),
            Self::MySql => format!(
                "(SELECT 1 + a.n + 100 * b.n + 10000 * c.n AS n FROM {0} a, {0} b, {0} c
                  HAVING n <= {to}) AS series",
                "(WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 99)
                  SELECT n FROM r)"
            ),
        }
    }
}

/// The servers that are there.
pub(crate) fn servers() -> Vec<Server> {
    [Server::MariaDb, Server::MySql].into_iter().filter(|server| server.is_there()).collect()
}

/// Dropped from the server with its handle.
pub(crate) struct Database {
    pub(crate) server: Server,
    pub(crate) name: String,
    first: Session,
}

/// A connection to it, whose times are in UTC.
pub(crate) struct Session(Mutex<Conn>);

impl Database {
    pub(crate) fn make(server: Server) -> Self {
        let name = format!("e2e_{}", ulid::Ulid::new().to_string().to_lowercase());
        let user = (server.setting("USER"), server.setting("PASSWORD"));
        let first = Session::open(server, None, &user.0, &user.1);
        first.run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4; USE {name}"));
        Self { server, name, first }
    }

    /// Another connection.
    pub(crate) fn session(&self) -> Session {
        self.session_of(&self.server.setting("USER"), &self.server.setting("PASSWORD"))
    }

    /// Another connection, under another user.
    pub(crate) fn session_of(&self, user: &str, password: &str) -> Session {
        Session::open(self.server, Some(&self.name), user, password)
    }

    pub(crate) fn run(&self, sql: &str) {
        self.first.run(sql);
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<Row> {
        self.first.rows(sql)
    }

    pub(crate) fn value(&self, sql: &str) -> String {
        self.first.value(sql)
    }

    /// Ends every connection of the program to this database.
    pub(crate) fn kill_all(&self) -> usize {
        let own = self.first.value("SELECT CONNECTION_ID()");
        let found = self.rows(&format!(
            "SELECT id FROM information_schema.processlist WHERE db = '{}' AND id <> {own}",
            self.name
        ));
        for row in &found {
            let _ = self.first.try_run(&format!("KILL {}", row[0].as_ref().unwrap()));
        }
        found.len()
    }

    /// A credential of the server's administrator for this database. As a state
    /// store it is another database beside it.
    pub(crate) fn credential(&self) -> Value {
        self.credential_of(&self.server.setting("USER"), &self.server.setting("PASSWORD"))
    }

    pub(crate) fn credential_of(&self, user: &str, password: &str) -> Value {
        json!({"ds_type": self.server.ds_type(), "auth_mode": "classic", "info": {
            "server": self.server.setting("HOST"), "port": self.server.setting("PORT"),
            "username": user, "password": password, "database": self.name,
            "schema": self.state_name(),
        }})
    }

    /// The database of a state store.
    pub(crate) fn state_name(&self) -> String {
        format!("{}_state", self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (name, state) = (&self.name, self.state_name());
        let _ = self.first.try_run(&format!(
            "SET SESSION lock_wait_timeout = 2; DROP DATABASE IF EXISTS {state};
             DROP DATABASE IF EXISTS {name}"
        ));
    }
}

impl Session {
    fn open(server: Server, database: Option<&str>, user: &str, password: &str) -> Self {
        let options = OptsBuilder::default()
            .ip_or_hostname(server.setting("HOST"))
            .tcp_port(server.setting("PORT").parse().unwrap())
            .user(Some(user))
            .pass(Some(password))
            .db_name(database)
            .prefer_socket(false)
            .init(vec!["SET time_zone = '+00:00'"]);
        Self(Mutex::new(RUNTIME.block_on(Conn::new(options)).unwrap()))
    }

    pub(crate) fn run(&self, sql: &str) {
        if let Err(error) = self.try_run(sql) {
            panic!("{error:?} in {sql}");
        }
    }

    pub(crate) fn try_run(&self, sql: &str) -> Result<(), mysql_async::Error> {
        RUNTIME.block_on(self.0.lock().unwrap().query_drop(sql))
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<Row> {
        let mut connection = self.0.lock().unwrap();
        let found = RUNTIME.block_on(connection.query::<mysql_async::Row, _>(sql));
        let found = found.unwrap_or_else(|error| panic!("{error:?} in {sql}"));
        let text = |cell| match cell {
            Cell::NULL => None,
            Cell::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
            other => panic!("{other:?} is no text"),
        };
        found.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect()
    }

    /// The one value of the one row.
    pub(crate) fn value(&self, sql: &str) -> String {
        self.rows(sql)[0][0].clone().unwrap_or_else(|| panic!("NULL: {sql}"))
    }
}
