//! What must hold for any bytes.
//!
//! Each [`Target`] takes bytes and panics where a law is broken. The fuzzer looks
//! for such bytes (`make fuzz`); `tests/replay.rs` replays those that it kept, with
//! every run of the tests. `docs/fuzzing.md` tells how to add a target.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a target tells what it found"
)]

mod copy;
mod credentials;
mod documents;
mod like;
mod literal;
mod packets;
mod pages;
mod rows;
mod settings;
mod sql_lexer;
mod tables;
mod times;
mod watermark;

/// Something that reads bytes from outside.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// Panics where a law is broken.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 11] = [
    Target { name: "copy", run: copy::target },
    Target { name: "credentials", run: credentials::target },
    Target { name: "documents", run: documents::target },
    Target { name: "like", run: like::target },
    Target { name: "literal", run: literal::target },
    Target { name: "pages", run: pages::target },
    Target { name: "packets", run: packets::target },
    Target { name: "rows", run: rows::target },
    Target { name: "tables", run: tables::target },
    Target { name: "times", run: times::target },
    Target { name: "watermark", run: watermark::target },
];

/// The first byte, and what follows it.
fn take(bytes: &[u8]) -> Option<(u8, &[u8])> {
    bytes.split_first().map(|(first, rest)| (*first, rest))
}

/// Which of several a byte means.
fn pick<T: Copy>(byte: u8, from: &[T]) -> Option<T> {
    from.get(usize::from(byte).checked_rem(from.len())?).copied()
}
