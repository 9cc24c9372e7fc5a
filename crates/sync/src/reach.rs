//! Whether each table can be read as the sync wants it: asked of the source by
//! taking a snapshot as a run does, and giving it back.

use std::time::Duration;

use futures::StreamExt;
use tidelake_connector::{Source, SplitRequest};
use tidelake_model::{
    Error, ErrorKind, Notice, NoticeCode, ReadMethod, Result, SyncConfig, TableName, TableRead,
};

use crate::selection::listed;
use crate::tables::SelectedTable;

/// Tables looked at together.
const AT_ONCE: usize = 4;
/// How long a table that is locked is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a batch that nobody reads.
const BATCH_BYTES: u64 = 64 << 10;

/// Tries every table. What is forbidden or cannot be read in the types that were
/// chosen is an error here rather than in the first run; one that is locked is a
/// notice.
pub(crate) async fn check_reach(
    config: &SyncConfig,
    source: &dyn Source,
    tables: &[SelectedTable],
    notices: &mut Vec<Notice>,
) -> Result<()> {
    let attempts: Vec<_> = tables.iter().map(|selected| reach(config, source, selected)).collect();
    let mut attempts = futures::stream::iter(attempts).buffered(AT_ONCE);
    let mut denied: Vec<(&TableName, Error)> = vec![];
    let mut tables = tables.iter().map(|selected| &selected.table.name);
    while let Some(attempt) = attempts.next().await {
        let Some(name) = tables.next() else { break };
        match attempt {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Denied => denied.push((name, error)),
            Err(error) if error.kind() == ErrorKind::Unavailable => notices.push(Notice::new(
                NoticeCode::Setting,
                format!("{name} could not be looked at: {}", error.chain()),
            )),
            Err(error) => return Err(error.in_table(name)),
        }
    }
    forbidden(denied)
}

async fn reach(config: &SyncConfig, source: &dyn Source, selected: &SelectedTable) -> Result<()> {
    let request = SplitRequest {
        read: TableRead {
            table: selected.table.name.clone(),
            columns: selected.read_columns.clone(),
            cursor: None,
            range: None,
            null_cursors: true,
            policies: config.policies,
            batch_bytes: BATCH_BYTES,
        },
        degree: 1,
        method: ReadMethod::None,
        key: None,
    };
    match tokio::time::timeout(PATIENCE, source.split(&request)).await {
        Ok(split) => split.map(|_| ()),
        Err(_) => {
            let message = format!("no answer within {} seconds", PATIENCE.as_secs());
            Err(Error::new(ErrorKind::Unavailable, message))
        }
    }
}

/// One error for all tables that may not be read.
fn forbidden(mut denied: Vec<(&TableName, Error)>) -> Result<()> {
    let names: Vec<_> = denied.iter().map(|(name, _)| name.to_string()).collect();
    let Some((_, first)) = denied.drain(..).next() else { return Ok(()) };
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    Err(Error::new(
        ErrorKind::Denied,
        format!("the user of the source may not read {}", listed(&names)),
    )
    .with_source(first)
    .with_hint("grant the user the right to read, or leave the tables out with --exclude"))
}
