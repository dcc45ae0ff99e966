//! Commands on strings, bitmaps and HyperLogLogs.

mod bitfield;
mod bitmaps;
mod comparison;
mod get;
mod hyperloglog;
mod increment;
mod increx;
mod lcs;
mod rows;
mod set;

pub use rows::{BITMAP_ROWS, HYPERLOGLOG_ROWS, ROWS};
