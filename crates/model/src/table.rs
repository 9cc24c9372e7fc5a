//! Tables and columns as a source's catalogue describes them.

use std::fmt;

use arrow_schema::{Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use tidelake_watermark::Kind;

/// A table's name, in the catalogue's exact spelling.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct TableName {
    /// Schema; a source without schemas calls it `main`.
    pub schema: String,
    /// Table.
    pub table: String,
}

impl TableName {
    /// A name of two parts.
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self { schema: schema.into(), table: table.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.schema, self.table)
    }
}

/// What a relation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// An ordinary table.
    Table,
    /// A parent of partitions, read through itself.
    Partitioned,
    /// A view.
    View,
    /// A table that lives elsewhere.
    Foreign,
}

/// How a column can serve as a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorType {
    /// The kind of its values.
    #[serde(with = "crate::text::kind")]
    pub kind: Kind,
    /// For times: digits after the second that the column keeps.
    pub fraction_digits: u32,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name, Arrow type, nullability, and the Arrow extension type where there
    /// is one (`arrow.uuid`, `arrow.json`).
    pub field: Field,
    /// The type as the source's catalogue prints it.
    pub source_type: String,
    /// How it can serve as a cursor; `None` where it cannot (floats, JSON).
    pub cursor: Option<CursorType>,
    /// Place in the primary key, from 0.
    pub key_position: Option<u32>,
    /// Whether an index begins with it, so that its highest value is cheap.
    pub indexed: bool,
    /// A warning to show when the column is read, for example that its type is
    /// unknown and is carried as text.
    pub warning: Option<String>,
    /// Whether the field's type is not the catalogue's but one that the user chose,
    /// by a cast or a policy: whatever the column holds is to be read as that type.
    #[serde(default)]
    pub chosen: bool,
}

impl Column {
    /// The name in the catalogue's exact spelling.
    pub fn name(&self) -> &str {
        self.field.name()
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Name.
    pub name: TableName,
    /// What it is.
    pub kind: TableKind,
    /// Columns in the catalogue's order.
    pub columns: Vec<Column>,
    /// Rows as the catalogue estimates them.
    pub estimated_rows: Option<u64>,
    /// Bytes as the catalogue estimates them.
    pub estimated_bytes: Option<u64>,
}

impl Table {
    /// The column of that exact name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name() == name)
    }

    /// The Arrow schema of the columns.
    pub fn schema(&self) -> SchemaRef {
        schema_of(&self.columns)
    }

    /// Names of the primary key's columns in their order.
    pub fn key(&self) -> Vec<String> {
        let mut key: Vec<_> = self
            .columns
            .iter()
            .filter_map(|column| Some((column.key_position?, column.name().to_owned())))
            .collect();
        key.sort();
        key.into_iter().map(|(_, name)| name).collect()
    }
}

/// The Arrow schema of some columns.
pub(crate) fn schema_of(columns: &[Column]) -> SchemaRef {
    Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()).into()
}
