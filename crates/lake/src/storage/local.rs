//! Objects as files below a folder.
//!
//! A file appears under its name by a rename or a link of a finished one, after
//! it was flushed to the disk; until then it has a hidden name that ends in
//! `.tmp`, always the same one, so that whoever repeats what a crash cut short
//! also tidies up after it. Documents are written under a lock file, so that
//! conditions hold between processes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tidelake_model::{Again, Error, ErrorKind, Result, RunId, StagedObject, UploadPart, UploadRef};

use super::{FoundUpload, PartPlace, Storage, Version, completed_earlier, missing};
use crate::layout::{hex, parse_data_key};

/// Longest wait for another process that changes the same document.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// A storage in a folder, which is made when the first object is written.
pub fn local(folder: impl AsRef<Path>) -> Result<Arc<LocalStorage>> {
    let folder = folder.as_ref();
    if !folder.is_absolute() {
        let message = format!("the folder {} is not an absolute path", folder.display());
        return Err(Error::new(ErrorKind::Configuration, message)
            .with_hint("write the whole path of the lake's folder"));
    }
    if folder.exists() && !folder.is_dir() {
        let message = format!("{} is not a folder", folder.display());
        return Err(Error::new(ErrorKind::Configuration, message));
    }
    // Without a slash at the end.
    Ok(Arc::new(LocalStorage { base: folder.components().collect() }))
}

/// A storage in a local folder.
pub struct LocalStorage {
    base: PathBuf,
}

impl LocalStorage {
    fn path(&self, key: &str) -> Result<PathBuf> {
        let mut path = self.base.clone();
        for segment in key.split('/').filter(|_| !key.is_empty()) {
            if matches!(segment, "" | "." | "..") || segment.contains(['\\', '\0']) {
                let message = format!("{key:?} is no key of an object");
                return Err(Error::new(ErrorKind::Internal, message));
            }
            path.push(segment);
        }
        Ok(path)
    }

    /// The hidden file beside the object in which it is written.
    fn staged_path(&self, upload: &UploadRef) -> Result<PathBuf> {
        let object = self.path(&upload.key)?;
        if upload.upload_id != staged_name(&object) {
            let message = format!("{:?} is no upload of {:?}", upload.upload_id, upload.key);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        Ok(object.with_file_name(&upload.upload_id))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::new(ErrorKind::Internal, "a file operation was cut short").with_source(error)
    })?
}

#[async_trait]
impl Storage for LocalStorage {
    fn location(&self) -> String {
        self.base.display().to_string()
    }

