//! Failures that users of other tools reported, each made to happen here if it
//! can: `docs/failures.md` has the whole list, with the tests of other files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../promise/bench.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod bench;
#[path = "../promise/database.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod database;
#[path = "../reader/mod.rs"]
mod reader;
#[path = "../terminal/mod.rs"]
mod terminal;

mod keys;
mod loads;
mod neighbours;
mod settings;
mod state;
