//! Odd names in a SQLite file.

use rusqlite::Connection;
use serde_json::json;

use crate::bench::{Bench, NAMES, Odd, name, quoted};
use crate::reader::Reader;
use crate::terminal::{Desk, file};

/// A desk with an empty database, and a connection to it.
pub(crate) fn bench() -> Option<(Bench, Connection)> {
    let reader = Reader::start()?;
    let desk = Desk::new();
    let credential = |name: &str| file(&desk.path(name));
    desk.credentials(&json!({"state": credential("state.db"), "source": credential("odd.db")}));
    let database = Connection::open(desk.path("odd.db")).unwrap();
    Some((Bench { desk, reader }, database))
}

fn tables() -> Vec<Odd> {
    // SQLite knows no longest name; a path does.
    let long = ["n".repeat(63), "ü".repeat(300), format!("{}x", "ü".repeat(300))];
    let names = NAMES.iter().map(|name| (*name).to_owned()).chain(long);
    names
        .enumerate()
        .map(|(place, table)| Odd {
            schema: "main".to_owned(),
            table,
            columns: [7, 1, 20].map(|step| name(place + step).to_owned()),
        })
        .collect()
}

fn rows(database: &Connection, odd: &Odd) -> Vec<Vec<Option<String>>> {
    let mut statement = database.prepare(&format!("SELECT * FROM {}", odd.quoted())).unwrap();
    let rows = statement.query_map([], |row| {
        let number = |place| row.get(place).map(|number: i64| Some(number.to_string()));
        Ok(vec![number(0)?, number(1)?, row.get(2)?])
    });
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn odd_names_of_sqlite_are_synced_twice() {
    let Some((bench, database)) = bench() else { return };
    let tables = tables();
    let mut words =
        vec!["--sub-path".to_owned(), "Ünï code/🌊=1/100%/a:b.c \"q\"/.hidden".to_owned()];
    for odd in &tables {
        database.execute_batch(&[odd.create(), odd.insert(1), odd.insert(2)].concat()).unwrap();
        words.extend(["--incremental-table".to_owned(), odd.incremental()]);
    }
    bench.create("s", &words.iter().map(String::as_str).collect::<Vec<_>>());
    let folders = bench.folders(&bench.sync("s"));
    assert_eq!(folders.len(), tables.len());
    for odd in &tables {
        bench.same(&folders, odd, rows(&database, odd));
        assert_eq!(bench.watermark("s", &odd.quoted()), "20", "{:?}", odd.table);
        database.execute_batch(&odd.insert(3)).unwrap();
    }
    let second = bench.sync("s");
    for table in second["tables"].as_array().unwrap() {
        assert_eq!(table["rows"], 1, "{table}");
    }
    for odd in &tables {
        bench.same(&folders, odd, rows(&database, odd));
    }
}

#[test]
fn odd_names_of_columns_are_chosen_cast_and_keys() {
    let Some((bench, database)) = bench() else { return };
    let mut words = vec![];
    for (place, table) in NAMES.iter().enumerate() {
        let columns = [3, 5, 9, 11].map(|step| quoted(name(place + step)));
        let [key, cursor, gone, number] = &columns;
        let table = quoted(table);
        database
            .execute_batch(&format!(
                "CREATE TABLE {table} ({key} INT, {cursor} INT, {gone} TEXT, {number} NUMERIC);
                 INSERT INTO {table} VALUES (1, 10, 'gone', 1.5), (2, 20, 'gone', 2.25);"
            ))
            .unwrap();
        let choice = match place % 2 {
            0 => ["--columns".to_owned(), format!("main.{table}:{key},{cursor},{number}")],
            _ => ["--exclude-columns".to_owned(), format!("\"main\".{table}:{gone}")],
        };
        words.extend(choice);
        words.extend(["--key".to_owned(), format!("main.{table}:{key}")]);
        words.extend(["--decimal".to_owned(), format!("main.{table}:{number}:9,3")]);
        words.extend(["--type-cast".to_owned(), format!("main.{table}:{key}:text")]);
        words.extend(["--incremental-table".to_owned(), format!("main.{table}:{cursor}:integer")]);
    }
    bench.create("s", &words.iter().map(String::as_str).collect::<Vec<_>>());
    let folders = bench.folders(&bench.sync("s"));
    let lake = crate::reader::folder(&bench.desk.path("lake"));
    for (place, table) in NAMES.iter().enumerate() {
        let folder = &folders[&("main".to_owned(), (*table).to_owned())];
        let found = bench.reader.rows(&lake, folder).unwrap();
        assert_eq!(found.columns, [3, 5, 11].map(|step| name(place + step)), "{table:?}");
        assert_eq!(found.types, ["string", "int64", "decimal128(9, 3)"], "{table:?}");
        let rows = found.rows.iter().map(|row| row.iter().flatten().map(String::as_str).collect());
        let rows: Vec<Vec<&str>> = rows.collect();
        assert_eq!(rows, [["1", "10", "1.500"], ["2", "20", "2.250"]], "{table:?}");
        let key = &found.head.as_ref().unwrap()["key"];
        assert_eq!(*key, json!([name(place + 3)]), "{table:?}");
    }
}
