//! Rows of transactions that were open while a sync read, without any lag.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::bench::{Bench, Report};
use crate::database::Session;

const EVENTS: &str = "
    CREATE TABLE events (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), note text);
    CREATE INDEX ON events (at);
    INSERT INTO events (at, note) SELECT now() - i * interval '1 s', 'old' FROM generate_series(1, 50) AS i;
";
const BY_TIME: &str = "--incremental-table public.events:at:datetime --inflight-wait 1";
const BY_ID: &str = "--incremental-table public.events:id:integer --inflight-wait 1";

/// Longer than the moment by which a fenced window stays behind the clock.
fn settle() {
    sleep(Duration::from_millis(400));
}

/// Every row that is committed now arrives, each once, and a further run finds
/// nothing.
fn all_arrive(bench: &Bench) -> Report {
    settle();
    let report = bench.sync();
    bench.same("events", "true");
    settle();
    let idle = bench.sync();
    assert_eq!(idle.rows("events"), 0, "{idle:?}");
    bench.same("events", "true");
    report
}

fn pid(session: &Session) -> String {
    session.value("SELECT pg_backend_pid()")
}

#[test]
fn wrote_before_the_sync_and_commits_after_it() {
    let Some(bench) = Bench::new(EVENTS) else { return };
    bench.create(BY_TIME);
    let writer = bench.database.session();
    writer.run("BEGIN; INSERT INTO events (note) VALUES ('slow')");
    settle();
    bench.database.run("INSERT INTO events (note) VALUES ('quick, stamped later')");
    settle();
    let first = bench.sync();
    bench.same("events", "note = 'old'");
    let notices = first.notices("events");
    assert!(notices.contains("fence_lowered"), "{first:?}");
    assert!(notices.contains(&pid(&writer)) && notices.contains("tide"), "{notices}");
    writer.run("COMMIT");
    assert_eq!(all_arrive(&bench).rows("events"), 2);
}

#[test]
fn had_only_read_before_the_sync_and_writes_after_it() {
    let Some(bench) = Bench::new(EVENTS) else { return };
    bench.create(BY_TIME);
    let writer = bench.database.session();
    writer.run("BEGIN; SELECT count(*) FROM events");
    settle();
    bench.database.run("INSERT INTO events (note) VALUES ('quick')");
    settle();
    bench.sync();
    writer.run("INSERT INTO events (note) VALUES ('stamped before the sync'); COMMIT");
    all_arrive(&bench);
}

#[test]
fn is_prepared_and_commits_later() {
    for by in [BY_TIME, BY_ID] {
        let Some(bench) = Bench::new(EVENTS) else { return };
        bench.create(by);
        let writer = bench.database.session();
        writer.run("BEGIN; INSERT INTO events (note) VALUES ('prepared')");
        writer.run(&format!("PREPARE TRANSACTION 'the transfer {}'", bench.database.name));
        drop(writer);
        settle();
        bench.database.run("INSERT INTO events (note) VALUES ('quick')");
        let closed = bench.sync();
        assert_eq!(closed.rows("events"), 0, "{by}: {closed:?}");
        let notices = closed.notices("events");
        assert!(notices.contains("fence_closed"), "{by}: {closed:?}");
        assert!(notices.contains("the transfer"), "{by}: the gid is named: {notices}");
        assert!(bench.look("public/events").head.is_none(), "{by}: nothing is written");
        bench.database.run(&format!("COMMIT PREPARED 'the transfer {}'", bench.database.name));
        all_arrive(&bench);
    }
}

#[test]
fn is_prepared_after_a_first_run() {
    let Some(bench) = Bench::new(EVENTS) else { return };
    bench.create(BY_TIME);
    settle();
    bench.sync();
    bench.same("events", "true");
    let before = bench.progress("events")["progress"].clone();
    let gid = format!("second {}", bench.database.name);
    bench.database.session().run(&format!(
        "BEGIN; INSERT INTO events (note) VALUES ('prepared'); PREPARE TRANSACTION '{gid}'"
    ));
    settle();
    bench.sync();
    assert_eq!(bench.progress("events")["progress"], before, "a closed fence moves nothing");
    bench.database.run(&format!("COMMIT PREPARED '{gid}'"));
    all_arrive(&bench);
}

