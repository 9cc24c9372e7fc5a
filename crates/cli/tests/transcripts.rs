//! Whole exchanges with the program, as a user sees them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod terminal;

use serde_json::Value;
use terminal::{Desk, stable};

const CREATE: &str = "config create -a credentials.json --source-db-auth-id shop \
                      --output-dir lake --sync-id nightly --n-jobs 1 \
                      --incremental-table main.orders:updated_at:datetime \
                      --incremental-table main.events:id:integer";
const SYNC: &str = "sync -a credentials.json --sync-id nightly";

fn snapshot(name: &str, text: &str) {
    stable().bind(|| insta::assert_snapshot!(name, text));
}

fn json(text: &str) -> Value {
    let value = serde_json::from_str(text);
    assert!(value.is_ok(), "{value:?}: {text}");
    value.unwrap_or_default()
}

#[test]
fn help() {
    let desk = Desk::new();
    for (name, line) in [
        ("help", "--help"),
        ("help_config_create", "config create --help"),
        ("help_config_create_short", "config create -h"),
        ("help_sync", "sync[export] --help"),
        ("help_watermarks", "watermarks --help"),
    ] {
        snapshot(name, &desk.must(line));
    }
}

#[test]
fn the_version_is_one_line() {
    let version = Desk::new().must("--version");
    assert_eq!(version, format!("tidelake {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_demo_needs_nothing() {
    let desk = Desk::new();
    let answer = desk.run("demo --dir shop");
    assert_eq!(answer.code, 0, "{}", answer.transcript());
    assert_eq!(answer.stderr, "");
    snapshot("demo", &answer.stdout);
    let again = desk.run("demo --dir shop");
    assert_eq!(again.code, 2, "the folder is not empty any more");
}

#[test]
fn a_demo_for_programs() {
    let desk = Desk::new();
    let made: Value = serde_json::from_str(&desk.must("demo --dir shop --output json")).unwrap();
    assert_eq!(made["sync_id"], "demo");
    assert_eq!(made["runs"].as_array().unwrap().len(), 2);
    assert_eq!(made["runs"][1]["status"], "completed");
}

/// Whoever reads the results, or the talk, may go: `tidelake … | head -1`.
#[test]
#[cfg(unix)]
fn readers_that_go_away_change_nothing() {
    use std::process::Stdio;
    let desk = Desk::new();
    desk.must(
        "config create -a credentials.json --source-db-auth-id shop --output-dir lake \
         --sync-id nightly",
    );
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for line in ["--help", "config list", "status --output json", "reference", "completions bash"] {
        let ended = desk.command().args(line.split(' ')).stdout(gone()).output().unwrap();
        let talk = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && !talk.contains("panicked"), "{line}: {talk}");
    }
    let sync = ["sync", "-a", "credentials.json", "--sync-id", "nightly", "--log-level", "DEBUG"];
    let ended = desk.command().args(sync).stdout(gone()).stderr(gone()).status().unwrap();
    assert_eq!(ended.code(), Some(0), "the sync itself ended well");
    let ended = desk.command().arg("snyc").stdout(gone()).stderr(gone()).status().unwrap();
    assert_eq!(ended.code(), Some(2), "a mistake stays one");
}

#[test]
fn a_sync_twice() {
    let desk = Desk::new();
    let mut text = String::new();
    let mut run = |line: &str| {
        let answer = desk.run(line);
        assert_eq!(answer.code, 0, "{}", answer.transcript());
        text.push_str(answer.transcript());
        text.push('\n');
    };
    run(CREATE);
    run("config list");
    run("config show --sync-id nightly");
    run("plan -a credentials.json --sync-id nightly");
    run(SYNC);
    run(SYNC);
    desk.shop(
        "INSERT INTO orders VALUES (3, '2024-01-03 10:00:00', 3.5, 'third');
         INSERT INTO events (kind) VALUES ('return');",
    );
    run(SYNC);
    run("watermarks list");
    run("watermarks get --table main.events");
    run("status");
    run("status --verbose --limit 1");
    run("config delete --sync-id nightly");
    snapshot("a_sync_twice", &text);
}

#[test]
fn watermarks_by_hand() {
    let desk = Desk::new();
    desk.must(CREATE);
    desk.must(SYNC);
    let mut text = String::new();
    for line in [
        "watermarks set --table main.events 1 --reason 'read two again'",
        "watermarks undo --sync-id nightly --table main.events",
        "watermarks set --table main.events yesterday",
        "watermarks set --sync-id nightly 7",
        "watermarks set --table main.events --value 2 --expected-version 1",
        "watermarks reset --table main.events --reason 'from the start'",
        "watermarks history --table main.events",
        SYNC,
        "watermarks delete --table main.events",
        "watermarks get --table main.events",
    ] {
        text.push_str(desk.run(line).transcript());
        text.push('\n');
    }
    snapshot("watermarks_by_hand", &text);
}

#[test]
fn json_documents() {
    let desk = Desk::new();
    let mut text = String::new();
    for line in [
        CREATE,
        "config list",
        "plan -a credentials.json --sync-id nightly",
        SYNC,
        "watermarks list",
        "watermarks history --table main.orders",
        "watermarks set --table main.events 1",
        "status",
        "lxdb locks",
    ] {
        let answer = desk.run(&format!("{line} --output json"));
        assert_eq!(answer.code, 0, "{}", answer.transcript());
        json(&answer.stdout);
        text.push_str(&format!("$ tidelake {line} --output json\n{}\n", answer.stdout));
    }
    snapshot("json_documents", &text);
}

#[test]
fn a_failed_table_is_told_with_the_others() {
    let desk = Desk::new();
    desk.must(&format!("{CREATE} --error-action continue"));
    desk.must(SYNC);
    desk.shop("ALTER TABLE orders DROP COLUMN note; INSERT INTO events (kind) VALUES ('x');");
    let answer = desk.run(SYNC);
    snapshot("a_failed_table", answer.transcript());
    assert_eq!(answer.code, 3, "{}", answer.transcript());
}

#[test]
fn the_other_spelling_means_the_same() {
    let desk = Desk::new();
    let line = "config create --auth_file credentials.json --source_db_auth_id shop \
                --output_dir lake --sync_id nightly --quiet_fbcp --no_banner \
                --fastbcp_dir_path /opt --license abc --log_level debug";
    let answer = desk.run(line);
    assert_eq!(answer.code, 0, "{}", answer.transcript());
    assert_eq!(answer.stdout, "nightly\n");
    for option in ["--quiet-fbcp", "--no-banner", "--fastbcp-dir-path", "--license"] {
        let told = format!("{option} has no meaning here and is ignored");
        assert_eq!(answer.stderr.matches(&told).count(), 1, "{}", answer.stderr);
    }
    let export = desk.run("sync[export] -a credentials.json --sync_id nightly");
    assert_eq!(export.code, 0, "{}", export.transcript());
    let publish = desk.run("sync[publish] -a credentials.json --sync_id nightly");
    assert_eq!(publish.code, 0, "{}", publish.transcript());
}

#[test]
fn a_negative_number_is_no_option() {
    let desk = Desk::new();
    desk.must(&format!("{CREATE} -p -2"));
    let sync = json(&desk.must("config show --sync-id nightly --output json"));
    assert_eq!(sync["parallel"], -2);
    desk.must(SYNC);
    desk.must("watermarks set --table main.events -5");
    let record = json(&desk.must("watermarks get --table main.events --output json"));
    assert_eq!(record["progress"]["watermark"]["value"], "-5");
}

#[test]
fn a_missing_command_is_answered_with_those_that_are() {
    let desk = Desk::new();
    for (line, command) in [("", "watermarks"), ("config", "create"), ("lxdb", "locks")] {
        let answer = desk.run(line);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
        assert!(answer.stderr.contains(command), "{}", answer.stderr);
    }
}

#[test]
fn a_dry_run_stores_nothing() {
    let desk = Desk::new();
    let answer = desk.run(&format!("{CREATE} --dry-run"));
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{}", answer.transcript());
    assert_eq!(desk.must("config list --output json"), "[]\n");
}

#[test]
fn debug_shows_windows_and_statements() {
    let desk = Desk::new();
    desk.must(CREATE);
    let answer = desk.run(&format!("{SYNC} --log-level debug --log-dir logs"));
    assert_eq!(answer.code, 0, "{}", answer.transcript());
    for part in ["window", "SELECT", "main.orders"] {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
    let logs: Vec<_> = std::fs::read_dir(desk.path("logs")).unwrap().collect();
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    let text = std::fs::read_to_string(log.as_ref().unwrap().path()).unwrap();
    assert!(text.lines().count() > 3, "{text}");
    for line in text.lines() {
        assert!(json(line)["timestamp"].is_string(), "{line}");
    }
}

#[test]
fn the_state_store_can_be_emptied() {
    let desk = Desk::new();
    desk.must("lxdb init");
    desk.must(CREATE);
    desk.must("lxdb truncate --confirm");
    assert_eq!(desk.must("config list --output json"), "[]\n");
    desk.must("lxdb drop --confirm");
    desk.must("lxdb init");
}

#[test]
#[cfg(unix)]
fn the_data_folder_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.must("lxdb init");
    let folder = desk.path(".local/share/tidelake");
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(folder.clone()) & 0o777, 0o700);
    assert_eq!(mode(folder.join("state.db")) & 0o077, 0);
}

