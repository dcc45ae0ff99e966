//! Any bytes as payloads of RESTORE: see bodies/dump_decoding.rs.
#![no_main]

#[path = "../bodies/dump_decoding.rs"]
mod dump_decoding;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dump_decoding::run(data));
