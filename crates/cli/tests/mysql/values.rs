//! Values that others shift, cut or lose.

use crate::bench::{Bench, time};
use crate::database::{Row, servers};

fn row(cells: &[Option<&str>]) -> Row {
    cells.iter().map(|cell| cell.map(str::to_owned)).collect()
}

/// duckdb-mysql#105 and #81: the server's default zone is five and a half hours
/// ahead, the client's is another, and the bounds of a window are the same instants.
#[test]
fn a_timestamp_is_shifted_by_no_time_zone() {
    for server in servers() {
        let tables = "
            SET time_zone = '-08:00';
            CREATE TABLE moments (
                id INT PRIMARY KEY, at TIMESTAMP(6) NOT NULL, wall DATETIME(6) NOT NULL
            );
            INSERT INTO moments VALUES
                (1, '2024-03-31 02:30:00.000001', '2024-03-31 02:30:00.000001'),
                (2, '2024-10-27 01:30:00', '2024-10-27 01:30:00');
            SET time_zone = '+00:00'";
        let Some(bench) = Bench::new(server, tables) else { return };
        assert_eq!(bench.database.value("SELECT @@global.time_zone"), "+05:30");
        bench.create("--incremental-table {db}.moments:at:datetime");
        bench.sync();
        let wanted = vec![
            row(&[
                Some("1"),
                Some("2024-03-31T10:30:00.000001Z"),
                Some("2024-03-31T02:30:00.000001"),
            ]),
            row(&[Some("2"), Some("2024-10-27T09:30:00Z"), Some("2024-10-27T01:30:00")]),
        ];
        assert_eq!(bench.look("", "moments"), wanted, "{server:?}");
        // A bound in another zone would find both again, or neither.
        bench.database.run(
            "INSERT INTO moments VALUES (3, '2024-10-27 09:30:00', '2024-01-01 00:00:00'),
                                        (4, '2024-10-27 09:30:00.000001', '2024-01-01 00:00:00')",
        );
        let second = bench.sync();
        assert_eq!(second.rows("moments"), 1, "{server:?}: {second:?}");
        let query = format!(
            "SELECT id, {}, {} FROM moments WHERE id <> 3",
            time("at", "Z"),
            time("wall", "")
        );
        bench.same("moments", &query, "a tie that came later is a late row");
    }
}

const ZEROS: &str = "
    SET sql_mode = 'ALLOW_INVALID_DATES';
    CREATE TABLE days (id INT PRIMARY KEY, day DATE, moment DATETIME);
    INSERT INTO days VALUES
        (1, '0000-00-00', '0000-00-00 00:00:00'), (2, '2000-00-10', '2024-02-30 12:00:00'),
        (3, '2024-02-29', '9999-12-31 23:59:59'), (4, '0000-12-19', NULL),
        (5, '1000-01-01', '0001-01-01 00:00:00');
    SET sql_mode = DEFAULT";

/// airbyte#2601, #16574, connector-x#476, duckdb-mysql#24 and their like.
#[test]
fn zero_dates_follow_the_policy_and_are_counted() {
    for server in servers() {
        let Some(bench) = Bench::new(server, ZEROS) else { return };
        bench.create("--sync-id null --sub-path null");
        let null = bench.sync_as("--sync-id null");
        let found = bench.look("null/", "days");
        assert_eq!(found[0], row(&[Some("1"), None, None]), "{server:?}");
        assert_eq!(found[1], row(&[Some("2"), None, None]), "{server:?}");
        assert_eq!(found[2], row(&[Some("3"), Some("2024-02-29"), Some("9999-12-31T23:59:59")]));
        assert_eq!(found[3], row(&[Some("4"), None, None]), "{server:?}");
        assert_eq!(found[4], row(&[Some("5"), Some("1000-01-01"), Some("0001-01-01T00:00:00")]));
        assert_eq!(null.counter("days", "zero_date:day"), Some(3), "{server:?}: {null:?}");
        assert_eq!(null.counter("days", "zero_date:moment"), Some(2), "{server:?}: {null:?}");

        bench.create("--sync-id text --sub-path text --on-zero-date text");
        bench.sync_as("--sync-id text");
        let found = bench.look("text/", "days");
        assert_eq!(found[0], row(&[Some("1"), Some("0000-00-00"), Some("0000-00-00 00:00:00")]));
        assert_eq!(found[1], row(&[Some("2"), Some("2000-00-10"), Some("2024-02-30 12:00:00")]));

        bench.create("--sync-id fail --sub-path fail --on-zero-date fail");
        let failed = bench.try_sync("--sync-id fail");
        assert_eq!(failed.code, 1, "{server:?}: {failed:?}");
        let error = failed.table("days")["error"].to_string();
        assert!(error.contains("day") && error.contains("0000-00-00"), "{server:?}: {error}");
        assert!(!failed.stderr.contains("trying again"), "{failed:?}");
    }
}

