//! The source's clock, and what is in flight.

use std::time::Duration;

use tidelake_model::{FenceMode, NoticeCode};
use tidelake_watermark::Fence;

use super::SourceCase;
use crate::conformance::harness::{ensure, ensure_same};
use crate::conformance::subject::{Subject, row};
use crate::conformance::{Failure, Need, Outcome, SourceFixture};
use crate::source::{ClockReading, ClockRequest, FencePurpose, LogPosition};

/// A server beside the test may be this far off.
const NEAR: i128 = 10_000_000_000;

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("the_clock_is_near_and_goes_forward", Need::Nothing, |fixture| {
            Box::pin(near(fixture))
        }),
        case("no_fence_is_asked_for_and_none_is_given", Need::Fence, |fixture| {
            Box::pin(unasked(fixture))
        }),
        case("the_time_fence_is_lowered_by_a_writer", Need::Fence, |fixture| {
            Box::pin(lowered(fixture, "fence_writer", true))
        }),
        case("the_time_fence_is_lowered_by_who_has_not_written_yet", Need::Fence, |fixture| {
            Box::pin(lowered(fixture, "fence_begun", false))
        }),
        case("the_identifier_fence_is_closed_while_a_writer_is_open", Need::Fence, |fixture| {
            Box::pin(closed(fixture))
        }),
        case("the_identifier_fence_waits_for_a_writer_to_end", Need::Fence, |fixture| {
            Box::pin(waits(fixture))
        }),
        case("the_identifier_fence_is_open_to_writers_elsewhere", Need::Fence, |fixture| {
            Box::pin(elsewhere(fixture))
        }),
        case("ignored_users_hold_no_fence", Need::Fence, |fixture| Box::pin(ignored(fixture))),
    ]
}

fn request(subject: &Subject, purpose: FencePurpose) -> ClockRequest {
    ClockRequest {
        table: subject.table.name.clone(),
        purpose,
        mode: FenceMode::Auto,
        wait: Duration::ZERO,
        ignore_users: vec![],
        log: LogPosition::Unasked,
    }
}

async fn clock(subject: &Subject, purpose: FencePurpose) -> Outcome<ClockReading> {
    Ok(subject.source.clock(&request(subject, purpose)).await?)
}

async fn near(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "near", &[]).await?;
    let mut last = i128::MIN;
    for _ in 0..5 {
        let before = fixture.now();
        let reading = clock(&subject, FencePurpose::None).await?;
        let after = fixture.now();
        let fits = (before - NEAR..=after + NEAR).contains(&reading.now);
        ensure(fits, || format!("{} is not near {before}", reading.now))?;
        ensure(reading.now >= last, || "the clock went back".to_owned())?;
        ensure(!reading.zone.is_empty(), || "no time zone".to_owned())?;
        last = reading.now;
    }
    Ok(())
}

async fn unasked(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "unasked", &[]).await?;
    let mut writer = fixture.begin().await?;
    writer.insert(&subject.spec, &[row(1, 1)]).await?;
    let none = clock(&subject, FencePurpose::None).await?;
    ensure_same("fence for no purpose", &none.fence, &Fence::Open)?;
    for purpose in [FencePurpose::Time, FencePurpose::Identifier] {
        let off = ClockRequest { mode: FenceMode::Off, ..request(&subject, purpose) };
        let off = subject.source.clock(&off).await?;
        ensure_same("fence switched off", &off.fence, &Fence::Open)?;
    }
    writer.rollback().await
}

