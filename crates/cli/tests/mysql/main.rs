//! MySQL and MariaDB, end to end: the real program between real servers, and its
//! lake looked at by another reader.
//!
//! Each test makes a database of its own on each of the servers that are there;
//! those that are not are named, and MySQL itself is never required.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "a test that is not run says so")]

#[path = "../proxy/mod.rs"]
mod proxy;
#[path = "../reader/mod.rs"]
mod reader;
#[path = "../terminal/mod.rs"]
mod terminal;

mod bench;
mod crashes;
mod cuts;
mod database;
mod inflight;
mod memory;
mod parallel;
mod refusals;
mod values;
