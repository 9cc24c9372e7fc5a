//! Storages that are full, closed, throttled or cut off, on the real program: what
//! goes wrong is told with its remedy, nothing is left behind, and the next plain
//! `sync` ends as if it had not happened.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod proxies;
#[path = "../proxy/mod.rs"]
mod proxy;
