//! `lxdb`: look after the state store.

use serde::Serialize;
use tidelake_model::{HeldLease, Result};

use super::Session;
use crate::args::{LocksArgs, ReleaseArgs};
use crate::exit::Exit;
use crate::output::{counted, second, table};
use crate::settings::{configuration, lock_filter, release_filter};

/// What was done to the store, as JSON.
#[derive(Serialize)]
struct Done<'a> {
    action: &'a str,
    location: &'a str,
}

/// Makes the store's tables: opening it does.
pub(super) async fn init(session: &Session) -> Result<Exit> {
    let app = session.application().await?;
    app.state.identity().await?;
    done(session, "init", &app.state.location(), "the state store is ready")
}

/// Removes the store's tables.
pub(super) async fn destroy(session: &Session, confirm: bool) -> Result<Exit> {
    confirmed(confirm, "drop", "removes")?;
    let app = session.application().await?;
    app.state.destroy().await?;
    done(session, "drop", &app.state.location(), "the tables of the state store are gone")
}

/// Empties the store's tables.
pub(super) async fn truncate(session: &Session, confirm: bool) -> Result<Exit> {
    confirmed(confirm, "truncate", "forgets")?;
    let app = session.application().await?;
    app.state.truncate().await?;
    done(session, "truncate", &app.state.location(), "the state store is empty")
}

fn confirmed(confirm: bool, command: &str, verb: &str) -> Result<()> {
    if confirm {
        return Ok(());
    }
    let message =
        format!("lxdb {command} {verb} all syncs, watermarks and runs of all environments");
    Err(configuration(message).with_hint("add --confirm if that is what you want"))
}

fn done(session: &Session, action: &str, location: &str, text: &str) -> Result<Exit> {
    session.output.emit(&Done { action, location }, |_| format!("{text}: {location}\n"))?;
    Ok(Exit::Done)
}

/// Lists the tables that runs hold.
pub(super) async fn locks(session: &Session, args: &LocksArgs) -> Result<Exit> {
    let filter = lock_filter(session.env(), args)?;
    let app = session.application().await?;
    let locks = app.state.locks(&filter).await?;
    session.output.emit(&locks, |_| listed(&locks))?;
    Ok(Exit::Done)
}

/// Takes tables from runs that hold them.
pub(super) async fn release(session: &Session, args: &ReleaseArgs) -> Result<Exit> {
    let filter = release_filter(session.env(), args)?;
    let app = session.application().await?;
    let locks = app.state.release_locks(&filter).await?;
    session.output.emit(&locks, |_| {
        let count = u64::try_from(locks.len()).unwrap_or(u64::MAX);
        let released = format!("released {}\n", counted(count, "lock"));
        if locks.is_empty() { released } else { listed(&locks) + &released }
    })?;
    Ok(Exit::Done)
}

fn listed(locks: &[HeldLease]) -> String {
    if locks.is_empty() {
        return "no table is locked\n".to_owned();
    }
    let rows = locks.iter().map(|lock| {
        let name = lock.key.table.as_ref().map(ToString::to_string);
        vec![
            name.unwrap_or_default(),
            lock.key.scope.clone(),
            lock.run_id.to_string(),
            format!("{} on {}", lock.holder.process_id, lock.holder.host),
            if lock.expired { "expired".to_owned() } else { second(&lock.expires_at) },
        ]
    });
    table(&["TABLE", "SYNC", "RUN", "PROCESS", "UNTIL"], rows.collect())
}
