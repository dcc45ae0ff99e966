//! The `quoin` program.
fn main() {}
