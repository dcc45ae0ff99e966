//! Commands on keys of any type, and on whole databases.

mod databases;
mod existence;
mod expiry;
mod listing;
mod moving;
mod rows;
#[cfg(test)]
mod tests;

pub use rows::ROWS;
