//! A store in a PostgreSQL schema, for any number of machines.

mod error;
mod session;
mod settings;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tidelake_model::{CredentialInfo, Error, ErrorKind, Result};
use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::backend::{Access, Backend, Counts, Operation};
use crate::logic::house;
use crate::sql::migrate::{is_current, migrate};
use crate::sql::{Session, SqlRows, Statement};
use error::Failure;
use session::PostgresSession;
pub use settings::{PostgresSettings, SslMode};

mod steps {
    refinery::embed_migrations!("src/postgres/migrations");
}

/// How often a transaction is run that the server could not keep apart from
/// another, or whose connection was cut before its commit.
const ATTEMPTS: u32 = 6;

/// A state store in a PostgreSQL database. Clones share one connection, which is
/// made again when it was lost.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    settings: PostgresSettings,
    /// Absent while a transaction uses it, so that one whose caller goes away in
    /// the middle takes its connection, and with it its transaction, along.
    client: Mutex<Option<Client>>,
    counts: Counts,
}

impl PostgresStore {
    /// Opens the store of a credential.
    pub async fn from_credential(info: &CredentialInfo) -> Result<Self> {
        Self::open(info.parse()?).await
    }

    /// Connects, makes the schema where there is none, and brings its tables up
    /// to date.
    pub async fn open(settings: PostgresSettings) -> Result<Self> {
        let counts = Counts::default();
        let shared = Arc::new(Shared { settings, client: Mutex::new(None), counts });
        let store = Self { shared };
        let is_ready = store.run(Access::Read, &|rows| Box::pin(is_ready(rows))).await;
        match is_ready {
            Ok(true) => return Ok(store),
            Err(error) if error.kind() != ErrorKind::Configuration => return Err(error),
            Ok(false) | Err(_) => {}
        }
        let shared = store.shared.clone();
        store
            .run(Access::Write, &move |rows| {
                let shared = shared.clone();
                Box::pin(async move { prepare(rows, &shared.settings).await })
            })
            .await?;
        Ok(store)
    }

    /// Runs one transaction, again from its start where that is safe.
    async fn run<T: Send>(&self, access: Access, step: Step<'_, T>) -> Result<T> {
        let shared = &self.shared;
        shared.counts.begun(access);
        let mut slot = shared.client.lock().await;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let client = match slot.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => shared.settings.connect().await?,
            };
            let outcome = attempt(&client, shared, access, step).await;
            match outcome {
                Ok(value) => {
                    *slot = Some(client);
                    return Ok(value);
                }
                Err((error, failure)) => {
                    let again = matches!(failure, Some(Failure::Apart | Failure::Cut));
                    if failure != Some(Failure::Cut) && rollback(&client).await {
                        *slot = Some(client);
                    }
                    if !again || attempts >= ATTEMPTS {
                        return Err(error);
                    }
                    tracing::debug!(attempts, "a state transaction is run again");
                    tokio::time::sleep(Duration::from_millis(15) * attempts).await;
                }
            }
        }
    }
}

/// Whether the store is as it should be; an error where it is not there.
async fn is_ready(rows: &mut SqlRows<PostgresSession<'_>>) -> Result<bool> {
    let steps = steps::migrations::runner();
    is_current(&mut rows.0, steps.get_migrations()).await
}

async fn prepare(
    rows: &mut SqlRows<PostgresSession<'_>>,
    settings: &PostgresSettings,
) -> Result<()> {
    let session = &mut rows.0;
    // Held until the commit, so that others who open the store wait.
    let name = format!("tidelake state store {}", settings.schema_name());
    let lock = Statement::new("SELECT 1 FROM pg_advisory_xact_lock(hashtextextended(")
        .bind(name)
        .sql(", 0))");
    session.query(&lock).await?;
    let find = Statement::new("SELECT 1 FROM pg_catalog.pg_namespace WHERE 1 = 1")
        .filter("nspname", Some(settings.schema_name()));
    if session.query(&find).await?.is_empty() {
        session.batch(&format!("CREATE SCHEMA {}", settings.quoted_schema())).await?;
    }
    let steps = steps::migrations::runner();
    migrate(session, steps.get_migrations(), &settings.location()).await?;
    house::found(rows).await
}

/// Leaves a transaction that failed; `false` when the connection is of no use.
async fn rollback(client: &Client) -> bool {
    client.batch_execute("ROLLBACK").await.is_ok()
}

type Step<'s, T> = &'s (
        dyn for<'a, 'b> Fn(
    &'a mut SqlRows<PostgresSession<'b>>,
) -> futures::future::BoxFuture<'a, Result<T>>
            + Send
            + Sync
    );

async fn attempt<T: Send>(
    client: &Client,
    shared: &Shared,
    access: Access,
    step: Step<'_, T>,
) -> Result<T, (Error, Option<Failure>)> {
    let begin = shared.settings.begin(access == Access::Read);
    let location = shared.settings.location();
    let mut rows = SqlRows(PostgresSession::new(client, &location, &shared.counts));
    let value = async {
        rows.0.begin(begin).await?;
        step(&mut rows).await
    };
    match value.await {
        Ok(value) => rows.0.commit().await.map(|()| value),
        Err(error) => Err((error, rows.0.failure)),
    }
}

#[async_trait]
impl Backend for PostgresStore {
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
