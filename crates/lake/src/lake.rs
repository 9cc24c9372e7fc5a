//! A lake, and one table's folder in it.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidelake_model::{
    DataFile, Error, ErrorKind, Latest, LiveManifest, Manifest, Owner, Result, RunId, StagedObject,
    TableName, UploadRef,
};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::documents::{self, Checkpoint};
use crate::layout;
use crate::parquet::{TableWriter, WriterSettings, read_files};
use crate::storage::{Storage, Version, check_writable};

/// Documents read at once.
const READERS: usize = 16;

/// A storage with tables in it.
#[derive(Clone)]
pub struct Lake {
    storage: Arc<dyn Storage>,
}

impl Lake {
    /// The lake in a storage.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// The storage.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The base for people to read, without secrets.
    pub fn location(&self) -> String {
        self.storage.location()
    }

    /// Checks that the lake can be written; see [`check_writable`].
    pub async fn check_writable(&self) -> Result<()> {
        check_writable(self.storage.as_ref()).await
    }

    /// One table's folder. `sub_path` stands between the base and the schema.
    pub fn table(&self, sub_path: Option<&str>, table: &TableName) -> TableLake {
        TableLake {
            storage: Arc::clone(&self.storage),
            folder: layout::table_folder(sub_path, table),
            table: table.clone(),
        }
    }
}

/// Whose folder it is, after a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Ours.
    Ours,
    /// Somebody else's.
    Other(Owner),
}

/// One table in the lake.
#[derive(Clone)]
pub struct TableLake {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) folder: String,
    pub(crate) table: TableName,
}

impl TableLake {
    /// The storage that the folder is in.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The table's folder for people to read, without secrets.
    pub fn location(&self) -> String {
        format!("{}/{}", self.storage.location(), self.folder)
    }

    /// Where a data file is: a path, or an address such as `s3://bucket/…`.
    pub fn file_location(&self, key: &str) -> String {
        format!("{}/{key}", self.location())
    }

    /// The key of a data file: `<run>-<attempt>-<slice>-<n>.parquet`.
    pub fn data_key(run: RunId, attempt: u64, slice: u32, number: u32) -> String {
        layout::data_key(run, attempt, slice, number)
    }

    /// Whose folder it is.
    pub async fn owner(&self) -> Result<Option<Owner>> {
        Ok(self.document(&layout::owner_key()).await?.map(|(owner, _)| owner))
    }

