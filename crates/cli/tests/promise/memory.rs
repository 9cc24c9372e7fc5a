//! Memory has a limit, however many rows a table has and however long they are.
//! They take their time: a further pass over the tests leaves this module out.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use crate::bench::{Bench, Report};
use crate::terminal::server;

/// Most that the process may have had, in KiB.
const LIMIT: u64 = 300 << 10;

/// Runs the sync below a Python that tells the highest amount of memory which the
/// program ever had.
fn watched(bench: &Bench, options: &[&str]) -> (Report, u64) {
    let script = "import resource, subprocess, sys\n\
                  code = subprocess.run(sys.argv[1:]).returncode\n\
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n\
                  sys.exit(code)";
    let program = bench.desk.command();
    let mut command = std::process::Command::new(server("TIDELAKE_TEST_PYTHON").unwrap());
    command.arg("-c").arg(script).arg(program.get_program());
    command.args(["sync", "-a", "credentials.json", "--lxdb-auth-id", "state", "--sync-id", "s"]);
    command.args(["--output", "json", "--no-progress"]).args(options);
    command.env_clear().env("HOME", bench.desk.path("")).current_dir(bench.desk.path(""));
    let began = Instant::now();
    let output = command.output().unwrap();
    let report = Report::of_output(&output);
    assert_eq!(report.code, 0, "{report:?}");
    let highest = report.stderr.lines().last().unwrap().trim().parse().unwrap();
    println!("{} MiB at most, {:.1} s", highest >> 10, began.elapsed().as_secs_f64());
    (report, highest)
}

#[test]
fn six_million_narrow_rows() {
    let Some(bench) = Bench::new(
        "CREATE UNLOGGED TABLE narrow (id integer NOT NULL, kind integer NOT NULL, at timestamp NOT NULL);
         INSERT INTO narrow SELECT i, i % 1000, timestamp '2026-01-01' + i * interval '1 second'
             FROM generate_series(1, 6000000) AS i;
         ANALYZE narrow",
    ) else {
        return;
    };
    bench.create("--incremental-table public.narrow:id:integer");
    let (report, highest) = watched(&bench, &[]);
    assert_eq!(report.rows("narrow"), 6_000_000);
    assert!(highest < LIMIT, "{} MiB", highest >> 10);
    let rows: u64 = bench
        .look_at_files("public/narrow")
        .iter()
        .map(|file| file["rows"].as_u64().unwrap())
        .sum();
    assert_eq!(rows, 6_000_000);
}

#[test]
fn cells_of_a_megabyte() {
    let Some(bench) = Bench::new(
        "CREATE UNLOGGED TABLE wide (id integer PRIMARY KEY, page text NOT NULL);
         ALTER TABLE wide ALTER page SET STORAGE EXTERNAL;
         INSERT INTO wide SELECT i, repeat(md5(i::text), 32768) FROM generate_series(1, 300) AS i;
         ANALYZE wide",
    ) else {
        return;
    };
    bench.create("--compression-type None");
    let (report, highest) = watched(&bench, &[]);
    assert_eq!(report.rows("wide"), 300);
    assert!(highest < LIMIT, "{} MiB", highest >> 10);
}

#[test]
fn many_tables_side_by_side() {
    let Some(bench) = Bench::new(
        "DO $$ BEGIN FOR i IN 1..12 LOOP
             EXECUTE format('CREATE UNLOGGED TABLE t%s AS SELECT j AS id, repeat(md5(j::text), 4096) AS page
                             FROM generate_series(1, 60) AS j', i);
         END LOOP; END $$; ANALYZE",
    ) else {
        return;
    };
    bench.create("--n-jobs 12 -p 4 --large-table-threshold 1");
    let (_, highest) = watched(&bench, &[]);
    assert!(highest < LIMIT, "{} MiB", highest >> 10);
}
