//! Objects in a bucket or container of a cloud, or of a store that speaks its
//! language.
//!
//! What is done is the same everywhere; a provider's own file says how its
//! settings are read, what a version is there, what its errors mean and whether
//! unfinished uploads can be listed.

mod azure;
mod errors;
mod gcs;
mod s3;
mod settings;
mod uploads;

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use tidelake_model::{Error, ErrorKind, Result, RunId, StagedObject, UploadPart, UploadRef};

use super::{FoundUpload, PartPlace, Storage, Version, completed_earlier};
use errors::{Words, explain, is_cut_short, is_gone_upload, is_missing_object};
use uploads::Listing;

pub use azure::{
    AzureConnection, AzureDirectory, AzureLogin, AzureSettings, azure, azure_connection_string,
};
pub use gcs::{GcsLogin, GcsSettings, gcs, gcs_directory};
pub use s3::{S3Settings, s3, s3_directory};

/// What a provider's client can do.
trait Client: ObjectStore + MultipartStore {}

impl<T: ObjectStore + MultipartStore> Client for T {}

/// What tells one content of an object from the next. It is opaque: an ETag is the
/// hash of the content here and there, and something else under encryption, after
/// an upload in parts or with another provider.
#[derive(Debug, Clone, Copy)]
enum Versions {
    /// The ETag.
    ETag,
    /// The number of the object's generation.
    Generation,
}

/// A storage in a bucket or container.
pub struct CloudStorage {
    client: Box<dyn Client>,
    /// One that sends each request once, where beginning an upload leaves something;
    /// the other repeats itself without a word.
    once: Option<Box<dyn Client>>,
    /// Of the bucket itself, such as `s3://bucket`.
    location: String,
    /// Path in it, without slashes at its ends; may be empty.
    prefix: String,
    versions: Versions,
    /// `None` where the store throws unfinished uploads away by itself.
    listing: Option<Listing>,
    words: Words,
}

/// Waits before something is done again that the line cut short.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1600)];

/// Does something again whose answer was lost. The client itself does so only with
/// what it knows to be harmless, and never once an answer has begun; here every
/// call may be repeated: who finds that a condition no longer holds reads again.
async fn steadily<T, F>(work: impl Fn() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    for pause in PAUSES {
        match work().await {
            Err(error) if is_cut_short(&error) => tokio::time::sleep(pause).await,
            done => return done,
        }
    }
    work().await
}

