//! The lake: Arrow record batches become Parquet objects that are staged first
//! and count only once they are committed.
//!
//! A [`Storage`] keeps objects: a local folder, a bucket or container of a cloud,
//! or memory. A [`Lake`] lays tables out in it, and a [`TableLake`] is one table's
//! folder with its data files and, below `_tidelake/`, the documents that say which of them
//! count. The only crate that names Parquet or `object_store`.
//!
//! The order of a commit, each step of which may be repeated after a crash:
//! [`TableLake::complete`] for every staged object, [`TableLake::put_manifest`],
//! [`TableLake::commit_latest`], and, once the rows are published,
//! [`TableLake::clean`].

pub mod cdm;
mod check;
mod clean;
mod commit;
mod documents;
#[doc(hidden)]
pub mod fuzzing;
mod garbage;
mod lake;
mod layout;
mod parquet;
mod places;
mod rewrite;
pub mod storage;

pub use check::FileFault;
pub use documents::{latest_schema, manifest_schema};
pub use garbage::{Garbage, MayGo};
pub use lake::{Claim, Lake, TableLake};
pub use layout::encode_name;
pub use parquet::{FILE_BYTES, FileExtent, TableWriter, UploadRecorder, WriterSettings, widens};
pub use rewrite::{ExtentOf, Keep};
pub use storage::{
    AzureConnection, AzureDirectory, AzureLogin, AzureSettings, CloudStorage, FoundUpload,
    GcsLogin, GcsSettings, LocalStorage, MemoryStorage, PartPlace, S3Settings, Storage, Version,
    azure, azure_connection_string, check_writable, gcs, gcs_directory, local, memory, s3,
    s3_directory,
};