const PARTITIONED: &str = "
    CREATE TABLE events (id bigserial, at timestamptz NOT NULL DEFAULT now(), note text)
        PARTITION BY RANGE (id);
    CREATE TABLE events_low PARTITION OF events FOR VALUES FROM (0) TO (1000);
    CREATE TABLE events_high PARTITION OF events FOR VALUES FROM (1000) TO (2000);
    INSERT INTO events (at, note) SELECT now() - i * interval '1 s', 'old' FROM generate_series(1, 50) AS i;
";

#[test]
fn writes_straight_into_a_partition() {
    for by in [BY_TIME, BY_ID] {
        let Some(bench) = Bench::new(PARTITIONED) else { return };
        bench.create(&format!("{by} --include events"));
        let writer = bench.database.session();
        writer.run("BEGIN; INSERT INTO events_low VALUES (500, now(), 'slow')");
        settle();
        bench.database.run("INSERT INTO events VALUES (1500, now(), 'quick')");
        settle();
        let first = bench.sync();
        assert!(first.rows("events") <= 50, "{by}: {first:?}");
        writer.run("COMMIT");
        all_arrive(&bench);
    }
}

#[test]
fn a_number_taken_before_and_committed_after_a_higher_one() {
    let Some(bench) = Bench::new(EVENTS) else { return };
    bench.create(BY_ID);
    bench.sync();
    let writer = bench.database.session();
    writer.run("BEGIN; INSERT INTO events (note) VALUES ('slow and low')");
    bench.database.run("INSERT INTO events (note) VALUES ('quick and high')");
    let before = bench.progress("events")["progress"].clone();
    let waited = Instant::now();
    let second = bench.sync();
    assert!(waited.elapsed() > Duration::from_millis(900), "it waits for the writer");
    assert_eq!(second.rows("events"), 0, "{second:?}");
    let notices = second.notices("events");
    assert!(notices.contains(&pid(&writer)) && notices.contains("tide"), "{notices}");
    assert_eq!(bench.progress("events")["progress"], before);
    writer.run("COMMIT");
    assert_eq!(all_arrive(&bench).rows("events"), 2);
}

#[test]
fn a_writer_that_ends_while_the_sync_waits() {
    let Some(bench) = Bench::new(EVENTS) else { return };
    bench.create("--incremental-table public.events:id:integer --inflight-wait 60");
    let writer = bench.database.session();
    writer.run("BEGIN; INSERT INTO events (note) VALUES ('slow and low')");
    bench.database.run("INSERT INTO events (note) VALUES ('quick and high')");
    let report = scope(|scope| {
        let run = scope.spawn(|| bench.sync());
        sleep(Duration::from_millis(800));
        assert!(!run.is_finished(), "it waits for the writer");
        writer.run("COMMIT");
        run.join().unwrap()
    });
    assert_eq!(report.rows("events"), 52, "{report:?}");
    bench.same("events", "true");
}

#[test]
fn stays_open_for_longer_than_the_wait() {
    for by in [BY_TIME, BY_ID] {
        let Some(bench) = Bench::new(EVENTS) else { return };
        bench.create(by);
        let writer = bench.database.session();
        writer.run("BEGIN; INSERT INTO events (note) VALUES ('forgotten')");
        settle();
        for round in 0..3 {
            bench.database.run(&format!("INSERT INTO events (note) VALUES ('round {round}')"));
            settle();
            let report = bench.sync();
            let notices = report.notices("events");
            assert!(
                notices.contains(&pid(&writer)) && notices.contains("tide"),
                "{by}: {report:?}"
            );
            assert!(report.stderr.contains("public.events: "), "it is told: {report:?}");
        }
        writer.run("COMMIT");
        let all = all_arrive(&bench);
        assert!(all.rows("events") >= 4, "{by}: {all:?}");
    }
}

