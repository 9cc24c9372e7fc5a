//! What only a real server can show.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use futures::TryStreamExt;
use serde_json::{Value, json};
use tidelake_connector::Counters;
use tidelake_model::{Again, CredentialInfo, Policies};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::decode::Wire;

#[derive(Clone, Copy, PartialEq)]
struct Server(&'static str);

impl Server {
    fn variable(self, name: &str) -> String {
        std::env::var(format!("TIDELAKE_TEST_{}_{name}", self.0)).unwrap()
    }

    /// A credential with some fields changed.
    fn config(self, changes: Value) -> Arc<MysqlConfig> {
        let mut info = json!({
            "username": self.variable("USER"),
            "password": self.variable("PASSWORD"),
            "server": self.variable("HOST"),
            "port": self.variable("PORT"),
        });
        for (name, value) in changes.as_object().unwrap() {
            info[name] = value.clone();
        }
        Arc::new(CredentialInfo::new(info).parse().unwrap())
    }

    async fn connect(self, changes: Value) -> Result<RowConnection> {
        RowConnection::connect(&self.config(changes)).await
    }

    /// A connection that may change things.
    async fn admin(self) -> RowConnection {
        let mut connection = self.connect(json!({})).await.unwrap();
        connection.run("SET SESSION TRANSACTION READ WRITE").await.unwrap();
        connection
    }
}

/// The servers that are at hand.
fn servers() -> Vec<Server> {
    let required = std::env::var("TIDELAKE_TEST_REQUIRE_SERVERS").is_ok_and(|on| on == "1");
    let mut found = vec![];
    for name in ["MARIADB", "MYSQL"] {
        let variable = format!("TIDELAKE_TEST_{name}_HOST");
        if std::env::var(&variable).is_ok() {
            found.push(Server(name));
        } else {
            assert!(!required || name != "MARIADB", "{variable} is not set");
            println!("not run: {variable} is not set");
        }
    }
    found
}

fn plan(columns: &[(&str, Wire, DataType)]) -> DecodePlan {
    let fields: Vec<_> =
        columns.iter().map(|(name, _, kind)| Field::new(*name, kind.clone(), true)).collect();
    DecodePlan {
        schema: Arc::new(Schema::new(fields)),
        wires: columns.iter().map(|(_, wire, _)| *wire).collect(),
        policies: Policies::default(),
        batch_bytes: 4 << 20,
        cursor: vec![],
        counters: Counters::default(),
    }
}

fn text_plan() -> DecodePlan {
    plan(&[("c", Wire::Text, DataType::Utf8)])
}

/// A statement of that many rows, `i` from 1.
fn rows_of(count: u32, list: &str) -> String {
    format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
         SELECT {list} FROM n"
    )
}

async fn all(
    connection: RowConnection,
    statement: &str,
    plan: DecodePlan,
) -> Result<Vec<RecordBatch>> {
    connection.read(statement, plan, Box::new(drop)).await?.try_collect().await
}

fn unique(stem: &str) -> String {
    let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    format!("{stem}_{}_{}", std::process::id(), nanos % 1_000_000)
}