/// A window reaches no zero date, so such a row would be lost without a word.
#[test]
fn a_zero_date_in_the_cursor_is_told_and_never_skipped() {
    for server in servers() {
        let Some(bench) = Bench::new(server, ZEROS) else { return };
        bench.create("--incremental-table {db}.days:day:date");
        let report = bench.try_sync("");
        assert_eq!(report.code, 1, "{server:?}: {report:?}");
        let error = &report.table("days")["error"];
        assert_eq!(error["kind"], "data", "{server:?}: {report:?}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("\"day\"") && message.contains("0000-00-00"), "{report:?}");
        assert!(error["hint"].is_string(), "{server:?}: {report:?}");
        bench.database.run(
            "SET sql_mode = 'ALLOW_INVALID_DATES';
             UPDATE days SET day = NULL WHERE id IN (1, 2, 4); SET sql_mode = DEFAULT",
        );
        let report = bench.sync();
        assert_eq!(report.rows("days"), 5, "{server:?}: {report:?}");
        assert_eq!(report.counter("days", "zero_date:moment"), Some(2), "{report:?}");
    }
}

/// airbyte#3840, #7559, #76180, #10976, sling#433, #320, #96.
#[test]
fn unsigned_numbers_tinyint_1_and_bits_keep_every_value() {
    for server in servers() {
        let tables = "
            CREATE TABLE numbers (
                id BIGINT UNSIGNED PRIMARY KEY, medium MEDIUMINT UNSIGNED, plain INT UNSIGNED,
                flag TINYINT(1), small TINYINT UNSIGNED, bit_1 BIT(1), bits BIT(64), year YEAR,
                exact DECIMAL(65, 30), zeros INT(6) ZEROFILL
            );
            INSERT INTO numbers VALUES
                (18446744073709551615, 16777215, 4294967295, 127, 255, b'1', ~0, 2155,
                 12345678901234567890123456789012345.123456789012345678901234567890, 7),
                (9223372036854775808, 0, 2147483648, -128, 128, b'0', 0, 1901,
                 -0.000000000000000000000000000001, 0),
                (0, NULL, NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL)";
        let Some(bench) = Bench::new(server, tables) else { return };
        bench.create("--incremental-table {db}.numbers:id:integer");
        bench.sync();
        let found = bench.look("", "numbers");
        let of = |id: &str| found.iter().find(|row| row[0].as_deref() == Some(id)).unwrap().clone();
        let top = of("18446744073709551615");
        let low = of("9223372036854775808");
        assert_eq!(
            top[1..5],
            row(&[Some("16777215"), Some("4294967295"), Some("127"), Some("255")]),
            "{server:?}"
        );
        assert_eq!(
            low[1..5],
            row(&[Some("0"), Some("2147483648"), Some("-128"), Some("128")]),
            "{server:?}"
        );
        assert_eq!(of("0")[3].as_deref(), Some("2"), "{server:?}");
        assert_eq!(top[5].as_deref().map(str::to_lowercase).as_deref(), Some("true"), "{server:?}");
        assert_eq!(
            low[5].as_deref().map(str::to_lowercase).as_deref(),
            Some("false"),
            "{server:?}"
        );
        assert_eq!(top[6].as_deref(), Some("18446744073709551615"), "{server:?}");
        assert_eq!(top[7].as_deref(), Some("2155"), "{server:?}");
        assert_eq!(
            top[8].as_deref(),
            Some("12345678901234567890123456789012345.123456789012345678901234567890"),
            "{server:?}"
        );
        assert_eq!(top[9].as_deref(), Some("7"), "{server:?}");
        let types = bench.types("numbers");
        assert!(types[0].contains("uint64") && types[3].contains("int8"), "{server:?}: {types:?}");
        // The cursor goes on beyond what a signed number holds.
        bench.database.run("UPDATE numbers SET id = 18446744073709551614 WHERE id = 0");
        bench.database.run("DELETE FROM numbers WHERE id = 18446744073709551614");
        assert_eq!(bench.sync().rows("numbers"), 0, "{server:?}");
    }
}
