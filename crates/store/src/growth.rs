//! Whether a store takes more data.

/// Whether a store takes more data. Removing is always possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Yes.
    Free,
    /// No: its data has reached the bound that was set.
    AtBound,
    /// No: its disk has no room.
    DiskFull,
}
