//! The suite on SQLite, and what its files must look like.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;
use tidelake_model::{CredentialInfo, ErrorKind, Holder, RunId, RunStatus, TableKey, TableName};
use tidelake_state::conformance::{Outcome, Place, run_store_suite};
use tidelake_state::sqlite::SqliteStore;
use tidelake_state::{BeginRun, RunFilter, StateStore};

struct InFile {
    folder: TempDir,
}

impl InFile {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("it's state.db")
    }
}

#[async_trait]
impl Place for InFile {
    async fn open(&self) -> Outcome<Arc<dyn StateStore>> {
        Ok(Arc::new(SqliteStore::open(self.path()).await?))
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let report = run_store_suite("sqlite", async || Ok(Arc::new(InFile::new()))).await;
    report.verdict().unwrap();
}

const CHILD_PATH: &str = "TIDELAKE_TEST_CHILD_PATH";
const CHILD_NUMBER: &str = "TIDELAKE_TEST_CHILD_NUMBER";
const CHILDREN: u32 = 8;
const ROUNDS: u32 = 10;

fn request(run_id: RunId, table: &str) -> BeginRun {
    BeginRun {
        run_id,
        env: String::new(),
        scope: "sync-1".to_owned(),
        tables: vec![TableKey {
            env: String::new(),
            scope: "sync-1".to_owned(),
            connector_type: "sqlite".to_owned(),
            source_key: "shop".to_owned(),
            table: Some(TableName::new("main", table)),
        }],
        holder: Holder {
            host: "here".to_owned(),
            boot_id: "now".to_owned(),
            process_id: std::process::id(),
            process_started: 1,
        },
        ttl: Duration::from_secs(60),
    }
}

/// Not a test of its own: one of the processes of the test below.
#[tokio::test]
#[ignore = "started by another test as a process of its own"]
async fn child() {
    let Ok(path) = std::env::var(CHILD_PATH) else { return };
    let number: u32 = std::env::var(CHILD_NUMBER).unwrap().parse().unwrap();
    let store = SqliteStore::open(path).await.unwrap();
    for round in 0..ROUNDS {
        let run_id = RunId::from_number(u128::from(number * 1_000 + round));
        store.begin_run(&request(run_id, &format!("t{number}"))).await.unwrap();
        store.finish_run(run_id, RunStatus::Completed, None).await.unwrap();
    }
}

#[tokio::test]
async fn eight_processes_make_and_fill_one_file() {
    let place = InFile::new();
    let start = |number: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored", "--nocapture"])
            .env(CHILD_PATH, place.path())
            .env(CHILD_NUMBER, number.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..CHILDREN).map(start).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let store = SqliteStore::open(place.path()).await.unwrap();
    let done = RunFilter { status: Some(RunStatus::Completed), ..RunFilter::default() };
    let runs = store.runs(&done).await.unwrap();
    assert_eq!(runs.len(), usize::try_from(CHILDREN * ROUNDS).unwrap());
}

#[tokio::test]
async fn the_file_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/tidelake/state.db");
    let error = SqliteStore::open(&path).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("does not exist"), "{error:?}");
    SqliteStore::make_folder_of(&path).unwrap();
    SqliteStore::make_folder_of(&path).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    store.begin_run(&request(RunId::from_number(1), "t")).await.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        for entry in path.parent().unwrap().read_dir().unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn a_store_of_a_newer_program_is_left_alone() {
    let place = InFile::new();
    drop(SqliteStore::open(place.path()).await.unwrap());
    let connection = Connection::open(place.path()).unwrap();
    let newer = "INSERT INTO refinery_schema_history VALUES (99, 'later', '', '1')";
    connection.execute(newer, []).unwrap();
    drop(connection);
    let error = SqliteStore::open(place.path()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("version 99"), "{error:?}");
    assert!(error.hint().unwrap().contains("newer"), "{error:?}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let place = InFile::new();
    std::fs::write(place.path(), "id,name\n".repeat(1_000)).unwrap();
    let info = serde_json::json!({"filepath": place.path()});
    let error = SqliteStore::from_credential(&CredentialInfo::new(info)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    assert!(error.message().contains("state.db"), "{error:?}");
}

#[tokio::test]
async fn a_store_without_tables_says_how_to_make_them() {
    let place = InFile::new();
    let store = SqliteStore::open(place.path()).await.unwrap();
    store.destroy().await.unwrap();
    let error = store.syncs(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.hint().unwrap().contains("lxdb init"), "{error:?}");
}

#[tokio::test]
async fn a_step_that_another_program_made_is_refused() {
    let place = InFile::new();
    drop(SqliteStore::open(place.path()).await.unwrap());
    let connection = Connection::open(place.path()).unwrap();
    connection.execute("UPDATE refinery_schema_history SET checksum = '1'", []).unwrap();
    drop(connection);
    let error = SqliteStore::open(place.path()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
}

#[tokio::test]
async fn people_can_query_the_watermarks() {
    let place = InFile::new();
    drop(SqliteStore::open(place.path()).await.unwrap());
    let connection = Connection::open(place.path()).unwrap();
    let names = "id, env, scope, connector_type, source_key, schema_name, table_name, \
        watermark_column, watermark_kind, last_exported_value, max_seen, first_bound, direction, \
        version, row_count, last_sync_at, last_checked_at, last_run_id";
    connection.prepare(&format!("SELECT {names} FROM watermarks")).unwrap();
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}
