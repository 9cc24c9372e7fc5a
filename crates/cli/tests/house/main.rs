//! `compact`, `cleanup` and `doctor` on the real program.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod cleaning;
mod compaction;
mod doctors;
#[path = "../reader/mod.rs"]
mod reader;
#[path = "../terminal/mod.rs"]
mod terminal;
#[path = "../backfill/years.rs"]
mod years;
