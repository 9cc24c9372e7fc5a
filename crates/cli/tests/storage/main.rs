//! Storages that are full, closed, throttled or cut off, on the real program: what
//! goes wrong is told with its remedy, nothing is left behind, and the next plain
//! `sync` ends as if it had not happened.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

#[path = "../promise/bench.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod bench;
mod clouds;
mod corner;
#[path = "../promise/database.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod database;
mod disk;
mod etags;
mod faults;
#[path = "../crash/place.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod place;
mod proxies;
#[path = "../proxy/mod.rs"]
mod proxy;
#[path = "../reader/mod.rs"]
mod reader;
mod rights;
#[path = "../crash/server.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod server;
#[path = "../crash/shop.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod shop;
#[path = "../terminal/mod.rs"]
mod terminal;
