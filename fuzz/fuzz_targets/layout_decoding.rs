//! Any bytes as keys and values: see bodies/layout_decoding.rs.
#![no_main]

#[path = "../bodies/layout_decoding.rs"]
mod layout_decoding;

libfuzzer_sys::fuzz_target!(|data: &[u8]| layout_decoding::run(data));
