//! Hash commands.

mod expiry;
mod read;
mod rows;
mod write;

pub use rows::ROWS;
