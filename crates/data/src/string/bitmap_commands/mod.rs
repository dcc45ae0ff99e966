//! Bitmap commands, on strings.

mod bit;
mod count;
mod field;
mod fields;
mod operation;
mod rows;
#[cfg(test)]
mod tests;

pub use rows::ROWS;
