//! The source: a table with a time cursor, one with an id cursor, and a full one.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use crate::server::Server;

/// Rows as text, NULL as `None`, sorted.
pub(crate) type Cells = Vec<Vec<Option<String>>>;

/// The tables, in the schema `main` of either system.
pub(crate) const TABLES: [&str; 3] = ["orders", "events", "units"];

/// A source that grows.
#[derive(Clone)]
pub(crate) struct Shop {
    database: Database,
    clock: Arc<Clock>,
}

#[derive(Clone)]
enum Database {
    File(PathBuf),
    Server(Rc<Server>),
}

/// Ids and stamps, both always rising.
#[derive(Default)]
pub(crate) struct Clock {
    id: AtomicU64,
    stamp: AtomicU64,
}

impl Clock {
    /// The next id.
    fn id(&self) -> u64 {
        self.id.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The present in microseconds, less `behind`, and later than all before it.
    fn stamp(&self, behind: Duration) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() - behind;
        let now = u64::try_from(now.as_micros()).unwrap();
        let next = |last: u64| Some(now.max(last + 1) | 1);
        let last = self.stamp.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).unwrap();
        now.max(last + 1) | 1
    }
}

/// How far in the past a stamp must be to lie in the window of a run that starts
/// now: the fence of a server takes the time 250 ms back, and in a file, whose tick
/// is a second, a window ends with the second before the one that is running.
pub(crate) fn behind(is_file: bool) -> Duration {
    Duration::from_millis(if is_file { 2_050 } else { 300 })
}

