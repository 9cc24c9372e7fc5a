//! `verify` and `explain`, on the real program: rows are changed in the lake by
//! another writer, and in the source by its owner.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

#[path = "../promise/bench.rs"]
mod bench;
#[path = "../promise/database.rs"]
mod database;
#[path = "../reader/mod.rs"]
mod reader;
#[path = "../terminal/mod.rs"]
mod terminal;

mod explained;
mod inject;
mod large;
mod postgres;
mod sqlite;
