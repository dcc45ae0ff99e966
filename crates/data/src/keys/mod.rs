//! What works on keys of every type: copies, moves, expiry, DUMP, SORT.

pub mod commands;
pub mod copying;
mod key_pattern;
pub mod migrating;
pub mod sort;
