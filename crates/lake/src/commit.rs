//! The last steps of a commit: the manifest, and `latest.json` that lists it.

use tidelake_model::{
    Error, ErrorKind, Latest, LiveManifest, MANIFEST_FORMAT, Manifest, PendingCommit,
    ReplacedGeneration, Result,
};

use crate::documents::{self, Checkpoint};
use crate::lake::TableLake;
use crate::layout;

/// Manifests that `latest.json` lists before they are folded into a checkpoint.
const MANIFESTS_PER_CHECKPOINT: usize = 100;

/// How often a commit starts over because `latest.json` changed under it. Only
/// an answer that was lost, or a runner that lost its lease, can be the reason.
const ATTEMPTS: u32 = 3;

impl TableLake {
    /// Writes the manifest, which never changes: the same one already there is
    /// fine, another one is a `Conflict`.
    pub async fn put_manifest(&self, manifest: &Manifest) -> Result<()> {
        self.put_once(&layout::manifest_key(manifest.run_id), manifest).await
    }

    /// Lists the run in `latest.json`, from which moment it counts.
    ///
    /// A run that is already the head is fine. `Mismatch` when the head is neither
    /// this run nor the one that it follows.
    pub async fn commit_latest(&self, commit: &PendingCommit) -> Result<Latest> {
        let run = commit.manifest.run_id;
        let mut conflict = None;
        for _ in 0..ATTEMPTS {
            let stored = self.versioned_latest().await?;
            let (latest, version) = match &stored {
                Some((latest, version)) => (Some(latest), Some(version)),
                None => (None, None),
            };
            if let Some(latest) = latest.filter(|latest| latest.head == run) {
                return Ok(latest.clone());
            }
            if latest.map(|latest| latest.head) != commit.previous_head {
                return Err(self.other_head(latest, commit));
            }
            let next = self.next(latest, commit).await?;
            let key = self.key(&layout::latest_key());
            match self.storage.put_if(&key, documents::print(&next)?, version).await {
                Ok(()) => return Ok(next),
                Err(error) if error.kind() == ErrorKind::Conflict => conflict = Some(error),
                Err(error) => return Err(self.name(error).in_run(run)),
            }
        }
        let error = conflict
            .unwrap_or_else(|| Error::new(ErrorKind::Conflict, "latest.json changes all the time"));
        Err(self.name(error).in_run(run))
    }

    fn other_head(&self, latest: Option<&Latest>, commit: &PendingCommit) -> Error {
        let name = |head: Option<String>| head.unwrap_or_else(|| "no run".to_owned());
        let message = format!(
            "{} ends with {}, and this run follows {}",
            self.location(),
            name(latest.map(|latest| latest.head.to_string())),
            name(commit.previous_head.map(|head| head.to_string())),
        );
        self.name(Error::new(ErrorKind::Mismatch, message))
            .in_run(commit.manifest.run_id)
            .with_hint("decide with --on-mismatch adopt or --on-mismatch rebuild")
    }

    async fn next(&self, latest: Option<&Latest>, commit: &PendingCommit) -> Result<Latest> {
        let manifest = &commit.manifest;
        let run = manifest.run_id;
        let listed = LiveManifest { run_id: run, key: layout::manifest_key(run) };
        let mut next = Latest {
            format_version: MANIFEST_FORMAT,
            sequence: latest.map_or(0, |latest| latest.sequence).saturating_add(1),
            head: run,
            generation: manifest.generation,
            checkpoint: None,
            manifests: vec![listed],
            replaced: Vec::new(),
        };
        let Some(latest) = latest else {
            return Ok(next);
        };
        if !commit.replaces && latest.generation != manifest.generation {
            let message = format!(
                "the run adds to generation {}, and the lake holds generation {}",
                manifest.generation, latest.generation
            );
            return Err(self.name(Error::new(ErrorKind::Internal, message)).in_run(run));
        }
        next.replaced = self.forget_replaced(latest, commit.keep_generations).await?;
        if commit.replaces {
            let replaced = ReplacedGeneration {
                generation: latest.generation,
                checkpoint: latest.checkpoint.clone(),
                manifests: latest.manifests.clone(),
            };
            next.replaced.insert(0, replaced);
        } else if latest.manifests.len() >= MANIFESTS_PER_CHECKPOINT {
            let files = self.live_files(latest).await?;
            let checkpoint = Checkpoint {
                format_version: MANIFEST_FORMAT,
                generation: latest.generation,
                files,
            };
            let key = layout::checkpoint_key(run);
            self.put_once(&key, &checkpoint).await?;
            next.checkpoint = Some(key);
        } else {
            next.checkpoint = latest.checkpoint.clone();
            let before = latest.manifests.iter().cloned();
            next.manifests.splice(0..0, before);
        }
        Ok(next)
    }

    /// The replaced generations that stay listed. The others are cleaned once
    /// more first: the run that replaced them may have died before it did, and
    /// nothing names their files afterwards.
    async fn forget_replaced(
        &self,
        latest: &Latest,
        keep_generations: u32,
    ) -> Result<Vec<ReplacedGeneration>> {
        let mut kept = latest.replaced.clone();
        let keep = usize::try_from(keep_generations).unwrap_or(usize::MAX);
        if kept.len() > keep {
            self.clean(latest, keep_generations).await?;
            kept.truncate(keep);
        }
        Ok(kept)
    }
}
