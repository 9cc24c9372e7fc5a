//! Reads in slices: each row once, all of one moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use crate::bench::{Bench, Held};
use crate::database::{Database, servers};

const OPTIONS: &str = "--parallel 4 --large-table-threshold 1";

/// Moves amounts between accounts, and opens and closes some: the sum and the number
/// are the same at every moment.
fn transfer(database: &Database, stop: &AtomicBool) {
    let session = database.session();
    let mut turn: u64 = 1;
    while !stop.load(Ordering::Relaxed) {
        turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (from, to) = ((turn >> 33) % 20_000 + 1, (turn >> 40) % 20_000 + 1);
        session.run(&format!(
            "START TRANSACTION;
             UPDATE accounts SET amount = amount - 7 WHERE id = {from};
             UPDATE accounts SET amount = amount + 7 WHERE id = {to};
             UPDATE accounts SET id = id + 100000 WHERE id = {to};
             UPDATE accounts SET id = id - 100000 WHERE id = 100000 + {to};
             COMMIT"
        ));
    }
}

/// Stops the writer, also where the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// seatunnel#7073: slices that are read at different moments overlap or miss rows.
#[test]
fn slices_of_a_table_that_changes_are_of_one_moment() {
    for server in servers() {
        let sql = format!(
            "CREATE TABLE accounts (id BIGINT PRIMARY KEY, amount BIGINT NOT NULL, pad CHAR(100));
             INSERT INTO accounts SELECT n, 1000, SHA2(n, 256) FROM {};
             ANALYZE TABLE accounts",
            server.series(20_000)
        );
        let Some(bench) = Bench::new(server, &sql) else { return };
        bench.create(&format!("{OPTIONS} --fastbcp-table-config accounts:RangeId:id:4"));
        let stop = AtomicBool::new(false);
        scope(|scope| {
            let _stop = StopAtEnd(&stop);
            scope.spawn(|| transfer(&bench.database, &stop));
            for _ in 0..3 {
                let report = bench.sync();
                let rows = bench.look("", "accounts");
                let amount =
                    |row: &Vec<Option<String>>| row[1].as_ref().unwrap().parse::<i64>().unwrap();
                let sum: i64 = rows.iter().map(amount).sum();
                assert_eq!((rows.len(), sum), (20_000, 20_000_000), "{server:?}: {report:?}");
                assert!(report.table("accounts")["files"].as_u64() > Some(1), "{report:?}");
            }
        });
    }
}

/// seatunnel#2032: rows at the edges of slices; rivet 0.19: sparse numbers.
#[test]
fn edges_of_slices_and_sparse_numbers_are_read_once() {
    for server in servers() {
        let sql = format!(
            "CREATE TABLE sparse (id BIGINT UNSIGNED PRIMARY KEY, pad CHAR(60));
             INSERT INTO sparse SELECT n * 900000000000, SHA2(n, 224) FROM {series};
             INSERT INTO sparse VALUES (0, 'lowest'), (1, 'low'), (18446744073709551615, 'highest'),
                 (18446744073709551614, 'high'), (9223372036854775807, 'm'), (9223372036854775808, 'm');
             ANALYZE TABLE sparse",
            series = server.series(10_000)
        );
        let Some(bench) = Bench::new(server, &sql) else { return };
        bench.create(&format!("{OPTIONS} --fastbcp-table-config sparse:RangeId:id:4"));
        let run = Held::start(&bench, "split:{db}.sparse");
        bench.database.run("INSERT INTO sparse VALUES (2, 'came after the snapshot')");
        let report = run.end();
        assert_eq!(report.rows("sparse"), 10_006, "{server:?}: {report:?}");
        bench.same("sparse", "SELECT id, pad FROM sparse WHERE id <> 2", "the first run");
        bench.sync();
        bench.same("sparse", "SELECT id, pad FROM sparse", "the second run");
    }
}

/// seatunnel#4570, #5859: nothing to read. seatunnel#4732: NULL where a table is cut.
/// estuary/connectors#1343: keys whose order is the server's alone.
#[test]
fn empty_tables_nulls_and_keys_of_text_are_read_in_slices() {
    for server in servers() {
        let sql = format!(
            "CREATE TABLE nothing (id INT PRIMARY KEY, kind INT, KEY (kind));
             CREATE TABLE holes (id INT PRIMARY KEY, kind INT, KEY (kind));
             INSERT INTO holes SELECT n, IF(n % 3 = 0, NULL, n % 100) FROM {series};
             CREATE TABLE words (word VARCHAR(80) PRIMARY KEY, n INT NOT NULL);
             INSERT INTO words SELECT CONCAT(CHAR(65 + n % 26), IF(n % 2, 'ä', 'Z'), n, ' '), n
                 FROM {series};
             ANALYZE TABLE nothing, holes, words",
            series = server.series(6_000)
        );
        let Some(bench) = Bench::new(server, &sql) else { return };
        bench.create(&format!(
            "{OPTIONS} --fastbcp-table-config 'nothing:RangeId:kind:3;holes:RangeId:kind:3'"
        ));
        let report = bench.sync();
        assert_eq!(report.table("nothing")["status"], "completed", "{server:?}: {report:?}");
        assert_eq!(report.rows("nothing"), 0, "{server:?}: {report:?}");
        bench.same("holes", "SELECT id, kind FROM holes", &format!("{server:?}"));
        bench.same("words", "SELECT word, n FROM words", &format!("{server:?}"));
    }
}
