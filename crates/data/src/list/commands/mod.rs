//! List commands.

mod access;
mod push_pop;
mod rows;

pub use rows::ROWS;
