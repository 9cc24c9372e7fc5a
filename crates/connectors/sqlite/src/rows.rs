//! The rows of a statement, cell by cell.
//!
//! `rusqlite` finds each cell anew for its class, its value and its length, and
//! checks the place in the row before. Here a cell is found once: the short way that
//! a table of many columns is read by.

#![allow(unsafe_code, reason = "the cells of a row have no other short way out of SQLite")]

use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result, ffi};

/// A statement that is stepped through its rows.
pub(crate) struct Rows<'c> {
    connection: &'c Connection,
    statement: NonNull<ffi::sqlite3_stmt>,
    columns: c_int,
}

impl<'c> Rows<'c> {
    /// Compiles the first statement of the text.
    pub(crate) fn of(connection: &'c Connection, text: &str) -> Result<Self> {
        let length = c_int::try_from(text.len())
            .map_err(|_| Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None))?;
        let mut statement = ptr::null_mut();
        // SAFETY: the connection is open for as long as it is borrowed, the text has
        // that length, and the end of the statement is not asked for.
        let code = unsafe {
            let database = connection.handle();
            let text = text.as_ptr().cast();
            ffi::sqlite3_prepare_v2(database, text, length, &raw mut statement, ptr::null_mut())
        };
        let Some(statement) = NonNull::new(statement).filter(|_| code == ffi::SQLITE_OK) else {
            return Err(failure(connection, code));
        };
        // SAFETY: the statement has just been compiled.
        let columns = unsafe { ffi::sqlite3_column_count(statement.as_ptr()) };
        Ok(Self { connection, statement, columns })
    }

    /// The next row; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        // SAFETY: the statement lives until `self` is dropped, and what the row before
        // lent out has been given back: `self` is borrowed alone.
        match unsafe { ffi::sqlite3_step(self.statement.as_ptr()) } {
            ffi::SQLITE_ROW => Ok(Some(Row {
                statement: self.statement,
                columns: self.columns,
                rows: PhantomData,
            })),
            ffi::SQLITE_DONE => Ok(None),
            code => Err(failure(self.connection, code)),
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else has the statement, and no row is lent out. The code
        // tells of the last step once more.
        unsafe { ffi::sqlite3_finalize(self.statement.as_ptr()) };
    }
}

/// The error that the connection had last.
fn failure(connection: &Connection, code: c_int) -> Error {
    // SAFETY: the connection is open, and its message is copied before it is used
    // again.
    let message = unsafe {
        let message = ffi::sqlite3_errmsg(connection.handle());
        (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned())
    };
    Error::SqliteFailure(ffi::Error::new(code), message)
}

/// A row, until the next step.
pub(crate) struct Row<'r> {
    statement: NonNull<ffi::sqlite3_stmt>,
    columns: c_int,
    rows: PhantomData<&'r ()>,
}

impl Row<'_> {
    /// The cell in that place, from 0; an error where there is no such place, or no
    /// memory for the cell.
    #[inline]
    pub(crate) fn cell(&self, place: usize) -> Result<ValueRef<'_>> {
        let index = c_int::try_from(place).ok().filter(|index| *index < self.columns);
        let index = index.ok_or(Error::InvalidColumnIndex(place))?;
        // SAFETY: the statement stands at a row, since every step needs `Rows` alone,
        // and has a column of that index. The value is looked at by this thread only,
        // which has the connection to itself: a `Connection` is not shared between
        // threads. Its text and bytes stay in their place until the next step, since
        // each cell is asked for by its own class only.
        unsafe {
            let value = ffi::sqlite3_column_value(self.statement.as_ptr(), index);
            match ffi::sqlite3_value_type(value) {
                ffi::SQLITE_INTEGER => Ok(ValueRef::Integer(ffi::sqlite3_value_int64(value))),
                ffi::SQLITE_FLOAT => Ok(ValueRef::Real(ffi::sqlite3_value_double(value))),
                ffi::SQLITE_TEXT => {
                    // The length is that of the text in UTF-8 only once it was asked for.
                    let text = ffi::sqlite3_value_text(value);
                    let length = length_of(value)?;
                    if text.is_null() {
                        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_NOMEM), None));
                    }
                    Ok(ValueRef::Text(slice::from_raw_parts(text, length)))
                }
                ffi::SQLITE_BLOB => {
                    let bytes = ffi::sqlite3_value_blob(value).cast::<u8>();
                    let length = length_of(value)?;
                    match (length, bytes.is_null()) {
                        // Nothing is nowhere.
                        (0, _) => Ok(ValueRef::Blob(&[])),
                        (_, true) => {
                            Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_NOMEM), None))
                        }
                        _ => Ok(ValueRef::Blob(slice::from_raw_parts(bytes, length))),
                    }
                }
                _ => Ok(ValueRef::Null),
            }
        }
    }
}

/// # Safety
///
/// The value is one of a row that a statement stands at.
unsafe fn length_of(value: *mut ffi::sqlite3_value) -> Result<usize> {
    // SAFETY: as the caller says.
    let length = unsafe { ffi::sqlite3_value_bytes(value) };
    usize::try_from(length)
        .map_err(|_| Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_that_rusqlite_sees() {
        for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
            let connection = Connection::open_in_memory().unwrap();
            connection.pragma_update(None, "encoding", encoding).unwrap();
            let statements = "CREATE TABLE t (a, b, c);
                INSERT INTO t VALUES (1, -1.5, NULL), ('größe 💧', '', x''), (x'00ff', 9e999, 'x');
                INSERT INTO t VALUES (zeroblob(9), 'a' || char(0) || 'b', -9223372036854775808);
                INSERT INTO t VALUES (CAST(x'C328' AS TEXT), 1e300, printf('%.*c', 10000, 'y'))";
            connection.execute_batch(statements).unwrap();
            let text = "SELECT a, b, c, rowid FROM t ORDER BY rowid";
            let mut statement = connection.prepare(text).unwrap();
            let mut wanted = statement.query([]).unwrap();
            let mut found = Rows::of(&connection, text).unwrap();
            let mut count = 0;
            while let Some(row) = wanted.next().unwrap() {
                let cells = found.next().unwrap().unwrap();
                for place in 0..4 {
                    assert_eq!(cells.cell(place).unwrap(), row.get_ref(place).unwrap());
                    // A cell is the same when it is asked for again.
                    assert_eq!(cells.cell(place).unwrap(), row.get_ref(place).unwrap());
                }
                assert!(cells.cell(4).is_err());
                assert!(cells.cell(usize::MAX).is_err());
                count += 1;
            }
            assert!(found.next().unwrap().is_none());
            assert_eq!(count, 5);
        }
    }

    #[test]
    fn errors_are_told_as_rusqlite_tells_them() {
        let connection = Connection::open_in_memory().unwrap();
        let error = Rows::of(&connection, "SELECT a FROM nowhere").err().unwrap();
        assert!(error.to_string().contains("no such table: nowhere"), "{error}");
        assert!(Rows::of(&connection, "").is_err());
        let statement = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            SELECT i FROM n WHERE i < 0";
        let mut rows = Rows::of(&connection, statement).unwrap();
        connection.progress_handler(1, Some(|| true)).unwrap();
        let error = rows.next().err().unwrap();
        let code = error.sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::OperationInterrupted), "{error}");
    }
}
