//! How a table may change, and what a lake that followed it holds afterwards.

/// What a policy makes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The next run goes on: columns of the lake and their types as DuckDB has them.
    Goes(&'static str),
    /// It stops, and says this.
    Stops(&'static str),
}

/// A table `t` of an `id` and some columns that changes between two runs.
pub(crate) struct Change {
    pub(crate) name: &'static str,
    pub(crate) table: &'static str,
    /// Values after the id, of a row before the change and of one after it.
    pub(crate) before: &'static str,
    pub(crate) alter: &'static str,
    pub(crate) after: &'static str,
    /// Under evolve, ignore and fail.
    pub(crate) then: [(&'static str, Then); 3],
    /// A row that was written before the change, exported before it and after it,
    /// and one that was written after it; each under evolve and ignore.
    pub(crate) rows: [[&'static str; 3]; 2],
}

use Then::{Goes, Stops};

/// `T` stands for the table. The same rows are expected of all sources.
pub(crate) const POSTGRES: &[Change] = &[
    Change {
        name: "added",
        table: "CREATE TABLE T (id bigint PRIMARY KEY, a text)",
        before: "'old'",
        alter: "ALTER TABLE T ADD COLUMN b integer DEFAULT 7",
        after: "'new', 8",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b INTEGER")),
            ("ignore", Goes("id BIGINT, a VARCHAR")),
            ("fail", Stops("column \"b\" (integer, here int32) was added since the last run")),
        ],
        rows: [["old|~", "old|7", "new|8"], ["old", "old", "new"]],
    },
    Change {
        name: "dropped",
        table: "CREATE TABLE T (id bigint PRIMARY KEY, a text NOT NULL, b integer)",
        before: "'old', 1",
        alter: "ALTER TABLE T DROP COLUMN a",
        after: "2",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b INTEGER")),
            ("ignore", Goes("id BIGINT, a VARCHAR, b INTEGER")),
            ("fail", Stops("column \"a\" (text) was dropped since the last run")),
        ],
        rows: [["old|1", "~|1", "~|2"], ["old|1", "~|1", "~|2"]],
    },
    Change {
        name: "renamed",
        table: "CREATE TABLE T (id bigint PRIMARY KEY, a text)",
        before: "'old'",
        alter: "ALTER TABLE T RENAME COLUMN a TO b",
        after: "'new'",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b VARCHAR")),
            ("ignore", Goes("id BIGINT, a VARCHAR")),
            (
                "fail",
                Stops("column \"a\" (text) was dropped, or renamed to \"b\" since the last run"),
            ),
        ],
        rows: [["old|~", "~|old", "~|new"], ["old", "~", "~"]],
    },
    Change {
        name: "widened",
        table: "CREATE TABLE T (id bigint PRIMARY KEY, a smallint, b numeric(6,2), c real)",
        before: "1, 1.25, 0.5",
        alter: "ALTER TABLE T ALTER a TYPE bigint, ALTER b TYPE numeric(10,4), \
                ALTER c TYPE double precision",
        after: "5000000000, 123456.1234, 0.1",
        then: [
            ("evolve", Goes("id BIGINT, a BIGINT, b DECIMAL(10,4), c DOUBLE")),
            (
                "ignore",
                Stops(
                    "column \"a\" changed since the last run: it was smallint, here int16, now it is bigint, here int64",
                ),
            ),
            (
                "fail",
                Stops(
                    "column \"a\" changed since the last run: it was smallint, here int16, now it is bigint, here int64",
                ),
            ),
        ],
        rows: [["1|1.2500|0.5", "1|1.2500|0.5", "5000000000|123456.1234|0.1"], ["", "", ""]],
    },
    Change {
        name: "narrowed",
        table: "CREATE TABLE T (id bigint PRIMARY KEY, a bigint)",
        before: "1",
        alter: "ALTER TABLE T ALTER a TYPE integer",
        after: "2",
        then: [
            (
                "evolve",
                Stops(
                    "column \"a\" changed since the last run: it was bigint, here int64, now it is integer, here int32",
                ),
            ),
            (
                "ignore",
                Stops(
                    "column \"a\" changed since the last run: it was bigint, here int64, now it is integer, here int32",
                ),
            ),
            (
                "fail",
                Stops(
                    "column \"a\" changed since the last run: it was bigint, here int64, now it is integer, here int32",
                ),
            ),
        ],
        rows: [["", "", ""], ["", "", ""]],
    },
    Change {
        name: "reordered",
        table: "CREATE TABLE T (id bigint PRIMARY KEY, a text, b integer)",
        before: "'old', 1",
        alter: "ALTER TABLE T RENAME TO T_before; \
                CREATE TABLE T (b integer, a text, id bigint PRIMARY KEY); \
                INSERT INTO T SELECT b, a, id FROM T_before; DROP TABLE T_before",
        after: "'new', 2",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b INTEGER")),
            ("ignore", Goes("id BIGINT, a VARCHAR, b INTEGER")),
            ("fail", Goes("id BIGINT, a VARCHAR, b INTEGER")),
        ],
        rows: [["old|1", "old|1", "new|2"], ["old|1", "old|1", "new|2"]],
    },
    Change {
        name: "nullable",
        table: "CREATE TABLE T (id bigint PRIMARY KEY, a text NOT NULL)",
        before: "'old'",
        alter: "ALTER TABLE T ALTER a DROP NOT NULL",
        after: "NULL",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR")),
            ("ignore", Goes("id BIGINT, a VARCHAR")),
            ("fail", Goes("id BIGINT, a VARCHAR")),
        ],
        rows: [["old", "old", "~"], ["old", "old", "~"]],
    },
];

