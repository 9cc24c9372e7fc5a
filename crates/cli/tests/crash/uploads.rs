//! Objects of many parts, in a bucket.

use std::process::Output;

use tidelake_model::Step;

use crate::place::{Parts, Place, said};
use crate::reader::Reader;
use crate::shop::TABLES;

/// A table of 24 MB that no codec makes smaller: three parts.
const LARGE: &str = "
    CREATE TABLE main.pictures (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1500)
    INSERT INTO pictures SELECT n, randomblob(16000) FROM numbers";

fn uploads(place: &Place, reader: &Reader) -> Vec<(String, String)> {
    reader.folder(&place.lake, "main/pictures").unwrap().uploads
}

#[test]
fn are_given_up_when_a_run_dies_before_its_commit() {
    let Some(reader) = Reader::start() else { return };
    let parts = Parts { bucket: true, ..Parts::default() };
    let Some(place) = Place::make(parts, "--compression-type None") else { return };
    place.shop.execute(LARGE);
    place.shop.grow(3);
    // Long enough under way that parts are sent.
    let fault = format!("{}:main.pictures", Step::Staged.name());
    place.die(&fault);
    assert_eq!(uploads(&place, &reader).len(), 1);
    place.sync();
    assert_eq!(uploads(&place, &reader), []);
    let rows = reader.rows(&place.lake, "main/pictures").unwrap();
    assert_eq!(rows.rows.len(), 1500);

    // What is on the list of a commit is finished.
    for step in [Step::Committing, Step::Completed, Step::Manifest] {
        place.die(&format!("{}:main.pictures", step.name()));
        place.shop.execute("DELETE FROM pictures WHERE id = (SELECT max(id) FROM pictures)");
        place.sync();
        assert_eq!(uploads(&place, &reader), [], "{}", step.name());
    }
    let rows = reader.rows(&place.lake, "main/pictures").unwrap();
    assert_eq!(rows.rows.len(), 1497);
}

#[test]
fn are_given_up_when_the_user_stops_the_run() {
    let Some(reader) = Reader::start() else { return };
    let parts = Parts { bucket: true, ..Parts::default() };
    let Some(place) = Place::make(parts, "--compression-type None") else { return };
    place.shop.execute(LARGE);
    for step in [Step::Begin, Step::Batch, Step::Staged] {
        let mut run = place.hold(&format!("{}:main.pictures", step.name()));
        run.signal("INT");
        std::thread::sleep(std::time::Duration::from_millis(100));
        run.go_on();
        let output: Output = run.end();
        assert_eq!(output.status.code(), Some(130), "{}: {}", step.name(), said(&output));
        assert_eq!(uploads(&place, &reader), [], "{}", step.name());
        let small = place.uploads(&reader);
        assert_eq!(small, [], "{}: {TABLES:?}", step.name());
    }
}
