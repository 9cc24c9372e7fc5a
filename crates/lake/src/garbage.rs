//! What lies in a table's folder and counts no more: left by runs that died, or by
//! generations that are gone.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};
use tidelake_model::{Latest, LiveManifest, Manifest, Result, RunId, UploadRef};

use crate::lake::TableLake;
use crate::layout::{checkpoint_key, manifest_key, parse_data_key, parse_document_key};

/// Requests under way at once.
const AT_ONCE: usize = 16;

/// Whether what a run left may go. The second argument tells whether the folder has
/// a manifest of the run.
pub type MayGo<'a> = dyn Fn(RunId, bool) -> bool + Send + Sync + 'a;

/// Keys that count no more, relative to the table's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Garbage {
    /// Data files that no live manifest names.
    pub files: Vec<String>,
    /// Manifests and checkpoints of generations that are gone.
    pub documents: Vec<String>,
    /// Uploads that nobody will complete.
    pub uploads: Vec<UploadRef>,
}

impl Garbage {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.documents.is_empty() && self.uploads.is_empty()
    }
}

impl TableLake {
    /// Looks for what counts no more. Only keys that have the form of ours are
    /// looked at, and of those only what runs left that may go. To be called under
    /// the table's lease, with nothing left to be finished: a run that is being
    /// committed has files that no manifest names yet.
    pub async fn garbage(
        &self,
        latest: Option<&Latest>,
        keep_generations: u32,
        may_go: &MayGo<'_>,
    ) -> Result<Garbage> {
        let listed = self.storage.list(&self.folder).await.map_err(|error| self.name(error))?;
        let prefix = self.key("");
        let keys: Vec<&str> = listed.iter().filter_map(|key| key.strip_prefix(&prefix)).collect();
        let known: BTreeSet<RunId> =
            keys.iter().filter_map(|key| parse_document_key(key)).collect();
        let goes = |run: RunId| may_go(run, known.contains(&run));

        let kept = self.kept(latest, keep_generations).await?;
        let is_left = |key: &&&str| {
            parse_data_key(key).is_some_and(|(run, _)| goes(run)) && !kept.files.contains(**key)
        };
        let files = keys.iter().filter(is_left).map(ToString::to_string).collect();
        let unlisted = |key: &&&str| {
            parse_document_key(key).is_some_and(goes) && !kept.documents.contains(**key)
        };
        let documents = keys.iter().filter(unlisted).map(ToString::to_string);
        let documents = self.of_gone_generations(documents.collect(), &kept).await?;
        let found = self.storage.uploads(&self.folder).await.map_err(|error| self.name(error))?;
        let uploads = found.into_iter().flatten().filter_map(|found| {
            let key = found.upload.key.strip_prefix(&prefix)?.to_owned();
            let (run, _) = parse_data_key(&key)?;
            goes(run).then_some(UploadRef { key, upload_id: found.upload.upload_id })
        });
        Ok(Garbage { files, documents, uploads: uploads.collect() })
    }

    /// Deletes exactly that; done twice, it is fine.
    pub async fn delete(&self, garbage: &Garbage) -> Result<()> {
        for upload in &garbage.uploads {
            self.abort(upload).await?;
        }
        let keys = garbage.files.iter().chain(&garbage.documents).map(|key| self.key(key));
        stream::iter(keys.map(|key| async move { self.storage.delete(&key).await }))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await
            .map_err(|error| self.name(error))
    }

    /// What the live and the kept generations name.
    async fn kept(&self, latest: Option<&Latest>, keep_generations: u32) -> Result<Kept> {
        let mut kept = Kept::default();
        let Some(latest) = latest else { return Ok(kept) };
        kept.add(latest.generation, latest.checkpoint.as_ref(), &latest.manifests);
        kept.files.extend(self.live_files(latest).await?.into_iter().map(|file| file.key));
        let keep = usize::try_from(keep_generations).unwrap_or(usize::MAX);
        for replaced in latest.replaced.iter().take(keep) {
            kept.add(replaced.generation, replaced.checkpoint.as_ref(), &replaced.manifests);
            let fold = self.fold(replaced.checkpoint.as_deref(), &replaced.manifests).await?;
            kept.files.extend(fold.live.into_iter().map(|file| file.key));
        }
        // Those that are dropped next are still read once, to know their files.
        for replaced in latest.replaced.iter().skip(keep) {
            kept.add(replaced.generation, replaced.checkpoint.as_ref(), &replaced.manifests);
        }
        Ok(kept)
    }

    /// Of documents that nothing lists, those that no generation needs: a manifest
    /// of the present generation may be folded into a checkpoint, and still tells
    /// what its run did.
    async fn of_gone_generations(&self, keys: Vec<String>, kept: &Kept) -> Result<Vec<String>> {
        let looked_at = keys.into_iter().map(|key| async move {
            let Some(run) = parse_document_key(&key) else { return Ok(None) };
            if key == checkpoint_key(run) {
                return Ok(Some(key));
            }
            let manifest: Option<Manifest> = self.manifest_of(run).await?;
            let is_gone = manifest.is_some_and(|manifest| {
                kept.newest > Some(manifest.generation)
                    && !kept.generations.contains(&manifest.generation)
            });
            Ok::<_, tidelake_model::Error>((is_gone && key == manifest_key(run)).then_some(key))
        });
        let found: Vec<_> = stream::iter(looked_at).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// What must stay.
#[derive(Default)]
struct Kept {
    files: BTreeSet<String>,
    documents: BTreeSet<String>,
    generations: BTreeSet<u64>,
    newest: Option<u64>,
}

impl Kept {
    fn add(&mut self, generation: u64, checkpoint: Option<&String>, manifests: &[LiveManifest]) {
        self.generations.insert(generation);
        self.newest = self.newest.max(Some(generation));
        self.documents.extend(checkpoint.cloned());
        self.documents.extend(manifests.iter().map(|manifest| manifest.key.clone()));
    }
}
