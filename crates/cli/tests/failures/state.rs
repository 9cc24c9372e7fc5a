//! One state store under many jobs.

use std::process::Stdio;

use serde_json::Value;

use crate::terminal::Desk;

/// As many as people reported.
const JOBS: usize = 12;

#[test]
fn a_dozen_jobs_share_one_state_file() {
    let desk = Desk::new();
    for number in 0..JOBS {
        desk.must(&format!(
            "config create -a credentials.json --source-db-auth-id shop --output-dir lake \
             --sub-path job{number} --sync-id job{number} \
             --incremental-table main.events:id:integer"
        ));
    }
    for round in 1..=2_u64 {
        let start = |number| {
            let mut command = desk.command();
            command.args(["sync", "-a", "credentials.json", "--sync-id", &format!("job{number}")]);
            command.args(["--output", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let jobs: Vec<_> = (0..JOBS).map(start).collect();
        for (number, job) in jobs.into_iter().enumerate() {
            let ended = job.wait_with_output().unwrap();
            let talk = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(0), "job{number}: {talk}");
            assert!(!talk.contains("locked"), "job{number}: {talk}");
            let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
            let tables = report["tables"].as_array().unwrap();
            let events = tables.iter().find(|table| table["table"]["table"] == "events").unwrap();
            assert_eq!(events["rows"], if round == 1 { 3 } else { 1 }, "job{number}: {events}");
        }
        desk.shop("INSERT INTO events (kind) VALUES ('more')");
    }
    let watermarks: Value =
        serde_json::from_str(&desk.must("watermarks list --output json")).unwrap();
    let watermarks = watermarks.as_array().unwrap();
    assert_eq!(watermarks.len(), JOBS);
    for watermark in watermarks {
        assert_eq!(watermark["progress"]["watermark"]["value"], "4", "{watermark}");
    }
}
