//! The fuzzer: libFuzzer around the target that `TIDELAKE_FUZZ_TARGET` names.

#![no_main]
#![allow(unsafe_code, reason = "the engine calls a function by its C name")]

use std::sync::OnceLock;

use tidelake_fuzz::{TARGETS, Target};

fn chosen() -> Target {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("TIDELAKE_FUZZ_TARGET").unwrap_or_default();
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        let found = TARGETS.into_iter().find(|target| target.name == name);
        found.unwrap_or_else(|| panic!("TIDELAKE_FUZZ_TARGET is none of {}", names.join(", ")))
    })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (chosen().run)(bytes));
