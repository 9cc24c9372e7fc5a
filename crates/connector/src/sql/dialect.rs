//! Names and literals in the spelling of one system.

use tidelake_model::TableName;
use tidelake_watermark::Value;

/// How one system spells names and values. No method has a default.
pub trait Dialect: Send + Sync {
    /// A name in the quotes of the dialect, in exact spelling, whatever
    /// characters it holds.
    fn quote(&self, name: &str) -> String;

    /// A cursor value as a literal with an explicit cast, so that it is compared
    /// as the type it has and never as a text that happens to look like it. It
    /// is printed from the typed value only.
    fn literal(&self, value: &Value) -> String;

    /// Whether `(a, b) > (1, 2)` is understood as a comparison of tuples; where
    /// it is not, the comparison is written out.
    fn row_values(&self) -> bool;
}

/// A name in double quotes, with those inside doubled.
pub fn quote_ansi(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in single quotes, with those inside doubled: for dialects in which a
/// backslash means itself. A NUL character stays as it is; where a statement
/// cannot hold one, the dialect has to spell such a text in another way.
pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The table's name with its schema.
pub fn qualified(dialect: &dyn Dialect, table: &TableName) -> String {
    format!("{}.{}", dialect.quote(&table.schema), dialect.quote(&table.table))
}
