//! `backfill` on the real program: pieces that die after any step and go on, rows
//! that are doubled by nothing, and ranges that are refused.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod pieces;
#[path = "../reader/mod.rs"]
mod reader;
mod refusals;
mod targets;
#[path = "../terminal/mod.rs"]
mod terminal;
mod years;
