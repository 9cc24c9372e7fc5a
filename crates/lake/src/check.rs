//! Whether a data file still is what its manifest says.

use sha2::{Digest, Sha256};
use tidelake_model::{DataFile, Result};

use crate::lake::TableLake;

/// Bytes that are read at once.
const PIECE: u64 = 8 << 20;

/// What is wrong with a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileFault {
    /// It is not there.
    Missing,
    /// It has another length.
    Length {
        /// Bytes that it has.
        found: u64,
    },
    /// It has the length, and other bytes.
    Checksum {
        /// SHA-256 that it has, in hexadecimal.
        found: String,
    },
}

impl TableLake {
    /// Compares a file with its manifest: that it is there and how long it is, and
    /// for `checksum` every byte.
    pub async fn check_file(&self, file: &DataFile, checksum: bool) -> Result<Option<FileFault>> {
        let key = self.key(&file.key);
        let head = self.storage.head(&key).await.map_err(|error| self.name(error))?;
        match head {
            None => return Ok(Some(FileFault::Missing)),
            Some(found) if found != file.bytes => return Ok(Some(FileFault::Length { found })),
            Some(_) if !checksum => return Ok(None),
            Some(_) => {}
        }
        let mut hasher = Sha256::new();
        let mut start = 0;
        while start < file.bytes {
            let end = start.saturating_add(PIECE).min(file.bytes);
            let piece = self.storage.range(&key, start..end).await;
            hasher.update(&piece.map_err(|error| self.name(error))?);
            start = end;
        }
        let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((found != file.sha256).then_some(FileFault::Checksum { found }))
    }
}