    async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>> {
        let path = self.path(key)?;
        blocking(move || read(&path)).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>> {
        let path = self.path(key)?;
        blocking(move || size(&path)).await
    }

    async fn range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        let path = self.path(key)?;
        blocking(move || {
            let mut file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(missing(&path.display().to_string()));
                }
                opened => opened.map_err(failed("read", &path))?,
            };
            let length = usize::try_from(range.end.saturating_sub(range.start));
            let mut bytes = vec![0; length.unwrap_or(usize::MAX)];
            file.seek(SeekFrom::Start(range.start)).map_err(failed("read", &path))?;
            file.read_exact(&mut bytes).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    let message = format!("{} ends before byte {}", path.display(), range.end);
                    Error::new(ErrorKind::Mismatch, message)
                }
                _ => failed("read", &path)(error),
            })?;
            Ok(bytes.into())
        })
        .await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder)?;
        let folder = folder.to_owned();
        blocking(move || {
            let mut keys = Vec::new();
            list_into(&path, &folder, &mut keys)?;
            keys.sort();
            Ok(keys)
        })
        .await
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        let path = self.path(key)?;
        blocking(move || {
            let _lock = FileLock::acquire(&path)?;
            if path.exists() {
                return Err(already_exists(&path));
            }
            replace(&path, &bytes)
        })
        .await
    }

    async fn put_if(&self, key: &str, bytes: Bytes, version: Option<&Version>) -> Result<()> {
        let path = self.path(key)?;
        let version = version.cloned();
        blocking(move || {
            let _lock = FileLock::acquire(&path)?;
            if read(&path)?.map(|(_, stored)| stored) != version {
                let message = format!("{} was changed meanwhile", path.display());
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            replace(&path, &bytes)
        })
        .await
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        let path = self.path(key)?;
        blocking(move || {
            let _lock = FileLock::acquire(&path)?;
            replace(&path, &bytes)
        })
        .await
    }

    async fn begin(&self, key: &str) -> Result<UploadRef> {
        let path = self.path(key)?;
        let upload = UploadRef { key: key.to_owned(), upload_id: staged_name(&path) };
        let staged = self.staged_path(&upload)?;
        blocking(move || {
            make_folder(&staged)?;
            // A writer that was given up may still hold the old file open.
            remove(&staged)?;
            File::create_new(&staged).map_err(failed("write", &staged))?;
            Ok(upload)
        })
        .await
    }

    async fn put_part(
        &self,
        upload: &UploadRef,
        place: PartPlace,
        bytes: Bytes,
    ) -> Result<UploadPart> {
        let staged = self.staged_path(upload)?;
        blocking(move || {
            let mut file = match OpenOptions::new().write(true).open(&staged) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let message = format!("the upload {} is gone", staged.display());
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
                opened => opened.map_err(failed("write", &staged))?,
            };
            file.seek(SeekFrom::Start(place.offset)).map_err(failed("write", &staged))?;
            file.write_all(&bytes).map_err(failed("write", &staged))?;
            Ok(UploadPart { content_id: bytes.len().to_string() })
        })
        .await
    }

    async fn persist(&self, upload: &UploadRef) -> Result<()> {
        let staged = self.staged_path(upload)?;
        blocking(move || {
            let file = File::open(&staged).map_err(failed("flush", &staged))?;
            file.sync_all().map_err(failed("flush", &staged))?;
            sync_folder(&staged)
        })
        .await
    }

    async fn complete(&self, object: &StagedObject) -> Result<()> {
        let staged = self.staged_path(&object.upload)?;
        let path = self.path(&object.upload.key)?;
        let bytes = object.bytes;
        blocking(move || {
            let location = path.display().to_string();
            if let Some(found) = size(&staged)? {
                completed_earlier(&staged.display().to_string(), Some(found), bytes)?;
                let file = File::open(&staged).map_err(failed("flush", &staged))?;
                file.sync_all().map_err(failed("flush", &staged))?;
                match link_new(&staged, &path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    linked => linked?,
                }
            }
            completed_earlier(&location, size(&path)?, bytes)?;
            remove(&staged)?;
            sync_folder(&path)
        })
        .await
    }

    async fn abort(&self, upload: &UploadRef) -> Result<()> {
        let staged = self.staged_path(upload)?;
        blocking(move || remove(&staged)).await
    }

    async fn uploads(&self, folder: &str) -> Result<Option<Vec<FoundUpload>>> {
        let path = self.path(folder)?;
        let folder = folder.to_owned();
        blocking(move || {
            let mut found = Vec::new();
            staged_into(&path, &folder, &mut found)?;
            Ok(Some(found))
        })
        .await
    }

    async fn abort_attempts(&self, folder: &str, run: RunId, below: u64) -> Result<u64> {
        let folder = self.path(folder)?;
        blocking(move || {
            let mut aborted = 0;
            for name in names(&folder)? {
                let key = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
                let of_run = key.and_then(parse_data_key);
                if of_run.is_some_and(|(owner, attempt)| owner == run && attempt < below) {
                    remove(&folder.join(&name))?;
                    aborted += 1;
                }
            }
            Ok(aborted)
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        blocking(move || remove(&path)).await
    }
}

fn hidden(path: &Path) -> String {
    format!(".{}", path.file_name().unwrap_or_default().to_string_lossy())
}

fn staged_name(path: &Path) -> String {
    format!("{}.tmp", hidden(path))
}

/// Turns a failed operation on a path into an error that says what to do.
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let folder = path.parent().unwrap_or(path).display().to_string();
    let path = path.display().to_string();
    move |error| {
        let what = format!("cannot {action} {path}");
        let (kind, hint) = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
                ErrorKind::Denied,
                format!("give tidelake's user the right to read and write in {folder}"),
            ),
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                (ErrorKind::Unavailable, format!("free some space for {folder}, then run again"))
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
                (ErrorKind::Configuration, format!("choose a folder in which {folder} can be made"))
            }
            _ => (ErrorKind::Unavailable, format!("check the disk that holds {folder}")),
        };
        // Waiting makes no room, and mends no disk.
        Error::new(kind, what).with_hint(hint).with_again(Again::Never).with_source(error)
    }
}

