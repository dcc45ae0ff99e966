//! Hash commands.

mod read;
mod rows;
mod write;

pub use rows::ROWS;
