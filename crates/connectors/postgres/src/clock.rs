//! The server's clock.

use tidelake_connector::{ClockReading, ClockRequest, FencePurpose, LogPosition};
use tidelake_model::{Error, ErrorKind, FenceMode, Notice, NoticeCode, Result};
use tidelake_watermark::{Fence, Kind, Value};

use crate::catalogue::get;
use crate::failure::failure;
use crate::fence::{MaySee, Sight, family, foreign, identifier_fence, look, time_fence};
use crate::internal;
use crate::pool::Pool;
use crate::session::{Session, pooled};
use crate::standby;

/// The reset value of a setting is what the server, the database or the role
/// says, whatever the session pinned. The last two say whether this user sees when
/// the transactions of others began.
const NOW: &str = "
SELECT clock_timestamp()::text, pg_is_in_recovery(),
       coalesce((SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'), 'UTC'),
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       current_setting('track_activities')::bool";

/// What the fence of one request came to.
pub(crate) struct Fenced {
    pub(crate) fence: Fence,
    pub(crate) note: String,
    pub(crate) notices: Vec<Notice>,
}

/// An instant as the server prints it, in nanoseconds.
pub(crate) fn instant(text: &str) -> Result<i128> {
    match Value::parse(Kind::Timestamp, text) {
        Ok(Value::Timestamp(nanos)) => Ok(nanos),
        _ => Err(internal(format!("the server's time {text:?} cannot be read"))),
    }
}

/// What the user is told, or the error where the fence must hold.
pub(crate) fn unavailable(mode: FenceMode, why: &str, remedy: &str) -> Result<Notice> {
    if mode == FenceMode::Require {
        let message = format!("the in-flight fence cannot be had: {why}");
        return Err(Error::new(ErrorKind::Unsupported, message).with_hint(remedy));
    }
    let message = format!(
        "the in-flight fence cannot be had: {why}; only the safety lag protects late rows ({remedy})"
    );
    Ok(Notice::new(NoticeCode::FenceUnavailable, message))
}

/// Reads the clock, then what is in flight: a transaction that began before the
/// clock was read is seen, or has ended before.
pub(crate) async fn clock(pool: &Pool, request: &ClockRequest) -> Result<ClockReading> {
    let session = pool.get().await?;
    let reading =
        read(pool, &session, request).await.map_err(|error| error.in_table(&request.table));
    // A statement that failed outside a transaction leaves nothing behind.
    pool.put(session);
    reading
}

async fn read(pool: &Pool, session: &Session, request: &ClockRequest) -> Result<ClockReading> {
    let query = format!("{NOW}, {}", Session::IDENTITY);
    let purpose = match request.mode {
        FenceMode::Off => &FencePurpose::None,
        _ => &request.purpose,
    };
    let own = pool.open_sessions();
    // Sent together, and run one after another: each is a transaction of its own.
    let (row, family, sight) = futures::join!(
        session.client.query_typed_one(&query, &[]),
        async {
            match purpose {
                FencePurpose::None => Ok(None),
                _ => family(session, &request.table).await.map(Some),
            }
        },
        look(session, request, purpose, &own),
    );
    let row = row.map_err(|error| failure(error, "the server's clock cannot be read"))?;
    if !session.is_identity(get(&row, 5)?) {
        return Err(pooled());
    }
    let now = instant(get(&row, 0)?)?;
    let reading = ClockReading {
        now,
        zone: get(&row, 2)?,
        fence: Fence::Open,
        fence_note: None,
        notices: vec![],
        log_position: None,
    };
    if get(&row, 1)? {
        return standby::reading(session, request, reading).await;
    }
    let is_foreign = family?;
    let fenced = match (is_foreign, sight?) {
        (Some(true), _) => Some(foreign(request)?),
        (_, Sight::Nothing) => None,
        (_, Sight::Sessions { sessions, prepared }) => {
            let may_see = MaySee { others: get(&row, 3)?, activities: get(&row, 4)? };
            Some(time_fence(request, now, may_see, &sessions, &prepared)?)
        }
        (_, Sight::Writers(writers)) => Some(identifier_fence(session, request, writers).await?),
    };
    // Who has ended before the fence was read wrote all of it before this.
    let log_position = match request.log {
        LogPosition::Wanted => Some(standby::position(session).await?),
        LogPosition::Unasked | LogPosition::Reach(_) => None,
    };
    Ok(match fenced {
        None => ClockReading { log_position, ..reading },
        Some(Fenced { fence, note, notices }) => {
            ClockReading { fence, fence_note: Some(note), notices, log_position, ..reading }
        }
    })
}