impl Shop {
    pub(crate) fn file(path: &Path) -> Self {
        let shop = Self { database: Database::File(path.into()), clock: Arc::default() };
        shop.execute(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE orders (id INTEGER PRIMARY KEY, updated_at DATETIME NOT NULL,
                                  amount DECIMAL(10, 2), note TEXT);
             CREATE INDEX orders_by_time ON orders (updated_at);
             CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, weight INTEGER);
             CREATE TABLE units (name TEXT NOT NULL PRIMARY KEY, factor INTEGER)",
        );
        shop
    }

    pub(crate) fn server(server: Rc<Server>) -> Self {
        let shop = Self { database: Database::Server(server), clock: Arc::default() };
        shop.execute(
            "CREATE SCHEMA main;
             CREATE TABLE main.orders (id bigint PRIMARY KEY, updated_at timestamptz NOT NULL,
                                       amount numeric(10, 2), note text);
             CREATE INDEX ON main.orders (updated_at);
             CREATE TABLE main.events (id bigint PRIMARY KEY, kind text NOT NULL, weight bigint);
             CREATE TABLE main.units (name text PRIMARY KEY, factor bigint)",
        );
        shop
    }

    pub(crate) fn execute(&self, statements: &str) {
        match &self.database {
            Database::File(path) => open(path).execute_batch(statements).unwrap(),
            Database::Server(server) => server.execute(statements),
        }
    }

    pub(crate) fn select(&self, query: &str) -> Cells {
        match &self.database {
            Database::Server(server) => server.select(query),
            Database::File(path) => {
                let connection = open(path);
                let mut statement = connection.prepare(query).unwrap();
                let columns = statement.column_count();
                let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect();
                statement.query_map([], row).unwrap().map(Result::unwrap).collect()
            }
        }
    }

    /// New rows in every table; the full one also changes and loses some.
    pub(crate) fn grow(&self, rows: u64) {
        let units = "
            UPDATE main.units SET factor = factor + 1 WHERE length(name) % 2 = 0;
            DELETE FROM main.units WHERE name = (SELECT min(name) FROM main.units);";
        self.execute(&format!("BEGIN; {units} {} COMMIT", self.more(rows)));
        if matches!(self.database, Database::Server(_)) {
            // A server cuts a table where its statistics say.
            self.execute("ANALYZE main.orders, main.events, main.units");
        }
    }

    /// Late news of rows that were read before: the ten newest events.
    pub(crate) fn correct(&self) {
        let newest = "id > (SELECT max(id) FROM main.events) - 10";
        let fifth = "id = (SELECT max(id) FROM main.events) - 5";
        self.execute(&format!(
            "UPDATE main.events SET weight = -weight WHERE {newest} AND id % 3 = 0;
             DELETE FROM main.events WHERE {fifth}"
        ));
    }

    /// Statements that add rows and touch no other.
    pub(crate) fn more(&self, rows: u64) -> String {
        let is_file = matches!(self.database, Database::File(_));
        self.clock.more(is_file, rows, behind(is_file))
    }

    /// A thing that adds rows on a thread of its own.
    pub(crate) fn writer(&self) -> Writer {
        let clock = Arc::clone(&self.clock);
        match &self.database {
            Database::File(path) => {
                let connection = open(path);
                Box::new(move |rows| {
                    let more = clock.more(true, rows, Duration::ZERO);
                    connection.execute_batch(&format!("BEGIN IMMEDIATE; {more} COMMIT")).unwrap();
                })
            }
            Database::Server(server) => {
                let (client, handle) = (server.another(), server.runtime().handle().clone());
                Box::new(move |rows| {
                    // The fence knows when a transaction began: stamps are no older.
                    handle.block_on(client.batch_execute("BEGIN")).unwrap();
                    let more = clock.more(false, rows, Duration::ZERO);
                    handle.block_on(client.batch_execute(&format!("{more} COMMIT"))).unwrap();
                })
            }
        }
    }

    /// Every row of a table as the lake's reader would say it.
    pub(crate) fn rows(&self, table: &str) -> Cells {
        let is_file = matches!(self.database, Database::File(_));
        let query = match (table, is_file) {
            ("orders", true) => {
                "SELECT CAST(id AS TEXT), replace(updated_at, ' ', 'T'), printf('%.2f', amount),
                        note FROM orders"
            }
            ("orders", false) => {
                "SELECT id, to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')
                        || 'Z', amount, note FROM main.orders"
            }
            ("events", true) => "SELECT CAST(id AS TEXT), kind, CAST(weight AS TEXT) FROM events",
            ("events", false) => "SELECT id, kind, weight FROM main.events",
            (_, true) => "SELECT name, CAST(factor AS TEXT) FROM units",
            (_, false) => "SELECT name, factor FROM main.units",
        };
        let mut rows = self.select(query);
        rows.sort();
        rows
    }
}

/// Adds so many rows to each table.
pub(crate) type Writer = Box<dyn FnMut(u64) + Send>;

impl Clock {
    fn more(&self, is_file: bool, rows: u64, behind: Duration) -> String {
        let mut orders = vec![];
        let mut events = vec![];
        let mut units = vec![];
        for _ in 0..rows {
            let (id, stamp) = (self.id(), self.stamp(behind));
            let (seconds, micros) = (stamp / 1_000_000, stamp % 1_000_000);
            let at = match is_file {
                true => format!(
                    "strftime('%Y-%m-%d %H:%M:%S', {seconds}, 'unixepoch') || '.{micros:06}'"
                ),
                false => format!("timestamptz 'epoch' + interval '1 microsecond' * {stamp}"),
            };
            let note = match id % 3 {
                0 => "NULL".to_owned(),
                _ => format!("'order {id} of Müller''s'"),
            };
            // Rows of a window are found on both sides of wherever a table is cut.
            let mixed = id * 7919 % 10007;
            orders.push(format!("({id}, {at}, {}.{:02}, {note})", mixed / 100, mixed % 100));
            events.push(format!("({id}, 'kind {}', {mixed})", id % 7));
            units.push(format!("('unit {id}', {mixed})"));
        }
        let insert = |table: &str, values: Vec<String>| {
            format!("INSERT INTO main.{table} VALUES {};", values.join(", "))
        };
        insert("orders", orders) + &insert("events", events) + &insert("units", units)
    }
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection
}
