//! Where objects are kept.

mod cloud;
pub mod conformance;
mod local;
mod memory;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use tidelake_model::{Error, ErrorKind, Result, RunId, StagedObject, UploadPart, UploadRef};

pub use cloud::{
    AzureConnection, AzureDirectory, AzureLogin, AzureSettings, CloudStorage, GcsLogin,
    GcsSettings, S3Settings, azure, azure_connection_string, gcs, gcs_directory, s3, s3_directory,
};
pub use local::{LocalStorage, local};
pub use memory::{MemoryStorage, memory};

/// What tells one content of a document from the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(pub(crate) String);

/// Place of a part in its object. Parts are written in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartPlace {
    /// Number of the part, from 0.
    pub index: u32,
    /// Bytes before it.
    pub offset: u64,
}

/// An upload that was begun and is neither completed nor given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundUpload {
    /// What to give up; its key is relative to the base.
    pub upload: UploadRef,
    /// When it was begun, or last written where only that is known.
    pub initiated: Option<SystemTime>,
}

/// Keeps objects under keys, `/`-separated and relative to a base.
///
/// There are three ways to write. *Documents* are small and written at once, so
/// that a reader sees all of one or none. *Staged objects* are written in parts
/// and become visible by [`complete`](Self::complete) alone, in this process or in
/// another. Unconditional [`put`](Self::put) is for files that anyone may
/// overwrite.
///
/// Every call may be repeated after a crash or an error. No method has a default.
#[async_trait]
pub trait Storage: Send + Sync {
    /// The base for people to read, without secrets: a folder or, for example,
    /// `s3://bucket/prefix`.
    fn location(&self) -> String;

    /// A document; `None` where there is none.
    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>>;

    /// Bytes of an object; `None` where there is none.
    async fn head(&self, key: &str) -> Result<Option<u64>>;

    /// Some bytes of an object; `NotFound` where there is none.
    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes>;

    /// Keys of the visible objects below a folder, sorted.
    async fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Writes a document that must not exist: `AlreadyExists` otherwise.
    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()>;

    /// Replaces the document of that version, or, for `None`, writes one that must
    /// not exist: `Conflict` otherwise.
    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()>;

    /// Writes a document, whatever was there.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()>;

    /// Begins an object. Nothing is visible under its key.
    async fn begin(&self, key: &str) -> Result<UploadRef>;

    /// Writes one part. Written twice, the last one counts.
    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart>;

    /// Makes the parts written so far outlast a power failure.
    async fn persist(&self, upload: &UploadRef) -> Result<()>;

    /// Makes an object visible, durably. One that is already there with the same
    /// number of bytes is fine; `Mismatch` where neither upload nor object is.
    async fn complete(&self, object: &StagedObject) -> Result<()>;

    /// Gives an upload up. One that is completed or gone is fine.
    async fn abort(&self, upload: &UploadRef) -> Result<()>;

    /// The uploads below a folder that are neither completed nor given up. One may
    /// belong to a run that is under way. `None` where the storage can neither list
    /// nor give up uploads: it throws away by itself what was not completed, and
    /// [`abort`](Self::abort) does nothing.
    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>>;

    /// Gives up the uploads in a folder that earlier attempts of a run began, where
    /// the storage can list them, and says how many.
    async fn abort_attempts(&self, folder: &str, run: RunId, below: u64) -> Result<u64>;

    /// Deletes an object; one that is not there is fine.
    async fn delete(&self, key: &str) -> Result<()>;
}

/// Checks that the storage can be written and keeps its conditions, with a probe
/// of a random name that is deleted again. Errors: `NotFound` for a missing
/// bucket, `Denied` where writing is not allowed, `Unsupported` where conditional
/// writes are not honoured.
pub async fn check_writable(storage: &dyn Storage) -> Result<()> {
    let key = format!("tidelake-probe-{:016x}", random());
    storage.put_new(&key, Bytes::from_static(b"probe")).await?;
    let checked = check_conditions(storage, &key).await;
    let deleted = storage.delete(&key).await;
    checked.and(deleted)
}

async fn check_conditions(storage: &dyn Storage, key: &str) -> Result<()> {
    let refused = |result: Result<()>, kind| match result {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == kind => Ok(true),
        Err(error) => Err(error),
    };
    let Some((_, version)) = storage.get(key).await? else {
        let message = format!("{} does not show an object just written", storage.location());
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let again = Bytes::from_static(b"again");
    let keeps_new = storage.put_new(key, again.clone()).await;
    let keeps_new = refused(keeps_new, ErrorKind::AlreadyExists)?;
    storage.put_if(key, again.clone(), Some(&version)).await?;
    let keeps_old = storage.put_if(key, again, Some(&version)).await;
    let keeps_old = refused(keeps_old, ErrorKind::Conflict)?;
    if keeps_new && keeps_old {
        return Ok(());
    }
    let message = format!("{} ignores the conditions of writes", storage.location());
    Err(Error::new(ErrorKind::Unsupported, message)
        .with_hint("choose a store that honours If-None-Match and If-Match; commits rest on them"))
}

/// A number that no other process is likely to have.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub(crate) fn missing(location: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("{location} does not exist"))
}

/// What [`Storage::complete`] answers when the upload is gone.
pub(crate) fn completed_earlier(location: &str, found: Option<u64>, expected: u64) -> Result<()> {
    let message = match found {
        Some(bytes) if bytes == expected => return Ok(()),
        Some(bytes) => format!("{location} has {bytes} bytes, {expected} were written"),
        None => format!("neither {location} nor its upload exists any more"),
    };
    Err(Error::new(ErrorKind::Mismatch, message)
        .with_hint("something else deletes files of the lake; the run's table has to be rebuilt"))
}
