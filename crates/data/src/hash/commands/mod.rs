//! Hash commands.

mod increment;
mod random;
mod read;
mod rows;
mod scan;
#[cfg(test)]
mod tests;
mod write;

pub use rows::ROWS;
