//! What works on keys of every type: copies, moves, expiry, DUMP, SORT.

pub mod commands;
pub mod copying;
pub mod migrating;
pub mod sort;
