//! Every scalar type through the whole way, compared with the server's own text.

use std::process::Command;

use serde_json::Value;

use crate::bench::{Bench, literal};
use crate::terminal::server;

/// How the server prints a column as `columns.py` does.
#[derive(Clone, Copy)]
enum Printed {
    Text,
    Days,
    /// Microseconds since the epoch.
    Instant,
    /// Microseconds since midnight.
    Time,
    Float4,
    Float8,
    Hex,
    /// Parts as JSON.
    Json,
    /// A decimal with all digits of its scale.
    Scale(u32),
}

use Printed::*;

/// Name and type, how it is printed, values. The first row of all columns is NULL.
const COLUMNS: &[(&str, Printed, &[&str])] = &[
    ("boolean", Text, &["true", "false"]),
    ("smallint", Text, &["-32768", "32767", "0", "-1"]),
    ("integer", Text, &["-2147483648", "2147483647", "0"]),
    ("bigint", Text, &["-9223372036854775808", "9223372036854775807", "0"]),
    ("oid", Text, &["0", "4294967295"]),
    ("xid8", Text, &["0", "18446744073709551615"]),
    ("real", Float4, &["0", "-0", "1.5", "3.4028235e38", "-1e-45", "NaN", "Infinity", "-Infinity"]),
    (
        "double precision",
        Float8,
        &["0", "-0", "1.7976931348623157e308", "-5e-324", "0.1", "NaN", "-Infinity"],
    ),
    ("numeric(1,0)", Text, &["0", "9", "-9"]),
    ("numeric(9,4)", Text, &["0", "99999.9999", "-0.0001"]),
    ("numeric(18,2)", Text, &["0", "9999999999999999.99", "-9999999999999999.99", "0.01"]),
    ("numeric(38,10)", Text, &["9999999999999999999999999999.9999999999", "-0.0000000001", "0"]),
    (
        "numeric(38,38)",
        Text,
        &["0.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001"],
    ),
    (
        "numeric(76,38)",
        Text,
        &["-99999999999999999999999999999999999999.99999999999999999999999999999999999999", "1"],
    ),
    ("numeric(5,-2)", Text, &["9999900", "-100", "0"]),
    ("numeric(3,5)", Scale(5), &["0.00999", "-0.00001", "0"]),
    (
        "numeric(77,1)",
        Text,
        &["1.0", "-9999999999999999999999999999999999999999999999999999999999999999999999999999.9"],
    ),
    ("numeric", Text, &["0", "1.10", "-1e-40", "1e60", "NaN", "Infinity", "-Infinity"]),
    ("money", Text, &["0", "-12.34", "-92233720368547758.08"]),
    ("date", Days, &["1970-01-01", "1969-12-31", "4714-11-24 BC", "5874897-12-31", "2000-02-29"]),
    ("time", Time, &["00:00", "23:59:59.999999", "12:00:00.5"]),
    ("time(0)", Time, &["00:00:01", "23:59:59"]),
    ("timetz", Text, &["00:00+15:59", "23:59:59.999999-15:59"]),
    (
        "timestamp",
        Instant,
        &[
            "1970-01-01",
            "1969-12-31 23:59:59.999999",
            "4714-11-24 BC",
            "294246-12-31 23:59:59.999999",
        ],
    ),
    ("timestamp(0)", Instant, &["2026-11-30 09:15:00"]),
    (
        "timestamptz",
        Instant,
        &[
            "1970-01-01Z",
            "4714-11-24Z BC",
            "294246-12-31 23:59:59.999999Z",
            "2026-03-29 02:30:00.123456+02",
        ],
    ),
    ("timestamptz(3)", Instant, &["2026-11-30 09:15:00.123Z"]),
    (
        "interval",
        Text,
        &["1 year 2 months -3 days 04:05:06.789", "0", "-178000000 years", "-0.000001 s"],
    ),
    (
        "uuid",
        Text,
        &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
    ),
    ("json", Text, &["{\"b\": 1,  \"a\": [null]}", "null", "\"é\""]),
    ("jsonb", Text, &["{\"b\": 1,  \"a\": [null]}", "1e5", "\"\\u0001\""]),
    ("bytea", Hex, &["", "\\x00ff5c270a", "abc"]),
    ("text", Text, &["", " ", "it's \"x\" \\ é 名 🌊 \\N", "a\tb\r\nc", "NULL"]),
    ("varchar(10)", Text, &["", "0123456789"]),
    ("\"char\"", Text, &["a"]),
    ("name", Text, &["a name"]),
    ("inet", Text, &["10.0.0.1/8", "192.168.1.1", "::1"]),
    ("cidr", Text, &["10.0.0.0/8"]),
    ("macaddr", Text, &["08:00:2b:01:02:03"]),
    ("macaddr8", Text, &["08:00:2b:01:02:03:04:05"]),
    ("bit(4)", Text, &["1010"]),
    ("varbit", Text, &["", "10111"]),
    ("xml", Text, &["<a>é</a>"]),
    ("point", Text, &["(1.5,-2)"]),
    ("line", Text, &["{1,-1,0}"]),
    ("lseg", Text, &["[(0,0),(1,1)]"]),
    ("box", Text, &["(1,1),(0,0)"]),
    ("path", Text, &["((0,0),(1,1))"]),
    ("polygon", Text, &["((0,0),(1,1),(2,0.1))"]),
    ("circle", Text, &["<(0,0),1.5>"]),
    ("pg_lsn", Text, &["16/B374D848"]),
    ("tsvector", Text, &["'a':1 'b':2"]),
    ("tsquery", Text, &["'a' & 'b'"]),
    ("jsonpath", Text, &["$.\"a\"[*]"]),
    ("tid", Text, &["(1,2)"]),
    ("regclass", Text, &["pg_class"]),
    ("integer[]", Json, &["{}", "{1,NULL,3}", "{{1,2},{3,4}}", "[0:1]={5,6}"]),
    ("text[]", Json, &["{a,\"b c\",NULL,\"NULL\",\"\"}"]),
    ("int4range", Text, &["[1,5)", "empty", "(,)"]),
    ("tstzrange", Text, &["[2026-01-01,2026-02-01)", "empty"]),
    ("int4multirange", Text, &["{[1,3),[5,9)}", "{}"]),
    ("mood", Text, &["sad", "it's ok"]),
    ("pair", Json, &["(1,\"a b\")", "(,)"]),
    ("positive", Text, &["1", "2147483647"]),
    ("cents", Text, &["0.01", "-12.50"]),
];