fn read(path: &Path) -> Result<Option<(Bytes, Version)>> {
    match fs::read(path) {
        Ok(bytes) => {
            let version = Version(hex(&Sha256::digest(&bytes)));
            Ok(Some((bytes.into(), version)))
        }
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

fn size(path: &Path) -> Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_file().then_some(metadata.len())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries.map_err(failed("list", folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", folder))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

fn list_into(path: &Path, folder: &str, keys: &mut Vec<String>) -> Result<()> {
    for name in names(path)? {
        let path = path.join(&name);
        let is_hidden =
            name.starts_with('.') && (name.ends_with(".tmp") || name.ends_with(".lock"));
        let key = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if path.is_dir() {
            list_into(&path, &key, keys)?;
        } else if !is_hidden {
            keys.push(key);
        }
    }
    Ok(())
}

/// The hidden files in which objects and documents are written.
fn staged_into(path: &Path, folder: &str, found: &mut Vec<FoundUpload>) -> Result<()> {
    for name in names(path)? {
        let path = path.join(&name);
        let inside = |name: &str| match folder {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        let object = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
        if path.is_dir() {
            staged_into(&path, &inside(&name), found)?;
        } else if let Some(object) = object.filter(|object| !object.is_empty()) {
            let initiated = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
            let upload = UploadRef { key: inside(object), upload_id: name };
            found.push(FoundUpload { upload, initiated });
        }
    }
    Ok(())
}

/// Makes the folder of a file, and makes the new folders outlast a power failure.
fn make_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) else {
        return Ok(());
    };
    let existing = folder.ancestors().find(|ancestor| ancestor.is_dir());
    fs::create_dir_all(folder).map_err(failed("make the folder of", path))?;
    for made in folder.ancestors().take_while(|made| Some(*made) != existing) {
        sync_folder(made)?;
    }
    Ok(())
}

/// Flushes the folder that a file stands in: only then is its name durable.
fn sync_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|_| cfg!(unix)) else {
        return Ok(());
    };
    let opened = File::open(folder).map_err(failed("flush the folder of", path))?;
    match opened.sync_all() {
        // Some network file systems cannot flush folders.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) =>
        {
            Ok(())
        }
        synced => synced.map_err(failed("flush the folder of", path)),
    }
}

fn already_exists(path: &Path) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("{} already exists", path.display()))
}

/// Gives a finished file its name unless another has it.
fn link_new(staged: &Path, path: &Path) -> Result<()> {
    match fs::hard_link(staged, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(already_exists(path)),
        // Not every file system knows links.
        Err(_) => {
            let _lock = FileLock::acquire(path)?;
            if path.exists() {
                return Err(already_exists(path));
            }
            fs::rename(staged, path).map_err(failed("write", path))
        }
    }
}

/// Writes a document; to be called under its lock.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let staged = path.with_file_name(staged_name(path));
    let written = File::create(&staged).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&staged, path)
    });
    written.map_err(|error| {
        // What is left of it is hidden; the next writer replaces it.
        let _ = fs::remove_file(&staged);
        failed("write", path)(error)
    })?;
    sync_folder(path)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_missing(&error) => Err(failed("delete", path)(error)),
        _ => Ok(()),
    }
}

/// Keeps other processes from changing a document until it is dropped. One that
/// dies gives its lock back.
struct FileLock {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl FileLock {
    fn acquire(document: &Path) -> Result<Self> {
        let path = document.with_file_name(format!("{}.lock", hidden(document)));
        make_folder(&path)?;
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).truncate(false).write(true).open(&path);
            let file = file.map_err(failed("write", &path))?;
            match file.try_lock() {
                Ok(()) if is_named(&file, &path) => return Ok(Self { path, _file: file }),
                // The holder before us deleted the file that we opened.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    let message = format!("another process keeps {} locked", path.display());
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    let message = format!("the file system of {} has no locks", path.display());
                    return Err(Error::new(ErrorKind::Unsupported, message)
                        .with_hint("put the lake on a file system with file locks"));
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
            }
        }
    }
}

/// Whether the open file is the one that others would open under the path.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> bool {
    true
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Elsewhere an open file cannot be deleted; there it stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
