//! Connections that are cut, stalled or refused under a run of the real program,
//! and servers that are no plain primary: whatever happens, the rows are right, or
//! the run says why it ended.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

#[path = "../promise/bench.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod bench;
mod cuts;
#[path = "../promise/database.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod database;
mod ends;
mod poolers;
#[path = "../proxy/mod.rs"]
mod proxy;
#[path = "../reader/mod.rs"]
mod reader;
mod running;
mod standby;
mod state;
#[path = "../terminal/mod.rs"]
mod terminal;
