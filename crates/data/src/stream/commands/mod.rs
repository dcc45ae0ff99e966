//! Stream commands.

mod add;
mod groups;
mod ids;
mod info;
mod range;
mod read;
pub(crate) mod read_arguments;
mod references;
mod remove;
mod replies;
mod rows;
#[cfg(test)]
mod tests;
mod trim_arguments;

pub use groups::ROWS as GROUP_ROWS;
pub use rows::ROWS;
