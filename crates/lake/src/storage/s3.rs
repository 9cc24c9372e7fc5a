//! Objects in an S3 bucket, or in a store that speaks its language.

use std::error::Error as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig,
    UpdateVersion,
};
use tidelake_model::{
    Error, ErrorKind, Result, RunId, Secret, StagedObject, UploadPart, UploadRef,
};
use url::Url;

use super::{PartPlace, Storage, Version, completed_earlier};

/// Where a bucket is, and who asks.
#[derive(Clone, Default)]
pub struct S3Settings {
    /// Name of the bucket.
    pub bucket: String,
    /// Path inside the bucket; may be empty.
    pub prefix: String,
    /// Region; `us-east-1` when absent.
    pub region: Option<String>,
    /// Address of a store that is not Amazon's; `http://` is allowed.
    pub endpoint: Option<String>,
    /// Key id; the machine's own role is used when absent.
    pub access_key_id: Option<String>,
    /// The key.
    pub secret_access_key: Option<Secret>,
    /// Token of temporary keys.
    pub session_token: Option<Secret>,
}

/// Bucket and prefix of `s3://bucket/prefix`.
pub fn s3_directory(directory: &str) -> Result<(String, String)> {
    let rest = directory.strip_prefix("s3://").filter(|rest| !rest.starts_with('/'));
    let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
        let message = format!("{directory:?} is not of the form s3://bucket/prefix");
        return Err(Error::new(ErrorKind::Configuration, message));
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    Ok((bucket.to_owned(), prefix.trim_matches('/').to_owned()))
}

/// The address of a store, checked: the client takes what it is given and panics
/// at its first request. A message does not repeat the text, which may hold a
/// password.
fn endpoint(text: &str) -> Result<String> {
    let wrong = |why: &str| {
        Error::new(ErrorKind::Configuration, format!("the endpoint_url {why}"))
            .with_hint("write it as https://host or http://host:port")
    };
    let url = Url::parse(text.trim()).map_err(|error| wrong(&format!("is no URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("begins with neither https:// nor http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a user or a password; give the keys in their own fields"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("goes on behind the path"));
    }
    Ok(url.into())
}

/// A storage in an S3 bucket. Nothing is sent yet.
pub fn s3(settings: S3Settings) -> Result<Arc<S3Storage>> {
    let prefix = settings.prefix.trim_matches('/').to_owned();
    let endpoint = settings.endpoint.as_deref().map(endpoint).transpose()?;
    let insecure = endpoint.as_deref().is_some_and(|url| url.starts_with("http://"));
    let client = ClientOptions::new()
        .with_allow_http(insecure)
        .with_connect_timeout(Duration::from_secs(10))
        // A part of a large object on a slow line.
        .with_timeout(Duration::from_secs(180));
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: 5,
        retry_timeout: Duration::from_secs(120),
    };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&settings.bucket)
        .with_region(settings.region.as_deref().unwrap_or("us-east-1"))
        .with_virtual_hosted_style_request(false)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_client_options(client)
        .with_retry(retry);
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    if let Some(key) = &settings.access_key_id {
        builder = builder.with_access_key_id(key);
    }
    if let Some(secret) = &settings.secret_access_key {
        builder = builder.with_secret_access_key(secret.expose());
    }
    if let Some(token) = &settings.session_token {
        builder = builder.with_token(token.expose());
    }
    let store = builder.build().map_err(|error| {
        // The builder's messages name settings, never their secret values.
        let message = format!("the settings of bucket {:?}: {error}", settings.bucket);
        Error::new(ErrorKind::Configuration, message)
    })?;
    Path::parse(&prefix).map_err(|_| {
        let message = format!("{prefix:?} is no path inside a bucket");
        Error::new(ErrorKind::Configuration, message)
    })?;
    Ok(Arc::new(S3Storage { store, bucket: settings.bucket, prefix }))
}

/// A storage in an S3 bucket.
pub struct S3Storage {
    store: AmazonS3,
    bucket: String,
    prefix: String,
}

impl S3Storage {
    fn path(&self, key: &str) -> Result<Path> {
        let full = match (self.prefix.as_str(), key) {
            ("", key) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, key) => format!("{prefix}/{key}"),
        };
        Path::parse(&full)
            .map_err(|_| Error::new(ErrorKind::Internal, format!("{key:?} is no key of an object")))
    }

    fn place(&self, key: &str) -> String {
        format!("{}/{key}", self.location())
    }

    fn failed(&self, key: &str) -> impl FnOnce(object_store::Error) -> Error {
        let place = self.place(key);
        let bucket = self.bucket.clone();
        move |error| explain(&error, &place, &bucket)
    }

    async fn put_mode(&self, key: &str, bytes: Bytes, mode: PutMode) -> Result<()> {
        let path = self.path(key)?;
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(&path, bytes.into(), options).await;
        put.map_err(self.failed(key))?;
        Ok(())
    }
}

