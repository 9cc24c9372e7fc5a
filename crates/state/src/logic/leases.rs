//! Leases and their fencing tokens.

use std::collections::BTreeSet;
use std::time::Duration;

use tidelake_model::{Error, ErrorKind, HeldLease, Result, RunId, RunStatus, TableKey};

use super::{in_table, lock_table};
use crate::rows::{LeaseRow, Rows, TableFilter, TableRow};
use crate::store::{Lease, LockFilter};
use crate::time::time_text;

/// When a lease ends that is given out now.
pub(crate) fn expiry(now: i128, ttl: Duration) -> i128 {
    now.saturating_add(i128::try_from(ttl.as_nanos()).unwrap_or(i128::MAX))
}

/// The lease of a table whose time has not passed.
pub(crate) fn live(row: &TableRow, now: i128) -> Option<&LeaseRow> {
    row.lease.as_ref().filter(|lease| lease.expires_at > now)
}

/// Somebody holds the table.
pub(crate) fn locked(key: &TableKey, lease: &LeaseRow) -> Error {
    let message = format!(
        "run {} holds the table (host {}, process {}) until {}",
        lease.run_id,
        lease.holder.host,
        lease.holder.process_id,
        time_text(lease.expires_at)
    );
    let error = Error::new(ErrorKind::Locked, message).in_run(lease.run_id);
    in_table(error, key).with_hint("wait for it, or if it is dead: tidelake lxdb release-locks")
}

/// The lease is not the caller's any more.
pub(crate) fn lost(lease: &Lease, row: &TableRow) -> Error {
    let message = match &row.lease {
        Some(other) => format!(
            "the lease with token {} was lost: run {} holds the table with token {}",
            lease.token, other.run_id, row.token
        ),
        None => format!("the lease with token {} has ended", lease.token),
    };
    let run_id = row.lease.as_ref().map_or(lease.run_id, |other| other.run_id);
    in_table(Error::new(ErrorKind::Conflict, message).in_run(run_id), &lease.key)
        .with_hint("run it again; what was not finished is taken up")
}

/// Whether the stored lease is this one. A lease whose time has passed is still
/// its holder's until somebody takes it over: the token decides, not the clock.
pub(crate) fn is_held(lease: &Lease, row: &TableRow) -> bool {
    let same_run = row.lease.as_ref().is_some_and(|stored| stored.run_id == lease.run_id);
    same_run && row.token == lease.token
}

/// Locks the table's row and refuses a lease that is not the stored one.
pub(crate) async fn held(rows: &mut dyn Rows, lease: &Lease) -> Result<TableRow> {
    let row = lock_table(rows, &lease.key).await?;
    if is_held(lease, &row) { Ok(row) } else { Err(lost(lease, &row)) }
}

/// Prolongs what is still held. Returns a lease that went to another, if any.
pub(crate) async fn renew(
    rows: &mut dyn Rows,
    leases: &[Lease],
    ttl: Duration,
) -> Result<Option<(Lease, TableRow)>> {
    let keys: BTreeSet<_> = leases.iter().map(|lease| lease.key.clone()).collect();
    let mut stored = rows.lock_tables(&keys.into_iter().collect::<Vec<_>>()).await?;
    let now = rows.now().await?;
    let mut lost = None;
    for lease in leases {
        let Some(row) = stored.iter_mut().find(|row| row.key == lease.key) else { continue };
        let is_held = is_held(lease, row);
        match &mut row.lease {
            Some(held) if is_held => held.expires_at = expiry(now, ttl),
            // Given back by its own holder, while the list was still the old one.
            None if row.token == lease.token => {}
            _ => lost = lost.or_else(|| Some((lease.clone(), row.clone()))),
        }
    }
    stored.retain(|row| row.lease.is_some());
    rows.save_tables(&stored).await?;
    Ok(lost)
}

/// Ends a lease whose holder is known to be gone.
pub(crate) async fn break_lease(rows: &mut dyn Rows, key: &TableKey, token: u64) -> Result<bool> {
    let mut row = lock_table(rows, key).await?;
    if row.token != token {
        return Ok(false);
    }
    let Some(lease) = row.lease.take() else { return Ok(false) };
    rows.save_tables(std::slice::from_ref(&row)).await?;
    orphan(rows, lease.run_id, "its process is gone").await?;
    Ok(true)
}

/// Records as failed a run that is under way without any live lease.
pub(crate) async fn orphan(rows: &mut dyn Rows, run_id: RunId, error: &str) -> Result<()> {
    let Some(mut run) = rows.run(run_id).await? else { return Ok(()) };
    let now = rows.now().await?;
    let leased = rows.tables(&TableFilter::of_run(run_id)).await?;
    let is_alive = leased.iter().any(|row| live(row, now).is_some());
    if run.status == RunStatus::Running && !is_alive {
        run.status = RunStatus::Failed;
        run.finished_at = Some(time_text(now));
        run.error = Some(error.to_owned());
        rows.save_run(&run).await?;
    }
    Ok(())
}

fn matching(filter: &LockFilter) -> TableFilter {
    TableFilter {
        env: filter.env.clone(),
        scope: filter.scope.clone(),
        run_id: filter.run_id,
        leased: true,
    }
}

fn describe(row: &TableRow, now: i128, filter: &LockFilter) -> Option<HeldLease> {
    let lease = row.lease.as_ref()?;
    let expired = live(row, now).is_none();
    (expired || !filter.expired_only).then(|| HeldLease {
        key: row.key.clone(),
        run_id: lease.run_id,
        token: row.token,
        holder: lease.holder.clone(),
        expires_at: time_text(lease.expires_at),
        expired,
    })
}

pub(crate) async fn locks(rows: &mut dyn Rows, filter: &LockFilter) -> Result<Vec<HeldLease>> {
    let stored = rows.tables(&matching(filter)).await?;
    let now = rows.now().await?;
    Ok(stored.iter().filter_map(|row| describe(row, now, filter)).collect())
}

/// Ends leases by hand.
pub(crate) async fn release(rows: &mut dyn Rows, filter: &LockFilter) -> Result<Vec<HeldLease>> {
    let stored = rows.lock_matching(&matching(filter)).await?;
    let now = rows.now().await?;
    let mut released = vec![];
    let mut changed = vec![];
    for mut row in stored {
        if let Some(lease) = describe(&row, now, filter) {
            row.lease = None;
            changed.push(row);
            released.push(lease);
        }
    }
    rows.save_tables(&changed).await?;
    let runs: BTreeSet<_> = released.iter().map(|lease| lease.run_id).collect();
    for run_id in runs {
        orphan(rows, run_id, "its leases were released by hand").await?;
    }
    Ok(released)
}
