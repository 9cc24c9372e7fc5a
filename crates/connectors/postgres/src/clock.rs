//! The server's clock.

use tidelake_connector::{ClockReading, ClockRequest, FencePurpose};
use tidelake_model::{Error, ErrorKind, FenceMode, Notice, NoticeCode, Result, instant_text};
use tidelake_watermark::{Fence, Kind, Value};

use crate::catalogue::get;
use crate::failure::failure;
use crate::fence::{identifier_fence, time_fence};
use crate::internal;
use crate::pool::Pool;
use crate::session::Session;

/// The reset value of a setting is what the server, the database or the role
/// says, whatever the session pinned.
const NOW: &str = "
SELECT clock_timestamp()::text, pg_is_in_recovery(), pg_last_xact_replay_timestamp()::text,
       coalesce((SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'), 'UTC')";

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
    let row = session.client.query_typed_one(NOW, &[]).await;
    let row = row.map_err(|error| failure(error, "the server's clock cannot be read"))?;
    let now = instant(get(&row, 0)?)?;
    let zone = get(&row, 3)?;
    let fenced = if get(&row, 1)? {
        standby(request, get(&row, 2)?)?
    } else if request.mode == FenceMode::Off {
        None
    } else {
        match request.purpose {
            FencePurpose::None => None,
            FencePurpose::Time => Some(time_fence(pool, session, request, now).await?),
            FencePurpose::Identifier => Some(identifier_fence(session, request).await?),
        }
    };
    let reading = ClockReading { now, zone, fence: Fence::Open, fence_note: None, notices: vec![] };
    Ok(match fenced {
        None => reading,
        Some(Fenced { fence, note, notices }) => {
            ClockReading { fence, fence_note: Some(note), notices, ..reading }
        }
    })
}

/// A standby cannot see who writes on the primary, and is behind it.
fn standby(request: &ClockRequest, replayed: Option<&str>) -> Result<Option<Fenced>> {
    let mut notices = vec![];
    let wanted = request.purpose != FencePurpose::None && request.mode != FenceMode::Off;
    if wanted {
        let why = "the server is a standby and cannot see the primary's transactions";
        notices.push(unavailable(request.mode, why, "read from the primary")?);
    }
    // The time of replay bounds time stamps; it says nothing about numbers.
    if request.purpose == FencePurpose::Identifier {
        let note = "standby: numbers are not fenced".to_owned();
        return Ok(Some(Fenced { fence: Fence::Open, note, notices }));
    }
    Ok(Some(match replayed {
        Some(text) => {
            let instant = instant(text)?;
            let note = format!("standby, replayed up to {}", instant_text(instant));
            Fenced { fence: Fence::Before(instant), note, notices }
        }
        None if wanted => {
            let message = "the standby has not replayed a transaction since it started";
            notices.push(Notice::new(NoticeCode::FenceClosed, message));
            Fenced { fence: Fence::Closed, note: message.to_owned(), notices }
        }
        None => return Ok(None),
    }))
}
