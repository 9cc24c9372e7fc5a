//! Runs that die, are stopped or meet one another, on the real program: whatever
//! happens whenever, the next plain `sync` ends as if it had not happened, and
//! somebody who reads by the manifests never sees half a run.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod fleet;
mod kills;
mod matrix;
mod outages;
mod place;
mod published;
#[path = "../reader/mod.rs"]
mod reader;
mod rivals;
mod server;
mod shop;
mod signals;
#[path = "../terminal/mod.rs"]
mod terminal;
mod uploads;
