//! Deleting files that count no more.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};
use tidelake_model::{Error, ErrorKind, Latest, Result};

use crate::lake::TableLake;
use crate::layout::parse_data_key;

/// Deletions under way at once.
const DELETERS: usize = 16;

impl TableLake {
    /// Deletes the files of replaced generations beyond those that are kept, and
    /// those that the head's manifest takes out; says how many keys that were.
    ///
    /// Only keys that our manifests name are deleted, and none that a live or kept
    /// generation names. Documents stay. To be called once the head's rows are
    /// published; done twice, it is fine.
    pub async fn clean(&self, latest: &Latest, keep_generations: u32) -> Result<u64> {
        let keep = usize::try_from(keep_generations).unwrap_or(usize::MAX);
        let kept = latest.replaced.iter().take(keep);
        let dropped: Vec<_> = latest.replaced.iter().skip(keep).collect();

        let head = latest.manifests.iter().find(|live| live.run_id == latest.head);
        let mut doomed = BTreeSet::new();
        if let Some(head) = head {
            let manifest = self.manifest(head).await?;
            doomed.extend(manifest.taken_out.into_iter().map(|taken_out| taken_out.key));
        }
        for generation in &dropped {
            let fold = self.fold(generation.checkpoint.as_deref(), &generation.manifests).await?;
            doomed.extend(fold.named);
        }
        if doomed.is_empty() {
            return Ok(0);
        }
        for file in self.live_files(latest).await? {
            doomed.remove(&file.key);
        }
        for generation in kept {
            let fold = self.fold(generation.checkpoint.as_deref(), &generation.manifests).await?;
            for file in fold.live {
                doomed.remove(&file.key);
            }
        }
        if let Some(strange) = doomed.iter().find(|key| parse_data_key(key).is_none()) {
            let message = format!("a manifest names {strange:?}, which is no data file of ours");
            return Err(self
                .name(Error::new(ErrorKind::Mismatch, message))
                .with_hint("somebody else writes into the lake's folder; nothing was deleted"));
        }
        let deleted = u64::try_from(doomed.len()).unwrap_or(u64::MAX);
        let keys = doomed.into_iter().map(|key| self.key(&key));
        stream::iter(keys.map(|key| async move { self.storage.delete(&key).await }))
            .buffer_unordered(DELETERS)
            .try_collect::<()>()
            .await
            .map_err(|error| self.name(error))?;
        Ok(deleted)
    }
}