async fn lowered(fixture: &dyn SourceFixture, name: &str, writes: bool) -> Outcome {
    let subject = Subject::stamped(fixture, name, &[]).await?;
    let before = clock(&subject, FencePurpose::Time).await?;
    let mut transaction = fixture.begin().await?;
    if writes {
        transaction.insert(&subject.spec, &[row(1, 1)]).await?;
    }
    let begun = clock(&subject, FencePurpose::None).await?.now;
    let held = clock(&subject, FencePurpose::Time).await?;
    let Fence::Before(instant) = held.fence else {
        let message = format!("the fence is {:?} while a transaction is open", held.fence);
        return Err(Failure::new(message));
    };
    let between = before.now - fixture.fence_slack() <= instant && instant <= begun;
    ensure(between, || "the fence is not at the transaction's start".to_owned())?;
    ensure(held.fence_note.is_some(), || "the fence says not what it rests on".to_owned())?;
    // It stays where it is for as long as the transaction lasts.
    let again = clock(&subject, FencePurpose::Time).await?;
    ensure_same("fence later", &again.fence, &held.fence)?;
    transaction.commit().await?;
    let request = request(&subject, FencePurpose::Time);
    let lifted = |fence| match fence {
        Fence::Open => true,
        Fence::Before(after) => after > instant,
        Fence::Closed => false,
    };
    settled(&subject, &request, lifted).await
}

/// Asks until the fence is as wanted; the end of a transaction may take a moment
/// to show.
async fn settled(
    subject: &Subject,
    request: &ClockRequest,
    wanted: impl Fn(Fence) -> bool,
) -> Outcome {
    let mut fence = Fence::Closed;
    for _ in 0..100 {
        fence = subject.source.clock(request).await?.fence;
        if wanted(fence) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(Failure::new(format!("the fence stays {fence:?}")))
}

async fn closed(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "closed", &[]).await?;
    let request = request(&subject, FencePurpose::Identifier);
    settled(&subject, &request, |fence| fence == Fence::Open).await?;
    for commits in [true, false] {
        let mut writer = fixture.begin().await?;
        writer.insert(&subject.spec, &[row(i128::from(commits), 1)]).await?;
        let held = subject.source.clock(&request).await?;
        ensure_same("fence while open", &held.fence, &Fence::Closed)?;
        let told = held.notices.iter().any(|notice| notice.code == NoticeCode::FenceClosed);
        ensure(told, || "no notice says who holds the fence".to_owned())?;
        if commits {
            writer.commit().await?;
        } else {
            writer.rollback().await?;
        }
        settled(&subject, &request, |fence| fence == Fence::Open).await?;
    }
    Ok(())
}

async fn waits(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "waits", &[]).await?;
    let wait = Duration::from_secs(20);
    let request = ClockRequest { wait, ..request(&subject, FencePurpose::Identifier) };
    let mut writer = fixture.begin().await?;
    writer.insert(&subject.spec, &[row(1, 1)]).await?;
    let ends = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        writer.commit().await
    };
    let (reading, ended) = tokio::join!(subject.source.clock(&request), ends);
    ended?;
    ensure_same("fence after the wait", &reading?.fence, &Fence::Open)
}

async fn elsewhere(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "here", &[]).await?;
    let other = Subject::stamped(fixture, "elsewhere", &[]).await?;
    let mut writer = fixture.begin().await?;
    writer.insert(&other.spec, &[row(1, 1)]).await?;
    let reading = clock(&subject, FencePurpose::Identifier).await?;
    ensure_same("fence", &reading.fence, &Fence::Open)?;
    writer.rollback().await
}

async fn ignored(fixture: &dyn SourceFixture) -> Outcome {
    let Some(user) = fixture.writer() else { return Ok(()) };
    let subject = Subject::stamped(fixture, "ignored", &[]).await?;
    let mut writer = fixture.begin().await?;
    writer.insert(&subject.spec, &[row(1, 1)]).await?;
    for purpose in [FencePurpose::Time, FencePurpose::Identifier] {
        let held = clock(&subject, purpose.clone()).await?;
        ensure(held.fence != Fence::Open, || "an open writer holds no fence".to_owned())?;
        let ignore_users = vec![user.clone()];
        let request = ClockRequest { ignore_users, ..request(&subject, purpose) };
        let reading = subject.source.clock(&request).await?;
        ensure_same("fence", &reading.fence, &Fence::Open)?;
    }
    writer.rollback().await
}