const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
    CREATE TYPE pair AS (a integer, b text);
    CREATE DOMAIN positive AS integer CHECK (value > 0);
    CREATE DOMAIN cents AS numeric(10,2);
";

fn column(number: usize) -> String {
    format!("c{number:02}")
}

/// A column in the form of `columns.py`.
fn printed(name: &str, how: Printed) -> String {
    match how {
        Text => format!("{name}::text"),
        Json => format!("to_json({name})::text"),
        Days => format!("({name} - date '1970-01-01')::text"),
        Instant => format!("(extract(epoch FROM {name}) * 1000000)::bigint::text"),
        Time => format!("(extract(epoch FROM {name}) * 1000000)::bigint::text"),
        Float4 => format!("encode(float4send({name}), 'hex')"),
        Float8 => format!("encode(float8send({name}), 'hex')"),
        Hex => format!("encode({name}, 'hex')"),
        Scale(scale) => format!("round({name}, {scale})::text"),
    }
}

/// The table of all types: a row per value, one of NULLs.
fn samples() -> String {
    let columns = COLUMNS.iter().enumerate();
    let columns: Vec<_> =
        columns.map(|(number, (kind, ..))| format!("{} {kind}", column(number))).collect();
    let mut sql = format!(
        "{TYPES} CREATE TABLE samples (id integer PRIMARY KEY, {});
         INSERT INTO samples (id) VALUES (0);",
        columns.join(", ")
    );
    let most = COLUMNS.iter().map(|(_, _, values)| values.len()).max().unwrap();
    for row in 0..most {
        let values = COLUMNS.iter().map(|(_, _, values)| {
            values.get(row).map_or_else(|| "NULL".to_owned(), |value| literal(value))
        });
        let values: Vec<_> = values.collect();
        sql.push_str(&format!("INSERT INTO samples VALUES ({}, {});", row + 1, values.join(", ")));
    }
    sql
}

