//! Standbys: they cannot see who writes on the primary, and are behind it.
//!
//! Without the primary's word the time of replay takes the place of the clock, so
//! that the safety lag counts from there. With it, the primary's own fence says
//! what is in flight, and the standby waits until it has replayed all that the
//! primary had written at that moment.

use std::time::{Duration, Instant};

use tidelake_connector::{ClockReading, ClockRequest, FencePurpose, LogPosition};
use tidelake_model::{
    Again, Error, ErrorKind, FenceMode, Notice, NoticeCode, Result, instant_text,
};
use tidelake_watermark::Fence;

use crate::catalogue::get;
use crate::clock::{instant, unavailable};
use crate::failure::failure;
use crate::internal;
use crate::session::Session;

const POLL: Duration = Duration::from_millis(50);
const DOING: &str = "the place in the server's log cannot be read";

/// A page of the log, and what its longest header takes of it.
const PAGE: u64 = 8_192;
const LONGEST_HEADER: u64 = 40;

const POSITION: &str = "
SELECT (SELECT system_identifier::text FROM pg_control_system()),
       CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn()::text END";

const REPLAYED: &str = "
SELECT (SELECT system_identifier::text FROM pg_control_system()),
       pg_last_wal_replay_lsn()::text, pg_last_xact_replay_timestamp()::text";

/// How far the log has come, with the identity of whose it is.
pub(crate) async fn position(session: &Session) -> Result<String> {
    let row = session.client.query_typed_one(POSITION, &[]).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let (system, at): (&str, Option<&str>) = (get(&row, 0)?, get(&row, 1)?);
    match at {
        Some(at) => Ok(format!("{system} {at}")),
        None => Err(is_standby()),
    }
}

fn is_standby() -> Error {
    Error::new(ErrorKind::Configuration, "the server of --fence-auth-id is a standby itself")
        .with_hint("name a credential of the primary")
}

/// What a standby knows of the time and of what is in flight.
pub(crate) async fn reading(
    session: &Session,
    request: &ClockRequest,
    reading: ClockReading,
) -> Result<ClockReading> {
    match &request.log {
        LogPosition::Wanted => Err(is_standby()),
        LogPosition::Reach(position) => reach(session, request, reading, position).await,
        LogPosition::Unasked => {
            let why = "the server is a standby and cannot see the primary's transactions";
            let remedy = "name the primary's credential with --fence-auth-id, or read from it";
            let mut notices = vec![];
            if request.purpose != FencePurpose::None && request.mode != FenceMode::Off {
                notices.push(unavailable(request.mode, why, remedy)?);
            }
            let replayed = replayed(session).await?.since;
            Ok(by_replay(request, ClockReading { notices, ..reading }, replayed))
        }
    }
}

/// The time of replay in the place of the clock. It says nothing about numbers.
fn by_replay(
    request: &ClockRequest,
    mut reading: ClockReading,
    replayed: Option<i128>,
) -> ClockReading {
    if request.purpose == FencePurpose::Identifier {
        let note = "standby: numbers are not fenced".to_owned();
        return ClockReading { fence_note: Some(note), ..reading };
    }
    match replayed {
        Some(replayed) => {
            let note = format!("standby, replayed up to {}", instant_text(replayed));
            let now = reading.now.min(replayed);
            ClockReading { now, fence_note: Some(note), ..reading }
        }
        None => {
            let message = "the standby has not replayed a transaction since it started";
            reading.notices.push(Notice::new(NoticeCode::FenceClosed, message));
            ClockReading { fence: Fence::Closed, fence_note: Some(message.into()), ..reading }
        }
    }
}

/// How far a standby has come.
struct Replayed {
    system: String,
    at: u64,
    /// When the last transaction that was replayed had ended.
    since: Option<i128>,
}

async fn replayed(session: &Session) -> Result<Replayed> {
    let row = session.client.query_typed_one(REPLAYED, &[]).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let since = get::<Option<&str>>(&row, 2)?.map(instant).transpose()?;
    let at = get::<Option<&str>>(&row, 1)?.map_or(Some(0), place);
    let at = at.ok_or_else(|| internal(DOING))?;
    Ok(Replayed { system: get(&row, 0)?, at, since })
}

/// Waits until the standby has replayed what the primary had written.
async fn reach(
    session: &Session,
    request: &ClockRequest,
    mut reading: ClockReading,
    position: &str,
) -> Result<ClockReading> {
    let began = Instant::now();
    let (system, target) = position.split_once(' ').ok_or_else(|| internal(DOING))?;
    let target = reachable(place(target).ok_or_else(|| internal(DOING))?);
    let mut found = replayed(session).await?;
    if found.system != system {
        let message = "the server of --fence-auth-id is not the one that this standby follows";
        return Err(Error::new(ErrorKind::Configuration, message)
            .with_hint("name a credential of the standby's own primary"));
    }
    while found.at < target {
        let left = request.wait.saturating_sub(began.elapsed());
        if left.is_zero() {
            return late(request, reading, target.saturating_sub(found.at), found.since);
        }
        tokio::time::sleep(POLL.min(left)).await;
        found = replayed(session).await?;
    }
    let waited = began.elapsed().as_secs_f64();
    reading.fence_note = Some(format!("the standby had caught up after {waited:.1} s"));
    Ok(reading)
}

/// The standby is behind although it was waited for.
fn late(
    request: &ClockRequest,
    mut reading: ClockReading,
    bytes: u64,
    replayed: Option<i128>,
) -> Result<ClockReading> {
    let message = format!(
        "the standby is {bytes} bytes behind the primary and has not caught up within {} s",
        request.wait.as_secs()
    );
    if request.mode == FenceMode::Require {
        return Err(Error::new(ErrorKind::Unavailable, message)
            .with_again(Again::Never)
            .with_hint("raise --inflight-wait, or look at what holds the standby's replay up"));
    }
    if request.purpose == FencePurpose::Identifier {
        reading.notices.push(Notice::new(NoticeCode::FenceClosed, message.clone()));
        return Ok(ClockReading { fence: Fence::Closed, fence_note: Some(message), ..reading });
    }
    let message =
        format!("{message}; rows are read up to what it has replayed, less the safety lag");
    reading.notices.push(Notice::new(NoticeCode::FenceLowered, message));
    Ok(by_replay(request, reading, replayed))
}

/// A place in the log: `16/B374D848`.
fn place(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some((u64::from_str_radix(high, 16).ok()? << 32) | u64::from_str_radix(low, 16).ok()?)
}

/// The end of the last record before that place. The place at which the next record
/// will begin may lie behind the header of a page on which there is none yet.
fn reachable(place: u64) -> u64 {
    let on_page = place % PAGE;
    if on_page <= LONGEST_HEADER { place.saturating_sub(on_page) } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_empty_pages_not_waited_for() {
        assert_eq!(place("0/3000028"), Some(0x300_0028));
        assert_eq!(place("16/B374D848"), Some(0x16_B374_D848));
        assert_eq!(place("16"), None);
        assert_eq!(place("0/x"), None);
        assert_eq!(reachable(0x300_0028), 0x300_0000);
        assert_eq!(reachable(0x300_0018), 0x300_0000);
        assert_eq!(reachable(0x300_0030), 0x300_0030);
        assert_eq!(reachable(0x300_2000), 0x300_2000);
    }
}
