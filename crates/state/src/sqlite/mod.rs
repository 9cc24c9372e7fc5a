//! A store in one SQLite file, for one machine and any number of processes.

mod error;
mod session;

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;
use tidelake_model::{CredentialInfo, Error, ErrorKind, Result};

use crate::backend::{Access, Backend, Counts, Operation, waited};
use crate::logic::house;
use crate::sql::migrate::{is_current, migrate};
use crate::sql::{Session as _, SqlRows};
use error::{is_busy, understood};
use session::SqliteSession;

mod steps {
    refinery::embed_migrations!("src/sqlite/migrations");
}

/// How long a transaction waits for those of other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the change to write-ahead logging is tried; while somebody else
/// makes it, SQLite does not wait but refuses.
const JOURNAL_ATTEMPTS: u32 = 200;

/// The `info` of a credential with which a store is opened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    filepath: PathBuf,
}

/// A state store in a SQLite file. Clones share one connection, so writers of
/// one process take turns before they compete with other processes.
#[derive(Clone)]
pub struct SqliteStore {
    location: Arc<str>,
    connection: Arc<Mutex<Connection>>,
    counts: Arc<Counts>,
}

impl SqliteStore {
    /// Opens the file of a credential: `{"filepath": …}`.
    pub async fn from_credential(info: &CredentialInfo) -> Result<Self> {
        let settings: Settings = info.parse()?;
        Self::open(settings.filepath).await
    }

    /// Opens the file, makes it where there is none, and brings its tables up to
    /// date. The folder must exist.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        blocking(move || {
            // Absolute, so that a name such as `:memory:` is a file like any other.
            let path = std::path::absolute(&path).unwrap_or(path);
            make_file(&path)?;
            let mut connection = connect(&path)?;
            let location: Arc<str> = path.display().to_string().into();
            let counts = Arc::new(Counts::default());
            let mut open = |access, step: Step<_, _>| {
                counts.begun(access);
                transact(&mut connection, &location, access, &location, step)
            };
            // A store that is as it should be is only read: opening it waits for
            // nobody and writes nothing.
            if !open(Access::Read, |rows, _| Box::pin(is_ready(rows)))? {
                open(Access::Write, |rows, location| Box::pin(prepare(rows, location)))?;
            }
            Ok(Self { location, connection: Arc::new(Mutex::new(connection)), counts })
        })
        .await
    }

    /// Makes the folder of a file, closed to other users.
    pub fn make_folder_of(path: &Path) -> Result<()> {
        let Some(folder) = path.parent().filter(|folder| !folder.exists()) else { return Ok(()) };
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(|error| {
            let message = format!("the folder {} cannot be made", folder.display());
            Error::new(ErrorKind::Denied, message).with_source(error)
        })
    }
}

async fn is_ready(rows: &mut SqlRows<SqliteSession<'_>>) -> Result<bool> {
    let steps = steps::migrations::runner();
    Ok(rows.0.has_table("meta").await? && is_current(&mut rows.0, steps.get_migrations()).await?)
}

async fn prepare(rows: &mut SqlRows<SqliteSession<'_>>, location: &str) -> Result<bool> {
    migrate(&mut rows.0, steps::migrations::runner().get_migrations(), location).await?;
    house::found(rows).await?;
    Ok(true)
}

/// Makes an empty file that only its owner can read: what is stored tells much
/// about the source. SQLite gives its side files the same permissions.
fn make_file(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let message = format!("the folder {} of the state store does not exist", folder.display());
        return Err(Error::new(ErrorKind::Configuration, message)
            .with_hint("make the folder, or name another filepath"));
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made: std::io::Result<File> = options.open(path);
    made.map(drop).map_err(|error| {
        let message = format!("the state store {} cannot be made", path.display());
        Error::new(ErrorKind::Denied, message).with_source(error)
    })
}

fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let location = path.display().to_string();
    let failed = |error| understood(error, &location);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    let prepared = (|| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // Every commit reaches the disk: a watermark that came back lower after a
        // power cut would export rows twice. A run commits a handful of times.
        connection.pragma_update(None, "synchronous", "FULL")?;
        write_ahead(&connection)
    })();
    prepared.map_err(failed)?;
    Ok(connection)
}

/// Readers and writers of a write-ahead log do not wait for each other.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && attempts < JOURNAL_ATTEMPTS => {
                std::thread::sleep(Duration::from_millis(25));
            }
            result => return result,
        }
    }
}

type Step<A, T> = for<'a, 'b> fn(
    &'a mut SqlRows<SqliteSession<'b>>,
    &'a A,
) -> futures::future::BoxFuture<'a, Result<T>>;

/// Runs one transaction on this thread. A write takes the file's lock at once,
/// so that it never has to be given up half-way.
fn transact<A, T>(
    connection: &mut Connection,
    location: &str,
    access: Access,
    arguments: &A,
    step: Step<A, T>,
) -> Result<T> {
    let failed = |error| understood(error, location);
    if !connection.is_autocommit() {
        // An earlier operation panicked in the middle.
        connection.execute_batch("ROLLBACK").map_err(failed)?;
    }
    let begin = if access == Access::Write { "BEGIN IMMEDIATE" } else { "BEGIN" };
    connection.execute_batch(begin).map_err(failed)?;
    let mut rows = SqlRows(SqliteSession { connection, location });
    let result = step(&mut rows, arguments).now_or_never().unwrap_or_else(|| Err(waited()));
    let result = result.and_then(|value| {
        connection.execute_batch("COMMIT").map_err(failed)?;
        Ok(value)
    });
    if result.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK").map_err(failed)?;
    }
    result
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(ErrorKind::Internal, "the state store's thread ended").with_source(error))
    })
}

#[async_trait]
impl Backend for SqliteStore {
    fn location(&self) -> String {
        self.location.to_string()
    }

    fn counts(&self) -> &Counts {
        &self.counts
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
        self.counts.begun(access);
        let (connection, location) = (self.connection.clone(), self.location.clone());
        blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let arguments = (arguments, operation);
            transact(
                &mut connection,
                &location,
                access,
                &arguments,
                |rows, (arguments, operation)| operation(rows, arguments),
            )
        })
        .await
    }
}
