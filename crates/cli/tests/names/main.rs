//! Names that are legal and odd, in every place where a name can stand: schema,
//! table, column, cursor, key, option, path, watermark, output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../promise/database.rs"]
#[allow(dead_code)]
mod database;
#[path = "../reader/mod.rs"]
mod reader;
#[path = "../terminal/mod.rs"]
mod terminal;

mod bench;
mod output;
mod postgres;
mod sqlite;
