//! Tables, transactions and snapshots.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidelake_model::{Error, ErrorKind, Result, Table, TableName};
use tidelake_watermark::Value;

use super::arrow_rows::{column, fits, kind_of};
use super::cursor::place;

/// The values of a row in the order of the table's columns; `None` is NULL.
pub type Row = Vec<Option<Value>>;

/// An open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u64);

/// A database; a clone is another handle to the same one.
///
/// Rows are in the order in which they were committed. Keys are not enforced.
#[derive(Clone, Default)]
pub struct MemoryDatabase(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    pub(super) now: i128,
    pub(super) zone: Option<String>,
    pub(super) tables: BTreeMap<TableName, Stored>,
    pub(super) open: BTreeMap<TransactionId, Open>,
    pub(super) snapshots: BTreeMap<u64, Stored>,
    last_transaction: u64,
    last_snapshot: u64,
}

/// A table with its committed rows. Rows are shared, so that a snapshot costs
/// nothing until somebody writes.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) table: Table,
    pub(super) rows: Arc<Vec<Arc<Row>>>,
}

pub(super) struct Open {
    pub(super) started: i128,
    pub(super) user: String,
    pub(super) writes: Vec<(TableName, Arc<Row>)>,
}

impl State {
    pub(super) fn table(&self, name: &TableName) -> Result<&Stored> {
        self.tables.get(name).ok_or_else(|| no_table(name))
    }

    fn table_mut(&mut self, name: &TableName) -> Result<&mut Stored> {
        self.tables.get_mut(name).ok_or_else(|| no_table(name))
    }

    pub(super) fn keep_snapshot(&mut self, stored: Stored) -> u64 {
        self.last_snapshot += 1;
        self.snapshots.insert(self.last_snapshot, stored);
        self.last_snapshot
    }
}

fn no_table(name: &TableName) -> Error {
    Error::new(ErrorKind::NotFound, "the table does not exist").in_table(name)
}

impl MemoryDatabase {
    /// A database without tables whose clock stands at the epoch.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves no half-done change: each is made at once.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock, in nanoseconds since the epoch.
    pub fn now(&self) -> i128 {
        self.lock().now
    }

    /// Sets the clock, forwards or backwards.
    pub fn set_now(&self, nanos: i128) {
        self.lock().now = nanos;
    }

    /// Sets the server's time zone, an IANA name; it is UTC at first.
    pub fn set_zone(&self, zone: &str) {
        self.lock().zone = Some(zone.to_owned());
    }

    /// Makes a table. Errors: `AlreadyExists`, or `Unsupported` for a column
    /// type that [`column`](super::column) does not know.
    pub fn create_table(&self, table: Table) -> Result<()> {
        for column in &table.columns {
            kind_of(column.field.data_type())?;
        }
        let mut state = self.lock();
        if state.tables.contains_key(&table.name) {
            let error = Error::new(ErrorKind::AlreadyExists, "the table exists already");
            return Err(error.in_table(&table.name));
        }
        state.tables.insert(table.name.clone(), Stored { table, rows: Arc::default() });
        Ok(())
    }

    /// Takes a table away.
    pub fn drop_table(&self, name: &TableName) -> Result<()> {
        self.lock().tables.remove(name).map(|_| ()).ok_or_else(|| no_table(name))
    }

    /// Takes a column away.
    pub fn drop_column(&self, table: &TableName, name: &str) -> Result<()> {
        let mut state = self.lock();
        let stored = state.table_mut(table)?;
        let place = place(&stored.table, name)?;
        stored.table.columns.remove(place);
        let mut rows = Vec::with_capacity(stored.rows.len());
        for row in stored.rows.iter() {
            let mut row = Row::clone(row);
            row.remove(place);
            rows.push(Arc::new(row));
        }
        stored.rows = Arc::new(rows);
        Ok(())
    }

