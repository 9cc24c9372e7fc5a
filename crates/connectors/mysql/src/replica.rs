//! Replicas: they cannot see who writes on their source, and are behind it.
//!
//! Without the source's word the time up to which was applied takes the place of
//! the clock, so that the safety lag counts from there. With it, the source's own
//! fence says what is in flight, and the replica waits until it has applied all that
//! the source had written at that moment.

use std::time::Instant;

use tidelake_connector::{ClockReading, ClockRequest, FencePurpose, LogPosition};
use tidelake_model::{
    Again, Error, ErrorKind, FenceMode, Notice, NoticeCode, Result, instant_text,
};
use tidelake_watermark::Fence;

use crate::activity::lacks_privilege;
use crate::clock::unavailable;
use crate::dialect::text_literal;
use crate::pool::{Session, code, text};

const DOING: &str = "the state of replication cannot be read";
const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// The server takes the statement for a mistake: it is of another version.
const SYNTAX: u16 = 1064;

/// What a replica says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replica {
    /// How far it is behind its source, in seconds; `None` where it does not say,
    /// because it is stopped or not connected for example.
    pub(crate) behind: Option<u64>,
}

/// Whether the server is a replica; `None` where it is none, or may not be asked
/// and can be written to.
pub(crate) async fn state(session: &mut Session) -> Result<Option<Replica>> {
    let rows = match session.ask_named("SHOW REPLICA STATUS", DOING).await {
        Ok(rows) => rows,
        Err(error) if lacks_privilege(&error) => {
            // A server that nobody may write to here is written to elsewhere.
            let row = session.ask_one("SELECT @@global.read_only", DOING).await?;
            return Ok((text(&row, 0) == "1").then_some(Replica { behind: None }));
        }
        Err(error) if code(&error) == Some(SYNTAX) => {
            session.ask_named("SHOW SLAVE STATUS", DOING).await?
        }
        Err(error) => return Err(error),
    };
    let Some(row) = rows.first() else { return Ok(None) };
    let find = |wanted: &[&str]| {
        row.iter()
            .find(|(name, _)| wanted.iter().any(|known| name.eq_ignore_ascii_case(known)))
            .and_then(|(_, value)| value.clone())
    };
    let behind = find(&["Seconds_Behind_Source", "Seconds_Behind_Master"]);
    Ok(Some(Replica { behind: behind.and_then(|seconds| seconds.parse().ok()) }))
}

/// How far the log has come: the transactions that it holds, where they are numbered.
pub(crate) async fn position(session: &mut Session) -> Result<Option<String>> {
    let statement = match session.is_mariadb() {
        true => "SELECT @@global.gtid_binlog_pos",
        false => "SELECT IF(@@global.gtid_mode = 'ON', @@global.gtid_executed, '')",
    };
    let row = session.ask_one(statement, DOING).await?;
    Ok(Some(text(&row, 0).to_owned()).filter(|position| !position.is_empty()))
}

/// What a replica knows of the time and of what is in flight.
pub(crate) async fn reading(
    session: &mut Session,
    request: &ClockRequest,
    reading: ClockReading,
    replica: &Replica,
) -> Result<ClockReading> {
    match &request.log {
        LogPosition::Wanted => Err(Error::new(
            ErrorKind::Configuration,
            "the server of --fence-auth-id is a replica itself",
        )
        .with_hint("name a credential of the server that it follows")),
        LogPosition::Reach(position) => reach(session, request, reading, replica, position).await,
        LogPosition::Unasked => {
            let why = "the server is a replica and cannot see the transactions of its source";
            let remedy = "name its source's credential with --fence-auth-id, or read from that";
            let notices = vec![unavailable(request.mode, why, remedy)?];
            Ok(by_applied(request, ClockReading { notices, ..reading }, replica))
        }
    }
}

/// The time up to which was applied in the place of the clock. It says nothing about
/// numbers.
fn by_applied(
    request: &ClockRequest,
    mut reading: ClockReading,
    replica: &Replica,
) -> ClockReading {
    if request.purpose == FencePurpose::Identifier {
        let note = "replica: numbers are not fenced".to_owned();
        return ClockReading { fence_note: Some(note), ..reading };
    }
    match replica.behind {
        Some(seconds) => {
            // Whole seconds, which may hide nearly one more.
            let now = reading.now - (i128::from(seconds) + 1) * NANOS_PER_SECOND;
            let note = format!("replica, applied up to {}", instant_text(now));
            ClockReading { now, fence_note: Some(note), ..reading }
        }
        None => {
            let message = "the replica does not say how far it is behind its source";
            reading.notices.push(Notice::new(NoticeCode::FenceClosed, message));
            ClockReading { fence: Fence::Closed, fence_note: Some(message.into()), ..reading }
        }
    }
}

/// Waits until the replica has applied what its source had written.
async fn reach(
    session: &mut Session,
    request: &ClockRequest,
    mut reading: ClockReading,
    replica: &Replica,
    position: &str,
) -> Result<ClockReading> {
    let began = Instant::now();
    let wait = match session.is_mariadb() {
        true => "MASTER_GTID_WAIT",
        false => "WAIT_FOR_EXECUTED_GTID_SET",
    };
    let limit = request.wait.as_secs_f64();
    let statement = format!("SELECT {wait}({}, {limit:.3})", text_literal(position));
    let row = session.ask_one(&statement, DOING).await?;
    if text(&row, 0) == "0" {
        let waited = began.elapsed().as_secs_f64();
        reading.fence_note = Some(format!("the replica had caught up after {waited:.1} s"));
        return Ok(reading);
    }
    let message = format!(
        "the replica is behind its source and has not caught up within {} s",
        request.wait.as_secs()
    );
    if request.mode == FenceMode::Require {
        return Err(Error::new(ErrorKind::Unavailable, message)
            .with_again(Again::Never)
            .with_hint("raise --inflight-wait, or look at what holds the replica up"));
    }
    if request.purpose == FencePurpose::Identifier {
        reading.notices.push(Notice::new(NoticeCode::FenceClosed, message.clone()));
        return Ok(ClockReading { fence: Fence::Closed, fence_note: Some(message), ..reading });
    }
    let message =
        format!("{message}; rows are read up to what it has applied, less the safety lag");
    reading.notices.push(Notice::new(NoticeCode::FenceLowered, message));
    Ok(by_applied(request, reading, replica))
}