#[test]
fn completions_name_the_commands() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.must(&format!("completions {shell}"));
        assert!(script.contains("watermarks") && script.contains("release-locks"), "{shell}");
    }
    assert!(desk.must("man").contains("tidelake"));
}

#[test]
#[cfg(unix)]
fn a_run_that_was_stopped_goes_on() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    let desk = Desk::new();
    desk.shop(
        "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
         INSERT INTO events SELECT i, 'visit' FROM n;",
    );
    desk.must(CREATE);
    let mut command = desk.command();
    command.args(SYNC.split(' ')).args(["--log-level", "DEBUG"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("main.events: window") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the run ended early");
    }
    let killed = Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("press Ctrl-C again to stop at once"), "{rest}");
    assert!(rest.contains("hint: run the same command again"), "{rest}");

    let report = json(&desk.must(&format!("{SYNC} --output json")));
    let events = &report["tables"][0];
    assert_eq!(events["table"]["table"], "events");
    assert_eq!(events["rows"], 300_000 - 10 + 1 + 3);
}

/// Where the time of a run goes, without the times.
#[test]
fn the_time_line_of_a_run() {
    let desk = Desk::new();
    desk.must(CREATE);
    for name in ["time_line_first", "time_line_nothing_new"] {
        let answer = desk.run(&format!("{SYNC} --log-level DEBUG"));
        let lines = answer.stderr.lines().filter_map(|line| line.split_once("time line: "));
        let is_number = |word: &&str| word.contains('.') && word.parse::<f64>().is_ok();
        let lines = lines.map(|(_, line)| {
            let numbers: Vec<_> = line.split_whitespace().take_while(is_number).collect();
            let rest = numbers.iter().fold(line, |rest, number| {
                rest.split_once(number).map_or(rest, |(_, after)| after)
            });
            format!("{}{rest}\n", "<ms>".repeat(numbers.len()))
        });
        snapshot(name, &lines.collect::<String>());
    }
}
