//! Stream commands.

mod add;
mod ids;
mod range;
mod replies;
mod rows;
#[cfg(test)]
mod tests;
mod trim_arguments;

pub use rows::ROWS;