impl CloudStorage {
    fn path(&self, key: &str) -> Result<Path> {
        let full = match (self.prefix.as_str(), key) {
            ("", key) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, key) => format!("{prefix}/{key}"),
        };
        Path::parse(&full)
            .map_err(|_| Error::new(ErrorKind::Internal, format!("{key:?} is no key of an object")))
    }

    /// The key below the prefix.
    fn key<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.prefix.as_str() {
            "" => Some(path),
            prefix => path.strip_prefix(prefix)?.strip_prefix('/'),
        }
    }

    fn place(&self, key: &str) -> String {
        format!("{}/{key}", self.location())
    }

    fn failed(&self, key: &str) -> impl FnOnce(object_store::Error) -> Error + use<'_> {
        let place = self.place(key);
        move |error| explain(&error, &place, &self.words)
    }

    async fn put_mode(&self, key: &str, bytes: Bytes, mode: PutMode) -> Result<()> {
        let path = self.path(key)?;
        let put = steadily(|| {
            let options = PutOptions { mode: mode.clone(), ..PutOptions::default() };
            self.client.put_opts(&path, bytes.clone().into(), options)
        });
        put.await.map_err(self.failed(key))?;
        Ok(())
    }

    /// Gives up what a lost answer may have begun: nobody knows its id. Whatever
    /// this cannot find or do is left to `cleanup`.
    async fn abort_others(&self, begun: &UploadRef) {
        let found = self.uploads_of(&begun.key).await.unwrap_or_default();
        for other in found.iter().filter(|found| found.upload != *begun) {
            let _ = self.abort(&other.upload).await;
        }
    }

    /// The uploads whose path begins with a key's.
    async fn uploads_from(&self, key: &str, path: &str) -> Result<Vec<FoundUpload>> {
        let Some(listing) = &self.listing else { return Ok(Vec::new()) };
        let mut pauses = settings::pauses().into_iter();
        let found = loop {
            let failed = match listing.all(path).await {
                Ok(found) => break found,
                Err(error) => self.failed(key)(error),
            };
            match pauses.next().filter(|_| failed.kind() == ErrorKind::Unavailable) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(failed),
            }
        };
        let found = found.into_iter().filter_map(|(path, upload_id, initiated)| {
            let upload = UploadRef { key: self.key(&path)?.to_owned(), upload_id };
            Some(FoundUpload { upload, initiated })
        });
        Ok(found.collect())
    }

    async fn uploads_of(&self, key: &str) -> Result<Vec<FoundUpload>> {
        let mut found = self.uploads_from(key, self.path(key)?.as_ref()).await?;
        found.retain(|found| found.upload.key == key);
        Ok(found)
    }

    fn version(&self, meta: &ObjectMeta) -> Result<Version> {
        let (version, name) = match self.versions {
            // A condition never holds for a weak one. What made it weak is a proxy
            // on the way; the store knows the strong one.
            Versions::ETag => (meta.e_tag.as_ref().map(|tag| tag.trim_start_matches("W/")), "ETag"),
            Versions::Generation => (meta.version.as_deref(), "generation"),
        };
        let version = version.filter(|version| !version.is_empty()).ok_or_else(|| {
            let message = format!("{} sends no {name}", self.location());
            Error::new(ErrorKind::Unsupported, message)
                .with_hint("choose a store that sends it with every object; commits rest on it")
        })?;
        Ok(Version(version.to_owned()))
    }
}

