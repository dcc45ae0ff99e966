//! Places on the earth in sorted sets: the GEO commands.

mod add;
mod arguments;
mod members;
mod results;
mod rows;
mod search;
#[cfg(test)]
mod tests;

pub use rows::ROWS;
