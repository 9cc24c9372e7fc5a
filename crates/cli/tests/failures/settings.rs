//! Settings of a server, a database or a role that change what its text looks like
//! and how it reads ours.

use crate::bench::{Bench, literal};

const ODD: &str = "
    CREATE TABLE odd (
        id integer PRIMARY KEY, at timestamp NOT NULL, zoned timestamptz NOT NULL, day date,
        clock time, span interval, bytes bytea, large float8, small float4, numbers numeric,
        name text NOT NULL, list integer[]
    );
    INSERT INTO odd SELECT
        i, timestamp '2024-03-04 05:06:07.123456' + i * interval '25 h',
        timestamptz '2024-03-04 05:06:07.123456+00' + i * interval '25 h',
        date '2024-05-03' + i, time '23:59:59.999999', i * interval '1 month 2 days 03:04:05.6',
        decode('00ff5c27' || lpad(to_hex(i), 2, '0'), 'hex'), i / 3.0::float8, i / 7.0::float4,
        i / 3.0, 'na''me \\ ' || i || ' \\'' ü', ARRAY[i, NULL]
    FROM generate_series(1, 9) AS i;
    SET timezone = 'UTC';
";

/// Everything that a role or a database may have set, and that a client which
/// trusts the defaults stumbles over.
const SETTINGS: [(&str, &str); 12] = [
    ("datestyle", "'SQL, DMY'"),
    ("intervalstyle", "'sql_standard'"),
    ("timezone", "'America/New_York'"),
    ("bytea_output", "'escape'"),
    ("extra_float_digits", "'-15'"),
    ("standard_conforming_strings", "off"),
    ("array_nulls", "off"),
    ("search_path", "'nowhere'"),
    ("client_encoding", "'LATIN1'"),
    ("default_transaction_isolation", "'serializable'"),
    ("default_transaction_read_only", "on"),
    ("row_security", "off"),
];

#[test]
fn settings_of_a_role_change_nothing() {
    let Some(mut bench) = Bench::new(ODD) else { return };
    let role = format!("odd_{}", bench.database.name);
    bench.database.run(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'odd'; GRANT pg_read_all_stats TO {role};
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
    ));
    for (setting, value) in SETTINGS {
        bench.database.run(&format!("ALTER ROLE {role} SET {setting} TO {value}"));
    }
    let session = bench.database.session_of(&role, "odd");
    assert_eq!(session.value("SELECT timestamp '2024-05-03'"), "03/05/2024 00:00:00");
    let plain = bench.credentials["source"].clone();
    let odd = bench.database.credential_of(&role, "odd");

    let cursors = ["at:datetime", "zoned:datetime", "day:date", "name:text", "bytes:binary"];
    let create = |bench: &Bench, id: &str, options: &str| {
        bench.create(&format!("--sync-id {id} --sub-path {id} --include odd {options}"));
    };
    create(&bench, "plain", "");
    for (number, cursor) in cursors.into_iter().enumerate() {
        let options = format!(
            "--incremental-table public.odd:{cursor} --cursor-zone UTC --inflight-fence off"
        );
        create(&bench, &format!("by{number}"), &options);
    }
    // In the second round the stored watermark is a literal of a condition.
    for round in 0..2 {
        if round > 0 {
            bench.database.run(
                "INSERT INTO odd SELECT id + 100, at + interval '400 d', zoned + interval '400 d',
                     day + 400, clock, span, '\\xff'::bytea || bytes, large, small, numbers, 'z' || name,
                     list FROM odd",
            );
        }
        bench.credential("source", plain.clone());
        assert!(bench.sync_as("--sync-id plain").rows("odd") >= 9);
        let wanted = bench.look("plain/public/odd");
        bench.credential("source", odd.clone());
        for (number, cursor) in cursors.into_iter().enumerate() {
            let report = bench.sync_as(&format!("--sync-id by{number}"));
            assert_eq!(report.rows("odd"), 9, "{cursor}: {report:?}");
            let found = bench.look(&format!("by{number}/public/odd"));
            assert_eq!((found.types, found.rows), (wanted.types.clone(), wanted.rows.clone()));
        }
    }
    bench.database.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn hours_that_a_clock_shows_twice_or_never_are_read_once() {
    let Some(bench) =
        Bench::new("CREATE TABLE events (id serial PRIMARY KEY, at timestamp NOT NULL, note text)")
    else {
        return;
    };
    let zone = "Europe/Berlin";
    bench.database.run(&format!(
        "ALTER DATABASE {} SET timezone TO {}",
        bench.database.name,
        literal(zone)
    ));
    // Of the night in which an hour comes twice, and of that in which one is left out.
    bench.database.run(
        "INSERT INTO events (at, note) SELECT at, note FROM (VALUES
             (timestamp '2024-10-27 01:59:59', 'before'), ('2024-10-27 02:30:00', 'first'),
             ('2024-10-27 02:30:00', 'again'), ('2024-10-27 02:59:59.999999', 'first'),
             ('2024-10-27 03:00:00', 'after'), ('2025-03-30 01:59:59', 'before'),
             ('2025-03-30 02:30:00', 'never'), ('2025-03-30 03:00:00', 'after')) AS v (at, note)",
    );
    for (number, options) in
        ["", ":i@2024-10-27T02:30:00", ":e@2024-10-27T02:30:00"].into_iter().enumerate()
    {
        let id = format!("--sync-id s{number}");
        bench.create(&format!(
            "--incremental-table public.events:at:datetime{options} --inflight-fence off {id} \
             --sub-path {number}"
        ));
        bench.sync_as(&id);
        bench.sync_as(&id);
        let condition = match number {
            0 => "true",
            1 => "at > '2024-10-27 02:30:00'",
            _ => "at >= '2024-10-27 02:30:00'",
        };
        bench.same_in(&format!("{number}/public/events"), "public", "events", condition);
    }
}
