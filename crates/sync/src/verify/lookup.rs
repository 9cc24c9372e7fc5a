//! Rows that the lake alone has, looked up at the source: most have moved on.

use std::collections::HashMap;

use futures::TryStreamExt;
use tidelake_connector::{FindRequest, Source};
use tidelake_model::{Column, ErrorKind, Policies, Result, TableName, TableRead};

use super::cell::cell_text;
use super::finding::{Describer, cursor_text};
use super::matching::{Case, Difference};
use super::rows::RowHasher;

/// Keys that are looked up by one statement.
const KEYS: usize = 200;

/// Looks keys up.
pub(super) struct Lookup<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) table: &'a TableName,
    /// Columns of the key and the cursor.
    pub(super) columns: Vec<Column>,
    pub(super) policies: Policies,
    pub(super) hasher: &'a RowHasher,
}

impl Lookup<'_> {
    /// Says of each case whether it changed or was deleted, with the cursor's
    /// present value. A source that cannot look keys of this type up leaves them
    /// as they are.
    pub(super) async fn settle(
        &self,
        cases: &mut [Case],
        describer: &Describer<'_>,
    ) -> Result<HashMap<u64, Option<String>>> {
        let mut present = HashMap::new();
        for cases in cases.chunks_mut(KEYS) {
            let mut values = vec![];
            for case in cases.iter() {
                let Some(row) = describer.any_row(case) else { continue };
                let cell = |name: &String| {
                    row.column_by_name(name).and_then(|column| cell_text(column, 0))
                };
                values.push(self.hasher.key().iter().map(cell).collect());
            }
            let found = match self.find(values).await {
                Ok(found) => found,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Configuration | ErrorKind::Unsupported | ErrorKind::Data
                    ) =>
                {
                    tracing::info!(error = error.chain(), "keys could not be looked up");
                    continue;
                }
                Err(error) => return Err(error),
            };
            for case in cases {
                if describer.any_row(case).is_none() {
                    continue;
                }
                case.class = if found.contains_key(&case.key) {
                    Difference::Changed
                } else {
                    Difference::Deleted
                };
            }
            present.extend(found);
        }
        Ok(present)
    }

    /// The keys that the source has, and the cursor of each.
    async fn find(&self, values: Vec<Vec<Option<String>>>) -> Result<HashMap<u64, Option<String>>> {
        let read = TableRead {
            table: self.table.clone(),
            columns: self.columns.clone(),
            cursor: None,
            range: None,
            null_cursors: false,
            policies: self.policies,
            batch_bytes: 1 << 20,
        };
        let request = FindRequest { read, key: self.hasher.key().to_vec(), values };
        let mut reading = self.source.find(&request).await?;
        let mut found = HashMap::new();
        while let Some(batch) = reading.batches.try_next().await? {
            for (row, key) in self.hasher.keys(&batch)?.into_iter().enumerate() {
                let cursor = self.hasher.cursor();
                let text = cursor.and_then(|cursor| cursor_text(&batch.slice(row, 1), cursor));
                found.insert(key, text);
            }
        }
        Ok(found)
    }
}