pub(crate) const SQLITE: &[Change] = &[
    Change {
        name: "added",
        table: "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT)",
        before: "'old'",
        alter: "ALTER TABLE T ADD COLUMN b INTEGER DEFAULT 7",
        after: "'new', 8",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b BIGINT")),
            ("ignore", Goes("id BIGINT, a VARCHAR")),
            ("fail", Stops("column \"b\" (INTEGER, here int64) was added since the last run")),
        ],
        rows: [["old|~", "old|7", "new|8"], ["old", "old", "new"]],
    },
    Change {
        name: "dropped",
        table: "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b INTEGER)",
        before: "'old', 1",
        alter: "ALTER TABLE T DROP COLUMN a",
        after: "2",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b BIGINT")),
            ("ignore", Goes("id BIGINT, a VARCHAR, b BIGINT")),
            ("fail", Stops("column \"a\" (text) was dropped since the last run")),
        ],
        rows: [["old|1", "~|1", "~|2"], ["old|1", "~|1", "~|2"]],
    },
    Change {
        name: "renamed",
        table: "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT)",
        before: "'old'",
        alter: "ALTER TABLE T RENAME COLUMN a TO b",
        after: "'new'",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b VARCHAR")),
            ("ignore", Goes("id BIGINT, a VARCHAR")),
            (
                "fail",
                Stops("column \"a\" (text) was dropped, or renamed to \"b\" since the last run"),
            ),
        ],
        rows: [["old|~", "~|old", "~|new"], ["old", "~", "~"]],
    },
    Change {
        name: "widened",
        table: "CREATE TABLE T (id INTEGER PRIMARY KEY, a DECIMAL(6,2))",
        before: "1.25",
        alter: "ALTER TABLE T RENAME TO T_before; \
                CREATE TABLE T (id INTEGER PRIMARY KEY, a DECIMAL(10,4)); \
                INSERT INTO T SELECT id, a FROM T_before; DROP TABLE T_before",
        after: "123456.1234",
        then: [
            ("evolve", Goes("id BIGINT, a DECIMAL(10,4)")),
            ("ignore", Stops("it was DECIMAL(6,2), now it is DECIMAL(10,4)")),
            ("fail", Stops("it was DECIMAL(6,2), now it is DECIMAL(10,4)")),
        ],
        rows: [["1.2500", "1.2500", "123456.1234"], ["", "", ""]],
    },
    Change {
        name: "narrowed",
        table: "CREATE TABLE T (id INTEGER PRIMARY KEY, a DECIMAL(10,2))",
        before: "1",
        alter: "ALTER TABLE T RENAME TO T_before; \
                CREATE TABLE T (id INTEGER PRIMARY KEY, a DECIMAL(6,2)); \
                INSERT INTO T SELECT id, a FROM T_before; DROP TABLE T_before",
        after: "2",
        then: [
            ("evolve", Stops("column \"a\" changed since the last run")),
            ("ignore", Stops("column \"a\" changed since the last run")),
            ("fail", Stops("column \"a\" changed since the last run")),
        ],
        rows: [["", "", ""], ["", "", ""]],
    },
    Change {
        name: "reordered",
        table: "CREATE TABLE T (id INTEGER PRIMARY KEY, a TEXT, b INTEGER)",
        before: "'old', 1",
        alter: "ALTER TABLE T RENAME TO T_before; \
                CREATE TABLE T (b INTEGER, a TEXT, id INTEGER PRIMARY KEY); \
                INSERT INTO T SELECT b, a, id FROM T_before; DROP TABLE T_before",
        after: "'new', 2",
        then: [
            ("evolve", Goes("id BIGINT, a VARCHAR, b BIGINT")),
            ("ignore", Goes("id BIGINT, a VARCHAR, b BIGINT")),
            ("fail", Goes("id BIGINT, a VARCHAR, b BIGINT")),
        ],
        rows: [["old|1", "old|1", "new|2"], ["old|1", "old|1", "new|2"]],
    },
];

impl Change {
    pub(crate) fn then(&self, policy: &str) -> Then {
        self.then.iter().find(|(name, _)| *name == policy).unwrap().1
    }

    /// The statement that inserts a row with that id.
    pub(crate) fn insert(&self, table: &str, id: u32, values: &str, is_altered: bool) -> String {
        if self.name == "reordered" && is_altered {
            return format!("INSERT INTO {table} (id, a, b) VALUES ({id}, {values})");
        }
        format!("INSERT INTO {table} VALUES ({id}, {values})")
    }

    /// The statement with the table's name.
    pub(crate) fn sql(statement: &str, table: &str) -> String {
        let words = statement.split_inclusive(|character: char| !is_word(character));
        words
            .map(|word| {
                let name = word.trim_end_matches(|character: char| !is_word(character));
                let rest = &word[name.len()..];
                match name.strip_prefix('T') {
                    Some("") => format!("{table}{rest}"),
                    Some("_before") => format!("{table}_before{rest}"),
                    _ => word.to_owned(),
                }
            })
            .collect()
    }

    /// The rows of the lake: `exported` ids before the change, `late` ids written
    /// before and exported after it, `new` ids written after it.
    pub(crate) fn rows(
        &self,
        policy: &str,
        exported: &[u32],
        late: &[u32],
        new: &[u32],
    ) -> Vec<Vec<Option<String>>> {
        let rows = &self.rows[usize::from(policy != "evolve")];
        // Under fail only what changes nothing goes on, and all three are alike.
        let parts = [(exported, rows[0]), (late, rows[1]), (new, rows[2])];
        let row = |id: &u32, values: &str| {
            let values = values.split('|').map(|value| (value != "~").then(|| value.to_owned()));
            std::iter::once(Some(id.to_string())).chain(values).collect()
        };
        parts.iter().flat_map(|(ids, values)| ids.iter().map(|id| row(id, values))).collect()
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
