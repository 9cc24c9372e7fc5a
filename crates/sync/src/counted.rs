//! Counts what is asked of the lake's storage.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use tidelake_lake::{FoundUpload, PartPlace, Storage, Version};
use tidelake_model::{Result, RunId, StagedObject, UploadPart, UploadRef};

/// A number that only rises.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count(Arc<AtomicU64>);

impl Count {
    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Objects that were asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Objects {
    /// Made or replaced, documents as well as data.
    pub(crate) written: Count,
    /// Looked at, wholly or in part; a list counts as one.
    pub(crate) read: Count,
}

/// A storage whose calls are counted.
pub(crate) struct CountedStorage {
    inner: Arc<dyn Storage>,
    objects: Objects,
}

impl CountedStorage {
    pub(crate) fn over(inner: Arc<dyn Storage>) -> (Arc<dyn Storage>, Objects) {
        let objects = Objects::default();
        (Arc::new(Self { inner, objects: objects.clone() }), objects)
    }
}

#[async_trait]
impl Storage for CountedStorage {
    fn location(&self) -> String {
        self.inner.location()
    }

    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        self.objects.read.one_more();
        self.inner.get(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>> {
        self.objects.read.one_more();
        self.inner.head(key).await
    }

    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        self.objects.read.one_more();
        self.inner.range(key, range).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.objects.read.one_more();
        self.inner.list(folder).await
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.objects.written.one_more();
        self.inner.put_new(key, bytes).await
    }

    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        self.objects.written.one_more();
        self.inner.put_if(key, bytes, version).await
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.objects.written.one_more();
        self.inner.put(key, bytes).await
    }

    async fn begin(&self, key: &str) -> Result<UploadRef> {
        self.objects.written.one_more();
        self.inner.begin(key).await
    }

    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        self.inner.put_part(upload, place, bytes).await
    }

    async fn persist(&self, upload: &UploadRef) -> Result<()> {
        self.inner.persist(upload).await
    }

    async fn complete(&self, object: &StagedObject) -> Result<()> {
        self.inner.complete(object).await
    }

    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        self.inner.abort(upload).await
    }

    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>> {
        self.objects.read.one_more();
        self.inner.uploads(folder).await
    }

    async fn abort_attempts(&self, folder: &str, run: RunId, below: u64) -> Result<u64> {
        self.inner.abort_attempts(folder, run, below).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }
}
