//! What became of a verification.

use serde::Serialize;
use tidelake_lake::TableLake;
use tidelake_model::{DataFile, Manifest, Notice, RunId, TableName};

use super::files::FileFinding;
use super::finding::Finding;
use super::matching::Counts;
use super::repair::Repair;
use crate::run::ErrorReport;
use crate::tables::SelectedTable;

/// What became of the verification of a sync.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifyReport {
    /// The sync.
    pub sync_id: String,
    /// Its tables, by name.
    pub tables: Vec<TableVerification>,
}

/// How a table was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// The lake holds what the source has.
    Same,
    /// It does not.
    Differs,
    /// There was nothing to compare.
    Nothing,
    /// It could not be verified.
    Failed,
}

/// The sums of a column over the rows that were compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnChecksum {
    /// The column.
    pub column: String,
    /// Whether both sides have the same sum.
    pub same: bool,
    /// Of the source, in hexadecimal.
    pub source: String,
    /// Of the lake.
    pub lake: String,
}

/// What became of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableVerification {
    /// The table.
    pub table: TableName,
    /// `incremental` or `full`.
    pub mode: &'static str,
    /// How it was found.
    pub outcome: Verified,
    /// What was compared, in words.
    pub compared: Option<String>,
    /// Cursor value up to which the lake was compared with the source.
    pub verified_through: Option<String>,
    /// Columns by which rows are told apart; none where all of them are needed.
    pub key: Vec<String>,
    /// Where the table's folder is.
    pub location: String,
    /// The newest run in the lake.
    pub head: Option<RunId>,
    /// When it finished reading.
    pub head_finished_at: Option<String>,
    /// Files that count.
    pub files: u64,
    /// Rows of the source that were compared.
    pub source_rows: u64,
    /// Rows of the lake that were compared.
    pub lake_rows: u64,
    /// Rows of the lake outside of what was compared.
    pub beyond_rows: u64,
    /// Rows of the source that came late and are read by the next run; `None`
    /// where counting them is not cheap.
    pub unread_rows: Option<u64>,
    /// Sums per column.
    pub columns: Vec<ColumnChecksum>,
    /// Rows that differ, by class.
    pub counts: Counts,
    /// The first of them.
    pub findings: Vec<Finding>,
    /// Files that are not what their manifests say.
    pub file_faults: Vec<FileFinding>,
    /// What was done about it.
    pub repair: Option<Repair>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// Why it could not be verified.
    pub error: Option<ErrorReport>,
}

impl TableVerification {
    pub(super) fn new(selected: &SelectedTable, lake: &TableLake) -> Self {
        Self { location: lake.location(), ..Self::unstarted(&selected.table.name, selected.mode()) }
    }

    pub(super) fn unstarted(table: &TableName, mode: &'static str) -> Self {
        Self {
            table: table.clone(),
            mode,
            outcome: Verified::Nothing,
            compared: None,
            verified_through: None,
            key: vec![],
            location: String::new(),
            head: None,
            head_finished_at: None,
            files: 0,
            source_rows: 0,
            lake_rows: 0,
            beyond_rows: 0,
            unread_rows: None,
            columns: vec![],
            counts: Counts::default(),
            findings: vec![],
            file_faults: vec![],
            repair: None,
            notices: vec![],
            error: None,
        }
    }

    pub(super) fn describe_lake(&mut self, head: &Manifest, files: &[DataFile]) {
        self.head = Some(head.run_id);
        self.head_finished_at = Some(head.finished_at.clone());
        self.files = u64::try_from(files.len()).unwrap_or(u64::MAX);
    }
}
