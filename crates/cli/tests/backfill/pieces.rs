//! Pieces, and what becomes of them when the program dies.

use tidelake_model::Step;

use crate::reader::Reader;
use crate::years::{START, Years};

const BACKFILL: &str =
    "backfill --sync-id s --table main.sales --from 2024-01-01 --to 2024-07-01 --pieces 3";

/// After any step of the second piece the program dies; a sync, or the same command,
/// goes on. In the end each row is there once, and the watermark where it was.
#[test]
fn a_backfill_that_dies_goes_on() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make(&format!("at:datetime@{START}"));
    years.must("sync --sync-id s");
    let everything = years.source("at > '2024-01-01' OR at IS NULL");
    // The first piece is read, the second cut; each fault begins it anew.
    let mut restart = "";
    for (step, turn) in Step::ALL.into_iter().zip(0..) {
        let fault = match step {
            // There is no clock to read below the watermark, nothing to publish.
            Step::Clock | Step::Committed | Step::Published => continue,
            Step::Lease | Step::Finished => format!("{}:2", step.name()),
            step => format!("{}:main.sales:2", step.name()),
        };
        let watermark = years.watermark();
        years.die(&format!("{BACKFILL} {restart}"), &fault);
        if turn % 2 == 0 {
            years.must("sync --sync-id s");
        }
        let done = years.told(BACKFILL);
        assert_eq!(done["status"], "completed", "{fault}: {done}");
        assert_eq!(done["continued"], true, "{fault}: {done}");
        let stitch = &done["stitch"];
        assert_eq!(stitch["lake_rows"], stitch["source_rows"], "{fault}: {done}");
        assert_eq!(done["pieces"][0]["state"], "done_before", "{fault}: {done}");
        assert_eq!(years.lake(&reader), everything, "{fault}");
        assert_eq!(years.left(&reader), Vec::<String>::new(), "{fault}");
        if turn % 2 != 0 {
            assert_eq!(years.watermark(), watermark, "{fault}");
        }
        restart = "--restart";
    }
    let again = years.told(BACKFILL);
    assert_eq!(again["rows"], 0, "{again}");
    assert!(again["notices"].to_string().contains("were done before"), "{again}");
}

/// The same command goes on; another range is another backfill; `--restart` takes
/// the rows of the range out and reads them anew, without the doubling of one.
#[test]
fn read_twice_nothing_is_doubled() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("at:datetime");
    years.must("sync --sync-id s");
    let before = years.lake(&reader);
    assert_eq!(before, years.source("true"));
    // Straddling the one file that the first run wrote.
    let line = "backfill --sync-id s --table sales --from 2024-03-05 --to 2024-04-05";
    let planned = years.told(&format!("{line} --step 10d --dry-run"));
    assert_eq!(planned["pieces"].as_array().unwrap().len(), 4, "{planned}");
    assert_eq!(planned["touches"]["files"], 1, "{planned}");
    assert_eq!(planned["touches"]["rows"], 361, "{planned}");
    assert_eq!(years.told("status --sync-id s").as_array().unwrap().len(), 1, "nothing ran");
    let done = years.told(&format!("{line} --step 10d"));
    assert_eq!(done["rows"], 30, "{done}");
    assert_eq!(years.lake(&reader), before);
    // Changed and gone rows of the range follow the source; those without a time stay.
    years.execute("DELETE FROM sales WHERE at BETWEEN '2024-03-10' AND '2024-03-12'");
    years.execute("INSERT INTO sales VALUES (2000, '2024-03-11 12:00:00', 9)");
    let unchanged = years.told(line);
    assert!(unchanged["notices"].to_string().contains("verify"), "{unchanged}");
    let again = years.told(&format!("{line} --restart --pieces 2"));
    assert_eq!(again["stitch"]["lake_rows"], 29, "{again}");
    assert_eq!(years.lake(&reader), years.source("true"));
}

/// A backfill above all that was exported so far must not hide what comes late
/// below it.
#[test]
fn a_row_that_comes_late_into_the_gap_is_not_lost() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("at:datetime");
    years.must("sync --sync-id s");
    // Nothing was exported above the end of 2024, up to the watermark of today.
    years.execute("INSERT INTO sales VALUES (3001, '2025-02-01 00:00:00', 1)");
    years.execute("INSERT INTO sales VALUES (3002, '2025-05-15 00:00:00', 1)");
    let line = "backfill --sync-id s --table sales --from 2025-05-01 --to 2025-06-01";
    let done = years.told(line);
    assert_eq!(done["rows"], 2, "{done}");
    years.execute("INSERT INTO sales VALUES (3003, '2025-08-15 00:00:00', 1)");
    years.must("sync --sync-id s");
    assert_eq!(years.lake(&reader), years.source("true"));
}

/// Under `[low, high)` the watermark itself is still to be read.
#[test]
fn a_piece_up_to_an_open_watermark() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("id:integer:e");
    years.must("sync --sync-id s");
    assert_eq!(years.watermark(), "1002");
    let line = "backfill --sync-id s --table sales --from 900 --to 1002";
    let done = years.told(line);
    assert_eq!(done["range"], "[900, 1002)", "{done}");
    years.execute("INSERT INTO sales VALUES (1500, '2024-12-31 00:00:00', 1)");
    years.must("sync --sync-id s");
    let mut expected = years.source("id < 1500");
    expected.sort();
    assert_eq!(years.lake(&reader), expected);
}

/// While a piece is read nobody else may work on the table; between two of them a
/// sync may.
#[test]
fn a_sync_that_is_at_work_is_waited_for_between_pieces() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make(&format!("at:datetime@{START}"));
    years.must("sync --sync-id s");
    let hold = years.desk.path("hold");
    let line = format!("{BACKFILL} -a credentials.json --lxdb-auth-id state --output json");
    let mut command = years.desk.command();
    command
        .args(line.split_whitespace())
        .env("TIDELAKE_FAULT", "batch:main.sales")
        .env("TIDELAKE_FAULT_HOLD", &hold)
        .stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    while !hold.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let refused = years.answer("sync --sync-id s");
    assert_eq!(refused.code, 4, "{}", refused.transcript());
    std::fs::remove_file(&hold).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(years.lake(&reader), years.source("true"));
}
