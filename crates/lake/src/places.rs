//! Tables whose folders differ by case alone.

use std::collections::BTreeMap;

use bytes::Bytes;
use tidelake_model::{Error, ErrorKind, Result, TableName};

use crate::lake::Lake;
use crate::layout::table_folder;
use crate::storage::{Storage, random};

impl Lake {
    /// Refuses tables that would share a folder, because their names differ by case
    /// alone and the storage does not tell case apart, as the file systems of some
    /// desktops do not. Asks the storage only where there are such names.
    pub async fn check_folders(&self, sub_path: Option<&str>, tables: &[&TableName]) -> Result<()> {
        let mut folders: BTreeMap<String, &TableName> = BTreeMap::new();
        for table in tables {
            let folder = table_folder(sub_path, table).to_lowercase();
            let Some(other) = folders.insert(folder, table) else { continue };
            if tells_case_apart(self.storage().as_ref()).await? {
                return Ok(());
            }
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "{other} and {table} would share a folder, since {} does not tell upper and \
                     lower case apart",
                    self.location()
                ),
            )
            .with_hint("leave one of them out with --exclude, or write to another storage"));
        }
        Ok(())
    }
}

async fn tells_case_apart(storage: &dyn Storage) -> Result<bool> {
    let key = format!("tidelake-probe-{:016x}", random());
    storage.put_new(&key, Bytes::from_static(b"probe")).await?;
    let other = storage.head(&key.to_uppercase()).await;
    let deleted = storage.delete(&key).await;
    let is_apart = other?.is_none();
    deleted.map(|()| is_apart)
}
