//! Objects in memory: a full implementation that passes the same suite.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tidelake_model::{Error, ErrorKind, Result, RunId, StagedObject, UploadPart, UploadRef};

use super::{FoundUpload, PartPlace, Storage, Version, completed_earlier, missing};
use crate::layout::parse_data_key;

/// An empty storage in memory.
pub fn memory() -> Arc<MemoryStorage> {
    Arc::new(MemoryStorage::default())
}

/// A storage in memory.
#[derive(Default)]
pub struct MemoryStorage(Mutex<Content>);

#[derive(Default)]
struct Content {
    objects: BTreeMap<String, (Bytes, u64)>,
    uploads: BTreeMap<String, Upload>,
    changes: u64,
}

struct Upload {
    key: String,
    parts: BTreeMap<u32, Bytes>,
}

impl Content {
    fn write(&mut self, key: &str, bytes: Bytes) {
        self.changes += 1;
        self.objects.insert(key.to_owned(), (bytes, self.changes));
    }
}

impl MemoryStorage {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys of all visible objects.
    pub fn keys(&self) -> Vec<String> {
        self.content().objects.keys().cloned().collect()
    }

    /// Keys whose upload is neither completed nor aborted.
    pub fn pending(&self) -> Vec<String> {
        self.content().uploads.values().map(|upload| upload.key.clone()).collect()
    }
}

fn place(key: &str) -> String {
    format!("memory:{key}")
}

#[async_trait]
impl Storage for MemoryStorage {
    fn location(&self) -> String {
        "memory:".to_owned()
    }

    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        let content = self.content();
        let object = content.objects.get(key);
        Ok(object.map(|(bytes, version)| (bytes.clone(), Version(version.to_string()))))
    }

    async fn head(&self, key: &str) -> Result<Option<u64>> {
        let content = self.content();
        content.objects.get(key).map(|(bytes, _)| length(bytes)).transpose()
    }

    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        let content = self.content();
        let (bytes, _) = content.objects.get(key).ok_or_else(|| missing(&place(key)))?;
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        let end = usize::try_from(range.end).unwrap_or(usize::MAX);
        if start > end || end > bytes.len() {
            let message = format!("{} ends before byte {end}", place(key));
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        Ok(bytes.slice(start..end))
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let content = self.content();
        Ok(content.objects.keys().filter(|key| key.starts_with(&prefix)).cloned().collect())
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        let mut content = self.content();
        if content.objects.contains_key(key) {
            let message = format!("{} already exists", place(key));
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        content.write(key, bytes);
        Ok(())
    }

    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        let mut content = self.content();
        let stored = content.objects.get(key).map(|(_, stored)| stored.to_string());
        if stored.as_ref() != version.map(|version| &version.0) {
            let message = format!("{} was changed meanwhile", place(key));
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        content.write(key, bytes);
        Ok(())
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.content().write(key, bytes);
        Ok(())
    }

    async fn begin(&self, key: &str) -> Result<UploadRef> {
        let mut content = self.content();
        content.changes += 1;
        let upload_id = content.changes.to_string();
        let upload = Upload { key: key.to_owned(), parts: BTreeMap::new() };
        content.uploads.insert(upload_id.clone(), upload);
        Ok(UploadRef { key: key.to_owned(), upload_id })
    }

    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        let mut content = self.content();
        let Some(open) = content.uploads.get_mut(&upload.upload_id) else {
            let message = format!("the upload of {} is gone", upload.key);
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        open.parts.insert(place.index, bytes);
        Ok(UploadPart { content_id: place.index.to_string() })
    }

    async fn persist(&self, _: &UploadRef) -> Result<()> {
        Ok(())
    }

    async fn complete(&self, object: &StagedObject) -> Result<()> {
        let key = &object.upload.key;
        let mut content = self.content();
        let Some(upload) = content.uploads.get(&object.upload.upload_id) else {
            let found = content.objects.get(key).map(|(bytes, _)| length(bytes)).transpose()?;
            return completed_earlier(&place(key), found, object.bytes);
        };
        let mut whole = BytesMut::new();
        for (index, part) in object.parts.iter().enumerate() {
            let stored = upload.parts.get(&u32::try_from(index).unwrap_or(u32::MAX));
            let known = stored.filter(|_| part.content_id == index.to_string());
            let Some(stored) = known else {
                let message = format!("part {index} of {} was not written", place(key));
                return Err(Error::new(ErrorKind::Mismatch, message));
            };
            whole.extend_from_slice(stored);
        }
        let whole = whole.freeze();
        completed_earlier(&place(key), Some(length(&whole)?), object.bytes)?;
        content.uploads.remove(&object.upload.upload_id);
        content.write(key, whole);
        Ok(())
    }

    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        self.content().uploads.remove(&upload.upload_id);
        Ok(())
    }

    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let content = self.content();
        let below = content.uploads.iter().filter(|(_, upload)| upload.key.starts_with(&prefix));
        let found = below.map(|(upload_id, upload)| FoundUpload {
            upload: UploadRef { key: upload.key.clone(), upload_id: upload_id.clone() },
            initiated: None,
        });
        Ok(Some(found.collect()))
    }

    async fn abort_attempts(&self, folder: &str, run: RunId, below: u64) -> Result<u64> {
        let mut content = self.content();
        let before = content.uploads.len();
        content.uploads.retain(|_, upload| {
            let name = upload.key.strip_prefix(folder).and_then(|key| key.strip_prefix('/'));
            let place = name.and_then(parse_data_key);
            !place.is_some_and(|(owner, attempt)| owner == run && attempt < below)
        });
        Ok(u64::try_from(before - content.uploads.len()).unwrap_or(u64::MAX))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.content().objects.remove(key);
        Ok(())
    }
}

fn length(bytes: &Bytes) -> Result<u64> {
    u64::try_from(bytes.len())
        .map_err(|error| Error::new(ErrorKind::Internal, "an object too large").with_source(error))
}
