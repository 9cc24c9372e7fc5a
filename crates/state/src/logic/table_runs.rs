//! Records of table runs.

use tidelake_model::{Result, TableRun};

use super::leases::held;
use super::{conflict, in_table, internal};
use crate::rows::Rows;
use crate::store::{Lease, TableUpdate};
use crate::time::time_text;

pub(crate) async fn update(rows: &mut dyn Rows, lease: &Lease, update: &TableUpdate) -> Result<()> {
    let mut row = held(rows, lease).await?;
    let now = rows.now().await?;
    save(rows, lease, &update.record, now).await?;
    if update.release {
        row.lease = None;
        rows.save_tables(std::slice::from_ref(&row)).await?;
    }
    Ok(())
}

/// Writes the record. It may belong to an earlier run whose work the holder of
/// the lease finishes.
pub(crate) async fn save(
    rows: &mut dyn Rows,
    lease: &Lease,
    record: &TableRun,
    now: i128,
) -> Result<()> {
    if lease.key.table.as_ref() != Some(&record.table) {
        return Err(internal("a table run was shown the lease of another table"));
    }
    let earlier = rows.table_run(record.run_id, &lease.key).await?;
    if earlier.is_none() && record.run_id != lease.run_id {
        let message = format!("run {} has no record of the table", record.run_id);
        return Err(in_table(conflict(message).in_run(record.run_id), &lease.key));
    }
    let mut record = record.clone();
    // What is noted of a run that has ended does not make it end again.
    let ended = earlier.as_ref().filter(|earlier| earlier.status == record.status);
    let ended = ended.and_then(|earlier| earlier.finished_at.clone());
    record.finished_at =
        (!record.status.is_unfinished()).then(|| ended.unwrap_or_else(|| time_text(now)));
    record.started_at = earlier.map_or_else(|| time_text(now), |earlier| earlier.started_at);
    rows.save_table_run(&lease.key, &record).await
}
