//! Set commands.

mod length;
mod rows;

pub use rows::ROWS;
