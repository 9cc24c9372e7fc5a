//! One object on its way into the storage.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tidelake_model::{Error, ErrorKind, Result, StagedObject, UploadPart, UploadRef};

use crate::lake::TableLake;
use crate::storage::PartPlace;

/// Is told of uploads as they begin, so that a successor can give them up.
#[async_trait]
pub trait UploadRecorder: Send + Sync {
    /// An upload was begun and nothing is written to it yet. Its key is relative to
    /// the table's folder. Called for objects of more than one part only.
    async fn begun(&self, upload: &UploadRef) -> Result<()>;
}

pub(super) struct ObjectUpload {
    table: TableLake,
    key: String,
    recorder: Option<Arc<dyn UploadRecorder>>,
    upload: Option<UploadRef>,
    parts: Vec<UploadPart>,
    offset: u64,
}

impl ObjectUpload {
    pub(super) fn new(
        table: TableLake,
        key: String,
        recorder: Option<Arc<dyn UploadRecorder>>,
    ) -> Self {
        Self { table, key, recorder, upload: None, parts: Vec::new(), offset: 0 }
    }

    async fn begin(&mut self) -> Result<UploadRef> {
        let begun = self.table.storage.begin(&self.table.key(&self.key)).await?;
        let upload = UploadRef { key: self.key.clone(), upload_id: begun.upload_id };
        self.upload = Some(upload.clone());
        Ok(upload)
    }

    /// Writes a part that others follow.
    pub(super) async fn put(&mut self, bytes: Bytes) -> Result<()> {
        let upload = match &self.upload {
            Some(upload) => upload.clone(),
            None => {
                let upload = self.begin().await?;
                if let Some(recorder) = &self.recorder {
                    recorder.begun(&upload).await?;
                }
                upload
            }
        };
        self.put_part(&upload, bytes).await
    }

    async fn put_part(&mut self, upload: &UploadRef, bytes: Bytes) -> Result<()> {
        let index = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let place = PartPlace { index, offset: self.offset };
        self.offset += bytes.len() as u64;
        let part = self.table.storage.put_part(&self.table.upload(upload), place, bytes).await?;
        self.parts.push(part);
        Ok(())
    }

    /// Writes the last part, if there is one left, and makes all of it durable.
    pub(super) async fn finish(
        &mut self,
        rest: Option<Bytes>,
        bytes: u64,
        sha256: String,
    ) -> Result<StagedObject> {
        let upload = match &self.upload {
            Some(upload) => upload.clone(),
            None => self.begin().await?,
        };
        if let Some(rest) = rest {
            self.put_part(&upload, rest).await?;
        }
        if self.offset != bytes {
            let message = format!("{} bytes were sent of {bytes}", self.offset);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        self.table.storage.persist(&self.table.upload(&upload)).await?;
        Ok(StagedObject { upload, parts: std::mem::take(&mut self.parts), bytes, sha256 })
    }

    /// Gives the object up. That it cannot be is a warning: what made us give it
    /// up is the error to tell, and a successor tries again.
    pub(super) async fn abort(&mut self) {
        if let Some(upload) = self.upload.take() {
            abort(&self.table, &upload).await;
        }
    }
}

pub(super) async fn abort(table: &TableLake, upload: &UploadRef) {
    if let Err(error) = table.abort(upload).await {
        tracing::warn!(key = upload.key, error = error.chain(), "an upload was not given up");
    }
}