#[async_trait]
impl Storage for CloudStorage {
    fn location(&self) -> String {
        match self.prefix.as_str() {
            "" => self.location.clone(),
            prefix => format!("{}/{prefix}", self.location),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        let path = self.path(key)?;
        let got = steadily(|| async {
            let object = self.client.get(&path).await?;
            let meta = object.meta.clone();
            Ok((object.bytes().await?, meta))
        });
        match got.await {
            Err(error) if is_missing_object(&error) => Ok(None),
            got => {
                let (bytes, meta) = got.map_err(self.failed(key))?;
                Ok(Some((bytes, self.version(&meta)?)))
            }
        }
    }

    async fn head(&self, key: &str) -> Result<Option<u64>> {
        let path = self.path(key)?;
        match steadily(|| self.client.head(&path)).await {
            Err(error) if is_missing_object(&error) => Ok(None),
            head => Ok(Some(head.map_err(self.failed(key))?.size)),
        }
    }

    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let path = self.path(key)?;
        let got = steadily(|| self.client.get_range(&path, range.clone())).await;
        let bytes = got.map_err(self.failed(key))?;
        if u64::try_from(bytes.len()).ok() != Some(wanted) {
            let message = format!("{} ends before byte {}", self.place(key), range.end);
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        Ok(bytes)
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder)?;
        let listed = steadily(|| self.client.list(Some(&path)).try_collect::<Vec<_>>()).await;
        let objects = listed.map_err(self.failed(folder))?;
        let keys = objects.iter().filter_map(|object| self.key(object.location.as_ref()));
        let mut keys: Vec<_> = keys.map(str::to_owned).collect();
        keys.sort();
        Ok(keys)
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.put_mode(key, bytes, PutMode::Create).await.map_err(|error| match error.kind() {
            // Stores differ in what they call a condition that does not hold.
            ErrorKind::Conflict => Error::new(ErrorKind::AlreadyExists, error.message()),
            _ => error,
        })
    }

    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        let put = match version {
            None => self.put_new(key, bytes).await,
            Some(Version(version)) => {
                let version = match self.versions {
                    Versions::ETag => UpdateVersion { e_tag: Some(version.clone()), version: None },
                    Versions::Generation => {
                        UpdateVersion { e_tag: None, version: Some(version.clone()) }
                    }
                };
                self.put_mode(key, bytes, PutMode::Update(version)).await
            }
        };
        put.map_err(|error| match error.kind() {
            // A store may answer so where two conditional writes met.
            ErrorKind::AlreadyExists => Error::new(ErrorKind::Conflict, error.message()),
            // The document went away.
            ErrorKind::NotFound if version.is_some() && !self.words.names_container(&error) => {
                Error::new(ErrorKind::Conflict, error.message())
            }
            _ => error,
        })
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.put_mode(key, bytes, PutMode::Overwrite).await
    }

    async fn begin(&self, key: &str) -> Result<UploadRef> {
        let path = self.path(key)?;
        let Some(once) = &self.once else {
            let begun = self.client.create_multipart(&path).await;
            let upload_id = begun.map_err(self.failed(key))?;
            return Ok(UploadRef { key: key.to_owned(), upload_id });
        };
        let mut may_have_begun = false;
        let mut pauses = settings::pauses().into_iter();
        let upload_id = loop {
            let error = match once.create_multipart(&path).await {
                Ok(upload_id) => break upload_id,
                Err(error) => error,
            };
            let failed = self.failed(key)(error);
            match pauses.next().filter(|_| failed.kind() == ErrorKind::Unavailable) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(failed),
            }
            may_have_begun = true;
        };
        let upload = UploadRef { key: key.to_owned(), upload_id };
        if may_have_begun {
            self.abort_others(&upload).await;
        }
        Ok(upload)
    }

    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        let path = self.path(&upload.key)?;
        let index = usize::try_from(place.index).unwrap_or(usize::MAX);
        let put = steadily(|| {
            self.client.put_part(&path, &upload.upload_id, index, bytes.clone().into())
        });
        let part = put.await.map_err(self.failed(&upload.key))?;
        Ok(UploadPart { content_id: part.content_id })
    }

    async fn persist(&self, _: &UploadRef) -> Result<()> {
        Ok(())
    }

    async fn complete(&self, object: &StagedObject) -> Result<()> {
        let upload = &object.upload;
        let path = self.path(&upload.key)?;
        let completed = steadily(|| {
            let parts = object.parts.iter();
            let parts = parts.map(|part| PartId { content_id: part.content_id.clone() }).collect();
            self.client.complete_multipart(&path, &upload.upload_id, parts)
        });
        let completed = completed.await.map_err(|error| (is_gone_upload(&error), error));
        // An answer that was lost, or an earlier process, may have completed it.
        match (completed, self.head(&upload.key).await) {
            (Err((false, _)), Ok(Some(found))) if found == object.bytes => Ok(()),
            (Err((false, error)), _) => Err(self.failed(&upload.key)(error)),
            (_, found) => completed_earlier(&self.place(&upload.key), found?, object.bytes),
        }
    }

    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        let path = self.path(&upload.key)?;
        match steadily(|| self.client.abort_multipart(&path, &upload.upload_id)).await {
            Err(error) if is_gone_upload(&error) => Ok(()),
            aborted => aborted.map_err(self.failed(&upload.key)),
        }
    }

    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>> {
        if self.listing.is_none() {
            return Ok(None);
        }
        let prefix = match self.path(folder)?.as_ref() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        self.uploads_from(folder, &prefix).await.map(Some)
    }

    /// The state store has recorded them; `cleanup` looks for others.
    async fn abort_attempts(&self, _: &str, _: RunId, _: u64) -> Result<u64> {
        Ok(0)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        match steadily(|| self.client.delete(&path)).await {
            Err(error) if is_missing_object(&error) => Ok(()),
            deleted => deleted.map_err(self.failed(key)),
        }
    }
}
