//! Odd names on a PostgreSQL server, those that differ by case alone among them.

use serde_json::json;

use crate::bench::{Bench, NAMES, Odd, name, quoted};
use crate::database::Database;
use crate::reader::Reader;
use crate::terminal::{Desk, file, server};

fn bench() -> Option<(Bench, Database)> {
    let reader = Reader::start()?;
    let database = Database::make()?;
    let mut desk = Desk::new();
    desk.hide(&server("TIDELAKE_TEST_PG_PASSWORD")?);
    let state = file(&desk.path("state.db"));
    desk.credentials(&json!({"state": state, "source": database.credential()}));
    Some((Bench { desk, reader }, database))
}

/// Every name as a schema, as a table, as a key, as a cursor and as a column, and
/// names that differ by case alone in each of these places.
fn tables() -> Vec<Odd> {
    let long = "ü".repeat(31) + "x";
    let odd = |schema: &str, table: &str, columns: [&str; 3]| Odd {
        schema: schema.to_owned(),
        table: table.to_owned(),
        columns: columns.map(str::to_owned),
    };
    let mut tables: Vec<_> = (0..NAMES.len())
        .map(|place| odd(name(place), name(place + 13), [7, 1, 20].map(|step| name(place + step))))
        .collect();
    for schema in ["case", "Case"] {
        for table in ["orders", "Orders", "ORDERS"] {
            tables.push(odd(schema, table, ["id", "Id", "ID"]));
        }
    }
    tables.push(odd(&long, &long, [&long, "é", "e\u{301}"]));
    // Printed alike, and two tables.
    tables.push(odd("a.b", "c", ["id", "at", "text"]));
    tables.push(odd("a", "b.c", ["id", "at", "text"]));
    tables
}

fn rows(database: &Database, odd: &Odd) -> Vec<Vec<Option<String>>> {
    database.rows(&format!("SELECT * FROM {}", odd.quoted()))
}

#[test]
fn odd_names_of_postgres_are_synced_twice() {
    let Some((bench, database)) = bench() else { return };
    let tables = tables();
    let mut words = vec![];
    for odd in &tables {
        let schema = format!("CREATE SCHEMA IF NOT EXISTS {};", quoted(&odd.schema));
        database.run(&[schema, odd.create(), odd.insert(1), odd.insert(2)].concat());
        words.extend(["--incremental-table".to_owned(), odd.incremental()]);
    }
    words.extend(["--inflight-fence".to_owned(), "off".to_owned()]);
    bench.create("s", &words.iter().map(String::as_str).collect::<Vec<_>>());
    let folders = bench.folders(&bench.sync("s"));
    assert_eq!(folders.len(), tables.len());
    let mut distinct: Vec<_> = folders.values().collect();
    distinct.dedup();
    assert_eq!(distinct.len(), tables.len());
    for odd in &tables {
        bench.same(&folders, odd, rows(&database, odd));
        database.run(&odd.insert(3));
    }
    let second = bench.sync("s");
    for table in second["tables"].as_array().unwrap() {
        assert_eq!(table["rows"], 1, "{table}");
    }
    for odd in &tables {
        bench.same(&folders, odd, rows(&database, odd));
    }

    // Each is found by its quoted name, and no other is meant by it.
    for odd in tables.iter().rev().take(9) {
        assert_eq!(bench.watermark("s", &odd.quoted()), "30", "{}", odd.quoted());
    }
    let twins = [r#""a.b"."c""#, r#""a"."b.c""#];
    bench.json(&["watermarks", "set"], &["--sync-id", "s", "--table", twins[0], "12"]);
    assert_eq!(twins.map(|table| bench.watermark("s", table)), ["12", "30"]);
    let third = bench.sync("s");
    let read = third["tables"].as_array().unwrap().iter();
    for table in read {
        let is_lowered = table["table"]["schema"] == "a.b" && table["table"]["table"] == "c";
        assert_eq!(table["rows"], if is_lowered { 2 } else { 0 }, "{table}");
    }
    let lowered = tables.iter().find(|odd| odd.schema == "a.b" && odd.table == "c").unwrap();
    bench.same(&folders, lowered, rows(&database, lowered));
}
