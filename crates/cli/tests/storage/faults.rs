//! Stores that throttle, break off, stall or lose their answers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::corner::{Cloud, Corner};
use crate::proxy::{Action, Answer, Request, Way};

/// What the store says when it wants fewer requests.
fn slow_down(cloud: Cloud) -> Answer {
    match cloud {
        Cloud::S3 => Answer::error(503, "SlowDown", "Please reduce your request rate."),
        Cloud::Azure => Answer::error(503, "ServerBusy", "The server is busy."),
        Cloud::Gcs => Answer::error(429, "TooManyRequests", "The rate limit was exceeded."),
    }
}

/// What the store says to who may not.
fn forbidden(cloud: Cloud) -> Answer {
    match cloud {
        Cloud::S3 | Cloud::Gcs => Answer::error(403, "AccessDenied", "Access denied."),
        Cloud::Azure => Answer::error(
            403,
            "AuthorizationPermissionMismatch",
            "This request is not authorized to perform this operation using this permission.\n\
             RequestId:00000000-0000-0000-0000-000000000000\nTime:2026-11-30T00:00:00Z",
        ),
    }
}

/// Whether a request writes a part of the large table.
fn is_part(request: &Request) -> bool {
    request.method == "PUT" && request.length > 1_000_000
}

/// A store on a bad day: some requests are throttled, some fail, parts are cut in
/// the middle, answers are lost or come drop by drop.
fn bad_day(cloud: Cloud) -> impl Fn(&Request) -> Action + Send + Sync {
    let parts = AtomicU64::new(0);
    move |request| {
        if is_part(request) {
            return match parts.fetch_add(1, Ordering::Relaxed) {
                0 => Action::Cut(Way::ToServer, 700_000),
                1 => Action::Answer(slow_down(cloud)),
                2 => Action::Cut(Way::ToClient, 0),
                _ => Action::Pass,
            };
        }
        match request.number % 12 {
            1 => Action::Answer(slow_down(cloud)),
            3 => Action::Answer(slow_down(cloud).with("Retry-After: 1")),
            5 => Action::Answer(Answer::error(500, "InternalError", "We are sorry.")),
            7 => Action::Cut(Way::ToClient, 0),
            9 => Action::Cut(Way::ToClient, 40),
            11 => Action::Slow(Way::ToClient, 3_000),
            _ => Action::Pass,
        }
    }
}

fn ends_right_on_a_bad_day(cloud: Cloud) {
    let Some(corner) = Corner::make(cloud) else { return };
    corner.proxy.requests(bad_day(cloud));
    let report = corner.sync();
    corner.is_whole(&report, "the first run");
    corner.place.shop.grow(5);
    corner.proxy.requests(bad_day(cloud));
    let report = corner.sync();
    corner.is_whole(&report, "the second run");
    let counts = corner.proxy.counts();
    assert!(counts.answered >= 10 && counts.cut >= 6 && counts.slowed >= 2, "{counts:?}");
}

#[test]
fn s3_that_throttles_and_breaks_off_ends_right() {
    ends_right_on_a_bad_day(Cloud::S3);
}

#[test]
fn azure_that_throttles_and_breaks_off_ends_right() {
    ends_right_on_a_bad_day(Cloud::Azure);
}

#[test]
fn gcs_that_throttles_and_breaks_off_ends_right() {
    ends_right_on_a_bad_day(Cloud::Gcs);
}

/// The answer to each kind of write is lost once, which the store has done.
#[test]
fn every_answer_that_is_lost_is_asked_for_again() {
    for cloud in Cloud::ALL {
        let Some(corner) = Corner::make(cloud) else { return };
        let seen = Mutex::new(Vec::<String>::new());
        corner.proxy.requests(move |request| {
            // Part numbers, ids and blocks aside.
            let kind = request.target.split(['=', '&']).next().unwrap_or_default().to_owned();
            let kind = format!("{} {kind}", request.method);
            let mut seen = seen.lock().unwrap();
            if matches!(request.method.as_str(), "GET" | "HEAD") || seen.contains(&kind) {
                return Action::Pass;
            }
            seen.push(kind);
            Action::Cut(Way::ToClient, 0)
        });
        let report = corner.sync();
        corner.is_whole(&report, &format!("{cloud:?}"));
        let cut = corner.proxy.counts().cut;
        // Owner, manifest and latest of each of four tables, and their files.
        assert!(cut >= 16, "{cloud:?}: {cut}");
    }
}

/// Passes all until the first part of a data file was written, then gives so many
/// requests that answer.
fn after_a_write(times: u64, answer: Answer) -> impl Fn(&Request) -> Action + Send + Sync {
    let given = AtomicU64::new(0);
    move |request| {
        let writes = request.method == "PUT" && request.target.contains("parquet");
        if given.load(Ordering::Relaxed) == 0 && !writes {
            return Action::Pass;
        }
        match given.fetch_add(1, Ordering::Relaxed) {
            0 => Action::Pass,
            number if number <= times => Action::Answer(answer.clone()),
            _ => Action::Pass,
        }
    }
}

#[test]
fn a_store_that_goes_on_throttling_is_told_within_a_bound() {
    for cloud in Cloud::ALL {
        let Some(corner) = Corner::make(cloud) else { return };
        corner.sync();
        let before = corner.watermarks();
        corner.place.shop.grow(5);
        corner.proxy.requests(after_a_write(u64::MAX, slow_down(cloud)));
        let started = Instant::now();
        let said = corner.fail();
        let took = started.elapsed();
        assert!(took < Duration::from_secs(60), "{cloud:?}: {took:?}");
        let code = ["SlowDown", "ServerBusy", "TooManyRequests"][cloud as usize];
        assert!(said.contains(code) && said.contains("hint: "), "{cloud:?}: {said}");
        assert!(said.contains("the store wants fewer requests: lower --n-jobs"), "{said}");
        assert_eq!(corner.watermarks(), before, "{cloud:?}");
        corner.proxy.pass();
        corner.place.shop.grow(2);
        let report = corner.sync();
        corner.is_whole(&report, &format!("{cloud:?}"));
    }
}

#[test]
fn rights_that_are_lost_in_the_middle_end_the_run_at_once() {
    for cloud in Cloud::ALL {
        let Some(corner) = Corner::make(cloud) else { return };
        corner.sync();
        let before = corner.watermarks();
        corner.place.shop.grow(5);
        // It ought to have given up long before that is over.
        corner.proxy.requests(after_a_write(30, forbidden(cloud)));
        let started = Instant::now();
        let said = corner.fail();
        let took = started.elapsed();
        assert!(took < Duration::from_secs(10), "{cloud:?}: {took:?}");
        let answered = corner.proxy.counts().answered;
        assert!((1..20).contains(&answered), "{cloud:?}: {answered} requests were forbidden");
        let code = match cloud {
            Cloud::Azure => "AuthorizationPermissionMismatch: This request is not authorized",
            _ => "AccessDenied: Access denied.",
        };
        assert!(said.contains(code) && !said.contains("RequestId"), "{cloud:?}: {said}");
        let hint = ["allow the credential's user", "keys in its configuration", "Object Admin"];
        assert!(said.contains(hint[cloud as usize]), "{cloud:?}: {said}");
        assert_eq!(corner.watermarks(), before, "{cloud:?}");
        corner.proxy.pass();
        corner.place.shop.grow(2);
        let report = corner.sync();
        corner.is_whole(&report, &format!("{cloud:?}"));
    }
}
