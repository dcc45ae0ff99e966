//! How values of all types are stored in rows, and how rows are read.

pub(crate) mod hashed;
pub mod pages;
pub mod ranks;
pub(crate) mod runs;
pub mod split;
