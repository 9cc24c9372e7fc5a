//! A real streaming standby of the test server.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Database, Standby};
use tidelake_connector::{ClockRequest, FencePurpose, LogPosition, Source};
use tidelake_model::{Again, ErrorKind, FenceMode, NoticeCode, TableName};
use tidelake_watermark::Fence;

const PURPOSES: [FencePurpose; 2] = [FencePurpose::Time, FencePurpose::Identifier];

fn request(purpose: FencePurpose, mode: FenceMode, log: LogPosition) -> ClockRequest {
    ClockRequest {
        table: TableName::new("public", "t"),
        purpose,
        mode,
        wait: Duration::from_secs(20),
        ignore_users: vec![],
        log,
    }
}

/// A primary and its standby, both as sources, with a table `t`.
async fn pair() -> Option<(Database, Standby, Arc<dyn Source>, Arc<dyn Source>)> {
    let database = Database::make().await?;
    let standby = Standby::of(&database).await?;
    let client = database.client().await;
    client.batch_execute("CREATE TABLE t (id int, at timestamptz DEFAULT now())").await.unwrap();
    standby.catch_up().await;
    let primary = database.source().await;
    let copy = standby.source().await;
    Some((database, standby, primary, copy))
}

async fn position(primary: &Arc<dyn Source>) -> String {
    let request = request(FencePurpose::Time, FenceMode::Auto, LogPosition::Wanted);
    primary.clock(&request).await.unwrap().log_position.unwrap()
}

#[tokio::test]
async fn alone_it_says_what_it_cannot_see_and_uses_the_time_of_replay() {
    let Some((database, standby, _, copy)) = pair().await else { return };
    let before = standby.replayed_until().await;
    for purpose in PURPOSES {
        let reading =
            copy.clock(&request(purpose.clone(), FenceMode::Auto, LogPosition::Unasked)).await;
        let reading = reading.unwrap();
        let notice = &reading.notices[0];
        assert_eq!(notice.code, NoticeCode::FenceUnavailable);
        assert!(notice.message.contains("--fence-auth-id"), "{notice:?}");
        assert_eq!(reading.fence, Fence::Open);
        if purpose == FencePurpose::Time {
            let after = standby.replayed_until().await;
            assert!((before..=after).contains(&reading.now), "{before} {} {after}", reading.now);
        }
        let refused = copy.clock(&request(purpose, FenceMode::Require, LogPosition::Unasked)).await;
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.hint().unwrap().contains("--fence-auth-id"), "{error:?}");
    }
    // Asked for no fence it still is behind, and says nothing of it.
    let off = request(FencePurpose::None, FenceMode::Off, LogPosition::Unasked);
    assert!(copy.clock(&off).await.unwrap().notices.is_empty());
    database.drop_now().await;
}

#[tokio::test]
async fn it_comes_as_far_as_the_primary_was() {
    let Some((database, _standby, primary, copy)) = pair().await else { return };
    let client = database.client().await;
    for number in 0..20 {
        let insert = format!("INSERT INTO t SELECT {number} FROM generate_series(1, 500)");
        client.batch_execute(&insert).await.unwrap();
        let wanted = 500 * (number + 1);
        let log = LogPosition::Reach(position(&primary).await);
        let reading =
            copy.clock(&request(FencePurpose::Time, FenceMode::Require, log)).await.unwrap();
        assert!(reading.fence_note.unwrap().contains("caught up"));
        let found = common::table(&copy, "t").await;
        let slices = common::split(&copy, common::whole(&found), 1).await;
        let batches = common::collect(&copy, &slices).await.unwrap();
        let rows: usize = batches.iter().map(arrow::array::RecordBatch::num_rows).sum();
        assert_eq!(rows, wanted);
    }
    database.drop_now().await;
}

#[tokio::test]
async fn one_whose_replay_stands_still_is_late() {
    let Some((database, standby, primary, copy)) = pair().await else { return };
    standby.pause().await;
    let client = database.client().await;
    client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    let log = LogPosition::Reach(position(&primary).await);
    let replayed = standby.replayed_until().await;
    let asked = |purpose, mode| ClockRequest {
        wait: Duration::from_millis(200),
        ..request(purpose, mode, log.clone())
    };
    let time = copy.clock(&asked(FencePurpose::Time, FenceMode::Auto)).await.unwrap();
    let numbers = copy.clock(&asked(FencePurpose::Identifier, FenceMode::Auto)).await.unwrap();
    let required = copy.clock(&asked(FencePurpose::Time, FenceMode::Require)).await.unwrap_err();
    standby.resume().await;
    assert_eq!(time.now, replayed);
    assert_eq!(time.notices[0].code, NoticeCode::FenceLowered);
    assert!(time.notices[0].message.contains("behind the primary"), "{:?}", time.notices);
    assert_eq!((numbers.fence, numbers.notices[0].code), (Fence::Closed, NoticeCode::FenceClosed));
    assert_eq!((required.kind(), required.again()), (ErrorKind::Unavailable, Again::Never));
    // The same place is reached as soon as replay goes on.
    let reading = copy.clock(&request(FencePurpose::Time, FenceMode::Require, log)).await.unwrap();
    assert!(reading.notices.is_empty(), "{reading:?}");
    database.drop_now().await;
}

#[tokio::test]
async fn another_server_is_not_taken_for_the_primary() {
    let Some((database, _standby, primary, copy)) = pair().await else { return };
    let ask = |log| request(FencePurpose::Time, FenceMode::Auto, log);
    let error = copy.clock(&ask(LogPosition::Wanted)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("standby itself"), "{error:?}");
    let (_, place) = position(&primary)
        .await
        .split_once(' ')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let log = LogPosition::Reach(format!("7123456789012345678 {place}"));
    let error = copy.clock(&ask(log)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("not the one"), "{error:?}");
    // The primary itself has come as far, and its own fence counts.
    let log = LogPosition::Reach(position(&primary).await);
    let reading = primary.clock(&ask(log)).await.unwrap();
    assert!(reading.notices.is_empty() && reading.log_position.is_none());
    database.drop_now().await;
}
