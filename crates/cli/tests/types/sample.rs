//! The table of types: what each becomes, and values that must survive.

/// How a value of the database is printed so that the reader prints the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// An expression of the database; `{c}` is the column.
    As(&'static str),
    /// An IEEE float of that many bytes, by its bits.
    Bits,
    /// A document, in which blanks between the parts do not count.
    Json(&'static str),
}

/// A type, and values of it.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// As the database spells it.
    pub(crate) kind: &'static str,
    /// What else the page says of it.
    pub(crate) note: &'static str,
    pub(crate) printed: Printed,
    /// As pyarrow reports it.
    pub(crate) arrow: &'static str,
    /// Whether DuckDB reads such a column as something else.
    pub(crate) duckdb_differs: bool,
    /// Expressions of the database.
    pub(crate) values: &'static [&'static str],
}

/// A value that the type in the lake cannot hold, or that is no value of its type.
pub(crate) struct Odd {
    pub(crate) kind: &'static str,
    /// An expression of the database.
    pub(crate) value: &'static str,
    /// Of `config create`; `{c}` is `schema.table:column`.
    pub(crate) options: &'static str,
    pub(crate) becomes: Becomes,
}

/// What becomes of an odd value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// That text, as the reader prints it, counted by that name where it has one.
    Text(&'static str, Option<&'static str>),
    /// NULL, counted by that name.
    Null(&'static str),
    /// The table fails; message and hint hold these words.
    Error(&'static str, &'static str),
}

/// A sample that both engines read alike.
pub(crate) const fn sample(
    kind: &'static str,
    arrow: &'static str,
    printed: Printed,
    values: &'static [&'static str],
) -> Sample {
    Sample { kind, note: "", printed, arrow, duckdb_differs: false, values }
}

impl Sample {
    pub(crate) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(crate) const fn pyarrow_only(self) -> Self {
        Self { duckdb_differs: true, ..self }
    }
}

/// An odd value.
pub(crate) const fn odd(
    kind: &'static str,
    value: &'static str,
    options: &'static str,
    becomes: Becomes,
) -> Odd {
    Odd { kind, value, options, becomes }
}
