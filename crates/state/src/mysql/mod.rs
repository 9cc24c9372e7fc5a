//! A store in a database of a MySQL or MariaDB server, for any number of machines.

mod error;
mod session;
mod settings;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tidelake_model::{CredentialInfo, Error, ErrorKind, Result};
use tokio::sync::Mutex;

use crate::OWN_TABLES;
use crate::backend::{Access, Backend, Counts, Operation};
use crate::logic::house;
use crate::sql::migrate::{HISTORY, is_current, migrate};
use crate::sql::{Cell, Session, SqlRows, Statement};
use error::{Failure, understood};
use session::MysqlSession;
pub use settings::{MysqlSettings, TlsMode};

mod steps {
    refinery::embed_migrations!("src/mysql/migrations");
}

/// How often a transaction is run that the server could not keep apart from
/// another, or whose connection was cut before its commit. The server gives up one
/// of two that wait for each other at once, so many may come before one is done.
const ATTEMPTS: u32 = 20;
/// How often the whole wait for a lock is repeated.
const WAITS: u32 = 3;
/// The collations that compare codes and do not pad, of either server.
const EXACT: &str = "'utf8mb4_nopad_bin', 'utf8mb4_0900_bin'";
/// What stands for them in the steps.
const INEXACT: &str = "utf8mb4_bin";

/// A state store in a database of a MySQL or MariaDB server. Clones share one
/// connection, which is made again when it was lost.
#[derive(Clone)]
pub struct MysqlStore {
    shared: Arc<Shared>,
}

struct Shared {
    settings: MysqlSettings,
    /// Absent while a transaction uses it, so that one whose caller goes away in
    /// the middle takes its connection, and with it its transaction, along.
    connection: Mutex<Option<Conn>>,
    counts: Counts,
}

impl MysqlStore {
    /// Opens the store of a credential.
    pub async fn from_credential(info: &CredentialInfo) -> Result<Self> {
        Self::open(info.parse()?).await
    }

    /// Connects, makes the database where there is none, and brings its tables up
    /// to date.
    pub async fn open(settings: MysqlSettings) -> Result<Self> {
        let (connection, counts) = (Mutex::new(None), Counts::default());
        let store = Self { shared: Arc::new(Shared { settings, connection, counts }) };
        let is_ready = store.run(Access::Read, &|rows| Box::pin(is_ready(rows))).await;
        match is_ready {
            Ok(true) => return Ok(store),
            Err(error) if error.kind() != ErrorKind::Configuration => return Err(error),
            Ok(false) | Err(_) => {}
        }
        let shared = store.shared.clone();
        *shared.connection.lock().await = Some(shared.settings.connect_or_make().await?);
        store
            .run(Access::Write, &move |rows| {
                let shared = shared.clone();
                Box::pin(async move { prepare(rows, &shared.settings.location()).await })
            })
            .await?;
        Ok(store)
    }

    /// Runs one transaction, again from its start where that is safe.
    async fn run<T: Send>(&self, access: Access, step: Step<'_, T>) -> Result<T> {
        let shared = &self.shared;
        shared.counts.begun(access);
        let mut slot = shared.connection.lock().await;
        let (mut attempts, mut waits) = (0, 0);
        loop {
            attempts += 1;
            let mut connection = match slot.take() {
                Some(connection) => connection,
                None => shared.settings.connect().await?,
            };
            let outcome = attempt(&mut connection, shared, access, step).await;
            let (error, failure) = match outcome {
                Ok(value) => {
                    *slot = Some(connection);
                    return Ok(value);
                }
                Err(failed) => failed,
            };
            if failure != Some(Failure::Cut) && connection.query_drop("ROLLBACK").await.is_ok() {
                *slot = Some(connection);
            }
            waits += u32::from(failure == Some(Failure::Waited));
            let again = match failure {
                Some(Failure::Apart | Failure::Cut) => attempts < ATTEMPTS,
                Some(Failure::Waited) => waits < WAITS,
                Some(Failure::Other) | None => false,
            };
            if !again {
                return Err(error);
            }
            tracing::debug!(attempts, ?failure, "a state transaction is run again");
            tokio::time::sleep(pause(attempts)).await;
        }
    }
}

/// Rises, and differs between processes that failed together.
fn pause(attempts: u32) -> Duration {
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.subsec_nanos());
    let spread = now.wrapping_add(std::process::id()) % 8_000;
    Duration::from_micros(u64::from(spread)) + Duration::from_millis(4) * attempts.min(12)
}

