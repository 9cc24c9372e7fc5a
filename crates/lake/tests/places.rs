//! Names that differ by case alone, on a storage that does not tell them apart.

#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tidelake_lake::{FoundUpload, Lake, MemoryStorage, PartPlace, Storage, Version, memory};
use tidelake_model::{ErrorKind, Result, RunId, StagedObject, TableName, UploadPart, UploadRef};

/// As a file system of a desktop.
struct CaseBlind(Arc<MemoryStorage>);

#[async_trait]
impl Storage for CaseBlind {
    fn location(&self) -> String {
        "blind".to_owned()
    }
    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        self.0.get(&key.to_lowercase()).await
    }
    async fn head(&self, key: &str) -> Result<Option<u64>> {
        self.0.head(&key.to_lowercase()).await
    }
    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        self.0.range(&key.to_lowercase(), range).await
    }
    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.0.list(&folder.to_lowercase()).await
    }
    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.0.put_new(&key.to_lowercase(), bytes).await
    }
    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        self.0.put_if(&key.to_lowercase(), bytes, version).await
    }
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.0.put(&key.to_lowercase(), bytes).await
    }
    async fn begin(&self, key: &str) -> Result<UploadRef> {
        self.0.begin(&key.to_lowercase()).await
    }
    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        self.0.put_part(upload, place, bytes).await
    }
    async fn persist(&self, upload: &UploadRef) -> Result<()> {
        self.0.persist(upload).await
    }
    async fn complete(&self, object: &StagedObject) -> Result<()> {
        self.0.complete(object).await
    }
    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        self.0.abort(upload).await
    }
    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>> {
        self.0.uploads(&folder.to_lowercase()).await
    }
    async fn abort_attempts(&self, folder: &str, run: RunId, below: u64) -> Result<u64> {
        self.0.abort_attempts(&folder.to_lowercase(), run, below).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.0.delete(&key.to_lowercase()).await
    }
}

#[tokio::test]
async fn names_that_differ_by_case_alone_are_told_apart_or_refused() {
    let name = |schema: &str, table: &str| TableName::new(schema, table);
    let alike = [
        [name("public", "orders"), name("public", "Orders")],
        [name("Public", "orders"), name("public", "orders")],
        [name("public", "größe"), name("public", "GRÖßE")],
    ];
    let apart = [name("public", "orders"), name("Sales", "Orders")];
    let (sharp, blind) = (memory(), Arc::new(CaseBlind(memory())));
    let inside = blind.0.clone();
    let (sharp, blind) = (Lake::new(sharp), Lake::new(blind));
    for tables in &alike {
        let names: Vec<_> = tables.iter().collect();
        sharp.check_folders(None, &names).await.unwrap();
        let error = blind.check_folders(Some("raw"), &names).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        for table in tables {
            assert!(error.message().contains(&table.to_string()), "{error:?}");
        }
        assert!(error.hint().is_some_and(|hint| hint.contains("--exclude")));
    }
    blind.check_folders(None, &apart.iter().collect::<Vec<_>>()).await.unwrap();
    assert!(inside.list("").await.unwrap().is_empty(), "the probe is gone");
}
