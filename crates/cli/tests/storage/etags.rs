//! What a store says of a version is taken as it is, and for nothing else.

use crate::corner::{Cloud, Corner};
use crate::proxy::{Action, Request, Way};

/// The value of each ETag in a head, changed.
fn with_tags(head: &str, names: &[&str], change: fn(&str) -> String) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((name, value)) if names.contains(&name.to_ascii_lowercase().as_str()) => {
            format!("{name}: {}", change(value.trim()))
        }
        _ => line.to_owned(),
    };
    head.split("\r\n").map(line).collect::<Vec<_>>().join("\r\n")
}

/// Another tag for the same content, and back: no hash of anything.
fn mirrored(tag: &str) -> String {
    match tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) {
        Some(inner) if inner != "*" => format!("\"{}\"", inner.chars().rev().collect::<String>()),
        _ => tag.to_owned(),
    }
}

/// Parts are named by their tags in a body, which the proxy leaves alone.
fn is_of_a_part(request: &Request) -> bool {
    request.target.contains("uploadId")
}

/// Under a key of one's own, and after an upload in parts, the ETag is no hash.
#[test]
fn a_tag_that_is_no_hash_is_no_alarm() {
    let Some(corner) = Corner::make(Cloud::S3) else { return };
    let edit = |way: Way, head: &str| {
        let names = match way {
            Way::ToServer => ["if-match", "if-none-match"],
            Way::ToClient => ["etag", "etag"],
        };
        with_tags(head, &names, mirrored)
    };
    let policy = move |request: &Request| match is_of_a_part(request) {
        true => Action::Pass,
        false => Action::Edit(edit),
    };
    corner.proxy.requests(policy);
    for run in ["the first", "the second", "the third"] {
        let report = corner.sync();
        corner.is_whole(&report, run);
        corner.place.shop.grow(3);
    }
}

/// What a compressing proxy makes of a tag: a condition never holds for such a one.
#[test]
fn a_tag_that_was_made_weak_on_the_way_still_guards_the_commit() {
    for cloud in [Cloud::S3, Cloud::Azure] {
        let Some(corner) = Corner::make(cloud) else { return };
        corner.proxy.requests(|request| match is_of_a_part(request) {
            true => Action::Pass,
            false => Action::Edit(|way, head| match way {
                Way::ToServer => head.to_owned(),
                Way::ToClient => with_tags(head, &["etag"], |tag| format!("W/{tag}")),
            }),
        });
        for run in ["the first", "the second"] {
            let report = corner.sync();
            corner.is_whole(&report, &format!("{cloud:?}: {run}"));
            corner.place.shop.grow(3);
        }
    }
}

/// The tags of the stub's composed objects are no hashes, as Google's are not.
#[test]
fn generations_are_versions_whatever_the_tags_say() {
    let Some(corner) = Corner::make(Cloud::Gcs) else { return };
    corner.proxy.requests(|request| match is_of_a_part(request) {
        true => Action::Pass,
        false => Action::Edit(|way, head| match way {
            Way::ToServer => head.to_owned(),
            Way::ToClient => with_tags(head, &["etag"], |_| "\"always the same\"".to_owned()),
        }),
    });
    for run in ["the first", "the second"] {
        let report = corner.sync();
        corner.is_whole(&report, run);
        corner.place.shop.grow(3);
    }
}
