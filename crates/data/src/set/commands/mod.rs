//! Set commands.

mod algebra;
mod members;
mod random;
mod rows;

pub use rows::ROWS;
