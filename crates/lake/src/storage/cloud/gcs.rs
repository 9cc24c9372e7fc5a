//! Buckets of Google Cloud Storage, through its XML interface.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::client::{HttpConnector, ReqwestConnector};
use object_store::gcp::{GcpCredentialProvider, GoogleCloudStorageBuilder};
use object_store::{Error as StoreError, HeaderValue};
use tidelake_model::{Error, ErrorKind, Result};
use url::Url;

use super::errors::Words;
use super::settings::{client_options, endpoint, no_retries, prefix, retries, split_directory};
use super::uploads::{Listing, Sign};
use super::{CloudStorage, Versions};

const ADDRESS: &str = "https://storage.googleapis.com";

/// Who asks.
#[derive(Clone, Default)]
pub enum GcsLogin {
    /// The machine's own login: that of its user, or its service account.
    #[default]
    Machine,
    /// The key file of a service account.
    ServiceAccount(PathBuf),
    /// A file of application default credentials.
    Application(PathBuf),
}

/// Where a bucket is, and who asks.
#[derive(Clone, Default)]
pub struct GcsSettings {
    /// Name of the bucket.
    pub bucket: String,
    /// Path inside the bucket; may be empty.
    pub prefix: String,
    /// Address of a store that is not Google's; `http://` is allowed.
    pub endpoint: Option<String>,
    /// Who asks.
    pub login: GcsLogin,
}

/// Bucket and prefix of `gs://bucket/prefix`.
pub fn gcs_directory(directory: &str) -> Result<(String, String)> {
    let schemes = ["gs://", "gcs://"];
    let (bucket, prefix) = split_directory(directory, &schemes, "gs://bucket/prefix")?;
    Ok((bucket.to_owned(), prefix.to_owned()))
}

/// A storage in a bucket. Nothing is sent yet.
pub fn gcs(settings: GcsSettings) -> Result<Arc<CloudStorage>> {
    let prefix = prefix(&settings.prefix)?;
    let endpoint = settings.endpoint.as_deref().map(endpoint).transpose()?;
    let options = client_options(endpoint.as_deref());
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&settings.bucket)
        .with_client_options(options.clone());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_base_url(endpoint);
    }
    builder = match &settings.login {
        GcsLogin::Machine => builder,
        GcsLogin::ServiceAccount(file) => {
            builder.with_service_account_path(file.display().to_string())
        }
        GcsLogin::Application(file) => {
            builder.with_application_credentials(file.display().to_string())
        }
    };
    let wrong = |error: &dyn std::fmt::Display| {
        let detail = match &settings.login {
            GcsLogin::ServiceAccount(file) => unfit(file, &error.to_string()),
            GcsLogin::Application(file) => format!("{} holds no login", file.display()),
            GcsLogin::Machine => "this machine has no login that can be read".to_owned(),
        };
        let message = format!("the settings of bucket {:?}: {detail}", settings.bucket);
        Error::new(ErrorKind::Configuration, message)
            .with_hint("service_account_file is the JSON key file of a service account")
    };
    let once = builder.clone().with_retry(no_retries()).build().map_err(|error| wrong(&error))?;
    let client = builder.with_retry(retries()).build().map_err(|error| wrong(&error))?;
    let http = ReqwestConnector::default().connect(&options).map_err(|error| wrong(&error))?;
    let base = endpoint.as_deref().unwrap_or(ADDRESS);
    let url = Url::parse(&format!("{base}/{}", settings.bucket)).map_err(|error| wrong(&error))?;
    let listing = Listing { http, url, sign: sign(Arc::clone(client.credentials())) };
    Ok(Arc::new(CloudStorage {
        client: Box::new(client),
        once: Some(Box::new(once)),
        location: format!("gs://{}", settings.bucket),
        prefix,
        versions: Versions::Generation,
        listing: Some(listing),
        words: Words {
            container: ("bucket", settings.bucket),
            rights: "give the service account the role Storage Object Admin \
                     (roles/storage.objectAdmin) on the bucket",
            login: "check the service account and its key file; a deleted key needs a new file",
        },
    }))
}

/// What is wrong with a key file. A message of the parser may repeat a value of it.
fn unfit(file: &Path, error: &str) -> String {
    let field = error.split_once("missing field `").and_then(|(_, rest)| rest.split_once('`'));
    let what = match field {
        Some((field, _)) => format!("has no {field}"),
        None => "is not the key file of a service account, or its key is damaged".to_owned(),
    };
    format!("{} {what}", file.display())
}

fn sign(credentials: GcpCredentialProvider) -> Sign {
    Box::new(move |mut request| {
        let credentials = Arc::clone(&credentials);
        Box::pin(async move {
            let credential = credentials.get_credential().await?;
            if !credential.bearer.is_empty() {
                let value = HeaderValue::from_str(&format!("Bearer {}", credential.bearer));
                // The cause would not say more, and might say the token.
                let value = value.map_err(|_| StoreError::Generic {
                    store: "GCS",
                    source: "the token is no text for a header".into(),
                })?;
                request.headers_mut().insert("authorization", value);
            }
            Ok(request)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_bucket_and_prefix() {
        assert_eq!(gcs_directory("gs://b/a/c/").unwrap(), ("b".to_owned(), "a/c".to_owned()));
        assert_eq!(gcs_directory("gs://b").unwrap(), ("b".to_owned(), String::new()));
        for wrong in ["b/a", "gs://", "gs:///a", "s3://b"] {
            assert_eq!(gcs_directory(wrong).unwrap_err().kind(), ErrorKind::Configuration);
        }
    }

    #[test]
    fn a_key_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.json");
        let settings = |file: &PathBuf| GcsSettings {
            bucket: "b".to_owned(),
            login: GcsLogin::ServiceAccount(file.clone()),
            ..GcsSettings::default()
        };
        let error = gcs(settings(&file)).err().unwrap();
        assert!(error.message().contains("key.json"), "{error:?}");
        for (content, told) in [
            ("{\"private_key\": \"hunter2\"}", "key.json has no private_key_id"),
            ("\"hunter2\"", "key.json is not the key file of a service account"),
            ("{\"private_key\": [\"hunter2\"]}", "key.json is not the key file"),
            (
                "{\"private_key\": \"hunter2\", \"private_key_id\": \"1\", \"client_email\": \"a\"}",
                "its key is damaged",
            ),
        ] {
            std::fs::write(&file, content).unwrap();
            let error = gcs(settings(&file)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.message().contains(told), "{content}: {error:?}");
            assert!(error.hint().is_some(), "{error:?}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
