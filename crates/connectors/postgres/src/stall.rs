//! Servers that say nothing for long: at work, or lost.
//!
//! A statement may rightly take hours before its first row. Silence alone
//! therefore ends nothing; after a while the server is asked on another connection
//! what the session does.

use std::error::Error as _;
use std::time::Duration;

use tidelake_model::{Error, ErrorKind, Result};
use tokio_postgres::types::Type;

use crate::catalogue::get;
use crate::failure::{ServerError, failure};
use crate::pool::Pool;

/// Sessions that work on a statement. One that waits for us to take its rows, while
/// none arrive here, is cut off.
const WORKING: &str = "
SELECT count(*) FROM pg_stat_activity
WHERE pid = ANY ($1)
  AND (state IN ('active', 'fastpath function call')
       AND NOT coalesce(wait_event_type = 'Client' AND wait_event = 'ClientWrite', false)
       OR state = 'disabled')";

/// Does work, for as long as the server works on it too. `extra` is how much
/// longer than usual the work may be silent by itself.
pub(crate) async fn watched<T>(
    pool: &Pool,
    extra: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let Some(limit) = pool.config.stall_limit() else { return work.await };
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(limit.saturating_add(extra)) => {
                still_works(pool, &pool.open_sessions()).await?;
            }
        }
    }
}

/// An error of kind `Unavailable` unless one of these sessions works on a statement.
pub(crate) async fn still_works(pool: &Pool, sessions: &[i32]) -> Result<()> {
    let asked = async {
        let session = pool.open().await?;
        let rows = session.client.query_typed_one(WORKING, &[(&sessions, Type::INT4_ARRAY)]).await;
        let row = rows.map_err(|error| failure(error, "the server cannot be asked"))?;
        get::<i64>(&row, 0)
    };
    let limit = Duration::from_secs(pool.config.connect_timeout.max(1));
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(1..)) => Ok(()),
        Ok(Ok(_)) => Err(stalled("the server does not work on the statement any more")),
        // It answers, if only to say that it has no place for one more.
        Ok(Err(error)) if error.source().is_some_and(|cause| cause.is::<ServerError>()) => Ok(()),
        Ok(Err(error)) => Err(stalled("it cannot be asked what it does").with_source(error)),
        Err(_) => Err(stalled("it does not answer on another connection either")),
    }
}

fn stalled(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("nothing came from the server for long, and {why}"))
        .with_hint(
            "look for what stands between here and the server; stall_timeout in the credential \
             says how long silence is borne",
        )
}