/// What an engine finds in the table's files.
fn read(bench: &Bench, engine: &str, table: &str) -> Value {
    let folder = bench.reader.folder(&bench.lake, &format!("public/{table}")).unwrap();
    let files =
        folder.live.iter().map(|key| bench.desk.path(&format!("lake/public/{table}/{key}")));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/promise/columns.py");
    let output = Command::new(server("TIDELAKE_TEST_PYTHON").unwrap())
        .args([script, engine, "id"])
        .args(files)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_scalar_type_is_what_the_server_prints() {
    let Some(bench) = Bench::new(&samples()) else { return };
    bench.create("--incremental-table public.samples:id:integer");
    let report = bench.sync();
    assert_eq!(report.counter("samples", "special_numbers"), None, "{report:?}");
    bench.database.run("SET intervalstyle = iso_8601");
    let engines = ["pyarrow", "duckdb"].map(|engine| (engine, read(&bench, engine, "samples")));
    let mut wrong = vec![];
    for (number, (kind, how, _)) in COLUMNS.iter().enumerate() {
        let name = column(number);
        let sql = format!("SELECT {} FROM samples ORDER BY id", printed(&name, *how));
        let wanted: Vec<_> =
            bench.database.rows(&sql).into_iter().map(|row| row[0].clone()).collect();
        for (engine, found) in &engines {
            // An engine whose decimals end at 38 digits reads longer ones as floats.
            if *engine == "duckdb" && *kind == "numeric(76,38)" {
                continue;
            }
            let values: Vec<Option<String>> =
                serde_json::from_value(found[&name]["values"].clone()).unwrap();
            if values != wanted {
                wrong.push(format!(
                    "{kind} by {engine} as {}: {values:?}, the server has {wanted:?}",
                    found[&name]["type"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Those are real types, and no text.
    let (_, arrow) = &engines[0];
    for (number, kind) in [
        (0, "bool"),
        (1, "int16"),
        (2, "int32"),
        (3, "int64"),
        (4, "uint32"),
        (5, "uint64"),
        (6, "float"),
        (7, "double"),
        (10, "decimal128(18, 2)"),
        (13, "decimal256(76, 38)"),
        (19, "date32[day]"),
        (20, "time64[us]"),
        (23, "timestamp[us]"),
        (25, "timestamp[us, tz=UTC]"),
        (31, "binary"),
        (32, "string"),
    ] {
        assert_eq!(arrow[&column(number)]["type"], kind, "{}", COLUMNS[number].0);
    }
}

#[test]
fn a_column_without_any_value_has_its_type() {
    let Some(bench) = Bench::new(&samples()) else { return };
    bench.database.run("DELETE FROM samples WHERE id > 0");
    bench.create("");
    bench.sync();
    let empty = read(&bench, "pyarrow", "samples");
    bench.database.run("DELETE FROM samples; INSERT INTO samples (id, c03) VALUES (1, 5)");
    bench.sync();
    let again = read(&bench, "pyarrow", "samples");
    for (number, (kind, ..)) in COLUMNS.iter().enumerate() {
        let name = column(number);
        assert_eq!(empty[&name]["type"], again[&name]["type"], "{kind}");
    }
    assert_eq!(empty["c19"]["type"], "date32[day]");
}

const ENDLESS: &str = "
    CREATE TABLE endless (id integer PRIMARY KEY, valid_to timestamptz NOT NULL, day date,
        at timestamp, n numeric(10,2));
    INSERT INTO endless VALUES
        (1, 'infinity', '-infinity', 'infinity', 'NaN'),
        (2, '-infinity', 'infinity', NULL, 1.5),
        (3, '2026-11-30 12:00Z', '2026-11-30', '2026-11-30', NULL);
";

#[test]
fn values_without_an_end_follow_the_policy() {
    let Some(bench) = Bench::new(ENDLESS) else { return };
    bench.create("");
    let report = bench.sync();
    let found = read(&bench, "pyarrow", "endless");
    let values = |found: &Value, name: &str| found[name]["values"].to_string();
    assert_eq!(values(&found, "valid_to"), r#"[null,null,"1796040000000000"]"#);
    assert_eq!(values(&found, "day"), r#"[null,null,"20787"]"#);
    assert_eq!(values(&found, "n"), r#"[null,"1.50",null]"#);
    let counters = report.table("endless")["counters"].as_object().unwrap().clone();
    let counted: u64 = counters.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, 6, "five times and a number: {counters:?}");
    assert!(report.notices("endless").contains("value_changed"), "{report:?}");
    assert!(report.stderr.contains("values could not be carried"), "it is shown: {report:?}");

    // The ends of what the type can hold.
    bench.create("--on-infinite-time clamp --sync-id clamp --sub-path clamp");
    let report = bench.sync_as("--sync-id clamp");
    let counters = report.table("endless")["counters"].as_object().unwrap().clone();
    let times = counters.iter().filter(|(name, _)| name.starts_with("infinite_time:"));
    let counted: u64 = times.map(|(_, count)| count.as_u64().unwrap()).sum();
    assert_eq!(counted, 5, "{counters:?}");
    let folder = bench.reader.folder(&bench.lake, "clamp/public/endless").unwrap();
    assert_eq!(folder.live.len(), 1);
    for (number, policy) in
        ["--on-infinite-time fail", "--on-special-number fail"].iter().enumerate()
    {
        let id = format!("fail{number}");
        bench.create(&format!("{policy} --sync-id {id} --sub-path {id}"));
        let report = bench.try_sync(&format!("--sync-id {id}"));
        assert_eq!(report.code, 1, "{policy}: {report:?}");
        let error = report.table("endless")["error"]["message"].as_str().unwrap();
        let column = if number == 0 { ["valid_to", "day", "at"].as_slice() } else { &["n"] };
        assert!(column.iter().any(|name| error.contains(name)), "{error}");
    }
}