/// Whether the connection is encrypted.
async fn is_encrypted(connection: &mut RowConnection) -> bool {
    let rows = connection.ask("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.unwrap();
    rows[0][1].as_deref() != Some("")
}

/// What stands behind `IDENTIFIED` for a way of proving a password.
fn accounts(server: Server) -> Vec<(&'static str, &'static str)> {
    match server.0 {
        "MARIADB" => vec![
            ("VIA mysql_native_password USING PASSWORD('p\"ä s')", "p\"ä s"),
            ("VIA ed25519 USING PASSWORD('p\"ä s')", "p\"ä s"),
            ("BY ''", ""),
        ],
        _ => vec![
            ("WITH caching_sha2_password BY 'p\"ä s'", "p\"ä s"),
            ("WITH caching_sha2_password BY ''", ""),
        ],
    }
}

#[tokio::test]
async fn each_way_of_proving_a_password_works() {
    for server in servers() {
        let mut admin = server.admin().await;
        if server.0 == "MARIADB" {
            // There already where another test was quicker.
            let _ = admin.run("INSTALL SONAME 'auth_ed25519'").await;
        }
        for (identified, password) in accounts(server) {
            let user = unique("proof");
            let create = format!("CREATE USER {user} IDENTIFIED {identified}");
            let paths = [
                // A server that does not know the hash wants the whole password.
                json!({"sslmode": "disable"}),
                json!({"sslmode": "disable"}),
                json!({"sslmode": "require"}),
                json!({"server": server.variable("SOCKET")}),
            ];
            for (index, path) in paths.into_iter().enumerate() {
                if index != 1 {
                    let _ = admin.run(&format!("DROP USER {user}")).await;
                    admin.run(&create).await.unwrap();
                }
                let mut changes = path.clone();
                changes["username"] = json!(user);
                changes["password"] = json!(password);
                let mut connection =
                    server.connect(changes.clone()).await.unwrap_or_else(|error| {
                        panic!("{identified} by {path}: {error:?}");
                    });
                let wanted = path["sslmode"] == "require";
                assert_eq!(is_encrypted(&mut connection).await, wanted, "{path}");

                changes["password"] = json!("hunter2");
                let error = server.connect(changes).await.err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
                assert!(error.hint().unwrap().contains("password"));
                assert!(!format!("{error:?}").contains("hunter2"));
            }
            admin.run(&format!("DROP USER {user}")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn certificates_are_checked_as_the_mode_says() {
    for server in servers() {
        let authority = server.variable("CA");
        for (changes, encrypted) in [
            (json!({"sslmode": "disable"}), false),
            (json!({}), true),
            (json!({"trust_server_certificate": true}), true),
            (json!({"sslmode": "verify-ca", "sslrootcert": authority}), true),
            (json!({"sslmode": "verify-full", "sslrootcert": authority}), true),
        ] {
            let mut connection = server.connect(changes.clone()).await.unwrap_or_else(|error| {
                panic!("{changes}: {error:?}");
            });
            assert_eq!(is_encrypted(&mut connection).await, encrypted, "{changes}");
        }
        // An authority of the operating system did not sign it.
        for mode in ["verify-ca", "verify-full"] {
            let error = server.connect(json!({"sslmode": mode})).await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
        }
    }
}

#[tokio::test]
async fn who_does_not_answer_is_told_from_who_refuses() {
    for server in servers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let error =
            server.connect(json!({"port": port, "connect_timeout": 1})).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("did not answer within 1 s"), "{error}");
        drop(listener);
        let error = server.connect(json!({"port": port})).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let error = server.connect(json!({"server": "/nowhere.sock"})).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn rows_end_in_both_ways_that_the_protocol_has() {
    for server in servers() {
        for wanted in [capabilities(), capabilities() - CapabilityFlags::CLIENT_DEPRECATE_EOF] {
            let config = server.config(json!({}));
            let mut connection = RowConnection::connect_with(&config, wanted).await.unwrap();
            let rows = connection.ask("SELECT 1, NULL UNION SELECT 2, 'x'").await.unwrap();
            assert_eq!(rows[1], [Some("2".to_owned()), Some("x".to_owned())]);
            assert_eq!(rows[0][1], None);
            let error = connection.ask("SELECT nothing").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            let (sender, receiver) = std::sync::mpsc::channel();
            let give_back = Box::new(move |connection| sender.send(connection).unwrap());
            let plan = plan(&[("i", Wire::LongLong, DataType::Int64)]);
            let statement = rows_of(900, "CAST(i AS SIGNED)");
            let batches = connection.read(&statement, plan, give_back).await.unwrap();
            let batches: Vec<RecordBatch> = batches.try_collect().await.unwrap();
            let sum: i64 = batches
                .iter()
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter())
                .sum();
            assert_eq!(sum, 405_450);
            // The connection is as good as before.
            let mut connection = receiver.recv().unwrap();
            assert!(!connection.is_closed());
            assert_eq!(connection.ask("SELECT 7").await.unwrap(), [[Some("7".to_owned())]]);
        }
    }
}

#[tokio::test]
async fn cells_beyond_one_packet_arrive_whole() {
    for server in servers() {
        let mut connection = server.connect(json!({})).await.unwrap();
        let most = connection.ask("SELECT @@max_allowed_packet").await.unwrap();
        let most: usize = most[0][0].as_ref().unwrap().parse().unwrap();
        for length in [1 << 20, 0xFF_FFFF - 5, 0xFF_FFFF, 20 << 20] {
            if length + 1024 > most {
                println!("not run: max_allowed_packet of {} is {most}", server.0);
                continue;
            }
            let connection = server.connect(json!({})).await.unwrap();
            let statement = format!("SELECT REPEAT('äx', {}) UNION ALL SELECT 'y'", length / 3);
            let batches = all(connection, &statement, text_plan()).await.unwrap();
            let cells: Vec<_> = batches
                .iter()
                .flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten())
                .collect();
            assert!(cells == ["äx".repeat(length / 3).as_str(), "y"], "{length}");
        }
    }
}

#[tokio::test]
async fn what_becomes_null_for_its_size_is_an_error() {
    for server in servers() {
        let connection = server.connect(json!({})).await.unwrap();
        let statement = "SELECT REPEAT('x', @@max_allowed_packet + 1)";
        let error = all(connection, statement, text_plan()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
        assert!(error.hint().unwrap().contains("max_allowed_packet"), "{error:?}");
    }
}

#[tokio::test]
async fn an_error_amid_the_rows_and_a_lost_connection_are_told() {
    for server in servers() {
        for (kill, again) in [("KILL QUERY", Again::Never), ("KILL", Again::Same)] {
            let connection = server.connect(json!({})).await.unwrap();
            let id = connection.id();
            let statement = rows_of(300, "IF(SLEEP(0.1), NULL, REPEAT('x', 40000))");
            let mut batches =
                connection.read(&statement, text_plan(), Box::new(drop)).await.unwrap();
            server.admin().await.run(&format!("{kill} {id}")).await.unwrap();
            let error = loop {
                match batches.try_next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{kill}: the rows ended without an error"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{kill}: {error:?}");
            assert_eq!(error.again(), again, "{kill}: {error:?}");
        }
    }
}

/// Waits until a condition of the list of connections holds.
async fn wait_for(server: Server, holds: impl Fn(&[Vec<Option<String>>]) -> bool) {
    let mut admin = server.admin().await;
    let begun = Instant::now();
    loop {
        let rows = admin.ask("SHOW PROCESSLIST").await.unwrap();
        if holds(&rows) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{rows:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn dropping_the_rows_ends_the_statement() {
    for server in servers() {
        let connection = server.connect(json!({})).await.unwrap();
        let id = connection.id().to_string();
        let statement = rows_of(300, "IF(SLEEP(0.2), NULL, REPEAT('x', 40000))");
        let batches = connection.read(&statement, text_plan(), Box::new(drop)).await.unwrap();
        let is_there = |rows: &[Vec<Option<String>>]| {
            rows.iter().any(|row| row[0].as_deref() == Some(id.as_str()))
        };
        wait_for(server, is_there).await;
        drop(batches);
        wait_for(server, |rows| !is_there(rows)).await;
    }
}

#[tokio::test]
async fn a_connection_that_the_server_ended_is_noticed() {
    for server in servers() {
        let mut connection = server.connect(json!({})).await.unwrap();
        assert!(!connection.is_closed());
        server.admin().await.run(&format!("KILL {}", connection.id())).await.unwrap();
        let begun = Instant::now();
        while !connection.is_closed() {
            assert!(begun.elapsed() < Duration::from_secs(5));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn silence_of_a_server_at_work_is_borne() {
    for server in servers() {
        let connection = server.connect(json!({"stall_timeout": 1})).await.unwrap();
        let statement = "SELECT CONCAT(SLEEP(2.5), 'x')";
        let batches = all(connection, statement, text_plan()).await.unwrap();
        assert_eq!(batches[0].num_rows(), 1);
    }
}

/// Passes bytes on until told to keep those of the server to itself.
async fn pass_on(to: String, mute: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut is_first = true;
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&to).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let mute = is_first.then(|| Arc::clone(&mute));
            is_first = false;
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                let mut bytes = vec![0; 65_536];
                while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
                    if mute.as_ref().is_some_and(|mute| mute.load(Ordering::SeqCst)) {
                        continue;
                    }
                    to_client.write_all(&bytes[..count]).await.unwrap();
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn silence_of_a_server_that_does_nothing_is_an_error() {
    for server in servers() {
        let mute = Arc::new(AtomicBool::new(false));
        let address = format!("{}:{}", server.variable("HOST"), server.variable("PORT"));
        let port = pass_on(address, Arc::clone(&mute)).await;
        let changes = json!({"port": port, "stall_timeout": 1});
        let mut connection = server.connect(changes).await.unwrap();
        mute.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        let error = connection.ask("SELECT 1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("does not work on the statement"), "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn large_results_are_streamed() {
    for server in servers() {
        let before = peak();
        let connection = server.connect(json!({})).await.unwrap();
        // 300 MB.
        let statement = rows_of(300, "REPEAT('x', 1000000)");
        let batches = connection.read(&statement, text_plan(), Box::new(drop)).await.unwrap();
        let sizes = batches.try_fold(0, async |sum, batch| {
            Ok(sum + batch.column(0).as_string::<i32>().values().len())
        });
        assert_eq!(sizes.await.unwrap(), 300_000_000);
        let grown = peak() - before;
        assert!(grown < 64 << 10, "{grown} KiB for batches of 4 MiB");
    }
}
