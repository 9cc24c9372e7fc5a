//! Ranges and cuts that are none, with a remedy for each.

use crate::years::{START, Years};

#[test]
fn a_range_that_is_none_is_refused_with_a_remedy() {
    let years = Years::make(&format!("at:datetime@{START}"));
    let line = |rest: &str| format!("backfill --sync-id s --table main.sales {rest}");
    let refused = |line: String, code: i32, message: &str, hint: &str| {
        let answer = years.answer(&line);
        let transcript = answer.transcript();
        assert_eq!(answer.code, code, "{transcript}");
        assert!(answer.stderr.contains(message), "{message:?} is not in {transcript}");
        let mut hints = answer.stderr.lines().filter(|line| line.starts_with("hint: "));
        assert!(hints.next_back().unwrap().contains(hint), "{hint:?} is not in {transcript}");
    };
    refused(line("--to 2024-05-01"), 2, "has no watermark yet", "run tidelake sync first");
    years.must("sync --sync-id s");
    for (rest, message, hint) in [
        ("--to 2999-01-01", "above the watermark", "end it at"),
        ("--from 2024-05-01 --to 2024-05-01", "no value lies in", "--from must be below --to"),
        ("--from 2024-06-01 --to 2024-05-01", "no value lies in", "--from must be below --to"),
        ("--to soon", "\"soon\" is not a value of kind datetime", "values of kind datetime"),
        ("--to 2024-05-01T00:00:00Z", "is not a value of kind datetime", "kind datetime"),
        ("--from ' ' --to 2024-05-01", "is not a value of kind datetime", "kind datetime"),
        ("--to 2024-05-01 --pieces 0", "1 to 10000 pieces", "--pieces"),
        ("--to 2024-05-01 --pieces 10001", "1 to 10000 pieces", "--pieces"),
        ("--from 2024-01-01 --to 2024-05-01 --step 1y", "the step \"1y\"", "12h"),
        ("--from 2024-01-01 --to 2024-05-01 --step 1s", "pieces", "larger --step"),
        ("--to 2024-05-01 --pieces 3", "where the first piece ends", "--from"),
    ] {
        refused(line(rest), 2, message, hint);
    }
    for (rest, message) in [
        ("--table main.units --to 5", "is exported whole"),
        ("--table main.nothing --to 5", "main.nothing is not among the tables"),
    ] {
        let answer = years.answer(&format!("backfill --sync-id s {rest}"));
        assert_eq!(answer.code, 2, "{}", answer.transcript());
        assert!(answer.stderr.contains(message), "{}", answer.transcript());
        assert!(answer.stderr.contains("\nhint: "), "{}", answer.transcript());
    }
    let texts = Years::make("amount:number");
    let answer = texts.answer("backfill --sync-id s --table main.sales --to 1.5x");
    assert_eq!(answer.code, 2, "{}", answer.transcript());
    assert_eq!(years.told("status --sync-id s").as_array().unwrap().len(), 1, "nothing ran");
}
