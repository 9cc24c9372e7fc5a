//! Names that are legal and odd, from the catalogue to the path.

use crate::bench::{Bench, Report};
use crate::database::quoted;

const TABLES: [&str; 12] = [
    "Orders",
    "orders",
    "we\"ird : tab.le@!",
    "two  words ",
    "名前 🌊 é",
    "select",
    "..",
    "_tidelake",
    "a/b\\c",
    "100%41 {x}",
    "it's $HOME `id` |;&",
    "latest.json",
];
const COLUMNS: [&str; 4] = ["the \"cursor\" : of@it!", "Ünïcode, comma|pipe", "FROM", "x.y"];

/// As `--incremental-table` has it.
fn typed(name: &str) -> String {
    quoted(name)
}

#[test]
fn odd_names_of_schemas_tables_columns_and_cursors() {
    let Some(bench) = Bench::new("") else { return };
    odd_names(&bench, ["--output-dir", "lake"]);
}

#[test]
fn odd_names_as_keys_of_a_bucket() {
    let Some(mut bench) = Bench::new("") else { return };
    let Some(()) = bench.use_bucket("bucket") else { return };
    odd_names(&bench, ["--target-storage-id", "bucket"]);
}

fn odd_names(bench: &Bench, target: [&str; 2]) {
    let long = "n".repeat(63);
    let schemas = ["My \"Schema\".1:x", "public", long.as_str()];
    let mut arguments = vec![];
    for schema in schemas {
        bench.database.run(&format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema)));
        for (number, table) in TABLES.iter().copied().chain([long.as_str()]).enumerate() {
            let cursor = COLUMNS[number % COLUMNS.len()];
            let name = format!("{}.{}", quoted(schema), quoted(table));
            let columns: Vec<_> =
                COLUMNS.iter().map(|column| format!("{} bigint", quoted(column))).collect();
            bench.database.run(&format!(
                "CREATE TABLE {name} ({}, {} text);
                 INSERT INTO {name} SELECT i, i + 100, i + 200, i + 300, {}
                 FROM generate_series(1, 12) AS i",
                columns.join(", "),
                quoted(&long),
                crate::bench::literal(table)
            ));
            if number % 3 != 2 {
                arguments.push("--incremental-table".to_owned());
                arguments.push(format!(
                    "{}.{}:{}:integer",
                    typed(schema),
                    typed(table),
                    typed(cursor)
                ));
            }
        }
    }
    let mut command = bench.desk.command();
    command.args(["config", "create", "-a", "credentials.json", "--lxdb-auth-id", "state"]);
    command.args(["--source-db-auth-id", "source", "--sync-id", "s"]).args(target);
    command.args(["--sub-path", "Odd path/é=1/x y"]).args(&arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let first = bench.sync();
    all_there(bench, &first, &schemas, &long);
    for schema in schemas {
        for table in TABLES.iter().copied().chain([long.as_str()]) {
            let name = format!("{}.{}", quoted(schema), quoted(table));
            bench
                .database
                .run(&format!("INSERT INTO {name} VALUES (1000, 1000, 1000, 1000, 'new')"));
        }
    }
    let second = bench.sync();
    all_there(bench, &second, &schemas, &long);
    for table in second.json["tables"].as_array().unwrap() {
        let wanted = if table["mode"] == "full" { 13 } else { 1 };
        assert_eq!(table["rows"], wanted, "{table}");
    }
}

fn all_there(bench: &Bench, report: &Report, schemas: &[&str], long: &str) {
    let tables = report.json["tables"].as_array().unwrap();
    assert_eq!(tables.len(), schemas.len() * (TABLES.len() + 1));
    let mut folders = vec![];
    for table in tables {
        let location = table["location"].as_str().unwrap();
        let base = if location.starts_with("s3:") { bench.prefix.as_str() } else { "lake" };
        let (_, folder) = location.split_once(&format!("/{base}/")).unwrap();
        assert!(folder.starts_with("Odd path/é=1/x y/"), "{folder}");
        let (schema, name) = (&table["table"]["schema"], &table["table"]["table"]);
        bench.same_in(folder, schema.as_str().unwrap(), name.as_str().unwrap(), "true");
        folders.push(folder.to_lowercase());
    }
    folders.sort();
    let count = folders.len();
    folders.dedup();
    // "Orders" and "orders" differ by case alone.
    assert!(count - folders.len() <= schemas.len(), "{folders:?}");
    assert!(folders.iter().any(|folder| folder.contains(long)));
    for schema in schemas {
        let name = bench.watermark("get", &format!("--table '{schema}.{}'", TABLES[0]));
        assert_eq!(name.code, 0, "{}", name.transcript());
    }
}

#[test]
fn names_without_quotes_are_the_catalogues() {
    let Some(bench) = Bench::new(
        "CREATE TABLE \"Orders\" (\"Id\" bigint PRIMARY KEY);
         INSERT INTO \"Orders\" SELECT i FROM generate_series(1, 10) AS i",
    ) else {
        return;
    };
    // As it is written, it is found; in another case it is not.
    bench.create("--incremental-table public.Orders:Id:integer");
    bench.sync();
    bench.same("Orders", "true");
    let missing = bench.try_create("--incremental-table public.orders:Id:integer --sync-id b");
    assert_eq!(missing.code, 2, "{}", missing.transcript());
    assert!(missing.stderr.contains("public.Orders"), "{}", missing.transcript());
    let missing = bench.try_create("--incremental-table public.Orders:id:integer --sync-id b");
    assert_eq!(missing.code, 2, "{}", missing.transcript());
    assert!(missing.stderr.contains("Id"), "{}", missing.transcript());
}
