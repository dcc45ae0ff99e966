//! Commands on keys of any type (copies, moves, expiry, DUMP, SORT) and on whole databases.

mod databases;
mod dump;
mod expiry;
pub mod moving;
pub mod object;
mod rows;
mod scan;
pub mod sort;
#[cfg(test)]
mod tests;

pub use crate::keys::rows::ROWS;
