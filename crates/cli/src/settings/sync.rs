//! What `sync` was told.

use std::time::Duration;

use tidelake_model::{Result, RunId};
use tidelake_sync::{LeaseTimes, OnMismatch, RunMode};

use super::{configuration, not_available, run_id};
use crate::args::{OnMismatchName, SyncArgs};

/// One run of a sync.
#[derive(Debug)]
pub(crate) struct SyncSettings {
    pub(crate) sync_id: String,
    pub(crate) mode: RunMode,
    pub(crate) resume: Resume,
    pub(crate) on_mismatch: OnMismatch,
    pub(crate) reset_watermarks: bool,
    pub(crate) leases: LeaseTimes,
}

/// Which earlier run is taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// None: a run of all tables.
    No,
    /// The newest one that did not end well.
    Newest,
    /// This one.
    Run(RunId),
}

impl SyncSettings {
    /// Resolves and checks the options.
    pub(crate) fn resolve(args: SyncArgs) -> Result<Self> {
        if args.engine != "local" {
            return Err(if args.engine.starts_with("ballista:") {
                not_available(&format!("the engine {:?}", args.engine))
                    .with_hint("use --engine local")
            } else {
                configuration(format!("there is no engine {:?}", args.engine))
                    .with_hint("use --engine local")
            });
        }
        let resume = match (&args.run_id, args.resume) {
            (Some(run), _) => Resume::Run(run_id(run)?),
            (None, true) => Resume::Newest,
            (None, false) => Resume::No,
        };
        if args.reset_watermarks && (args.publish_only || resume != Resume::No) {
            return Err(configuration(
                "--reset-watermarks starts from nothing, but a run that exists is to be taken up",
            )
            .with_hint("leave out --reset-watermarks, or --publish-only, --resume and --run-id"));
        }
        Ok(Self {
            sync_id: args.sync_id,
            mode: match (args.export_only, args.publish_only) {
                (true, _) => RunMode::ExportOnly,
                (_, true) => RunMode::PublishOnly,
                _ => RunMode::Whole,
            },
            resume,
            on_mismatch: match args.on_mismatch {
                None => OnMismatch::Refuse,
                Some(OnMismatchName::Adopt) => OnMismatch::Adopt,
                Some(OnMismatchName::Rebuild) => OnMismatch::Rebuild,
            },
            reset_watermarks: args.reset_watermarks,
            leases: LeaseTimes {
                ttl: Duration::from_secs(args.lease_seconds),
                renew_every: Duration::from_secs(args.lease_seconds) / 3,
            },
        })
    }
}
