//! Every type of every database, end to end: the real program writes the lake, two
//! readers that know nothing of it read the files back, and what they find is
//! compared with what the database itself says. The page of types is made from the
//! same table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../promise/database.rs"]
#[allow(dead_code)]
mod database;
#[path = "../mysql/database.rs"]
#[allow(dead_code, clippy::print_stdout)]
mod mysql_database;
#[path = "../terminal/mod.rs"]
mod terminal;

mod bench;
mod mysql;
mod mysql_table;
mod page;
mod postgres;
mod postgres_table;
mod sample;
mod sqlite;
mod sqlite_table;
