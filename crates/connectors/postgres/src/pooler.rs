//! Poolers that lend a connection for a transaction only.
//!
//! Pinned settings and exported snapshots belong to a session. A pooler in
//! transaction mode hands the statements of one session to several processes of
//! the server, where either would be lost without a word.

use tidelake_model::Result;

use crate::failure::failure;
use crate::pool::Pool;
use crate::session::{Session, pooled};

/// Refuses a pooler that does not keep sessions apart. `first` has no transaction
/// open.
pub(crate) async fn check(pool: &Pool, first: &Session) -> Result<()> {
    if first.is_direct {
        return Ok(());
    }
    let second = pool.get().await?;
    if first.pid == second.pid {
        return Err(pooled());
    }
    // While the second keeps a process for its transaction, a pooler in transaction
    // mode has to give the first another than the one that it had.
    let doing = "the sessions cannot be told apart";
    for session in [&second, first] {
        session.run_pinned("BEGIN READ ONLY").await.map_err(|error| failure(error, doing))??;
    }
    for session in [&second, first] {
        session.run("ROLLBACK", doing).await?;
    }
    pool.put(second);
    Ok(())
}
