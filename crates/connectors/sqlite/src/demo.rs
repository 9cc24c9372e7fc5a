//! A small shop to try tidelake with.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, params};
use tidelake_model::{Error, ErrorKind, Result};

use crate::connection::failure;
use crate::times::{NANOS_PER_SECOND, parse, print};

/// Tables of the shop with a cursor, as the command line takes them.
pub const INCREMENTAL_TABLES: [&str; 2] =
    ["main.orders:placed_at:datetime", "main.events:id:integer"];

/// The table of the shop without a cursor, which is copied whole.
pub const FULL_TABLE: &str = "main.customers";

const CUSTOMERS: u32 = 200;
const ORDERS: u32 = 2_000;
const EVENTS: u32 = 3_000;
const NEW_ORDERS: u32 = 25;
const NEW_EVENTS: u32 = 60;
/// How long ago the last of the first rows happened.
const QUIET_NANOS: i128 = 10 * 60 * NANOS_PER_SECOND;
/// Between two of the first rows.
const STEP_NANOS: i128 = 40 * NANOS_PER_SECOND;

const TABLES: &str = "
    CREATE TABLE customers (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        city TEXT NOT NULL,
        since DATE NOT NULL
    );
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY,
        customer INTEGER NOT NULL REFERENCES customers (id),
        amount DECIMAL(10,2) NOT NULL,
        placed_at DATETIME NOT NULL
    );
    CREATE INDEX orders_by_time ON orders (placed_at);
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        at TIMESTAMP NOT NULL
    );
";

/// Makes the shop in a new file, with orders and events up to some minutes ago.
pub fn create_shop(path: &Path) -> Result<()> {
    if path.exists() {
        let message = format!("{} is there already", path.display());
        return Err(Error::new(ErrorKind::AlreadyExists, message)
            .with_hint("remove it, or choose another place for the shop"));
    }
    let mut connection = Connection::open(path).map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    transaction.execute_batch(TABLES).map_err(failed)?;
    add_customers(&transaction).map_err(failed)?;
    let end = now()? - QUIET_NANOS;
    let start = |rows: u32| end - i128::from(rows) * STEP_NANOS;
    add_orders(&transaction, ORDERS, start(ORDERS), STEP_NANOS).map_err(failed)?;
    add_events(&transaction, EVENTS, start(EVENTS), STEP_NANOS).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Adds orders and events that happened after the last ones and before now;
/// returns how many.
pub fn add_rows(path: &Path) -> Result<u64> {
    crate::connection::open(path)?;
    let mut connection = Connection::open(path).map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    let now = now()?;
    let orders = last(&transaction, "SELECT max(placed_at) FROM orders")?;
    let events = last(&transaction, "SELECT max(at) FROM events")?;
    // A quarter of the time that is left, so that rows can be added again.
    let step = |last: i128, rows: u32| (now - last) / 4 / i128::from(rows + 1);
    add_orders(&transaction, NEW_ORDERS, orders, step(orders, NEW_ORDERS)).map_err(failed)?;
    add_events(&transaction, NEW_EVENTS, events, step(events, NEW_EVENTS)).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(u64::from(NEW_ORDERS) + u64::from(NEW_EVENTS))
}

fn failed(error: rusqlite::Error) -> Error {
    failure(error, "cannot write the shop")
}

fn now() -> Result<i128> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.ok().and_then(|since| i128::try_from(since.as_nanos()).ok());
    nanos.ok_or_else(|| Error::new(ErrorKind::Internal, "the clock shows a time before 1970"))
}

fn last(transaction: &Transaction<'_>, statement: &str) -> Result<i128> {
    let text: Option<String> =
        transaction.query_row(statement, [], |row| row.get(0)).map_err(failed)?;
    text.and_then(|text| parse(text.as_bytes())).ok_or_else(|| {
        Error::new(ErrorKind::Data, "the shop is empty").with_hint("make it anew with create_shop")
    })
}

/// `2026-11-30 09:15:00.123456`.
fn stamp(nanos: i128) -> String {
    let text = print(nanos).replace('T', " ");
    text.get(..26).unwrap_or(&text).to_owned()
}

/// One of some choices, the same for the same number.
fn pick<'a>(choices: &[&'a str], number: u32) -> &'a str {
    let place = usize::try_from(scatter(number)).unwrap_or(0) % choices.len().max(1);
    choices.get(place).copied().unwrap_or_default()
}

/// A number that looks random, the same for the same number.
fn scatter(number: u32) -> u32 {
    let mixed = number.wrapping_mul(0x9E37_79B9) ^ 0x5BD1_E995;
    (mixed ^ (mixed >> 15)).wrapping_mul(0x85EB_CA6B) >> 8
}

fn add_customers(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    const FIRST: [&str; 8] = ["Ada", "Björn", "Chloé", "Dmitri", "Esra", "Fatima", "Goran", "Hana"];
    const LAST: [&str; 7] = ["Kowalska", "Lindgren", "Müller", "Novák", "Okafor", "Rossi", "Sato"];
    const CITIES: [&str; 6] = ["Berlin", "Kraków", "Lyon", "Malmö", "Porto", "Zürich"];
    let mut insert = transaction.prepare("INSERT INTO customers VALUES (?1, ?2, ?3, ?4)")?;
    for id in 1..=CUSTOMERS {
        let name = format!("{} {}", pick(&FIRST, id), pick(&LAST, id + CUSTOMERS));
        let (month, day) = (scatter(id) % 12 + 1, scatter(id + 1) % 28 + 1);
        let since = format!("20{:02}-{month:02}-{day:02}", 15 + id % 10);
        insert.execute(params![id, name, pick(&CITIES, id + 7), since])?;
    }
    Ok(())
}

fn add_orders(
    transaction: &Transaction<'_>,
    rows: u32,
    after: i128,
    step: i128,
) -> rusqlite::Result<()> {
    let count: u32 = transaction.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
    let mut insert = transaction
        .prepare("INSERT INTO orders (customer, amount, placed_at) VALUES (?1, ?2, ?3)")?;
    for row in 1..=rows {
        let number = scatter(count + row);
        let amount = format!("{}.{:02}", number % 400 + 1, number % 100);
        let placed_at = stamp(after + step * i128::from(row));
        insert.execute(params![number % CUSTOMERS + 1, amount, placed_at])?;
    }
    Ok(())
}

fn add_events(
    transaction: &Transaction<'_>,
    rows: u32,
    after: i128,
    step: i128,
) -> rusqlite::Result<()> {
    const KINDS: [&str; 5] = ["visit", "search", "basket", "payment", "delivery"];
    let count: u32 = transaction.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?;
    let mut insert = transaction.prepare("INSERT INTO events (kind, at) VALUES (?1, ?2)")?;
    for row in 1..=rows {
        let at = stamp(after + step * i128::from(row));
        insert.execute(params![pick(&KINDS, count + row), at])?;
    }
    Ok(())
}
