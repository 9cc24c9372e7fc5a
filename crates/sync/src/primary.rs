//! The fence of a source that is a copy of another server: what is in flight is
//! seen there, and the copy must have come as far.

use std::sync::Arc;

use tidelake_connector::{ClockReading, ClockRequest, LogPosition, Source};
use tidelake_model::{Error, ErrorKind, FenceMode, Result, SyncConfig};
use tidelake_watermark::Fence;
use tokio_util::sync::CancellationToken;

use crate::application::Application;
use crate::run::retry_of;

/// The primary of a sync's source, where the sync names it.
pub(crate) async fn connect_primary(
    app: &Application,
    sync: &SyncConfig,
) -> Result<Option<Arc<dyn Source>>> {
    let fence = &sync.fence;
    let Some(id) = fence.primary_credential_id.as_ref().filter(|_| fence.mode != FenceMode::Off)
    else {
        return Ok(None);
    };
    let own = app.credentials.credential(&sync.source.credential_id)?;
    let primary = app.credentials.credential(id)?;
    if own.kind != primary.kind {
        let message = format!(
            "{id} is a credential for {:?}, the source is one for {:?}",
            primary.kind, own.kind
        );
        return Err(Error::new(ErrorKind::Configuration, message)
            .with_hint("name the credential of the source's own primary with --fence-auth-id"));
    }
    // The copy's database is the primary's.
    let database = sync.source.database.as_deref().or(own.info.text("database"));
    let info = match database {
        Some(database) => primary.info.with("database", database),
        None => primary.info,
    };
    let connector = app.connectors.connector(&primary.kind)?;
    let retry = retry_of(app, &CancellationToken::new());
    retry.connect(|| connector.source(&info)).await.map(Some)
}

/// Reads the clock and the fence of the primary, then waits until the copy has
/// come as far as the primary was at that moment.
pub(crate) async fn clock_of_copy(
    primary: &dyn Source,
    copy: &dyn Source,
    request: ClockRequest,
) -> Result<ClockReading> {
    let request = ClockRequest { log: LogPosition::Wanted, ..request };
    let there = primary.clock(&request).await?;
    if there.fence == Fence::Closed {
        return Ok(there);
    }
    let position = there.log_position.ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "the system has no primary and no copies")
            .with_hint("leave out --fence-auth-id")
    })?;
    let here = copy.clock(&ClockRequest { log: LogPosition::Reach(position), ..request }).await?;
    let notes = [there.fence_note, here.fence_note].into_iter().flatten();
    Ok(ClockReading {
        now: there.now.min(here.now),
        zone: there.zone,
        fence: lower(there.fence, here.fence),
        fence_note: notes.reduce(|left, right| format!("{left}; {right}")),
        notices: there.notices.into_iter().chain(here.notices).collect(),
        log_position: None,
    })
}

fn lower(left: Fence, right: Fence) -> Fence {
    match (left, right) {
        (Fence::Closed, _) | (_, Fence::Closed) => Fence::Closed,
        (Fence::Before(left), Fence::Before(right)) => Fence::Before(left.min(right)),
        (Fence::Open, other) | (other, Fence::Open) => other,
    }
}