    /// Adds a nullable column at the end; it is NULL in every row.
    pub fn add_column(
        &self,
        table: &TableName,
        name: &str,
        data_type: arrow::datatypes::DataType,
    ) -> Result<()> {
        let added = column(name, data_type, true)?;
        let mut state = self.lock();
        let stored = state.table_mut(table)?;
        stored.table.columns.push(added);
        let with_null = |row: &Arc<Row>| Arc::new(row.iter().cloned().chain([None]).collect());
        stored.rows = Arc::new(stored.rows.iter().map(with_null).collect());
        Ok(())
    }

    /// Begins a transaction now.
    pub fn begin(&self) -> TransactionId {
        self.begin_as("writer")
    }

    /// Begins a transaction of a certain user.
    pub fn begin_as(&self, user: &str) -> TransactionId {
        let mut state = self.lock();
        state.last_transaction += 1;
        let id = TransactionId(state.last_transaction);
        let open = Open { started: state.now, user: user.to_owned(), writes: vec![] };
        state.open.insert(id, open);
        id
    }

    /// Inserts a row, which nobody sees before the commit. A row that does not
    /// fit the table is an error of kind `Data`.
    pub fn insert(&self, transaction: TransactionId, table: &TableName, row: Row) -> Result<()> {
        let mut state = self.lock();
        let stored = state.table(table)?;
        let columns = &stored.table.columns;
        if row.len() != columns.len() {
            let message = format!("a row of {} values for {} columns", row.len(), columns.len());
            return Err(Error::new(ErrorKind::Data, message).in_table(table));
        }
        for (column, value) in columns.iter().zip(&row) {
            fits(column, value.as_ref()).map_err(|error| error.in_table(table))?;
        }
        let open = state.open.get_mut(&transaction).ok_or_else(not_open)?;
        open.writes.push((table.clone(), Arc::new(row)));
        Ok(())
    }

    /// Makes the rows of a transaction visible, all at once.
    pub fn commit(&self, transaction: TransactionId) -> Result<()> {
        let mut state = self.lock();
        let open = state.open.remove(&transaction).ok_or_else(not_open)?;
        for (table, row) in open.writes {
            // A table that was dropped meanwhile takes its rows with it.
            if let Some(stored) = state.tables.get_mut(&table) {
                Arc::make_mut(&mut stored.rows).push(row);
            }
        }
        Ok(())
    }

    /// Forgets a transaction.
    pub fn rollback(&self, transaction: TransactionId) -> Result<()> {
        self.lock().open.remove(&transaction).map(|_| ()).ok_or_else(not_open)
    }

    /// Inserts rows in a transaction of their own.
    pub fn insert_committed(
        &self,
        table: &TableName,
        rows: impl IntoIterator<Item = Row>,
    ) -> Result<()> {
        let transaction = self.begin();
        for row in rows {
            if let Err(error) = self.insert(transaction, table, row) {
                self.rollback(transaction)?;
                return Err(error);
            }
        }
        self.commit(transaction)
    }

    /// Deletes the committed rows that the predicate picks, at once, and returns
    /// how many they were.
    pub fn delete(&self, table: &TableName, picks: impl Fn(&Row) -> bool) -> Result<usize> {
        let mut state = self.lock();
        let stored = state.table_mut(table)?;
        let before = stored.rows.len();
        Arc::make_mut(&mut stored.rows).retain(|row| !picks(row));
        Ok(before.saturating_sub(stored.rows.len()))
    }

    /// Deletes all committed rows.
    pub fn truncate(&self, table: &TableName) -> Result<()> {
        self.lock().table_mut(table)?.rows = Arc::default();
        Ok(())
    }

    /// The committed rows in the order of their commits.
    pub fn rows(&self, table: &TableName) -> Result<Vec<Row>> {
        let state = self.lock();
        Ok(state.table(table)?.rows.iter().map(|row| Row::clone(row)).collect())
    }
}

fn not_open() -> Error {
    Error::new(ErrorKind::NotFound, "the transaction is not open")
}