#[test]
fn a_fence_that_is_required_fails_where_it_cannot_be_had() {
    let Some(mut bench) = Bench::new(EVENTS) else { return };
    let required = "--inflight-fence require";
    // A writer that does not end.
    bench.create(&format!("{BY_ID} {required} --sync-id by_id"));
    let writer = bench.database.session();
    writer.run("BEGIN; INSERT INTO events (note) VALUES ('slow')");
    let failed = bench.try_sync("--sync-id by_id");
    assert_eq!(failed.code, 1, "{failed:?}");
    let error = failed.table("events")["error"].to_string();
    assert!(error.contains(&pid(&writer)), "{error}");
    assert!(error.contains("--inflight-ignore"), "{error}");
    writer.run("ROLLBACK");
    // A user who may not see the transactions of others.
    let user = format!("plain_{}", bench.database.name);
    bench.database.run(&format!(
        "CREATE ROLE {user} LOGIN PASSWORD 'plain';
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {user}"
    ));
    bench.credential("source", bench.database.credential_of(&user, "plain"));
    bench.create(&format!("{BY_TIME} {required} --sync-id by_time --output-dir blind"));
    let failed = bench.try_sync("--sync-id by_time");
    assert_eq!(failed.code, 1, "{failed:?}");
    let error = failed.table("events")["error"].to_string();
    assert!(error.contains("pg_read_all_stats"), "{error}");
    // Without a requirement the user is told, and the rows are read.
    bench.create(&format!("{BY_TIME} --sync-id told --output-dir told"));
    let told = bench.sync_as("--sync-id told");
    assert_eq!(told.rows("events"), 50);
    assert!(told.notices("events").contains("fence_unavailable"), "{told:?}");
    bench.credential("source", bench.database.credential());
    bench.database.run(&format!("DROP OWNED BY {user}; DROP ROLE {user}"));
    // A prepared transaction.
    let gid = format!("prepared {}", bench.database.name);
    bench.database.session().run(&format!(
        "BEGIN; INSERT INTO events (note) VALUES ('prepared'); PREPARE TRANSACTION '{gid}'"
    ));
    let failed = bench.try_sync("--sync-id by_time");
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.table("events")["error"].to_string().contains(&gid), "{failed:?}");
    // A cursor that no fence protects.
    let refused = bench.try_create(&format!(
        "--incremental-table public.events:note:text {required} --sync-id by_text --sub-path text"
    ));
    assert_eq!(refused.code, 2, "{}", refused.transcript());
}

#[test]
fn users_that_are_ignored() {
    let Some(bench) = Bench::new(EVENTS) else { return };
    let user = format!("loader_{}", bench.database.name);
    bench.database.run(&format!(
        "CREATE ROLE {user} LOGIN PASSWORD 'loader';
         GRANT ALL ON ALL TABLES IN SCHEMA public TO {user};
         GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {user}"
    ));
    for (number, by) in [BY_TIME, BY_ID].into_iter().enumerate() {
        let id = format!("--sync-id s{number}");
        let folder = format!("s{number}");
        bench.create(&format!("{by} --inflight-ignore 'nobody,{user}' {id} --sub-path {folder}"));
        let loader = bench.database.session_of(&user, "loader");
        loader.run("BEGIN; INSERT INTO events (note) VALUES ('ignored')");
        settle();
        bench.database.run("INSERT INTO events (note) VALUES ('quick')");
        settle();
        let report = bench.sync_as(&id);
        assert!(!report.notices("events").contains("fence"), "{report:?}");
        bench.same_in(&format!("{folder}/public/events"), "public", "events", "true");
        loader.run("ROLLBACK");
    }
    bench.database.run(&format!("DROP OWNED BY {user}; DROP ROLE {user}"));
}

#[test]
fn a_run_stopped_in_the_middle_keeps_what_the_fence_kept_back() {
    let Some(bench) = Bench::new(EVENTS) else { return };
    bench.create(BY_TIME);
    let writer = bench.database.session();
    writer.run("BEGIN; INSERT INTO events (note) VALUES ('slow')");
    settle();
    let mut command = bench.desk.command();
    command.args(["sync", "-a", "credentials.json", "--lxdb-auth-id", "state", "--sync-id", "s"]);
    let output = command.env("TIDELAKE_FAULT", "window").output().unwrap();
    assert!(!output.status.success(), "it was to die");
    bench.database.run("INSERT INTO events (note) VALUES ('between')");
    writer.run("COMMIT");
    settle();
    bench.sync();
    all_arrive(&bench);
}
