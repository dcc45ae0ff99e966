//! String commands.

mod expiry;
mod get;
mod lcs;
mod number;
mod range;
mod rows;
mod set;
#[cfg(test)]
mod tests;

pub use rows::ROWS;
