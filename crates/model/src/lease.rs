//! Leases: the time-limited, fenced right of one run to move one table's watermark.

use serde::{Deserialize, Serialize};

use crate::run::RunId;
use crate::table::TableName;

/// The identity of a table in the state store; watermark, lease and head of the
/// lake are found by it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableKey {
    /// Environment; empty when none is named.
    pub env: String,
    /// The sync's id, or empty for a single-table request.
    pub scope: String,
    /// The connector's name.
    pub connector_type: String,
    /// The credential's id, unless another key was given.
    pub source_key: String,
    /// Schema and table as the catalogue spells them; `None` for a watermark
    /// made by hand before its table was known.
    pub table: Option<TableName>,
}

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Machine's name.
    pub host: String,
    /// Changes at every boot of the machine.
    pub boot_id: String,
    /// Process.
    pub process_id: u32,
    /// When the process started, in the system's own unit, so that a reused
    /// process id is not taken for the same process.
    pub process_started: u64,
}

/// A lease that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLease {
    /// The table.
    pub key: TableKey,
    /// The run.
    pub run_id: RunId,
    /// The fencing token; it rises with each acquisition of the table.
    pub token: u64,
    /// Who.
    pub holder: Holder,
    /// RFC 3339 in UTC by the state store's clock.
    pub expires_at: String,
    /// Whether that time has passed.
    pub expired: bool,
}

/// What the state store remembers of the lake of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The run whose manifest was the newest.
    pub run_id: RunId,
    /// The folder, as text without secrets.
    pub location: String,
}
