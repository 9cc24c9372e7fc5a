//! What all tables of a run share.

use std::sync::Arc;

use tidelake_connector::{Publisher, Source};
use tidelake_lake::Lake;
use tidelake_model::{Error, ErrorKind, RunId, SyncConfig};
use tidelake_state::Lease;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::application::Application;
use crate::columns::Shares;
use crate::counted::Objects;
use crate::retry::Retry;
use crate::run::RunRequest;
use crate::timeline::{Timeline, Totals};

/// What all tables of a run share.
pub(crate) struct RunContext {
    pub(crate) app: Application,
    pub(crate) request: RunRequest,
    pub(crate) sync: SyncConfig,
    pub(crate) run_id: RunId,
    pub(crate) source: Arc<dyn Source>,
    /// The source's primary, where the sync names it.
    pub(crate) primary: Option<Arc<dyn Source>>,
    pub(crate) publisher: Option<Arc<dyn Publisher>>,
    pub(crate) lake: Lake,
    pub(crate) pool: Arc<Semaphore>,
    /// Readers inside one large table.
    pub(crate) degree: u32,
    pub(crate) shares: Shares,
    /// What becomes of connections that are lost.
    pub(crate) retry: Arc<Retry>,
    pub(crate) timeline: Arc<Timeline>,
    /// Identity of the state store.
    pub(crate) identity: String,
    /// The user interrupted, or a lease is lost.
    pub(crate) stop: CancellationToken,
    /// Tables whose leases are renewed.
    pub(crate) held: std::sync::Mutex<Vec<Lease>>,
}

impl RunContext {
    /// Tells how the time of the run was spent, and what was asked of others.
    pub(crate) fn tell_timeline(&self, objects: &Objects) {
        let (state, source) = (self.app.state.as_ref(), self.source.as_ref());
        let primary = self.primary.as_deref();
        self.timeline.tell(&Totals { state, source, primary, objects });
    }

    /// A run that was not interrupted by its user, and stopped all the same, lost
    /// its lease.
    pub(crate) fn reason_of(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Interrupted || self.request.cancel.is_cancelled() {
            return error;
        }
        Error::new(ErrorKind::Conflict, "the lease went to another run while this one worked")
            .with_hint(
                "nothing is lost: the other run does the work; was this machine asleep, or the \
                 state store out of reach?",
            )
    }

    /// No longer renews a lease; called just before it is given back.
    pub(crate) fn forget(&self, lease: &Lease) {
        let mut held = self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        held.retain(|other| other != lease);
    }
}
