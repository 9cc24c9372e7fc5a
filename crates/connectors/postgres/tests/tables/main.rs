//! Every kind of table, and every kind of name.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

#[path = "../common/mod.rs"]
mod common;

mod catalogue;
mod elsewhere;
mod names;
mod trees;
mod wide;
