//! Every type: read back and compared with what the server itself prints.

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

mod casts;
mod catalogue;
mod json;
mod large;
mod oids;
mod policies;
mod printed;
mod samples;
mod scalars;
