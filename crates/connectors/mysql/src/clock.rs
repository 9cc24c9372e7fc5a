//! The server's clock.

use tidelake_connector::{ClockReading, ClockRequest, FencePurpose, LogPosition};
use tidelake_model::{Error, ErrorKind, FenceMode, Notice, NoticeCode, Result};
use tidelake_watermark::{Fence, Kind, Value};

use crate::fence::{identifier_fence, time_fence};
use crate::internal;
use crate::pool::{Pool, Row, Session, number, text};
use crate::replica;

const DOING: &str = "the server's clock cannot be read";

/// The zone of the server is that of new sessions, whatever this one pinned. The
/// operating system's own is given as its distance from UTC as well, since most
/// systems only tell an abbreviation of it.
const NOW: &str = "
SELECT CAST(UTC_TIMESTAMP(6) AS CHAR), @@global.time_zone, @@system_time_zone,
       TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))";

/// What the fence of one request came to.
pub(crate) struct Fenced {
    pub(crate) fence: Fence,
    pub(crate) note: String,
    pub(crate) notices: Vec<Notice>,
}

/// A time in UTC as the server prints it, in nanoseconds.
pub(crate) fn instant(text: &str) -> Result<i128> {
    match Value::parse(Kind::Datetime, text) {
        Ok(Value::Datetime(nanos)) => Ok(nanos),
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

/// The zone of times without one: a name, or a distance from UTC.
fn zone(row: &Row) -> String {
    let is_name = |name: &str| name == "UTC" || name.contains('/');
    match text(row, 1) {
        "SYSTEM" if is_name(text(row, 2)) => text(row, 2).to_owned(),
        "SYSTEM" => match number::<i64>(row, 3) {
            None | Some(0) => "UTC".to_owned(),
            Some(minutes) => {
                let sign = if minutes < 0 { '-' } else { '+' };
                let minutes = minutes.unsigned_abs();
                format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        },
        "+00:00" | "-00:00" => "UTC".to_owned(),
        zone => zone.to_owned(),
    }
}

/// Reads the clock, then what is in flight: what began before the clock was read is
/// seen, or has ended before.
pub(crate) async fn clock(pool: &Pool, request: &ClockRequest) -> Result<ClockReading> {
    let mut session = pool.get().await?;
    let reading =
        read(pool, &mut session, request).await.map_err(|error| error.in_table(&request.table))?;
    pool.put(session);
    Ok(reading)
}

async fn read(pool: &Pool, session: &mut Session, request: &ClockRequest) -> Result<ClockReading> {
    let row = session.ask_one(NOW, DOING).await?;
    let mut now = instant(text(&row, 0))?;
    let reading = ClockReading {
        now,
        zone: zone(&row),
        fence: Fence::Open,
        fence_note: None,
        notices: vec![],
        log_position: None,
    };
    let fence_is_wanted = request.mode != FenceMode::Off && request.purpose != FencePurpose::None;
    if (fence_is_wanted || request.log != LogPosition::Unasked)
        && let Some(replica) = replica::state(session).await?
    {
        return replica::reading(session, request, reading, &replica).await;
    }
    let fenced = match request.purpose {
        _ if !fence_is_wanted => None,
        FencePurpose::None => None,
        FencePurpose::Time => Some(time_fence(pool, session, request, &mut now).await?),
        FencePurpose::Identifier => Some(identifier_fence(pool, session, request).await?),
    };
    // Who has ended before the fence was read wrote all of it before this.
    let log_position = match request.log {
        LogPosition::Wanted => replica::position(session).await?,
        LogPosition::Unasked | LogPosition::Reach(_) => None,
    };
    let reading = ClockReading { now, ..reading };
    Ok(match fenced {
        None => ClockReading { log_position, ..reading },
        Some(Fenced { fence, note, notices }) => {
            ClockReading { fence, fence_note: Some(note), notices, log_position, ..reading }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_name_or_a_distance() {
        let of = |global: &str, system: &str, minutes: &str| {
            zone(&["", global, system, minutes].map(|cell| Some(cell.to_owned())).to_vec())
        };
        assert_eq!(of("SYSTEM", "UTC", "0"), "UTC");
        assert_eq!(of("SYSTEM", "CEST", "120"), "+02:00");
        assert_eq!(of("SYSTEM", "NST", "-210"), "-03:30");
        assert_eq!(of("SYSTEM", "Europe/Berlin", "60"), "Europe/Berlin");
        assert_eq!(of("+00:00", "CET", "60"), "UTC");
        assert_eq!(of("+05:30", "UTC", "0"), "+05:30");
        assert_eq!(of("Europe/Berlin", "UTC", "0"), "Europe/Berlin");
    }
}
