//! How values of all types lie in rows, and how rows are read.

pub(crate) mod hashed;
pub mod pages;
pub mod ranks;
pub mod read_window;
pub(crate) mod runs;
pub(crate) mod side_by_side;
pub mod sizing;
pub mod split;
