//! What the server tests share: a database of their own on each test server.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::print_stdout, reason = "a test that is not run says so")]

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use futures::TryStreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use tidelake_connector::{Connector, Slices, Source, SplitRequest, TableFilter};
use tidelake_model::{CredentialInfo, Error, Policies, ReadMethod, Table, TableName, TableRead};
use tidelake_mysql::Mysql;

/// A test server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Server(pub(crate) Mysql);

impl Server {
    fn prefix(self) -> &'static str {
        match self.0 {
            Mysql::MySql => "TIDELAKE_TEST_MYSQL",
            Mysql::MariaDb => "TIDELAKE_TEST_MARIADB",
        }
    }

    pub(crate) fn variable(self, name: &str) -> String {
        let name = format!("{}_{name}", self.prefix());
        std::env::var(&name).unwrap_or_else(|_| panic!("{name} is not set"))
    }

    pub(crate) fn is_mariadb(self) -> bool {
        self.0 == Mysql::MariaDb
    }

    /// A binary collation that takes a blank at the end for what it is.
    pub(crate) fn exact(self) -> &'static str {
        if self.is_mariadb() { "utf8mb4_nopad_bin" } else { "utf8mb4_0900_bin" }
    }

    /// A plain connection.
    pub(crate) async fn client(self, database: Option<&str>) -> Conn {
        self.client_as(database, &self.variable("USER"), &self.variable("PASSWORD")).await
    }

    pub(crate) async fn client_as(
        self,
        database: Option<&str>,
        user: &str,
        password: &str,
    ) -> Conn {
        let options = OptsBuilder::default()
            .ip_or_hostname(self.variable("HOST"))
            .tcp_port(self.variable("PORT").parse().unwrap())
            .user(Some(user))
            .pass(Some(password))
            .db_name(database)
            .prefer_socket(false);
        Conn::new(options).await.unwrap()
    }
}

/// The servers that are at hand. One of the family that every Debian has must be
/// there where servers are required; the other where its service was started.
pub(crate) fn servers() -> Vec<Server> {
    let mut servers = vec![];
    for server in [Server(Mysql::MariaDb), Server(Mysql::MySql)] {
        let name = format!("{}_HOST", server.prefix());
        if std::env::var(&name).is_ok() {
            servers.push(server);
            continue;
        }
        let required = std::env::var("TIDELAKE_TEST_REQUIRE_SERVERS").is_ok();
        assert!(!(required && server.is_mariadb()), "{name} is not set");
        println!("not run: {name} is not set");
    }
    servers
}

/// A name that no other test has.
pub(crate) fn unique(stem: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("{stem} {} {}", std::process::id(), nanos % 1_000_000_000_000)
}

/// A name in the server's quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A database that is made for one test and dropped after it.
pub(crate) struct Database {
    pub(crate) server: Server,
    pub(crate) name: String,
}

impl Database {
    pub(crate) async fn make(server: Server) -> Self {
        Self::named(server, unique("tide")).await
    }

    pub(crate) async fn named(server: Server, name: String) -> Self {
        let mut admin = server.client(None).await;
        admin.query_drop(format!("CREATE DATABASE {}", quoted(&name))).await.unwrap();
        Self { server, name }
    }

    /// A plain connection in the database.
    pub(crate) async fn client(&self) -> Conn {
        self.server.client(Some(&self.name)).await
    }

    /// Runs statements one after another.
    pub(crate) async fn run(&self, statements: &[&str]) {
        let mut client = self.client().await;
        for statement in statements {
            client
                .query_drop(*statement)
                .await
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    pub(crate) fn info(&self) -> serde_json::Value {
        serde_json::json!({
            "username": self.server.variable("USER"),
            "password": self.server.variable("PASSWORD"),
            "server": self.server.variable("HOST"),
            "port": self.server.variable("PORT"),
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
        self.server.0.source(&CredentialInfo::new(self.info())).await.unwrap()
    }

    pub(crate) fn table_name(&self, table: &str) -> TableName {
        TableName::new(self.name.clone(), table)
    }

    /// The table of that name, as the source describes it.
    pub(crate) async fn table(&self, source: &Arc<dyn Source>, name: &str) -> Table {
        let filter = TableFilter::only(&self.table_name(name));
        source.tables(&filter).await.unwrap().pop().unwrap()
    }

    pub(crate) async fn drop_now(&self) {
        let mut admin = self.server.client(None).await;
        admin.query_drop(format!("DROP DATABASE {}", quoted(&self.name))).await.unwrap();
    }
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

/// All rows of a table in one batch.
pub(crate) async fn read(source: &Arc<dyn Source>, read: TableRead) -> Result<RecordBatch, Error> {
    let slices = split(source, read, 1).await;
    Ok(collect(source, &slices).await?.pop().unwrap())
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
