//! The promise, end to end: the real program between real servers, and its lake
//! looked at by another reader.
//!
//! Each test makes a database of its own; without servers it says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../reader/mod.rs"]
mod reader;
#[path = "../terminal/mod.rs"]
mod terminal;

mod bench;
mod cron;
mod cursors;
mod database;
mod edits;
mod full_tables;
mod inflight;
mod memory;
mod names;
mod owners;
mod round_trips;
mod secrets;
mod side_b;
mod types;
