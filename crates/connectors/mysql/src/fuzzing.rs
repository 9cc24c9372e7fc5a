//! What the fuzzer and the benchmarks look at; no part of the crate's interface.

pub use crate::decode::{DecodePlan, Wire};