    /// Takes the folder unless it is somebody else's.
    pub async fn claim(&self, owner: &Owner) -> Result<Claim> {
        for _ in 0..2 {
            // Before any look, so that what a claim that died midway left is tidied up.
            let bytes = documents::print(owner)?;
            match self.storage.put_new(&self.key(&layout::owner_key()), bytes).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                put => {
                    put.map_err(|error| self.name(error))?;
                    return Ok(Claim::Ours);
                }
            }
            if let Some(found) = self.owner().await? {
                let ours =
                    Owner { format_version: owner.format_version, ..found.clone() } == *owner;
                return Ok(if ours { Claim::Ours } else { Claim::Other(found) });
            }
        }
        Err(self.name(Error::new(ErrorKind::Conflict, "the folder's owner changes all the time")))
    }

    /// Makes the folder ours, whoever had it.
    pub async fn take_over(&self, owner: &Owner) -> Result<()> {
        let key = layout::owner_key();
        let stored = self.document::<Owner>(&key).await?;
        let version = stored.as_ref().map(|(_, version)| version);
        let bytes = documents::print(owner)?;
        self.storage.put_if(&self.key(&key), bytes, version).await.map_err(|error| self.name(error))
    }

    /// Which manifests count; `None` where no run was committed.
    pub async fn latest(&self) -> Result<Option<Latest>> {
        Ok(self.versioned_latest().await?.map(|(latest, _)| latest))
    }

    pub(crate) async fn versioned_latest(&self) -> Result<Option<(Latest, Version)>> {
        self.document(&layout::latest_key()).await
    }

    /// A manifest that `latest.json` lists; `Mismatch` where it is gone.
    pub async fn manifest(&self, live: &LiveManifest) -> Result<Manifest> {
        self.required(&live.key).await
    }

    /// The manifest of a run, whether or not it counts.
    pub async fn manifest_of(&self, run: RunId) -> Result<Option<Manifest>> {
        Ok(self.document(&layout::manifest_key(run)).await?.map(|(manifest, _)| manifest))
    }

    /// The files that count, in order: what a reader of the table reads.
    pub async fn live_files(&self, latest: &Latest) -> Result<Vec<DataFile>> {
        let folded = self.fold(latest.checkpoint.as_deref(), &latest.manifests).await?;
        Ok(folded.live)
    }

    /// Reads a generation: what is live in it, and every key it ever named.
    pub(crate) async fn fold(
        &self,
        checkpoint: Option<&str>,
        manifests: &[LiveManifest],
    ) -> Result<Fold> {
        let mut fold = Fold::default();
        if let Some(key) = checkpoint {
            let checkpoint: Checkpoint = self.required(key).await?;
            fold.add(checkpoint.files);
        }
        for manifest in self.manifests(manifests).await? {
            fold.live.retain(|file| {
                !manifest.taken_out.iter().any(|taken_out| taken_out.key == file.key)
            });
            fold.add(manifest.files);
        }
        Ok(fold)
    }

    async fn manifests(&self, live: &[LiveManifest]) -> Result<Vec<Manifest>> {
        let reads: Vec<_> = live.iter().map(|live| self.manifest(live)).collect();
        stream::iter(reads).buffered(READERS).try_collect().await
    }

    /// Begins to write data files. Nothing is visible before
    /// [`complete`](Self::complete).
    pub fn writer(&self, settings: WriterSettings) -> Result<TableWriter> {
        TableWriter::new(self.clone(), settings).map_err(|error| self.name(error))
    }

    /// Makes a staged object visible; done twice, it is fine.
    pub async fn complete(&self, object: &StagedObject) -> Result<()> {
        let object = StagedObject { upload: self.upload(&object.upload), ..object.clone() };
        self.storage.complete(&object).await.map_err(|error| self.name(error))
    }

    /// Gives an upload up; done twice, it is fine.
    pub async fn abort(&self, upload: &UploadRef) -> Result<()> {
        self.storage.abort(&self.upload(upload)).await.map_err(|error| self.name(error))
    }

    /// Gives up what earlier attempts of a run began, where the storage can list
    /// it. Uploads that the state store recorded have to be given up one by one.
    pub async fn abort_attempts(&self, run: RunId, below: u64) -> Result<u64> {
        let aborted = self.storage.abort_attempts(&self.folder, run, below).await;
        aborted.map_err(|error| self.name(error))
    }

    /// Reads exactly these files, in order, as batches of that schema: a column
    /// that a file does not have is NULL, one of a narrower type is widened.
    pub fn rows(
        &self,
        files: Vec<DataFile>,
        schema: SchemaRef,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let table = self.table.clone();
        read_files(self.clone(), files, schema).map_err(move |error| error.in_table(&table)).boxed()
    }

    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}/{key}", self.folder)
    }

    /// The same upload as the storage knows it: under its whole key.
    pub(crate) fn upload(&self, upload: &UploadRef) -> UploadRef {
        UploadRef { key: self.key(&upload.key), upload_id: upload.upload_id.clone() }
    }

    pub(crate) fn name(&self, error: Error) -> Error {
        error.in_table(&self.table)
    }

    pub(crate) async fn document<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<(T, Version)>> {
        let stored = self.storage.get(&self.key(key)).await.map_err(|error| self.name(error))?;
        let Some((bytes, version)) = stored else {
            return Ok(None);
        };
        let document = documents::parse(&bytes, &self.file_location(key));
        Ok(Some((document.map_err(|error| self.name(error))?, version)))
    }

    async fn required<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        match self.document(key).await? {
            Some((document, _)) => Ok(document),
            None => {
                let message = format!("{} is listed and does not exist", self.file_location(key));
                Err(self.name(Error::new(ErrorKind::Mismatch, message)).with_hint(
                    "restore the document, or rebuild the table with --on-mismatch rebuild",
                ))
            }
        }
    }

    /// Writes a document that never changes; the same one already there is fine.
    pub(crate) async fn put_once<T>(&self, key: &str, document: &T) -> Result<()>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let bytes: Bytes = documents::print(document)?;
        match self.storage.put_new(&self.key(key), bytes).await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            put => return put.map_err(|error| self.name(error)),
        }
        match self.document::<T>(key).await? {
            Some((stored, _)) if stored == *document => Ok(()),
            Some(_) => {
                let message = format!("{} exists with another content", self.file_location(key));
                Err(self.name(Error::new(ErrorKind::Conflict, message)))
            }
            None => {
                let message = format!("{} is being written", self.file_location(key));
                Err(self.name(Error::new(ErrorKind::Unavailable, message)))
            }
        }
    }
}

/// A generation as its documents tell it.
#[derive(Default)]
pub(crate) struct Fold {
    /// Files that count, in order.
    pub(crate) live: Vec<DataFile>,
    /// Keys of all files that its documents add.
    pub(crate) named: Vec<String>,
}

impl Fold {
    fn add(&mut self, files: Vec<DataFile>) {
        self.named.extend(files.iter().map(|file| file.key.clone()));
        self.live.extend(files);
    }
}
