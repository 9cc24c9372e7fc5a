//! A large result is not held in memory: kafka-connect-jdbc#34.

use crate::bench::{Bench, Report};
use crate::database::{Server, servers};
use crate::terminal;

/// Most that the process may have had, in KiB.
const LIMIT: u64 = 300 << 10;

/// Runs the sync below a Python that tells the highest amount of memory which the
/// program ever had.
fn watched(bench: &Bench) -> (Report, u64) {
    let script = "import resource, subprocess, sys\n\
                  code = subprocess.run(sys.argv[1:]).returncode\n\
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n\
                  sys.exit(code)";
    let program = bench.desk.command();
    let python = terminal::server("TIDELAKE_TEST_PYTHON").unwrap();
    let mut command = std::process::Command::new(python);
    command.arg("-c").arg(script).arg(program.get_program());
    command.args(["sync", "-a", "credentials.json", "--lxdb-auth-id", "state", "--sync-id", "s"]);
    command.args(["--output", "json", "--no-progress"]);
    command.env_clear().env("HOME", bench.desk.path("")).current_dir(bench.desk.path(""));
    let report = Report::of_output(&command.output().unwrap());
    assert_eq!(report.code, 0, "{report:?}");
    let highest = report.stderr.lines().last().unwrap().trim().parse().unwrap();
    println!("{:?}: {} MiB at most", bench.database.server, highest >> 10);
    (report, highest)
}

/// Half a gigabyte in one result.
fn megabytes(server: Server) {
    if !server.is_there() {
        return;
    }
    let sql = format!(
        "CREATE TABLE wide (id INT PRIMARY KEY, page LONGTEXT NOT NULL);
         INSERT INTO wide SELECT n, REPEAT(SHA2(n, 256), 16384) FROM {};
         ANALYZE TABLE wide",
        server.series(500)
    );
    let Some(bench) = Bench::new(server, &sql) else { return };
    bench.create("--compression-type None");
    let (report, highest) = watched(&bench);
    assert_eq!(report.rows("wide"), 500);
    assert!(highest < LIMIT, "{} MiB", highest >> 10);
}

#[test]
fn cells_of_a_megabyte_from_mariadb() {
    megabytes(Server::MariaDb);
}

#[test]
fn cells_of_a_megabyte_from_mysql() {
    megabytes(Server::MySql);
}

#[test]
fn a_million_narrow_rows_in_one_statement() {
    for server in servers() {
        let sql = format!(
            "CREATE TABLE narrow (id INT NOT NULL, kind INT NOT NULL, name CHAR(200) NOT NULL);
             INSERT INTO narrow SELECT n, n % 1000, SHA2(n, 256) FROM {}",
            server.series(1_000_000)
        );
        let Some(bench) = Bench::new(server, &sql) else { return };
        bench.create("--parallel 1");
        let (report, highest) = watched(&bench);
        assert_eq!(report.rows("narrow"), 1_000_000);
        assert!(highest < LIMIT, "{server:?}: {} MiB", highest >> 10);
    }
}