#[async_trait]
impl Storage for S3Storage {
    fn location(&self) -> String {
        match self.prefix.as_str() {
            "" => format!("s3://{}", self.bucket),
            prefix => format!("s3://{}/{prefix}", self.bucket),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        let object = match self.store.get(&self.path(key)?).await {
            Err(error) if is_missing_object(&error) => return Ok(None),
            got => got.map_err(self.failed(key))?,
        };
        let Some(version) = object.meta.e_tag.clone() else {
            let message = format!("{} sends no ETag", self.location());
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let bytes = object.bytes().await.map_err(self.failed(key))?;
        Ok(Some((bytes, Version(version))))
    }

    async fn head(&self, key: &str) -> Result<Option<u64>> {
        match self.store.head(&self.path(key)?).await {
            Err(error) if is_missing_object(&error) => Ok(None),
            head => Ok(Some(head.map_err(self.failed(key))?.size)),
        }
    }

    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let got = self.store.get_range(&self.path(key)?, range.clone()).await;
        let bytes = got.map_err(self.failed(key))?;
        if u64::try_from(bytes.len()).ok() != Some(wanted) {
            let message = format!("{} ends before byte {}", self.place(key), range.end);
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        Ok(bytes)
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder)?;
        let stream = self.store.list(Some(&path));
        let objects: Vec<_> = stream.try_collect().await.map_err(self.failed(folder))?;
        let base = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        let mut keys: Vec<_> = objects
            .iter()
            .filter_map(|object| object.location.as_ref().strip_prefix(&base))
            .map(str::to_owned)
            .collect();
        keys.sort();
        Ok(keys)
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.put_mode(key, bytes, PutMode::Create).await
    }

    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        let Some(version) = version else {
            return self.put_new(key, bytes).await.map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => Error::new(ErrorKind::Conflict, error.message()),
                _ => error,
            });
        };
        let version = UpdateVersion { e_tag: Some(version.0.clone()), version: None };
        self.put_mode(key, bytes, PutMode::Update(version)).await.map_err(|error| {
            match error.kind() {
                // A store answers 409 where two conditional writes met.
                ErrorKind::AlreadyExists => Error::new(ErrorKind::Conflict, error.message()),
                _ => error,
            }
        })
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.put_mode(key, bytes, PutMode::Overwrite).await
    }

    async fn begin(&self, key: &str) -> Result<UploadRef> {
        let begun = self.store.create_multipart(&self.path(key)?).await;
        let upload_id = begun.map_err(self.failed(key))?;
        Ok(UploadRef { key: key.to_owned(), upload_id })
    }

    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        let path = self.path(&upload.key)?;
        let index = usize::try_from(place.index).unwrap_or(usize::MAX);
        let put = self.store.put_part(&path, &upload.upload_id, index, bytes.into()).await;
        let part = put.map_err(self.failed(&upload.key))?;
        Ok(UploadPart { content_id: part.content_id })
    }

    async fn persist(&self, _: &UploadRef) -> Result<()> {
        Ok(())
    }

    async fn complete(&self, object: &StagedObject) -> Result<()> {
        let upload = &object.upload;
        let path = self.path(&upload.key)?;
        let parts = object.parts.iter();
        let parts = parts.map(|part| PartId { content_id: part.content_id.clone() }).collect();
        let completed = self.store.complete_multipart(&path, &upload.upload_id, parts).await;
        let error = completed.err();
        // An answer that was lost, or an earlier process, may have completed it.
        let found = self.head(&upload.key).await?;
        match error {
            Some(error) if found != Some(object.bytes) && !is_missing_object(&error) => {
                Err(self.failed(&upload.key)(error))
            }
            _ => completed_earlier(&self.place(&upload.key), found, object.bytes),
        }
    }

    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        let path = self.path(&upload.key)?;
        match self.store.abort_multipart(&path, &upload.upload_id).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            aborted => aborted.map_err(self.failed(&upload.key)),
        }
    }

    /// Uploads cannot be listed here: the state store has recorded them.
    async fn abort_attempts(&self, _: &str, _: RunId, _: u64) -> Result<u64> {
        Ok(0)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        match self.store.delete(&self.path(key)?).await {
            Err(error) if is_missing_object(&error) => Ok(()),
            deleted => deleted.map_err(self.failed(key)),
        }
    }
}

fn is_missing_object(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. })
        && code(&error.to_string()).as_deref() != Some("NoSuchBucket")
}

fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    Some(content.chars().take(200).collect())
}

fn code(text: &str) -> Option<String> {
    element(text, "Code")
}

fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// Says what an error of the store means. Its own text is not handed on: an
/// answer to a request with a wrong signature repeats the request's headers, and
/// with them a session token.
fn explain(error: &object_store::Error, place: &str, bucket: &str) -> Error {
    use object_store::Error as Store;

    let text = error.to_string();
    let code = code(&text);
    let detail = match (&code, element(&text, "Message"), status(&text)) {
        (Some(code), Some(message), _) => format!("{code}: {message}"),
        (Some(code), None, _) => code.clone(),
        (None, _, Some(status)) => format!("the store answered with status {status}"),
        (None, _, None) => innermost(error),
    };
    let (kind, hint) = match (code.as_deref().unwrap_or_default(), error) {
        ("NoSuchBucket", _) => {
            let message = format!("the bucket {bucket:?} does not exist");
            return Error::new(ErrorKind::NotFound, message)
                .with_hint("create the bucket, or correct its name in the credential");
        }
        ("RequestTimeTooSkewed", _) => (ErrorKind::Denied, "set this machine's clock"),
        ("PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraint", _) => {
            (ErrorKind::Configuration, "set the bucket's own region in the credential")
        }
        ("InvalidBucketName", _) => (ErrorKind::Configuration, "correct the bucket's name"),
        ("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired", _) => {
            (ErrorKind::Denied, "get fresh keys and set them in the credential")
        }
        ("InvalidAccessKeyId" | "SignatureDoesNotMatch", _)
        | (_, Store::Unauthenticated { .. }) => {
            (ErrorKind::Denied, "check the credential's access key and secret")
        }
        (_, Store::PermissionDenied { .. }) => (
            ErrorKind::Denied,
            "allow the credential's user to list the bucket and to get, put and delete its objects",
        ),
        (_, Store::NotFound { .. }) => (ErrorKind::NotFound, ""),
        (_, Store::AlreadyExists { .. }) => (ErrorKind::AlreadyExists, ""),
        (_, Store::Precondition { .. } | Store::NotModified { .. }) => (ErrorKind::Conflict, ""),
        (_, Store::NotImplemented { .. } | Store::NotSupported { .. }) => {
            (ErrorKind::Unsupported, "")
        }
        _ => match status(&text) {
            Some(501) => (ErrorKind::Unsupported, ""),
            Some(status) if status < 500 && status != 408 && status != 429 => {
                (ErrorKind::Internal, "")
            }
            None if text.contains("redirect without LOCATION") => {
                (ErrorKind::Configuration, "set the bucket's own region in the credential")
            }
            _ => (ErrorKind::Unavailable, "check the endpoint and the network, then run again"),
        },
    };
    let error = Error::new(kind, format!("{place}: {detail}"));
    if hint.is_empty() { error } else { error.with_hint(hint) }
}

/// The last cause, which is the system's or the protocol's own word.
fn innermost(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = next.to_string();
        cause = next.source();
    }
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn a_directory_is_bucket_and_prefix() {
        assert_eq!(s3_directory("s3://b/a/c/").unwrap(), ("b".to_owned(), "a/c".to_owned()));
        assert_eq!(s3_directory("s3://b").unwrap(), ("b".to_owned(), String::new()));
        for wrong in ["b/a", "s3://", "s3:///a", "gs://b"] {
            assert_eq!(s3_directory(wrong).unwrap_err().kind(), ErrorKind::Configuration);
        }
    }

    #[test]
    fn an_endpoint_that_is_no_address_is_refused_before_it_is_used() {
        for (right, address) in [
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000/"),
            ("HTTPS://Store.example", "https://store.example/"),
            ("http://[::1]:1/a b", "http://[::1]:1/a%20b"),
        ] {
            assert_eq!(endpoint(right).unwrap(), address);
        }
        for wrong in [
            "",
            "localhost",
            "localhost:9000",
            "127.0.0.1:9000",
            "ftp://store",
            "http://",
            "http://a b/",
            "http://store:99999",
            "http://user:secret@store",
            "http://store/?x=1",
        ] {
            let error = endpoint(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{wrong}");
            assert!(!error.message().contains("secret") && error.hint().is_some());
        }
    }

    #[test]
    fn what_the_store_says_becomes_what_the_user_can_do() {
        for (text, kind) in [
            ("status code: 503 Service Unavailable: <Code>SlowDown</Code>", ErrorKind::Unavailable),
            ("status code: 400: <Code>ExpiredToken</Code>", ErrorKind::Denied),
            ("status code: 404: <Code>NoSuchBucket</Code>", ErrorKind::NotFound),
            ("status code: 400: <Code>EntityTooSmall</Code>", ErrorKind::Internal),
            ("Received redirect without LOCATION, this", ErrorKind::Configuration),
            ("operation timed out", ErrorKind::Unavailable),
        ] {
            assert_eq!(explain(&generic(text), "s3://b/k", "b").kind(), kind, "{text}");
        }
    }

    #[test]
    fn an_answer_that_repeats_the_request_is_not_repeated() {
        let text = "status code: 403: <Error><Code>SignatureDoesNotMatch</Code><Message>no</Message>\
                    <CanonicalRequest>x-amz-security-token:TOPSECRET</CanonicalRequest></Error>";
        let error = object_store::Error::PermissionDenied { path: "k".into(), source: text.into() };
        let error = explain(&error, "s3://b/k", "b");
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(!format!("{error:?} {}", error.chain()).contains("TOPSECRET"));
        assert!(error.message().contains("SignatureDoesNotMatch: no"));
    }
}
