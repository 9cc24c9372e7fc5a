//! `config create`: check everything, store the sync, print its id.

use serde::Serialize;
use tidelake_model::{Notice, Result, TableName};
use tidelake_sync::{Application, SyncDraft};

use super::Session;
use crate::exit::Exit;
use crate::output::{Output, counted};
use crate::settings::CreateSettings;

/// A sync that was made, as JSON.
#[derive(Serialize)]
struct CreatedSync<'a> {
    sync_id: &'a str,
    stored: bool,
    tables: &'a [TableName],
    notices: &'a [Notice],
}

/// Makes the sync.
pub(super) async fn create(session: &Session, settings: CreateSettings) -> Result<Exit> {
    let app = session.application().await?;
    create_in(&session.output, &app, settings.draft).await?;
    Ok(Exit::Done)
}

/// Makes the sync in an application that is there.
pub(super) async fn create_in(
    output: &Output,
    app: &Application,
    draft: SyncDraft,
) -> Result<String> {
    let stored = !draft.dry_run;
    let created = tidelake_sync::create(app, draft).await?;
    let sync_id = created.config.sync_id;
    output.notices(&created.notices);
    let incremental = created.config.incremental.len();
    let total = created.tables.len();
    let tables = counted(u64::try_from(total).unwrap_or(u64::MAX), "table");
    tracing::info!(
        "the sync {}: {tables}, {incremental} of them incremental",
        if stored { "is stored" } else { "is sound and was not stored" },
    );
    let json = CreatedSync {
        sync_id: &sync_id,
        stored,
        tables: &created.tables,
        notices: &created.notices,
    };
    output.emit(&json, |_| if stored { format!("{sync_id}\n") } else { String::new() })?;
    Ok(sync_id)
}
