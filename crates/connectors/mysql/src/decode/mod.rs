//! Rows of the binary protocol to record batches.

mod wires;

use arrow::datatypes::SchemaRef;
use tidelake_connector::Counters;
use tidelake_model::Policies;

pub use wires::Wire;

/// How the rows of a statement become batches.
#[derive(Debug, Clone)]
pub struct DecodePlan {
    /// The schema of the batches, a field for each column of the statement.
    pub schema: SchemaRef,
    /// The forms in which the columns are sent, in the same order.
    pub wires: Vec<Wire>,
    /// What becomes of values that have no place in their type.
    pub policies: Policies,
    /// A batch ends at that many bytes, or at 65,536 rows.
    pub batch_bytes: u64,
    /// Columns by which windows are cut: no policy may turn their values into
    /// NULL.
    pub cursor: Vec<String>,
    /// Where values that followed a policy are counted.
    pub counters: Counters,
}
