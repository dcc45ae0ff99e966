//! Commands on consumer groups.

mod acknowledge;
mod claim;
mod errors;
mod info;
mod manage;
mod pending;
mod policy;
mod read;
mod rows;
#[cfg(test)]
mod tests;

pub(super) use info::{group_count, groups_in_full, xinfo_consumers, xinfo_groups};
pub use rows::ROWS;
