//! The storage suite against every storage.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::env;
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use bytes::Bytes;
use tidelake_lake::storage::conformance::{Fresh, cases};
use tidelake_lake::{
    AzureLogin, AzureSettings, GcsLogin, GcsSettings, S3Settings, Storage, azure, check_writable,
    gcs, local, memory, s3,
};
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

/// A variable of a service; `None`, with a line that says so, where it does not run.
fn variable(name: &str) -> Option<String> {
    let name = format!("TIDELAKE_TEST_{name}");
    let value = env::var(&name).ok();
    if value.is_none() {
        assert!(
            env::var("TIDELAKE_TEST_REQUIRE_SERVERS").as_deref() != Ok("1"),
            "{name} is not set"
        );
        println!("not run: {name} is not set");
    }
    value
}

fn prefix() -> String {
    format!("lake-{:x}", RandomState::new().build_hasher().finish())
}

fn server() -> Option<S3Settings> {
    Some(S3Settings {
        endpoint: Some(variable("S3_ENDPOINT")?),
        bucket: variable("S3_BUCKET")?,
        prefix: prefix(),
        region: variable("S3_REGION"),
        access_key_id: variable("S3_ACCESS_KEY"),
        secret_access_key: variable("S3_SECRET_KEY").map(Secret::new),
        session_token: None,
    })
}

fn azure_server() -> Option<AzureSettings> {
    Some(AzureSettings {
        endpoint: Some(variable("AZURE_ENDPOINT")?),
        account: variable("AZURE_ACCOUNT")?,
        container: variable("AZURE_CONTAINER")?,
        prefix: prefix(),
        suffix: None,
        login: AzureLogin::AccountKey(Secret::new(variable("AZURE_KEY")?)),
    })
}

fn gcs_server() -> Option<GcsSettings> {
    Some(GcsSettings {
        endpoint: Some(variable("GCS_ENDPOINT")?),
        bucket: variable("GCS_BUCKET")?,
        prefix: prefix(),
        login: GcsLogin::ServiceAccount(variable("GCS_SERVICE_ACCOUNT")?.into()),
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
async fn azure_passes_the_suite() {
    if azure_server().is_none() {
        return;
    }
    run_all("azure", || async { azure(azure_server().unwrap()).unwrap() as Fresh }).await;
}

#[tokio::test]
async fn azure_by_a_signature_passes_the_suite() {
    let Some(sas) = variable("AZURE_SAS") else { return };
    let login = AzureLogin::Sas(Secret::new(sas));
    run_all("azure", || async {
        let settings = AzureSettings { login: login.clone(), ..azure_server().unwrap() };
        azure(settings).unwrap() as Fresh
    })
    .await;
}

#[tokio::test]
async fn gcs_passes_the_suite() {
    if gcs_server().is_none() {
        return;
    }
    run_all("gcs", || async { gcs(gcs_server().unwrap()).unwrap() as Fresh }).await;
}

/// That a storage's place is missing, told by name.
async fn is_missing(storage: Fresh, word: &str, name: &str) {
    let error = check_writable(storage.as_ref()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    assert!(error.message().contains(name), "{error:?}");
    assert!(error.hint().unwrap().contains(&format!("create the {word}")), "{error:?}");
}

#[tokio::test]
async fn a_missing_bucket_or_container_is_named() {
    if let Some(settings) = server() {
        let storage = s3(S3Settings { bucket: "no-such-bucket".to_owned(), ..settings }).unwrap();
        is_missing(storage, "bucket", "no-such-bucket").await;
    }
    if let Some(settings) = gcs_server() {
        let settings = GcsSettings { bucket: "no-such-bucket".to_owned(), ..settings };
        is_missing(gcs(settings).unwrap(), "bucket", "no-such-bucket").await;
    }
    if let Some(settings) = azure_server() {
        let settings = AzureSettings { container: "no-such-container".to_owned(), ..settings };
        is_missing(azure(settings).unwrap(), "container", "no-such-container").await;
    }
}

/// That a storage does not let us in, with what to check, and no secret.
async fn is_denied(storage: Fresh, hint: &str, secret: &str) {
    let error = check_writable(storage.as_ref()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.hint().unwrap().contains(hint), "{error:?}");
    let told = format!("{error:?} {}", error.chain());
    assert!(!told.contains(secret), "{told}");
}

#[tokio::test]
async fn a_login_that_is_wrong_is_denied() {
    if let Some(settings) = azure_server() {
        // Base64, and another key.
        let login = AzureLogin::AccountKey(Secret::new("aHVzaGh1c2g="));
        let storage = azure(AzureSettings { login, ..settings.clone() }).unwrap();
        is_denied(storage, "account_key", "aHVzaGh1c2g").await;
        let sas = variable("AZURE_SAS").unwrap();
        let wrong = sas.replace("sp=racwdl", "sp=r");
        let login = AzureLogin::Sas(Secret::new(wrong));
        let storage = azure(AzureSettings { login, ..settings }).unwrap();
        is_denied(storage, "shared access signature", "sig=").await;
    }
    if let Some(settings) = gcs_server() {
        let GcsLogin::ServiceAccount(file) = &settings.login else { panic!("another login") };
        let folder = tempfile::tempdir().unwrap();
        let mut account: serde_json::Value =
            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let made = std::process::Command::new("openssl").args(["genrsa", "2048"]).output().unwrap();
        account["private_key"] = String::from_utf8(made.stdout).unwrap().into();
        let other = folder.path().join("account.json");
        std::fs::write(&other, account.to_string()).unwrap();
        let login = GcsLogin::ServiceAccount(other);
        let storage = gcs(GcsSettings { login, ..settings }).unwrap();
        is_denied(storage, "service account", "PRIVATE KEY").await;
    }
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