/// Whether the store is as it should be; an error where it is not there.
async fn is_ready(rows: &mut SqlRows<MysqlSession<'_>>) -> Result<bool> {
    is_current(&mut rows.0, steps::migrations::runner().get_migrations()).await
}

/// Makes the tables under a lock of the server. The lock belongs to the connection
/// and not to a transaction, which ends at every statement that makes a table.
async fn prepare(rows: &mut SqlRows<MysqlSession<'_>>, location: &str) -> Result<()> {
    let name = "CONCAT('tidelake ', LEFT(SHA2(DATABASE(), 256), 40))";
    let lock = Statement::new(format!("SELECT GET_LOCK({name}, 60)"));
    let got = rows.0.query(&lock).await?.into_iter().flatten().next();
    if got != Some(Cell::Integer(Some(1))) {
        let message = format!("the state store {location} is being made by another process");
        return Err(Error::new(ErrorKind::Unavailable, message).with_hint("try again"));
    }
    let prepared = prepare_locked(rows, location).await;
    // Where this fails the connection is gone, and the lock with it.
    let failure = rows.0.failure;
    let _ = rows.0.query(&Statement::new(format!("SELECT RELEASE_LOCK({name})"))).await;
    rows.0.failure = failure;
    prepared
}

async fn prepare_locked(rows: &mut SqlRows<MysqlSession<'_>>, location: &str) -> Result<()> {
    let session = &mut rows.0;
    if !session.has_table(HISTORY).await? {
        // The steps take tables that are there for their own of an earlier attempt.
        for table in OWN_TABLES {
            if session.has_table(table).await? {
                let message = format!(
                    "the database of the state store {location} has a table {table} that is not tidelake's"
                );
                return Err(Error::new(ErrorKind::Configuration, message)
                    .with_hint("name another database with schema"));
            }
        }
    }
    let find = format!(
        "SELECT collation_name FROM information_schema.collations \
        WHERE collation_name IN ({EXACT}) LIMIT 1"
    );
    let exact = session.query(&Statement::new(find)).await?.into_iter().flatten().next();
    let Some(Cell::Text(Some(exact))) = exact else {
        let message = format!("the server of the state store {location} is too old");
        return Err(Error::new(ErrorKind::Unsupported, message)
            .with_hint("use MySQL 8.0.17 or MariaDB 10.3 at least"));
    };
    session.collation = Some(exact);
    let steps = steps::migrations::runner();
    migrate(session, steps.get_migrations(), location).await?;
    house::found(rows).await
}

type Step<'s, T> = &'s (
        dyn for<'a, 'b> Fn(
    &'a mut SqlRows<MysqlSession<'b>>,
) -> futures::future::BoxFuture<'a, Result<T>>
            + Send
            + Sync
    );

async fn attempt<T: Send>(
    connection: &mut Conn,
    shared: &Shared,
    access: Access,
    step: Step<'_, T>,
) -> Result<T, (Error, Option<Failure>)> {
    let location = shared.settings.location();
    let failed = |error: mysql_async::Error| {
        let failure = error::failure(&error);
        (understood(error, &location), Some(failure))
    };
    let begin = match access {
        Access::Read => "START TRANSACTION READ ONLY",
        Access::Write => "START TRANSACTION",
    };
    shared.counts.asked();
    connection.query_drop(begin).await.map_err(failed)?;
    let mut rows = SqlRows(MysqlSession::new(connection, &location, &shared.counts));
    let value = step(&mut rows).await.map_err(|error| (error, rows.0.failure))?;
    shared.counts.asked();
    match connection.query_drop("COMMIT").await {
        Ok(()) => Ok(value),
        Err(error) if error::failure(&error) == Failure::Cut => {
            // The server may have committed; running it again could do it twice.
            let error = Error::new(
                ErrorKind::Unavailable,
                "the connection to the state store was lost during a commit, whose outcome is unknown",
            )
            .with_hint("run it again; what was not finished is taken up")
            .with_source(error);
            Err((error, None))
        }
        Err(error) => Err(failed(error)),
    }
}

#[async_trait]
impl Backend for MysqlStore {
    fn location(&self) -> String {
        self.shared.settings.location()
    }

    fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    async fn transact<A, T>(
        &self,
        access: Access,
        arguments: A,
        operation: Operation<A, T>,
    ) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let arguments = Arc::new(arguments);
        self.run(access, &move |rows| {
            let arguments = arguments.clone();
            Box::pin(async move { operation(rows, &arguments).await })
        })
        .await
    }
}
