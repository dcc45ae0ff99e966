//! Set commands.

mod algebra;
mod members;
mod moving;
mod random;
mod rows;
mod scan;
#[cfg(test)]
mod tests;

pub use rows::ROWS;
