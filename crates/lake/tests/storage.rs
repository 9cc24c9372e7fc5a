//! The storage suite against every storage.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::env;
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use bytes::Bytes;
use tidelake_lake::storage::conformance::{Fresh, cases};
use tidelake_lake::{S3Settings, Storage, check_writable, local, memory, s3};
use tidelake_model::{ErrorKind, Secret};

async fn run_all<F: Future<Output = Fresh>>(name: &str, fresh: impl Fn() -> F) {
    let mut failures = Vec::new();
    for case in cases() {
        if let Err(error) = case.run(fresh().await).await {
            failures.push(format!("{name}::{}: {}", case.name, error.chain()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn memory_passes_the_suite() {
    run_all("memory", || async { memory() as Fresh }).await;
}

#[tokio::test]
async fn a_local_folder_passes_the_suite() {
    let folder = tempfile::tempdir().unwrap();
    run_all("local", || {
        let folder = tempfile::tempdir_in(folder.path()).unwrap().keep();
        async move { local(folder.join("lake")).unwrap() as Fresh }
    })
    .await;
}

/// The emulator's settings; `None`, with a line that says so, where there is none.
fn server() -> Option<S3Settings> {
    let Ok(endpoint) = env::var("TIDELAKE_TEST_S3_ENDPOINT") else {
        assert!(
            env::var("TIDELAKE_TEST_REQUIRE_SERVERS").as_deref() != Ok("1"),
            "TIDELAKE_TEST_S3_ENDPOINT is not set"
        );
        println!("not run: TIDELAKE_TEST_S3_ENDPOINT is not set");
        return None;
    };
    let variable = |name: &str| env::var(format!("TIDELAKE_TEST_S3_{name}")).unwrap();
    Some(S3Settings {
        bucket: variable("BUCKET"),
        prefix: format!("lake-{:x}", RandomState::new().build_hasher().finish()),
        region: Some(variable("REGION")),
        endpoint: Some(endpoint),
        access_key_id: Some(variable("ACCESS_KEY")),
        secret_access_key: Some(Secret::new(variable("SECRET_KEY"))),
        session_token: None,
    })
}

#[tokio::test]
async fn s3_passes_the_suite() {
    if server().is_none() {
        return;
    }
    run_all("s3", || async { s3(server().unwrap()).unwrap() as Fresh }).await;
}

#[tokio::test]
async fn a_missing_bucket_is_named() {
    let Some(settings) = server() else { return };
    let storage = s3(S3Settings { bucket: "no-such-bucket".to_owned(), ..settings }).unwrap();
    let error = check_writable(storage.as_ref()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    assert!(error.message().contains("no-such-bucket"), "{error:?}");
    assert!(error.hint().unwrap().contains("create the bucket"), "{error:?}");
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_unavailable() {
    let settings = S3Settings {
        bucket: "b".to_owned(),
        endpoint: Some("http://127.0.0.1:1".to_owned()),
        access_key_id: Some("id".to_owned()),
        secret_access_key: Some(Secret::new("hushhush")),
        ..S3Settings::default()
    };
    let storage = s3(settings).unwrap();
    let error = storage.put("a", Bytes::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(!error.chain().contains("hushhush"), "{error:?}");
}

/// Two processes have no lock in common but the file's: a second handle on the
/// same folder stands for the second process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_hold_between_handles_of_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let handles: Vec<Fresh> =
        (0..4).map(|_| local(folder.path()).unwrap() as Arc<dyn Storage>).collect();
    let mut tasks = Vec::new();
    for handle in handles {
        tasks.push(tokio::spawn(async move {
            let mut done = 0;
            while done < 10 {
                let stored = handle.get("t/count").await.unwrap();
                let (count, version) = match &stored {
                    Some((bytes, version)) => {
                        (String::from_utf8_lossy(bytes).parse::<u32>().unwrap(), Some(version))
                    }
                    None => (0, None),
                };
                let next = Bytes::from((count + 1).to_string());
                match handle.put_if("t/count", next, version).await {
                    Ok(()) => done += 1,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let storage = local(folder.path()).unwrap();
    let (bytes, _) = storage.get("t/count").await.unwrap().unwrap();
    assert_eq!(bytes, "40");
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_may_not_be_written_is_denied() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(closed.join("probe"), b"").is_ok() {
        println!("not run: this user may write everywhere");
        return;
    }
    let storage = local(&closed).unwrap();
    let error = check_writable(storage.as_ref()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.hint().unwrap().contains("closed"), "{error:?}");
}
