//! Commands on keys of any type, and on whole databases.

mod databases;
mod dumping;
mod existence;
mod expiry;
mod listing;
mod memory;
mod moving;
mod object;
mod rows;
pub mod sort;
#[cfg(test)]
mod tests;

pub use rows::ROWS;
