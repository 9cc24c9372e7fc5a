//! Columns that change between two runs, before and after a crash, and columns
//! that a user chooses: the real program, and its lake read by another reader.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../promise/bench.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod bench;
#[path = "../promise/database.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod database;
#[path = "../reader/mod.rs"]
mod reader;
#[path = "../terminal/mod.rs"]
mod terminal;

mod changes;
mod chosen;
mod crashes;
mod matrix;
mod published;
mod recovery;
mod rights;
