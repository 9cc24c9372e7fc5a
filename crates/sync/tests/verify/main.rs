//! `verify` against a source and a lake in memory: everything that can differ is
//! found and named, what is as it should be is no error, and a repair mends it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "these are tests"
)]

mod bounds;
mod differences;
mod files;
mod repairs;
mod shop;
