//! Any bytes in any chunks: see bodies/request_parser.rs.
#![no_main]

#[path = "../bodies/request_parser.rs"]
mod request_parser;

libfuzzer_sys::fuzz_target!(|data: &[u8]| request_parser::run(data));
