//! The lake's files as such: there, as long as they were, and unaltered.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use tidelake_lake::{FileFault, TableLake};
use tidelake_model::{DataFile, Error, Result, RunId};

use super::finding::run_of;

/// Files that are looked at at once.
const READERS: usize = 8;

/// A file that is not what its manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFinding {
    /// Where it is.
    pub file: String,
    /// The run that wrote it.
    pub run_id: Option<RunId>,
    /// Rows that its manifest says it holds.
    pub rows: u64,
    /// `missing`, `length`, `checksum` or `unreadable`.
    pub fault: &'static str,
    /// In words.
    pub message: String,
}

/// Looks at all files; those with a fault by their number.
pub(super) async fn check(
    lake: &TableLake,
    files: &[DataFile],
    checksums: bool,
) -> Result<BTreeMap<u32, FileFault>> {
    let looks: Vec<_> = (0_u32..)
        .zip(files)
        .map(|(number, file)| async move {
            lake.check_file(file, checksums).await.map(|fault| (number, fault))
        })
        .collect();
    let looked: Vec<_> = futures::stream::iter(looks).buffered(READERS).try_collect().await?;
    Ok(looked.into_iter().filter_map(|(number, fault)| Some((number, fault?))).collect())
}

/// A fault in words.
pub(super) fn finding(lake: &TableLake, file: &DataFile, fault: &FileFault) -> FileFinding {
    let (name, message) = match fault {
        FileFault::Missing => ("missing", "it is not there".to_owned()),
        FileFault::Length { found } => {
            ("length", format!("it has {found} bytes, its manifest says {}", file.bytes))
        }
        FileFault::Checksum { found } => (
            "checksum",
            format!("its SHA-256 is {found}, its manifest says {}: it was altered", file.sha256),
        ),
    };
    of(lake, file, name, message)
}

/// A file that could not be read.
pub(super) fn unreadable(lake: &TableLake, file: &DataFile, error: &Error) -> FileFinding {
    of(lake, file, "unreadable", format!("it cannot be read: {}", error.chain()))
}

fn of(lake: &TableLake, file: &DataFile, fault: &'static str, message: String) -> FileFinding {
    FileFinding {
        file: lake.file_location(&file.key),
        run_id: run_of(&file.key),
        rows: file.rows,
        fault,
        message,
    }
}
